// layers.c: observes the backward half of llmc/layers.h. Gradients are not 0 before: they add up.
#include "llmc/layers.h"

#include <stdio.h>

#include "given.h"
#include "observe.h"

#define GIVEN_EPS 1e-5

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
        const size_t rows = (size_t)s.B * s.T, vocabulary = 5 * (size_t)s.C;
        const size_t positions = (size_t)(s.T + 2) * s.C;
        uint64_t at = 10000 * i;
        int *inp = given_ints(seed, &at, rows, 5);
        inp[0] = inp[rows - 1];  // a token that occurs twice
        float *dout = given_floats(seed, &at, rows * s.C, 4.0f);
        float *dwte = given_floats(seed, &at, vocabulary, 4.0f);
        float *dwpe = given_floats(seed, &at, positions, 4.0f);
        encoder_backward(dwte, dwpe, dout, inp, s.B, s.T, s.C);
        observe_sample(s.name, s.text);
        observe_tensor(s.name, "dwte", dwte, vocabulary);
        observe_tensor(s.name, "dwpe", dwpe, positions);
        free(inp);
        free(dout);
        free(dwte);
        free(dwpe);
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
        {"edge_small", "B 1, T 2, C 6, below 0.1", 1, 2, 6, 0.0f, 0.125f},
        {"edge_far", "B 1, T 3, C 16, mean 4", 1, 3, 16, 4.0f, 4.0f},
        {"edge_one", "B 1, T 1, C 1", 1, 1, 1, 0.0f, 4.0f},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const GivenNormed s = samples[i];
        const size_t rows = (size_t)s.B * s.T, C = (size_t)s.C, n = rows * C;
        uint64_t at = 10000 * i;
        float *inp = given_floats(seed, &at, n, s.scale),
              *weight = given_floats(seed, &at, C, 4.0f);
        float *mean = given_same(0.0f, rows), *rstd = given_same(0.0f, rows);
        for (size_t row = 0; row < rows; row++) {  // what a right forward leaves
            double sum = 0.0, squares = 0.0;
            for (size_t c = 0; c < C; c++) sum += (double)(inp[row * C + c] += s.offset);
            for (size_t c = 0; c < C; c++) squares += pow(inp[row * C + c] - sum / (double)C, 2);
            mean[row] = (float)(sum / (double)C);
            rstd[row] = (float)(1.0 / sqrt(squares / (double)C + GIVEN_EPS));
        }
        float *dout = given_floats(seed, &at, n, 4.0f), *dinp = given_floats(seed, &at, n, 4.0f);
        float *dweight = given_floats(seed, &at, C, 4.0f),
              *dbias = given_floats(seed, &at, C, 4.0f);
        layernorm_backward(dinp, dweight, dbias, dout, inp, weight, mean, rstd, s.B, s.T, s.C);
        observe_sample(s.name, s.text);
        observe_tensor(s.name, "dinp", dinp, n);
        observe_tensor(s.name, "dweight", dweight, C);
        observe_tensor(s.name, "dbias", dbias, C);
        free(inp);
        free(weight);
        free(mean);
        free(rstd);
        free(dout);
        free(dinp);
        free(dweight);
        free(dbias);
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
        const size_t rows = (size_t)s.B * s.T, C = (size_t)s.C, OC = (size_t)s.OC;
        uint64_t at = 10000 * i;
        float *inp = given_floats(seed, &at, rows * C, 4.0f);
        float *weight = given_floats(seed, &at, OC * C, 4.0f);
        float *dout = given_floats(seed, &at, rows * OC, 4.0f);
        float *dinp = given_floats(seed, &at, rows * C, 4.0f);
        float *dweight = given_floats(seed, &at, OC * C, 4.0f);
        float *dbias = given_floats(seed, &at, OC, 4.0f);
        matmul_backward(dinp, dweight, s.has_bias ? dbias : NULL, dout, inp, weight, s.B, s.T, s.C,
                        s.OC);
        observe_sample(s.name, s.text);
        observe_tensor(s.name, "dinp", dinp, rows * C);
        observe_tensor(s.name, "dweight", dweight, OC * C);
        observe_tensor(s.name, "dbias", dbias, OC);  // left alone where there is no bias
        free(inp);
        free(weight);
        free(dout);
        free(dinp);
        free(dweight);
        free(dbias);
    }
}

typedef struct {
    const char *name, *text;
    int B, T, C, NH;
} GivenHeads;

// att (B,NH,T,T): what a right forward leaves.
static float *given_att(const float *inp, GivenHeads s) {
    const size_t hs = (size_t)s.C / s.NH, row = 3 * (size_t)s.C;
    float *att = given_same(0.0f, (size_t)s.B * s.NH * s.T * s.T);
    for (size_t bht = 0; bht < (size_t)s.B * s.NH * s.T; bht++) {
        const size_t t = bht % s.T, h = bht / s.T % s.NH, b = bht / s.T / s.NH;
        const float *queries = inp + b * s.T * row + h * hs, *keys = queries + s.C;
        double scores[16], largest = -INFINITY, sum = 0.0;
        for (size_t t2 = 0; t2 <= t; t2++) {
            scores[t2] = 0.0;
            for (size_t c = 0; c < hs; c++) {
                scores[t2] += (double)queries[t * row + c] * (double)keys[t2 * row + c];
            }
            scores[t2] /= sqrt((double)hs);
            largest = fmax(largest, scores[t2]);
        }
        for (size_t t2 = 0; t2 <= t; t2++) sum += exp(scores[t2] - largest);
        for (size_t t2 = 0; t2 <= t; t2++) {
            att[bht * s.T + t2] = (float)(exp(scores[t2] - largest) / sum);
        }
    }
    return att;
}

