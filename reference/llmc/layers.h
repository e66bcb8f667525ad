// layers.h: the layers of GPT-2 on float arrays, each forward and backward, with plain loops and no
// memory of their own.
//
// Shapes: B sequences in a batch, T positions, C channels, NH heads, OC output channels, V tokens,
// Vp >= V the vocabulary padded for the hardware. Arrays are row-major and do not overlap.
//
// A forward writes its outputs. A backward adds to every gradient that it produces (names with d),
// because a tensor may be used more than once: whoever starts a pass sets them to 0.
#ifndef LLMC_LAYERS_H
#define LLMC_LAYERS_H

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
    // TODO (A1): encoder_forward
    // HINT: row inp[b,t] of wte, row t of wpe.
    // BEGIN SOLUTION
    for (int b = 0; b < B; b++) {
        for (int t = 0; t < T; t++) {
            const size_t bt = (size_t)b * T + t;
            const float *token = wte + (size_t)inp[bt] * C, *position = wpe + (size_t)t * C;
            for (int c = 0; c < C; c++) out[bt * C + c] = token[c] + position[c];
        }
    }
    // END SOLUTION
}

// dwte (V,C), dwpe (at least T, C) += from dout (B,T,C); inp (B,T) tokens.
static inline void encoder_backward(float *dwte, float *dwpe, const float *dout, const int *inp,
                                    int B, int T, int C) {
    // TODO (A2): encoder_backward
    // HINT: a token that occurs twice gets both gradients, a position those of all sequences.
    // BEGIN SOLUTION
    for (int b = 0; b < B; b++) {
        for (int t = 0; t < T; t++) {
            const size_t bt = (size_t)b * T + t;
            float *token = dwte + (size_t)inp[bt] * C, *position = dwpe + (size_t)t * C;
            for (int c = 0; c < C; c++) {
                token[c] += dout[bt * C + c];
                position[c] += dout[bt * C + c];
            }
        }
    }
    // END SOLUTION
}

// out (B,T,C) = (inp - mean) * rstd * weight + bias, each position by itself.
// mean (B,T) over the channels; rstd (B,T) = 1 / sqrt(variance + 1e-5), the variance divided by C.
// inp (B,T,C), weight (C), bias (C).
static inline void layernorm_forward(float *out, float *mean, float *rstd, const float *inp,
                                     const float *weight, const float *bias, int B, int T, int C) {
    // TODO (A1): layernorm_forward
    // HINT: the variance is the mean of (inp - mean)^2; 1e-5 is added to it, under the root.
    // BEGIN SOLUTION
    for (size_t bt = 0; bt < (size_t)B * T; bt++) {
        const float *x = inp + bt * C;
        float sum = 0.0f, squares = 0.0f;
        for (int c = 0; c < C; c++) sum += x[c];
        const float m = sum / (float)C;
        for (int c = 0; c < C; c++) squares += (x[c] - m) * (x[c] - m);
        const float s = 1.0f / sqrtf(squares / (float)C + LAYERNORM_EPS);
        for (int c = 0; c < C; c++) out[bt * C + c] = (x[c] - m) * s * weight[c] + bias[c];
        mean[bt] = m;
        rstd[bt] = s;
    }
    // END SOLUTION
}

