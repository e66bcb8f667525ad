// layers.h: tgmath and very many words; arrays of variable length as views of the flat ones.
//
// Shapes: B sequences in a batch, T positions, C channels, NH heads, OC output channels, V tokens,
// Vp >= V the vocabulary padded for the hardware. Arrays are row-major and do not overlap.
//
// A forward writes its outputs. A backward adds to every gradient that it produces (names with d),
// because a tensor may be used more than once: whoever starts a pass sets them to 0.
#ifndef LLMC_LAYERS_H
#define LLMC_LAYERS_H

#include <tgmath.h>

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "todo.h"

#include <float.h>

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
    /* Pretend that the flat arrays are what the comment above says they are. C99 can do that: a
     * pointer to an array of variable length knows its own shape, and nobody has to multiply. */
    float (*y)[T][C] = (float (*)[T][C])out;
    const int (*token)[T] = (const int (*)[T])inp;

    for (int b = 0; b < B; b++)             /* every sequence ... */
        for (int t = 0; t < T; t++)         /* ... every position ... */
            for (int c = 0; c < C; c++)     /* ... every channel */
                y[b][t][c] = wte[token[b][t] * C + c] + wpe[t * C + c];
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
    float (*y)[C] = (float (*)[C])out;
    const float (*x)[C] = (const float (*)[C])inp;

    for (int n = 0; n < B * T; n++) {
        /* Step 1: the mean. */
        float m = 0.0f;
        for (int c = 0; c < C; c++)
            m += x[n][c];
        m = m / C;

        /* Step 2: the variance. (Not C - 1! That would be the estimate for a larger population.) */
        float v = 0.0f;
        for (int c = 0; c < C; c++) {
            float d = x[n][c] - m;
            v = fma(d, d, v);               /* tgmath makes this fmaf */
        }
        v = v / C;

        /* Step 3: how many standard deviations is each one away? */
        float s = sqrt(v + LAYERNORM_EPS);  /* and this sqrtf */
        for (int c = 0; c < C; c++)
            y[n][c] = (x[n][c] - m) / s * weight[c] + bias[c];

        /* Step 4: the backward pass will want to know. */
        mean[n] = m;
        rstd[n] = 1 / s;
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

// out (B,T,OC) = inp (B,T,C) times weight (OC,C) transposed, + bias (OC); bias may be NULL.
static inline void matmul_forward(float *out, const float *inp, const float *weight,
                                  const float *bias, int B, int T, int C, int OC) {
    float (*y)[OC] = (float (*)[OC])out;
    const float (*x)[C] = (const float (*)[C])inp;
    const float (*w)[C] = (const float (*)[C])weight;

    /* The outer loop is over outputs: each row of the weight is fetched once and then stays in
     * the cache for all of the positions. */
    for (int o = 0; o < OC; o++)
        for (int n = 0; n < B * T; n++) {
            float sum = 0.0f;
            int c = 0;
            /* four at once ... */
            for (; c + 4 <= C; c += 4)
                sum += x[n][c] * w[o][c] + x[n][c + 1] * w[o][c + 1] + x[n][c + 2] * w[o][c + 2] +
                       x[n][c + 3] * w[o][c + 3];
            /* ... and what is left */
            for (; c < C; c++)
                sum += x[n][c] * w[o][c];
            y[n][o] = sum;
            if (bias != NULL)
                y[n][o] += bias[o];
        }
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

// Causal self-attention: a position looks at itself and at those before it.
// out (B,T,C) = att times the values, the heads side by side.
// preatt (B,NH,T,T) = query t . key t2 / sqrt(C / NH) for t2 <= t; the rest is left open.
// att (B,NH,T,T) = softmax of preatt over t2 <= t; 0 for t2 > t.
// inp (B,T,3C): queries, keys, values, C each; head h holds C / NH neighbouring channels of each.
static inline void attention_forward(float *out, float *preatt, float *att, const float *inp, int B,
                                     int T, int C, int NH) {
    const int hs = C / NH;      /* the size of a head */
    /* inp has four axes if one looks closely: batch, time, which of q k v, and head times hs. */
    const float (*x)[T][3][NH][hs] = (const float (*)[T][3][NH][hs])inp;
    float (*y)[T][NH][hs] = (float (*)[T][NH][hs])out;
    float (*score)[NH][T][T] = (float (*)[NH][T][T])preatt;
    float (*share)[NH][T][T] = (float (*)[NH][T][T])att;
    enum { Q, K, VALUE };

    for (int b = 0; b < B; b++)
        for (int h = 0; h < NH; h++)
            for (int t = 0; t < T; t++) {
                /* How much does t like each t2? The future it cannot see, so it cannot like it. */
                float best = -FLT_MAX;
                for (int t2 = 0; t2 <= t; t2++) {
                    float sum = 0.0f;
                    for (int i = 0; i < hs; i++)
                        sum += x[b][t][Q][h][i] * x[b][t2][K][h][i];
                    score[b][h][t][t2] = sum / sqrt((float)hs);
                    best = fmax(best, score[b][h][t][t2]);
                }
                /* Softmax. Without `best` the exp would overflow from 89 on. */
                float total = 0.0f;
                for (int t2 = 0; t2 <= t; t2++)
                    total += exp(score[b][h][t][t2] - best);
                for (int t2 = 0; t2 <= t; t2++)
                    share[b][h][t][t2] = exp(score[b][h][t][t2] - best) / total;
                for (int t2 = t + 1; t2 < T; t2++)
                    share[b][h][t][t2] = 0.0f;
                /* And the average of the values. */
                for (int i = 0; i < hs; i++) {
                    y[b][t][h][i] = 0.0f;
                    for (int t2 = t; t2 >= 0; t2--)
                        y[b][t][h][i] += share[b][h][t][t2] * x[b][t2][VALUE][h][i];
                }
            }
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
    for (size_t n = 0; n < N; n++) {
        out[n] = inp1[n];       /* the road past the block */
        out[n] += inp2[n];      /* and what the block has to say */
    }
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
    for (size_t n = 0; n < N; n++) {
        float x = inp[n];
        float u = x + GELU_CUBIC * x * x * x;
        /* Half of x goes through always, the other half depends. */
        out[n] = x / 2 * (1 + tanh(GELU_SCALE * u));
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
    const float (*z)[Vp] = (const float (*)[Vp])logits;
    float (*p)[Vp] = (float (*)[Vp])probs;

    for (int n = 0; n < B * T; n++) {
        int best = 0;           /* the index of the largest logit */
        for (int v = 0; v < V; v++)
            best = z[n][v] > z[n][best] ? v : best;
        float total = 0.0f;
        for (int v = 0; v < V; v++)
            total += exp(z[n][v] - z[n][best]);
        for (int v = 0; v < Vp; v++)
            if (v < V)
                p[n][v] = exp(z[n][v] - z[n][best]) / total;
            else
                p[n][v] = 0.0f; /* nobody lives here */
    }
}

// losses (B,T) = -log(probs[b,t,targets[b,t]]), in nats.
// probs (B,T,Vp), targets (B,T) tokens.
static inline void crossentropy_forward(float *losses, const float *probs, const int *targets,
                                        int B, int T, int Vp) {
    const float (*p)[Vp] = (const float (*)[Vp])probs;

    for (int n = 0; n < B * T; n++)
        losses[n] = -log(p[n][targets[n]]);     /* in nats */
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
