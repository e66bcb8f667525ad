// layers.c: observes the forward half of llmc/layers.h.
#include "llmc/layers.h"

#include <stdio.h>

#include "given.h"
#include "observe.h"

#define GARBAGE 777.0f  // what an output holds before

typedef struct {
    const char *name, *text;
    int B, T, C;
} GivenShape;

static const GivenShape given_shapes[] = {
    {"plain", "B 2, T 3, C 8", 2, 3, 8},
    {"edge_one", "B 1, T 1, C 1", 1, 1, 1},
    {"edge_odd", "B 2, T 5, C 7", 2, 5, 7},
    {"edge_row", "B 1, T 9, C 4", 1, 9, 4},
};
#define GIVEN_SHAPES (sizeof(given_shapes) / sizeof(given_shapes[0]))

static void case_encoder(uint64_t seed) {
    for (size_t i = 0; i < GIVEN_SHAPES; i++) {
        const GivenShape s = given_shapes[i];
        const size_t n = (size_t)s.B * s.T * s.C;
        uint64_t at = 10000 * i;
        int *inp = given_ints(seed, &at, (size_t)s.B * s.T, 5);
        float *wte = given_floats(seed, &at, 5 * (size_t)s.C, 4.0f);
        float *wpe = given_floats(seed, &at, (size_t)(s.T + 2) * s.C, 4.0f),
              *out = given_same(GARBAGE, n);
        encoder_forward(out, inp, wte, wpe, s.B, s.T, s.C);
        observe_sample(s.name, s.text);
        observe_tensor(s.name, "out", out, n);
        free(inp);
        free(wte);
        free(wpe);
        free(out);
    }
}

typedef struct {
    const char *name, *text;
    int B, T, C;
    float offset, scale;  // of inp
} GivenNormed;

static void case_layernorm(uint64_t seed) {
    static const GivenNormed samples[] = {
        {"plain", "B 2, T 3, C 8", 2, 3, 8, 0.0f, 4.0f},
        {"edge_odd", "B 2, T 5, C 7", 2, 5, 7, 0.0f, 4.0f},
        {"edge_small", "B 1, T 2, C 6, below 0.01", 1, 2, 6, 0.0f, 0.015625f},
        {"edge_far", "B 1, T 3, C 16, mean 4", 1, 3, 16, 4.0f, 4.0f},
        {"edge_one", "B 1, T 1, C 1", 1, 1, 1, 0.0f, 4.0f},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const GivenNormed s = samples[i];
        const size_t rows = (size_t)s.B * s.T, n = rows * s.C;
        uint64_t at = 10000 * i;
        float *inp = given_floats(seed, &at, n, s.scale), *out = given_same(GARBAGE, n);
        for (size_t k = 0; k < n; k++) inp[k] += s.offset;
        float *weight = given_floats(seed, &at, (size_t)s.C, 4.0f);
        float *bias = given_floats(seed, &at, (size_t)s.C, 4.0f);
        float *mean = given_same(GARBAGE, rows), *rstd = given_same(GARBAGE, rows);
        layernorm_forward(out, mean, rstd, inp, weight, bias, s.B, s.T, s.C);
        observe_sample(s.name, s.text);
        observe_tensor(s.name, "out", out, n);
        observe_tensor(s.name, "mean", mean, rows);
        observe_tensor(s.name, "rstd", rstd, rows);
        free(inp);
        free(out);
        free(weight);
        free(bias);
        free(mean);
        free(rstd);
    }
}

typedef struct {
    const char *name, *text;
    int B, T, C, OC, has_bias;
} GivenProduct;