// dinp (B,T,C), dweight (C), dbias (C) += from dout (B,T,C).
// inp (B,T,C), weight (C); mean, rstd (B,T) as the forward left them.
static inline void layernorm_backward(float *dinp, float *dweight, float *dbias, const float *dout,
                                      const float *inp, const float *weight, const float *mean,
                                      const float *rstd, int B, int T, int C) {
    // TODO (A2): layernorm_backward
    // HINT: mean and rstd depend on inp, too: of dnorm = dout * weight two means over the channels
    // are taken off.
    // BEGIN SOLUTION
    for (size_t bt = 0; bt < (size_t)B * T; bt++) {
        const float *x = inp + bt * C, *d = dout + bt * C;
        float plain = 0.0f, along = 0.0f;  // sums of dnorm, and of dnorm * norm
        for (int c = 0; c < C; c++) {
            const float norm = (x[c] - mean[bt]) * rstd[bt], dnorm = d[c] * weight[c];
            plain += dnorm;
            along += dnorm * norm;
            dweight[c] += d[c] * norm;
            dbias[c] += d[c];
        }
        plain /= (float)C;
        along /= (float)C;
        for (int c = 0; c < C; c++) {
            const float norm = (x[c] - mean[bt]) * rstd[bt], dnorm = d[c] * weight[c];
            dinp[bt * C + c] += (dnorm - plain - norm * along) * rstd[bt];
        }
    }
    // END SOLUTION
}

// out (B,T,OC) = inp (B,T,C) times weight (OC,C) transposed, + bias (OC); bias may be NULL.
static inline void matmul_forward(float *out, const float *inp, const float *weight,
                                  const float *bias, int B, int T, int C, int OC) {
    // TODO (A1): matmul_forward
    // HINT: both inp's row and weight's row are C long: a dot product for each output.
    // BEGIN SOLUTION
    const size_t rows = (size_t)B * T, width = (size_t)C;
#ifdef _OPENMP
#pragma omp parallel for
#endif
    for (size_t bt = 0; bt < rows; bt++) {
        for (int o = 0; o < OC; o++) {
            const float start = bias == NULL ? 0.0f : bias[o];
            out[bt * OC + o] = start + dot(inp + bt * C, weight + o * width, width);
        }
    }
    // END SOLUTION
}

// dinp (B,T,C), dweight (OC,C), dbias (OC) += from dout (B,T,OC); dbias may be NULL.
// inp (B,T,C), weight (OC,C).
static inline void matmul_backward(float *dinp, float *dweight, float *dbias, const float *dout,
                                   const float *inp, const float *weight, int B, int T, int C,
                                   int OC) {
    // TODO (A2): matmul_backward
    // HINT: three gradients: of inp a sum over outputs, of weight and bias sums over positions.
    // BEGIN SOLUTION
    const size_t rows = (size_t)B * T, width = (size_t)C;
#ifdef _OPENMP
#pragma omp parallel for
#endif
    for (size_t bt = 0; bt < rows; bt++) {
        for (int o = 0; o < OC; o++) {
            axpy(dinp + bt * C, dout[bt * OC + o], weight + o * width, width);
        }
    }
#ifdef _OPENMP
#pragma omp parallel for
#endif
    for (int o = 0; o < OC; o++) {
        for (size_t bt = 0; bt < rows; bt++) {
            axpy(dweight + o * width, dout[bt * OC + o], inp + bt * C, width);
            if (dbias != NULL) dbias[o] += dout[bt * OC + o];
        }
    }
    // END SOLUTION
}

