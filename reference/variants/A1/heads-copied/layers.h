// layers.h: C89 habits, declarations at the top; a matmul in i-k-j order over a transposed copy of the weight; an
// attention that first copies q, k and v of each head; memcpy, then add.
//
// Shapes: B sequences in a batch, T positions, C channels, NH heads, OC output channels, V tokens,
// Vp >= V the vocabulary padded for the hardware. Arrays are row-major and do not overlap.
//
// A forward writes its outputs. A backward adds to every gradient that it produces (names with d),
// because a tensor may be used more than once: whoever starts a pass sets them to 0.
#ifndef LLMC_LAYERS_H
#define LLMC_LAYERS_H

#include <stdlib.h>
#include <string.h>

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "todo.h"

#define LAYERNORM_EPS 1e-5f
#define GELU_SCALE 0.79788456080286536f  // sqrt(2 / pi)
#define GELU_CUBIC 0.044715f

// Given: the sum of x[i] * y[i], over n floats of each. Eight sums side by side are what a
// processor adds at once; a compiler may not change the order of one sum by itself.
static inline float dot(const float *x, const float *y, size_t n) {
    float lanes[8] = {0.0f}, sum = 0.0f;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (size_t lane = 0; lane < 8; lane++) lanes[lane] += x[i + lane] * y[i + lane];
    }
    for (; i < n; i++) sum += x[i] * y[i];
    for (size_t lane = 0; lane < 8; lane++) sum += lanes[lane];
    return sum;
}

// Given: y (n) += a * x (n).
static inline void axpy(float *y, float a, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += a * x[i];
}

// out (B,T,C) = wte[inp[b,t]] + wpe[t].
// inp (B,T) tokens, wte (V,C), wpe (at least T, C).
static inline void encoder_forward(float *out, const int *inp, const float *wte, const float *wpe,
                                   int B, int T, int C) {
    int b, t;
    float *row;

    for (b = 0; b < B; b++) {
        memcpy(out + (size_t)b * T * C, wpe, (size_t)T * C * sizeof(float));
        for (t = 0; t < T; t++) {
            row = out + ((size_t)b * T + t) * C;
            axpy(row, 1.0f, wte + (size_t)inp[b * T + t] * C, C);
        }
    }
}

// dwte (V,C), dwpe (at least T, C) += from dout (B,T,C); inp (B,T) tokens.
static inline void encoder_backward(float *dwte, float *dwpe, const float *dout, const int *inp,
                                    int B, int T, int C) {
    // TODO (A2): encoder_backward
    // HINT: a token that occurs twice gets both gradients, a position those of all sequences.
    TODO("A2: encoder_backward");
}

// out (B,T,C) = (inp - mean) * rstd * weight + bias, each position by itself.
// mean (B,T) over the channels; rstd (B,T) = 1 / sqrt(variance + 1e-5), the variance divided by C.
// inp (B,T,C), weight (C), bias (C).
static inline void layernorm_forward(float *out, float *mean, float *rstd, const float *inp,
                                     const float *weight, const float *bias, int B, int T, int C) {
    int i, c;
    float m, v, r;

    for (i = 0; i < B * T; i++) {
        const float *x = inp + (size_t)i * C;
        float *y = out + (size_t)i * C;
        m = v = 0;
        for (c = 0; c < C; c++)
            m += x[c];
        m *= 1.0f / C;
        for (c = 0; c < C; c++) {
            y[c] = x[c] - m;            /* centred, in place from here on */
            v += y[c] * y[c];
        }
        v *= 1.0f / C;
        r = powf(v + LAYERNORM_EPS, -0.5f);
        for (c = 0; c < C; c++)
            y[c] *= r;
        for (c = 0; c < C; c++)
            y[c] *= weight[c];
        for (c = 0; c < C; c++)
            y[c] += bias[c];
        mean[i] = m;
        rstd[i] = r;
    }
}

// dinp (B,T,C), dweight (C), dbias (C) += from dout (B,T,C).
// inp (B,T,C), weight (C); mean, rstd (B,T) as the forward left them.
static inline void layernorm_backward(float *dinp, float *dweight, float *dbias, const float *dout,
                                      const float *inp, const float *weight, const float *mean,
                                      const float *rstd, int B, int T, int C) {
    // TODO (A2): layernorm_backward
    // HINT: mean and rstd depend on inp, too: of dnorm = dout * weight two means over the channels
    // are taken off.
    TODO("A2: layernorm_backward");
}