static void case_matmul(uint64_t seed) {
    static const GivenProduct samples[] = {
        {"plain", "B 2, T 3, C 8, OC 4", 2, 3, 8, 4, 1},
        {"edge_odd", "B 1, T 5, C 7, OC 9", 1, 5, 7, 9, 1},
        {"edge_bare", "B 2, T 9, C 3, OC 5, no bias", 2, 9, 3, 5, 0},
        {"edge_OC_1", "B 1, T 3, C 5, OC 1", 1, 3, 5, 1, 1},
        {"edge_one", "B 1, T 1, C 1, OC 1, no bias", 1, 1, 1, 1, 0},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const GivenProduct s = samples[i];
        const size_t rows = (size_t)s.B * s.T;
        uint64_t at = 10000 * i;
        float *inp = given_floats(seed, &at, rows * s.C, 4.0f);
        float *weight = given_floats(seed, &at, (size_t)s.OC * s.C, 4.0f);
        float *bias = given_floats(seed, &at, (size_t)s.OC, 4.0f);
        float *out = given_same(GARBAGE, rows * s.OC);
        matmul_forward(out, inp, weight, s.has_bias ? bias : NULL, s.B, s.T, s.C, s.OC);
        observe_sample(s.name, s.text);
        observe_tensor(s.name, "out", out, rows * s.OC);
        free(inp);
        free(weight);
        free(bias);
        free(out);
    }
}

typedef struct {
    const char *name, *text;
    int B, T, C, NH;
    float scale;   // of inp: large ones make large scores
    int opposite;  // each key is the opposite of its query, so that with T 1 all scores are below 0
} GivenHeads;

static void case_attention(uint64_t seed) {
    static const GivenHeads samples[] = {
        {"plain", "B 2, T 4, C 6, NH 2", 2, 4, 6, 2, 4.0f, 0},
        {"edge_odd", "B 1, T 5, C 9, NH 3", 1, 5, 9, 3, 4.0f, 0},
        {"edge_one", "B 1, T 1, C 1, NH 1", 1, 1, 1, 1, 4.0f, 0},
        {"edge_hs_1", "B 2, T 3, C 4, NH 4", 2, 3, 4, 4, 4.0f, 0},
        {"edge_large", "B 1, T 6, C 4, NH 1, scores of 100s", 1, 6, 4, 1, 32.0f, 0},
        {"edge_low", "B 3, T 1, C 8, NH 1, scores near -250", 3, 1, 8, 1, 32.0f, 1},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const GivenHeads s = samples[i];
        const size_t n = (size_t)s.B * s.T * s.C, scores = (size_t)s.B * s.NH * s.T * s.T;
        uint64_t at = 10000 * i;
        float *inp = given_floats(seed, &at, 3 * n, s.scale), *out = given_same(GARBAGE, n);
        for (size_t k = 0; s.scale > 4.0f && k < 3 * n; k++) inp[k] = floorf(inp[k]);  // exact
        for (size_t k = 0; s.opposite && k < n; k++) {
            float *query = inp + k / s.C * 3 * s.C + k % s.C;
            query[s.C] = -query[0];
        }
        float *preatt = given_same(GARBAGE, scores), *att = given_same(GARBAGE, scores);
        attention_forward(out, preatt, att, inp, s.B, s.T, s.C, s.NH);
        for (size_t k = 0; k < scores; k++) {  // behind t nothing is asked for
            if (k % s.T > k / s.T % s.T) preatt[k] = 0.0f;
        }
        observe_sample(s.name, s.text);
        observe_tensor(s.name, "preatt", preatt, scores);
        observe_tensor(s.name, "att", att, scores);
        observe_tensor(s.name, "out", out, n);
        free(inp);
        free(out);
        free(preatt);
        free(att);
    }
}

static void case_residual(uint64_t seed) {
    for (size_t n = 1; n <= 17; n += 16) {
        const char *name = n == 1 ? "edge_one" : "plain";
        uint64_t at = 1000 * n;
        float *a = given_floats(seed, &at, n, 4.0f), *b = given_floats(seed, &at, n, 4.0f);
        float *out = given_same(GARBAGE, n);
        residual_forward(out, a, b, n);
        observe_sample(name, n == 1 ? "N 1" : "N 17");
        observe_tensor(name, "out", out, n);
        free(a);
        free(b);
        free(out);
    }
}

