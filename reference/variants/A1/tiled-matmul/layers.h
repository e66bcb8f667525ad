// layers.h: a matmul by tiles of 4 rows and 4 columns whose sums stay in locals; scores of one position in an
// array of their own; pointers that walk.
//
// Shapes: B sequences in a batch, T positions, C channels, NH heads, OC output channels, V tokens,
// Vp >= V the vocabulary padded for the hardware. Arrays are row-major and do not overlap.
//
// A forward writes its outputs. A backward adds to every gradient that it produces (names with d),
// because a tensor may be used more than once: whoever starts a pass sets them to 0.
#ifndef LLMC_LAYERS_H
#define LLMC_LAYERS_H

#include <stdlib.h>

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
    for (int b = 0; b < B; b++)
        for (int t = 0; t < T; t++) {
            const float *w = &wte[(size_t)*inp++ * C];
            const float *p = &wpe[(size_t)t * C];
            for (const float *end = w + C; w < end;)
                *out++ = *w++ + *p++;
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
    size_t rows = (size_t)B * T;
    while (rows-- > 0) {
        const float *x, *end = inp + C, *w = weight, *b = bias;
        float m = 0, var = 0;
        for (x = inp; x != end; x++)
            m += *x / C;
        for (x = inp; x != end; x++)
            var += (*x - m) * (*x - m) / C;
        *mean++ = m;
        *rstd = 1 / sqrtf(var + LAYERNORM_EPS);
        for (x = inp; x != end; x++)
            *out++ = *b++ + *w++ * ((*x - m) * *rstd);
        rstd++;
        inp = end;
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

#define TILE 4

// One tile of out, height x width (at most TILE each), whose first row and column are row and col.
static inline void matmul_tile(float *out, const float *inp, const float *weight, const float *bias,
                               size_t row, size_t col, int height, int width, size_t C, size_t OC) {
    float sums[TILE][TILE] = {{0}};
    for (size_t c = 0; c < C; c++)
        for (int i = 0; i < height; i++)
            for (int j = 0; j < width; j++)
                sums[i][j] += inp[(row + i) * C + c] * weight[(col + j) * C + c];
    for (int i = 0; i < height; i++)
        for (int j = 0; j < width; j++)
            out[(row + i) * OC + col + j] = sums[i][j] + (bias ? bias[col + j] : 0);
}

// out (B,T,OC) = inp (B,T,C) times weight (OC,C) transposed, + bias (OC); bias may be NULL.
static inline void matmul_forward(float *out, const float *inp, const float *weight,
                                  const float *bias, int B, int T, int C, int OC) {
    const int rows = B * T;
    for (int row = 0; row < rows; row += TILE)
        for (int col = 0; col < OC; col += TILE)
            matmul_tile(out, inp, weight, bias, row, col, row + TILE <= rows ? TILE : rows - row,
                        col + TILE <= OC ? TILE : OC - col, C, OC);
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
    int hs = C / NH;
    float *score = malloc(T * sizeof(float));
    if (score == NULL)
        abort();
    for (int b = 0; b < B; b++)
        for (int t = 0; t < T; t++)
            for (int h = 0; h < NH; h++) {
                const float *q = inp + ((size_t)b * T + t) * 3 * C + h * hs;
                size_t cell = (((size_t)b * NH + h) * T + t) * T;
                // scores and the largest
                float max = 0;
                for (int s = 0; s <= t; s++) {
                    const float *k = inp + ((size_t)b * T + s) * 3 * C + C + h * hs;
                    float val = 0;
                    for (int i = 0; i < hs; i++)
                        val += q[i] * k[i];
                    score[s] = val / sqrtf(hs);
                    preatt[cell + s] = score[s];
                    max = s == 0 || score[s] > max ? score[s] : max;
                }
                // powers and their sum
                float sum = 0;
                for (int s = 0; s <= t; s++)
                    sum += score[s] = expf(score[s] - max);
                // shares
                for (int s = 0; s < T; s++)
                    att[cell + s] = s > t ? 0 : score[s] / sum;
                // values
                for (int i = 0; i < hs; i++) {
                    float val = 0;
                    for (int s = 0; s <= t; s++)
                        val += att[cell + s] * inp[((size_t)b * T + s) * 3 * C + 2 * C + h * hs + i];
                    out[((size_t)b * T + t) * C + h * hs + i] = val;
                }
            }
    free(score);
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
    while (N-- > 0)
        *out++ = *inp1++ + *inp2++;
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
    const float *end = inp + N;
    while (inp < end) {
        float x = *inp++;
        float cube = GELU_CUBIC * x * x * x;
        *out++ = x * (1 + tanhf(GELU_SCALE * (x + cube))) / 2;
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
    for (size_t row = 0; row < (size_t)B * T; row++, logits += Vp, probs += Vp) {
        float max = -HUGE_VALF, sum = 0;
        int i;
        for (i = 0; i < V; i++)
            max = fmaxf(max, logits[i]);
        for (i = 0; i < V; i++)
            sum += probs[i] = expf(logits[i] - max);
        for (i = 0; i < Vp; i++)
            probs[i] = i < V ? probs[i] / sum : 0;
    }
}

// losses (B,T) = -log(probs[b,t,targets[b,t]]), in nats.
// probs (B,T,Vp), targets (B,T) tokens.
static inline void crossentropy_forward(float *losses, const float *probs, const int *targets,
                                        int B, int T, int Vp) {
    for (int i = B * T; i > 0; i--, probs += Vp)
        *losses++ = -logf(probs[*targets++]);
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