/* A new array of size bytes, or the end. */
static void *grab(size_t size)
{
    void *p = malloc(size);
    if (!p)
        abort();
    return p;
}

// out (B,T,OC) = inp (B,T,C) times weight (OC,C) transposed, + bias (OC); bias may be NULL.
static inline void matmul_forward(float *out, const float *inp, const float *weight,
                                  const float *bias, int B, int T, int C, int OC) {
    int i, j, k;
    float *turned = grab((size_t)C * OC * sizeof(float));   /* (C,OC) */

    for (j = 0; j < OC; j++)
        for (k = 0; k < C; k++)
            turned[(size_t)k * OC + j] = weight[(size_t)j * C + k];
    for (i = 0; i < B * T; i++) {
        float *y = out + (size_t)i * OC;
        if (bias)
            memcpy(y, bias, OC * sizeof(float));
        else
            memset(y, 0, OC * sizeof(float));
        for (k = 0; k < C; k++)
            for (j = 0; j < OC; j++)
                y[j] += inp[(size_t)i * C + k] * turned[(size_t)k * OC + j];
    }
    free(turned);
}

// dinp (B,T,C), dweight (OC,C), dbias (OC) += from dout (B,T,OC); dbias may be NULL.
// inp (B,T,C), weight (OC,C).
static inline void matmul_backward(float *dinp, float *dweight, float *dbias, const float *dout,
                                   const float *inp, const float *weight, int B, int T, int C,
                                   int OC) {
    // TODO (A2): matmul_backward
    // HINT: three gradients: of inp a sum over outputs, of weight and bias sums over positions.
    TODO("A2: matmul_backward");
}

/* One head's part of q, k or v (which: 0, 1, 2) of one sequence, as an array (T,hs). */
static void copy_head(float *to, const float *inp, int which, int h, int T, int C, int hs)
{
    int t;

    for (t = 0; t < T; t++)
        memcpy(to + (size_t)t * hs, inp + ((size_t)t * 3 + which) * C + (size_t)h * hs, hs * sizeof(float));
}

/* Softmax of n numbers, in place. */
static void softmax_row(float *x, int n)
{
    int i;
    float max = x[0], sum = 0, inverse;

    for (i = 1; i < n; i++)
        if (x[i] > max)
            max = x[i];
    for (i = 0; i < n; i++) {
        x[i] = expf(x[i] - max);
        sum += x[i];
    }
    inverse = 1 / sum;
    for (i = 0; i < n; i++)
        x[i] *= inverse;
}

// Causal self-attention: a position looks at itself and at those before it.
// out (B,T,C) = att times the values, the heads side by side.
// preatt (B,NH,T,T) = query t . key t2 / sqrt(C / NH) for t2 <= t; the rest is left open.
// att (B,NH,T,T) = softmax of preatt over t2 <= t; 0 for t2 > t.
// inp (B,T,3C): queries, keys, values, C each; head h holds C / NH neighbouring channels of each.
static inline void attention_forward(float *out, float *preatt, float *att, const float *inp, int B,
                                     int T, int C, int NH) {
    int b, h, i, j, hs = C / NH;
    size_t size = (size_t)T * hs * sizeof(float);
    float *q = grab(size), *k = grab(size), *v = grab(size), *y = grab(size);
    float root = sqrtf(hs);

    for (b = 0; b < B; b++)
        for (h = 0; h < NH; h++) {
            float *scores = preatt + ((size_t)b * NH + h) * T * T;
            float *shares = att + ((size_t)b * NH + h) * T * T;
            copy_head(q, inp + (size_t)b * T * 3 * C, 0, h, T, C, hs);
            copy_head(k, inp + (size_t)b * T * 3 * C, 1, h, T, C, hs);
            copy_head(v, inp + (size_t)b * T * 3 * C, 2, h, T, C, hs);
            for (i = 0; i < T * hs; i++)
                q[i] /= root;
            /* all scores, also those behind t: nobody minds */
            matmul_forward(scores, q, k, NULL, 1, T, hs, T);
            memset(shares, 0, (size_t)T * T * sizeof(float));
            memset(y, 0, size);
            for (i = 0; i < T; i++) {
                memcpy(shares + (size_t)i * T, scores + (size_t)i * T, (i + 1) * sizeof(float));
                softmax_row(shares + (size_t)i * T, i + 1);
                for (j = 0; j <= i; j++)
                    axpy(y + (size_t)i * hs, shares[(size_t)i * T + j], v + (size_t)j * hs, hs);
                memcpy(out + ((size_t)b * T + i) * C + (size_t)h * hs, y + (size_t)i * hs, hs * sizeof(float));
            }
        }
    free(q);
    free(k);
    free(v);
    free(y);
}