static void case_attention(uint64_t seed) {
    static const GivenHeads samples[] = {
        {"plain", "B 2, T 4, C 6, NH 2", 2, 4, 6, 2},
        {"edge_odd", "B 1, T 5, C 9, NH 3", 1, 5, 9, 3},
        {"edge_one", "B 1, T 1, C 1, NH 1", 1, 1, 1, 1},
        {"edge_hs_1", "B 2, T 3, C 4, NH 4", 2, 3, 4, 4},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const GivenHeads s = samples[i];
        const size_t n = (size_t)s.B * s.T * s.C, scores = (size_t)s.B * s.NH * s.T * s.T;
        uint64_t at = 10000 * i;
        float *inp = given_floats(seed, &at, 3 * n, 4.0f), *dout = given_floats(seed, &at, n, 4.0f);
        float *dinp = given_floats(seed, &at, 3 * n, 4.0f), *att = given_att(inp, s);
        float *dpreatt = given_same(0.0f, scores), *datt = given_same(0.0f, scores);
        attention_backward(dinp, dpreatt, datt, dout, inp, att, s.B, s.T, s.C, s.NH);
        for (size_t k = 0; k < scores; k++) {  // behind t nothing is asked for
            if (k % s.T > k / s.T % s.T) datt[k] = 0.0f;
        }
        observe_sample(s.name, s.text);
        observe_tensor(s.name, "datt", datt, scores);
        observe_tensor(s.name, "dpreatt", dpreatt, scores);
        observe_tensor(s.name, "dinp", dinp, 3 * n);
        free(inp);
        free(dout);
        free(dinp);
        free(att);
        free(dpreatt);
        free(datt);
    }
}

static void case_residual(uint64_t seed) {
    for (size_t n = 1; n <= 17; n += 16) {
        const char *name = n == 1 ? "edge_one" : "plain";
        uint64_t at = 1000 * n;
        float *dout = given_floats(seed, &at, n, 4.0f);
        float *a = given_floats(seed, &at, n, 4.0f), *b = given_floats(seed, &at, n, 4.0f);
        residual_backward(a, b, dout, n);
        observe_sample(name, n == 1 ? "N 1" : "N 17");
        observe_tensor(name, "dinp1", a, n);
        observe_tensor(name, "dinp2", b, n);
        free(dout);
        free(a);
        free(b);
    }
}

static void case_gelu(uint64_t seed) {
    for (size_t n = 1; n <= 17; n += 16) {
        const char *name = n == 1 ? "edge_one" : "plain";
        uint64_t at = 1000 * n;
        float *inp = given_floats(seed, &at, n, 8.0f), *dout = given_floats(seed, &at, n, 4.0f);
        float *dinp = given_floats(seed, &at, n, 4.0f);
        gelu_backward(dinp, inp, dout, n);
        observe_sample(name, n == 1 ? "N 1" : "N 17");
        observe_tensor(name, "dinp", dinp, n);
        free(inp);
        free(dout);
        free(dinp);
    }
    const float ends[4] = {-20.0f, 20.0f, 0.0f, -1000.0f}, ones[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    float dinp[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    gelu_backward(dinp, ends, ones, 4);
    observe_sample("edge_far", "-20, 20, 0, -1000");
    observe_tensor("edge_far", "dinp", dinp, 4);
}

typedef struct {
    const char *name, *text;
    int B, T, V, Vp;
} GivenLogits;

static void case_crossentropy_softmax(uint64_t seed) {
    static const GivenLogits samples[] = {
        {"plain", "B 2, T 3, V 5, Vp 5", 2, 3, 5, 5},
        {"edge_padded", "B 1, T 4, V 5, Vp 8", 1, 4, 5, 8},
        {"edge_one", "B 1, T 1, V 1, Vp 128", 1, 1, 1, 128},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const GivenLogits s = samples[i];
        const size_t rows = (size_t)s.B * s.T, n = rows * s.Vp;
        uint64_t at = 10000 * i;
        float *probs = given_floats(seed, &at, n, 1.0f),
              *dlogits = given_floats(seed, &at, n, 4.0f);
        for (size_t k = 0; k < n; k++) probs[k] = (int)(k % s.Vp) < s.V ? probs[k] + 0.5f : 0.0f;
        float *dlosses = given_floats(seed, &at, rows, 4.0f);
        int *targets = given_ints(seed, &at, rows, s.V);
        targets[rows - 1] = s.V - 1;
        crossentropy_softmax_backward(dlogits, dlosses, probs, targets, s.B, s.T, s.V, s.Vp);
        observe_sample(s.name, s.text);
        observe_tensor(s.name, "dlogits", dlogits, n);
        free(probs);
        free(dlogits);
        free(dlosses);
        free(targets);
    }
}

const ObserveCase observe_cases[] = {
    {"encoder", case_encoder},
    {"layernorm", case_layernorm},
    {"matmul", case_matmul},
    {"attention", case_attention},
    {"residual", case_residual},
    {"gelu", case_gelu},
    {"crossentropy_softmax", case_crossentropy_softmax},
    {NULL, NULL},
};
