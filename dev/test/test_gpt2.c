// test_gpt2.c: the exam: llmc/model.h against what another program made of the same weights and the
// same batch.
//
//     test_gpt2 [MODEL.bin STATE.bin]      logits, loss, every gradient: pass or fail
//     test_gpt2 ... --steps 10 [--lr X] [--decay W]
//                                          trains on that batch: the loss of each step, one a line
//
// Any program may have written the exam; train_gpt2.py writes the one that is taken if none is
// named. The state file: 256 int32 (magic 20240327, version 2, B, T, zeros), x and y (B,T) int32,
// then in float32: logits (B,T,V), the loss, the gradients in the order of Parameters.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llmc/model.h"

#define STATE_MAGIC 20240327
#define STATE_VERSION 2
// Of norm(got - key) / norm(key), for a tensor. Right code in float32 was seen to reach 5e-6 on
// models of up to 124M parameters; half a percent of one wrong term is more than this.
#define TOLERANCE 2e-5

static const char *const NAMES[NUM_PARAMETER_TENSORS] = {
    "wte",  "wpe",  "ln1w", "ln1b", "qkvw",    "qkvb",    "attprojw", "attprojb",
    "ln2w", "ln2b", "fcw",  "fcb",  "fcprojw", "fcprojb", "lnfw",     "lnfb",
};

typedef struct {
    size_t B, T;
    int *x, *y;              // (B,T)
    float *logits;           // (B,T,V)
    float *loss;             // one
    const float *gradients;  // (num_parameters)
} State;

typedef struct {
    const char *model, *state;
    int steps;
    float lr, decay;
} Options;

// Prints a line, and returns 1 if got is off. got, key: rows of n floats, of which the rows of got
// are stride apart. What must be 0, is: NaN is off.
static int differs(const char *name, const float *got, size_t stride, const float *key, size_t rows,
                   size_t n) {
    double error = 0.0, size = 0.0, worst = 0.0;
    int is_number = 1;
    for (size_t i = 0; i < rows * n; i++) {
        const double off = fabs((double)got[i / n * stride + i % n] - (double)key[i]);
        if (!isfinite(off)) is_number = 0;
        error += off * off;
        size += (double)key[i] * (double)key[i];
        worst = fmax(worst, off);
    }
    const int fine = is_number && sqrt(error) <= TOLERANCE * sqrt(size);
    double relative = size > 0.0 ? sqrt(error / size) : 0.0;
    if (size == 0.0 && error > 0.0) relative = INFINITY;
    printf("%-6s %-9s off by %9.3g of its norm, worst element by %9.3g\n", fine ? "ok" : "FAIL",
           name, is_number ? relative : NAN, is_number ? worst : NAN);
    return !fine;
}

static State must_state(const char *path, const GPT2 *model) {
    const char *hint = "run train_gpt2.py again";
    int32_t header[256];
    FILE *file = must_open(path, "rb");
    must_read(header, sizeof(int32_t), 256, file, path);
    if (header[0] != STATE_MAGIC) die("is it the right file?", "%s: no exam", path);
    if (header[1] != STATE_VERSION) {
        die(hint, "%s: version %d, not %d", path, header[1], STATE_VERSION);
    }
    if (header[2] < 1 || header[2] > 1 << 16 || header[3] < 1 ||
        header[3] > model->config.max_seq_len) {
        die(hint, "%s: a batch (%d,%d)", path, header[2], header[3]);
    }
    State s = {.B = (size_t)header[2], .T = (size_t)header[3]};
    const size_t num_logits = s.B * s.T * (size_t)model->config.vocab_size;
    const size_t num_floats = num_logits + 1 + model->num_parameters;
    s.x = must_malloc(2 * s.B * s.T * sizeof(int));
    s.y = s.x + s.B * s.T;
    must_read(s.x, sizeof(int), 2 * s.B * s.T, file, path);
    s.logits = must_malloc(num_floats * sizeof(float));
    s.loss = s.logits + num_logits;
    s.gradients = s.loss + 1;
    must_read(s.logits, sizeof(float), num_floats, file, path);
    if (fgetc(file) != EOF) die("is it this model's?", "%s: longer than its model says", path);
    fclose(file);
    return s;
}

// Returns how many tensors are off.
static int examine(GPT2 *model, const State *s) {
    const size_t V = (size_t)model->config.vocab_size, Vp = (size_t)model->config.padded_vocab_size;
    gpt2_forward(model, s->x, s->y, s->B, s->T);
    int wrong = differs("logits", model->activations.logits, Vp, s->logits, s->B * s->T, V);
    wrong += differs("loss", &model->mean_loss, 1, s->loss, 1, 1);
    gpt2_zero_grad(model);
    gpt2_backward(model);
    size_t at = 0;
    for (int i = 0; i < NUM_PARAMETER_TENSORS; i++) {
        const size_t n = model->param_sizes[i];
        wrong += differs(NAMES[i], model->grads_memory + at, n, s->gradients + at, 1, n);
        at += n;
    }
    return wrong;
}

// Prints the loss before each update.
static void train(GPT2 *model, const State *s, const Options *o) {
    for (int step = 1; step <= o->steps; step++) {
        gpt2_forward(model, s->x, s->y, s->B, s->T);
        printf("%.9g\n", (double)model->mean_loss);
        gpt2_zero_grad(model);
        gpt2_backward(model);
        gpt2_update(model, o->lr, 0.9f, 0.999f, 1e-8f, o->decay, step);
    }
}

static Options must_options(int argc, char **argv) {
    Options o = {"../../.data/gpt2_d2.bin", "../../.data/gpt2_d2_debug_state.bin", 0, 1e-3f, 0.0f};
    int paths = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        char *end = NULL;
        if (strcmp(argv[i], "--steps") == 0) {
            o.steps = (int)strtol(value, &end, 10);
        } else if (strcmp(argv[i], "--lr") == 0) {
            o.lr = strtof(value, &end);
        } else if (strcmp(argv[i], "--decay") == 0) {
            o.decay = strtof(value, &end);
        } else if (argv[i][0] != '-' && paths < 2) {
            *(paths++ == 0 ? &o.model : &o.state) = argv[i];
            continue;
        }
        if (end == NULL || end == value || *end != '\0') {
            fprintf(stderr, "usage: %s [MODEL.bin STATE.bin] [--steps N] [--lr X] [--decay W]\n",
                    argv[0]);
            exit(2);
        }
        i++;
    }
    return o;
}

int main(int argc, char **argv) {
    const Options options = must_options(argc, argv);
    GPT2 model;
    gpt2_build_from_checkpoint(&model, options.model);
    State state = must_state(options.state, &model);
    int wrong = 0;
    if (options.steps > 0) {
        train(&model, &state, &options);
    } else {
        wrong = examine(&model, &state);
        printf("%s\n", wrong ? "FAILED" : "passed");
    }
    gpt2_free(&model);
    free(state.x);
    free(state.logits);
    return wrong > 0;
}