// Causal self-attention: a position looks at itself and at those before it.
// out (B,T,C) = att times the values, the heads side by side.
// preatt (B,NH,T,T) = query t . key t2 / sqrt(C / NH) for t2 <= t; the rest is left open.
// att (B,NH,T,T) = softmax of preatt over t2 <= t; 0 for t2 > t.
// inp (B,T,3C): queries, keys, values, C each; head h holds C / NH neighbouring channels of each.
static inline void attention_forward(float *out, float *preatt, float *att, const float *inp, int B,
                                     int T, int C, int NH) {
    // TODO (A1): attention_forward
    // HINT: a head's queries, keys and values are hs neighbouring floats at h * hs of each C; take
    // the largest score off before expf.
    // BEGIN SOLUTION
    const size_t hs = (size_t)C / NH,
                 row = 3 * (size_t)C;  // floats of a head, of a position of inp
    const float scale = 1.0f / sqrtf((float)hs);
#ifdef _OPENMP
#pragma omp parallel for
#endif
    for (int bh = 0; bh < B * NH; bh++) {
        const size_t b = bh / NH, at = bh % NH * hs;
        const float *queries = inp + b * T * row + at, *keys = queries + C, *values = keys + C;
        for (int t = 0; t < T; t++) {
            float *scores = preatt + ((size_t)bh * T + t) * T;
            float *shares = att + ((size_t)bh * T + t) * T;
            float *y = out + (b * T + t) * C + at;
            float largest = -INFINITY, sum = 0.0f;
            for (int t2 = 0; t2 <= t; t2++) {
                scores[t2] = scale * dot(queries + t * row, keys + t2 * row, hs);
                if (scores[t2] > largest) largest = scores[t2];
            }
            for (int t2 = 0; t2 < T; t2++) {
                shares[t2] = t2 <= t ? expf(scores[t2] - largest) : 0.0f;
                sum += shares[t2];
            }
            for (size_t i = 0; i < hs; i++) y[i] = 0.0f;
            for (int t2 = 0; t2 <= t; t2++) {
                shares[t2] /= sum;
                axpy(y, shares[t2], values + t2 * row, hs);
            }
        }
    }
    // END SOLUTION
}

// dinp (B,T,3C), dpreatt (B,NH,T,T), datt (B,NH,T,T) += from dout (B,T,C).
// inp (B,T,3C); att (B,NH,T,T) as the forward left it.
static inline void attention_backward(float *dinp, float *dpreatt, float *datt, const float *dout,
                                      const float *inp, const float *att, int B, int T, int C,
                                      int NH) {
    // TODO (A2): attention_backward
    // HINT: backwards through the three steps: values and att, softmax, queries and keys. With
    // datt and dpreatt set to 0 before, what is in them is what arrived.
    // BEGIN SOLUTION
    const size_t hs = (size_t)C / NH, row = 3 * (size_t)C;
    const float scale = 1.0f / sqrtf((float)hs);
#ifdef _OPENMP
#pragma omp parallel for
#endif
    for (int bh = 0; bh < B * NH; bh++) {
        const size_t b = bh / NH, at = bh % NH * hs, start = b * T * row + at;
        const float *queries = inp + start, *keys = queries + C, *values = keys + C;
        float *dqueries = dinp + start, *dkeys = dqueries + C, *dvalues = dkeys + C;
        for (int t = 0; t < T; t++) {
            const size_t place = ((size_t)bh * T + t) * T;
            const float *shares = att + place, *d = dout + (b * T + t) * C + at;
            float *dshares = datt + place, *dscores = dpreatt + place, along = 0.0f;
            for (int t2 = 0; t2 <= t; t2++) {
                dshares[t2] += dot(values + t2 * row, d, hs);
                axpy(dvalues + t2 * row, shares[t2], d, hs);
                along += shares[t2] * dshares[t2];
            }
            for (int t2 = 0; t2 <= t; t2++) {
                dscores[t2] += shares[t2] * (dshares[t2] - along);
                axpy(dqueries + t * row, scale * dscores[t2], keys + t2 * row, hs);
                axpy(dkeys + t2 * row, scale * dscores[t2], queries + t * row, hs);
            }
        }
    }
    // END SOLUTION
}

// out (N) = inp1 (N) + inp2 (N).
static inline void residual_forward(float *out, const float *inp1, const float *inp2, size_t N) {
    // TODO (A1): residual_forward
    // HINT: element by element.
    // BEGIN SOLUTION
    for (size_t i = 0; i < N; i++) out[i] = inp1[i] + inp2[i];
    // END SOLUTION
}

// dinp1 (N), dinp2 (N) += from dout (N).
static inline void residual_backward(float *dinp1, float *dinp2, const float *dout, size_t N) {
    // TODO (A2): residual_backward
    // HINT: a sum hands its gradient to both.
    // BEGIN SOLUTION
    for (size_t i = 0; i < N; i++) {
        dinp1[i] += dout[i];
        dinp2[i] += dout[i];
    }
    // END SOLUTION
}