// dinp (B,T,3C), dpreatt (B,NH,T,T), datt (B,NH,T,T) += from dout (B,T,C).
// inp (B,T,3C); att (B,NH,T,T) as the forward left it.
static inline void attention_backward(float *dinp, float *dpreatt, float *datt, const float *dout,
                                      const float *inp, const float *att, int B, int T, int C,
                                      int NH) {
    // TODO (A2): attention_backward
    // HINT: backwards through the three steps: values and att, softmax, queries and keys. With
    // datt and dpreatt set to 0 before, what is in them is what arrived.
    TODO("A2: attention_backward");
}

// out (N) = inp1 (N) + inp2 (N).
static inline void residual_forward(float *out, const float *inp1, const float *inp2, size_t N) {
    memcpy(out, inp1, N * sizeof *out);
    axpy(out, 1.0f, inp2, N);
}

// dinp1 (N), dinp2 (N) += from dout (N).
static inline void residual_backward(float *dinp1, float *dinp2, const float *dout, size_t N) {
    // TODO (A2): residual_backward
    // HINT: a sum hands its gradient to both.
    TODO("A2: residual_backward");
}

// out (N) = gelu(inp (N)), the tanh form:
// gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
static inline void gelu_forward(float *out, const float *inp, size_t N) {
    size_t i;
    float cube, inner;

    for (i = 0; i < N; i++) {
        cube = powf(inp[i], 3.0f);
        inner = GELU_SCALE * (inp[i] + GELU_CUBIC * cube);
        out[i] = 0.5f * inp[i] + 0.5f * inp[i] * tanhf(inner);
    }
}

// dinp (N) += from dout (N); inp (N) what the forward was given.
static inline void gelu_backward(float *dinp, const float *inp, const float *dout, size_t N) {
    // TODO (A2): gelu_backward
    // HINT: x stands before the bracket and inside the tanh: a product of two functions of x.
    TODO("A2: gelu_backward");
}

// probs (B,T,Vp) = softmax of the first V logits of each position; 0 for the padding.
// logits (B,T,Vp), of any size: exp must not overflow.
static inline void softmax_forward(float *probs, const float *logits, int B, int T, int V, int Vp) {
    int i;

    memset(probs, 0, (size_t)B * T * Vp * sizeof(float));
    for (i = 0; i < B * T; i++) {
        memcpy(probs + (size_t)i * Vp, logits + (size_t)i * Vp, V * sizeof(float));
        softmax_row(probs + (size_t)i * Vp, V);
    }
}

// losses (B,T) = -log(probs[b,t,targets[b,t]]), in nats.
// probs (B,T,Vp), targets (B,T) tokens.
static inline void crossentropy_forward(float *losses, const float *probs, const int *targets,
                                        int B, int T, int Vp) {
    int b, t;

    for (b = 0; b < B; b++)
        for (t = 0; t < T; t++) {
            int i = b * T + t;
            losses[i] = 0 - logf((probs + (size_t)i * Vp)[targets[i]]);
        }
}

// dlogits (B,T,Vp) += from dlosses (B,T), through the loss and the softmax at once; nothing is
// added to the padding.
// probs (B,T,Vp) as softmax_forward left them, targets (B,T) tokens.
static inline void crossentropy_softmax_backward(float *dlogits, const float *dlosses,
                                                 const float *probs, const int *targets, int B,
                                                 int T, int V, int Vp) {
    // TODO (A2): crossentropy_softmax_backward
    // HINT: what the softmax says, less what it should have said.
    TODO("A2: crossentropy_softmax_backward");
}

#endif