static void case_gelu(uint64_t seed) {
    for (size_t n = 1; n <= 17; n += 16) {
        const char *name = n == 1 ? "edge_one" : "plain";
        uint64_t at = 1000 * n;
        float *inp = given_floats(seed, &at, n, 8.0f), *out = given_same(GARBAGE, n);
        gelu_forward(out, inp, n);
        observe_sample(name, n == 1 ? "N 1" : "N 17");
        observe_tensor(name, "out", out, n);
        free(inp);
        free(out);
    }
    float ends[4] = {-20.0f, 20.0f, 0.0f, -1000.0f}, out[4];
    gelu_forward(out, ends, 4);
    observe_sample("edge_far", "-20, 20, 0, -1000");
    observe_tensor("edge_far", "out", out, 4);
}

typedef struct {
    const char *name, *text;
    int B, T, V, Vp;
    float offset, scale;  // of logits
    float peak;           // what is added to logit t of row t
} GivenLogits;

static void case_softmax(uint64_t seed) {
    static const GivenLogits samples[] = {
        {"plain", "B 2, T 3, V 5, Vp 5", 2, 3, 5, 5, 0.0f, 4.0f, 0.0f},
        {"edge_padded", "B 1, T 4, V 5, Vp 8", 1, 4, 5, 8, 0.0f, 4.0f, 0.0f},
        {"edge_large", "B 2, T 2, V 7, Vp 128, up to 80", 2, 2, 7, 128, 0.0f, 160.0f, 0.0f},
        {"edge_low", "B 1, T 2, V 4, Vp 4, near -800", 1, 2, 4, 4, -800.0f, 4.0f, 0.0f},
        {"edge_one", "B 1, T 1, V 1, Vp 128", 1, 1, 1, 128, 0.0f, 4.0f, 0.0f},
        {"edge_peak", "B 1, T 4, V 4, Vp 4, 200 at logit t", 1, 4, 4, 4, 0.0f, 4.0f, 200.0f},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const GivenLogits s = samples[i];
        const size_t n = (size_t)s.B * s.T * s.Vp;
        uint64_t at = 10000 * i;
        float *logits = given_floats(seed, &at, n, s.scale), *probs = given_same(GARBAGE, n);
        for (size_t k = 0; k < n; k++) logits[k] += (int)(k % s.Vp) < s.V ? s.offset : 1000.0f;
        for (int t = 0; t < s.T && t < s.V; t++) logits[t * s.Vp + t] += s.peak;
        softmax_forward(probs, logits, s.B, s.T, s.V, s.Vp);
        observe_sample(s.name, s.text);
        observe_tensor(s.name, "probs", probs, n);
        free(logits);
        free(probs);
    }
}

static void case_crossentropy(uint64_t seed) {
    for (size_t i = 0; i < GIVEN_SHAPES; i++) {
        const GivenShape s = given_shapes[i];
        const size_t rows = (size_t)s.B * s.T;
        const int Vp = s.C + 3;  // tokens are below C
        uint64_t at = 10000 * i;
        float *probs = given_floats(seed, &at, rows * Vp, 1.0f),
              *losses = given_same(GARBAGE, rows);
        for (size_t k = 0; k < rows * Vp; k++) probs[k] += 0.5f;
        int *targets = given_ints(seed, &at, rows, s.C);
        targets[rows - 1] = s.C - 1;
        crossentropy_forward(losses, probs, targets, s.B, s.T, Vp);
        observe_sample(s.name, s.text);
        observe_tensor(s.name, "losses", losses, rows);
        free(probs);
        free(losses);
        free(targets);
    }
}

const ObserveCase observe_cases[] = {
    {"encoder", case_encoder},     {"layernorm", case_layernorm},       {"matmul", case_matmul},
    {"attention", case_attention}, {"residual", case_residual},         {"gelu", case_gelu},
    {"softmax", case_softmax},     {"crossentropy", case_crossentropy}, {NULL, NULL},
};
