// model.c: observes the backward half of llmc/model.h.
#include "llmc/model.h"

#include <stdio.h>

#include "given.h"
#include "given_model.h"
#include "observe.h"

static const GivenTiny given_stepped = {"steps", 4, 5, 1, 2, 4, 2, 4};

// A model after its forward pass.
static void given_forward(GPT2 *model, GivenTiny s, uint64_t seed) {
    int *x = given_batch(s, seed);
    given_model(model, s, seed);
    gpt2_forward(model, x, x + (size_t)s.B * s.T, (size_t)s.B, (size_t)s.T);
    free(x);
}

static int64_t observe_not_0(const float *values, size_t n) {
    int64_t count = 0;
    for (size_t i = 0; i < n; i++) count += values[i] != 0.0f;
    return count;
}

// Zeros where there was nothing, and where there was something; and each tensor in its place, also
// where the first call is behind a smaller batch.
static void case_zero_grad(uint64_t seed) {
    GPT2 m;
    given_forward(&m, given_exams[0], seed);
    gpt2_forward(&m, m.inputs, NULL, 1, 4);
    gpt2_zero_grad(&m);
    observe_int("first", observe_not_0(m.grads_memory, m.num_parameters) +
                             observe_not_0(m.activation_grads_memory, m.num_activations));
    for (size_t i = 0; i < m.num_parameters; i++) m.grads_memory[i] = 1.0f;
    for (size_t i = 0; i < m.num_activations; i++) m.activation_grads_memory[i] = 1.0f;
    const float *before = m.grads_memory;
    gpt2_zero_grad(&m);
    observe_int("grads", observe_not_0(m.grads_memory, m.num_parameters));
    observe_int("activations", observe_not_0(m.activation_grads_memory, m.num_activations));
    observe_int("same_memory", before == m.grads_memory);
    const int32_t places[4] = {
        (int32_t)(m.grads.wte - m.grads_memory),
        (int32_t)(m.grads.lnfb - m.grads_memory - (m.params.lnfb - m.params_memory)),
        (int32_t)(m.activation_grads.encoded - m.activation_grads_memory),
        (int32_t)(m.activation_grads.losses - m.activation_grads_memory -
                  (m.activations.losses - m.activations_memory))};
    observe_i32("places", places, 4);
}

// (16,2) along two directions: tensor by tensor, all layers together. In double.
static void observe_projected(const char *sample, const char *name, const GPT2 *m,
                              const float *memory, int first, int last, uint64_t seed) {
    const size_t L = (size_t)m->config.num_layers;
    const size_t real = (size_t)m->config.vocab_size * m->config.channels;
    uint64_t at = 300000;
    double sums[NUM_PARAMETER_TENSORS][2] = {{0.0}};
    float kept[2 * NUM_PARAMETER_TENSORS];
    for (int i = 0; i < NUM_PARAMETER_TENSORS; i++) {
        const size_t layers = i < 2 || i > 13 ? 1 : L;
        const size_t used = i == 0 ? real : m->param_sizes[i] / layers;
        for (size_t k = 0; k < 2 * used * layers; k++) {
            const size_t layer = k / (2 * used), direction = k / used % 2;
            const double along = 4.0 * ((double)given_unit(seed, at++) - 0.5);
            sums[i][direction] += along * (double)memory[layer * used + k % used];
        }
        memory += m->param_sizes[i];
    }
    size_t count = 0;
    for (int i = first; i < last; i++) {
        for (int k = 0; k < 2; k++) kept[count++] = (float)sums[i][k];
    }
    observe_tensor(sample, name, kept, count);
}

static void case_backward(uint64_t seed) {
    const GivenTiny s = given_exams[0];
    GPT2 m;
    given_forward(&m, s, seed);
    gpt2_zero_grad(&m);
    gpt2_backward(&m);
    given_text(s);
    observe_projected("plain", "gradients", &m, m.grads_memory, 0, NUM_PARAMETER_TENSORS, seed);
    const size_t real = (size_t)s.V * s.C, all = m.param_sizes[0];
    observe_int("padding", observe_not_0(m.grads_memory + real, all - real));
    observe_sample("edge_added", "to gradients that are there: 1/16 everywhere");
    gpt2_zero_grad(&m);
    for (size_t i = 0; i < m.num_parameters; i++) m.grads_memory[i] = 0.0625f;
    gpt2_backward(&m);
    for (size_t i = 0; i < m.num_parameters; i++) m.grads_memory[i] -= 0.0625f;
    observe_projected("edge_added", "gradients", &m, m.grads_memory, 0, NUM_PARAMETER_TENSORS,
                      seed);
    observe_sample("edge_smaller", "the same model, then a batch (1,4)");
    int *x = given_batch(s, seed) + s.T;  // the second sequence: layers differ from what is left
    gpt2_forward(&m, x, x + (size_t)s.B * s.T, 1, 4);
    gpt2_zero_grad(&m);
    gpt2_backward(&m);
    observe_projected("edge_smaller", "gradients", &m, m.grads_memory, 0, NUM_PARAMETER_TENSORS,
                      seed);
}