// out (N) = gelu(inp (N)), the tanh form:
// gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
static inline void gelu_forward(float *out, const float *inp, size_t N) {
    // TODO (A1): gelu_forward
    // HINT: tanhf of a float; the constants are above.
    // BEGIN SOLUTION
    for (size_t i = 0; i < N; i++) {
        const float x = inp[i];
        out[i] = 0.5f * x * (1.0f + tanhf(GELU_SCALE * (x + GELU_CUBIC * x * x * x)));
    }
    // END SOLUTION
}

// dinp (N) += from dout (N); inp (N) what the forward was given.
static inline void gelu_backward(float *dinp, const float *inp, const float *dout, size_t N) {
    // TODO (A2): gelu_backward
    // HINT: x stands before the bracket and inside the tanh: a product of two functions of x.
    // BEGIN SOLUTION
    for (size_t i = 0; i < N; i++) {
        const float x = inp[i];
        const float h = tanhf(GELU_SCALE * (x + GELU_CUBIC * x * x * x));
        const float slope = GELU_SCALE * (1.0f + 3.0f * GELU_CUBIC * x * x);
        dinp[i] += (0.5f * (1.0f + h) + 0.5f * x * (1.0f - h * h) * slope) * dout[i];
    }
    // END SOLUTION
}

// probs (B,T,Vp) = softmax of the first V logits of each position; 0 for the padding.
// logits (B,T,Vp), of any size: exp must not overflow.
static inline void softmax_forward(float *probs, const float *logits, int B, int T, int V, int Vp) {
    // TODO (A1): softmax_forward
    // HINT: take the largest of the V logits off first.
    // BEGIN SOLUTION
    for (size_t bt = 0; bt < (size_t)B * T; bt++) {
        const float *z = logits + bt * Vp;
        float *p = probs + bt * Vp, largest = z[0], sum = 0.0f;
        for (int v = 1; v < V; v++) {
            if (z[v] > largest) largest = z[v];
        }
        for (int v = 0; v < V; v++) {
            p[v] = expf(z[v] - largest);
            sum += p[v];
        }
        for (int v = 0; v < V; v++) p[v] /= sum;
        for (int v = V; v < Vp; v++) p[v] = 0.0f;
    }
    // END SOLUTION
}

// losses (B,T) = -log(probs[b,t,targets[b,t]]), in nats.
// probs (B,T,Vp), targets (B,T) tokens.
static inline void crossentropy_forward(float *losses, const float *probs, const int *targets,
                                        int B, int T, int Vp) {
    // TODO (A1): crossentropy_forward
    // HINT: rows of probs are Vp apart.
    // BEGIN SOLUTION
    for (size_t bt = 0; bt < (size_t)B * T; bt++) {
        losses[bt] = -logf(probs[bt * Vp + targets[bt]]);
    }
    // END SOLUTION
}

// dlogits (B,T,Vp) += from dlosses (B,T), through the loss and the softmax at once; nothing is
// added to the padding.
// probs (B,T,Vp) as softmax_forward left them, targets (B,T) tokens.
static inline void crossentropy_softmax_backward(float *dlogits, const float *dlosses,
                                                 const float *probs, const int *targets, int B,
                                                 int T, int V, int Vp) {
    // TODO (A2): crossentropy_softmax_backward
    // HINT: what the softmax says, less what it should have said.
    // BEGIN SOLUTION
    for (size_t bt = 0; bt < (size_t)B * T; bt++) {
        for (int v = 0; v < V; v++) {
            const float wanted = v == targets[bt] ? 1.0f : 0.0f;
            dlogits[bt * Vp + v] += (probs[bt * Vp + v] - wanted) * dlosses[bt];
        }
    }
    // END SOLUTION
}

#endif
