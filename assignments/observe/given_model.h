// given_model.h: tiny GPT-2s for probes of llmc/model.h, with weights and batches as in tiny.py.
#ifndef GIVEN_MODEL_H
#define GIVEN_MODEL_H

#include "llmc/model.h"

#include "given.h"
#include "observe.h"

typedef struct {
    const char *name;
    int maxT, V, L, NH, C, B, T;
} GivenTiny;

static const GivenTiny given_exams[] = {
    {"plain", 7, 19, 2, 3, 12, 2, 7},  {"edge_short", 9, 131, 1, 2, 6, 3, 4},
    {"edge_one", 4, 7, 1, 1, 5, 1, 1}, {"heads", 5, 128, 3, 4, 8, 2, 5},
    {"odd", 6, 129, 1, 3, 9, 1, 5},    {"row", 16, 5, 2, 1, 8, 1, 16},
};
#define GIVEN_EXAMS (sizeof(given_exams) / sizeof(given_exams[0]))

static inline GPT2Config given_config(GivenTiny s) {
    const GPT2Config config = {.max_seq_len = s.maxT,
                               .vocab_size = s.V,
                               .padded_vocab_size = (s.V + 127) / 128 * 128,
                               .num_layers = s.L,
                               .num_heads = s.NH,
                               .channels = s.C};
    return config;
}

// Puts numbers from place *at on into all parameters but the padding, those of norms around 1.
static inline void given_parameters(GPT2 *model, uint64_t seed) {
    const size_t real = (size_t)model->config.vocab_size * model->config.channels;
    uint64_t at = 100000;
    float *tensor = model->params_memory;
    for (int i = 0; i < NUM_PARAMETER_TENSORS; i++) {
        const size_t size = model->param_sizes[i], used = i == 0 ? real : size;
        const float middle = i == 2 || i == 8 || i == 14 ? 1.0f : 0.0f;  // ln1w, ln2w, lnfw
        for (size_t k = 0; k < used; k++) {
            tensor[k] = middle + (given_unit(seed, at++) - 0.5f);
        }
        tensor += size;
    }
}

static inline void given_model(GPT2 *model, GivenTiny s, uint64_t seed) {
    gpt2_allocate(model, given_config(s));
    given_parameters(model, seed);
}

// x (B,T) tokens, and the targets y (B,T) behind them in the same block.
static inline int *given_batch(GivenTiny s, uint64_t seed) {
    const size_t rows = (size_t)s.B, T = (size_t)s.T;
    uint64_t at = 200000;
    int *drawn = given_ints(seed, &at, rows * (T + 1), s.V);
    int *batch = malloc(2 * rows * T * sizeof(int));
    if (batch == NULL) abort();
    drawn[rows * (T + 1) - 1] = s.V - 1;
    for (size_t i = 0; i < rows * T; i++) {
        batch[i] = drawn[i / T * (T + 1) + i % T];
        batch[rows * T + i] = drawn[i / T * (T + 1) + i % T + 1];
    }
    free(drawn);
    return batch;
}

static inline void given_text(GivenTiny s) {
    char text[128];
    snprintf(text, sizeof(text), "L %d, NH %d, C %d, V %d, B %d, T %d", s.L, s.NH, s.C, s.V, s.B,
             s.T);
    observe_sample(s.name, text);
}

// The logits (B,T,V) of the last forward, without the padding.
static inline void observe_logits(const char *name, const GPT2 *model, size_t rows) {
    const size_t V = (size_t)model->config.vocab_size, Vp = (size_t)model->config.padded_vocab_size;
    float *logits = malloc(rows * V * sizeof(float));
    if (logits == NULL) abort();
    for (size_t i = 0; i < rows * V; i++) {
        logits[i] = model->activations.logits[i / V * Vp + i % V];
    }
    observe_f32(name, logits, rows * V);
    free(logits);
}

#endif