// What is left out, as in "targets".
static void call_backward(const char *without) {
    GPT2 m;
    const GivenTiny s = given_exams[0];
    int *x = given_batch(s, 0);
    given_model(&m, s, 0);
    gpt2_forward(&m, x, without[0] == 't' ? NULL : x, (size_t)s.B, (size_t)s.T);
    if (without[0] != 'z') gpt2_zero_grad(&m);
    if (without[0] == 'l') m.mean_loss = 0.0f;  // as of a model that is sure, and right
    gpt2_backward(&m);
}

static void case_backward_refused(uint64_t seed) {
    (void)seed;
    observe_ending("good", call_backward, "nothing");
    observe_ending("low", call_backward, "loss");
    observe_ending("targets", call_backward, "targets");
    observe_ending("zero_grad", call_backward, "zero_grad");
}

// Two steps with gradients that are given.
static void case_update(uint64_t seed) {
    static const float decays[2] = {0.0f, 0.5f};
    for (int k = 0; k < 2; k++) {
        const char *name = k == 0 ? "plain" : "decay";
        GPT2 m;
        uint64_t at = 0;
        given_forward(&m, given_stepped, seed);
        gpt2_zero_grad(&m);
        observe_sample(name, k == 0 ? "two steps, decay 0" : "two steps, decay 1/2");
        for (int t = 1; t <= 2; t++) {
            char tensor[32];
            float *g = given_floats(seed, &at, m.num_parameters, 4.0f);
            for (size_t i = 0; i < m.num_parameters; i++) {
                const int is_padding = i >= 20 && i < m.param_sizes[0];  // V C = 20
                m.grads_memory[i] = is_padding ? 0.0f : g[i];
            }
            free(g);
            gpt2_update(&m, 0.25f, 0.875f, 0.96875f, 0x1p-20f, decays[k], t);
            snprintf(tensor, sizeof(tensor), "parameters_after_step_%d", t);
            observe_tensor(name, tensor, m.params_memory, m.num_parameters);
        }
    }
}

static void observe_exams(uint64_t seed, int first, int last) {
    for (size_t i = 0; i < GIVEN_EXAMS; i++) {
        GPT2 m;
        given_forward(&m, given_exams[i], seed);
        gpt2_zero_grad(&m);
        gpt2_backward(&m);
        given_text(given_exams[i]);
        observe_projected(given_exams[i].name, "gradients", &m, m.grads_memory, first, last, seed);
    }
}

static void case_exam_embeddings(uint64_t seed) {
    observe_exams(seed, 0, 2);
}

static void case_exam_attention(uint64_t seed) {
    observe_exams(seed, 4, 8);
}

static void case_exam_mlp(uint64_t seed) {
    observe_exams(seed, 10, 14);
}

// ln1 and ln2 stand between the others.
static void case_exam_norms(uint64_t seed) {
    static const int firsts[3] = {2, 8, 14};
    for (size_t i = 0; i < GIVEN_EXAMS; i++) {
        GPT2 m;
        given_forward(&m, given_exams[i], seed);
        gpt2_zero_grad(&m);
        gpt2_backward(&m);
        given_text(given_exams[i]);
        for (int k = 0; k < 3; k++) {
            static const char *names[3] = {"ln1", "ln2", "lnf"};
            observe_projected(given_exams[i].name, names[k], &m, m.grads_memory, firsts[k],
                              firsts[k] + 2, seed);
        }
    }
}

static void case_exam_steps(uint64_t seed) {
    const GivenTiny s = given_stepped;
    float losses[10];
    GPT2 m;
    int *x = given_batch(s, seed), *y = x + (size_t)s.B * s.T;
    given_model(&m, s, seed);
    for (int t = 1; t <= 10; t++) {
        gpt2_forward(&m, x, y, (size_t)s.B, (size_t)s.T);
        losses[t - 1] = m.mean_loss;
        gpt2_zero_grad(&m);
        gpt2_backward(&m);
        gpt2_update(&m, 0x1p-6f, 0.9f, 0.999f, 1e-8f, 0.125f, t);
    }
    given_text(s);
    observe_tensor(s.name, "losses", losses, 10);
    free(x);
}

// Two whole steps, and nothing is left.
static void case_life(uint64_t seed) {
    GPT2 m;
    const GivenTiny s = given_stepped;
    int *x = given_batch(s, seed);
    given_model(&m, s, seed);
    for (int t = 1; t <= 2; t++) {
        gpt2_forward(&m, x, x + (size_t)s.B * s.T, (size_t)s.B, (size_t)s.T);
        gpt2_zero_grad(&m);
        gpt2_backward(&m);
        gpt2_update(&m, 0.01f, 0.9f, 0.999f, 1e-8f, 0.0f, t);
    }
    observe_f32("params", m.params_memory, m.num_parameters);
    gpt2_free(&m);
    memset(&m, 0, sizeof(m));
    free(x);
    observe_leaks("leaks");
}

const ObserveCase observe_cases[] = {
    {"zero_grad", case_zero_grad},
    {"backward", case_backward},
    {"backward_refused", case_backward_refused},
    {"update", case_update},
    {"exam_embeddings", case_exam_embeddings},
    {"exam_attention", case_exam_attention},
    {"exam_mlp", case_exam_mlp},
    {"exam_norms", case_exam_norms},
    {"exam_steps", case_exam_steps},
    {"life", case_life},
    {NULL, NULL},
};
