// layers.h: everything in double, rounded when it is stored; a variance from sums of x and of x^2.
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
  for (int b = 0; b < B; ++b)
  {
    for (int t = 0; t < T; ++t)
    {
      size_t const here = (size_t)(b * T + t);
      for (int c = 0; c < C; ++c)
      {
        double const token = wte[(size_t)inp[here] * C + c];
        double const position = wpe[(size_t)t * C + c];
        out[here * C + c] = (float)(token + position);
      }
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
  for (int row = 0; row < B * T; ++row)
  {
    float const *x = &inp[(size_t)row * C];
    float *y = &out[(size_t)row * C];
    double sum = 0.0, sum_of_squares = 0.0;
    for (int c = 0; c < C; ++c)
    {
      sum += x[c];
      sum_of_squares += (double)x[c] * x[c];
    }
    double const average = sum / C;
    double const variance = sum_of_squares / C - average * average;
    double const scale = 1.0 / sqrt(fmax(variance, 0.0) + 1e-5);
    for (int c = 0; c < C; ++c)
    {
      // one product and one sum for each element
      double const factor = scale * weight[c];
      y[c] = (float)(factor * x[c] + (bias[c] - factor * average));
    }
    mean[row] = (float)average;
    rstd[row] = (float)scale;
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
  for (int row = 0; row < B * T; ++row)
  {
    for (int o = 0; o < OC; ++o)
    {
      double sum = (bias != NULL) ? bias[o] : 0.0;
      for (int c = 0; c < C; ++c)
        sum += (double)inp[(size_t)row * C + c] * weight[(size_t)o * C + c];
      out[(size_t)row * OC + o] = (float)sum;
    }
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

// x . y in double
static inline double dot64(float const *x, float const *y, int n)
{
  double sum = 0.0;
  for (int i = 0; i < n; ++i)
    sum += (double)x[i] * y[i];
  return sum;
}

// Causal self-attention: a position looks at itself and at those before it.
// out (B,T,C) = att times the values, the heads side by side.
// preatt (B,NH,T,T) = query t . key t2 / sqrt(C / NH) for t2 <= t; the rest is left open.
// att (B,NH,T,T) = softmax of preatt over t2 <= t; 0 for t2 > t.
// inp (B,T,3C): queries, keys, values, C each; head h holds C / NH neighbouring channels of each.
static inline void attention_forward(float *out, float *preatt, float *att, const float *inp, int B,
                                     int T, int C, int NH) {
  int const hs = C / NH;
  for (int b = 0; b < B; ++b)
  {
    for (int h = 0; h < NH; ++h)
    {
      for (int t = 0; t < T; ++t)
      {
        float const *here = &inp[(size_t)b * T * 3 * C + h * hs];
        float *raw = &preatt[((size_t)(b * NH + h) * T + t) * T];
        float *a = &att[((size_t)(b * NH + h) * T + t) * T];
        double largest = -INFINITY;
        double sum = 0.0;
        for (int s = 0; s <= t; ++s)
        {
          double const z = dot64(here + (size_t)t * 3 * C, here + (size_t)s * 3 * C + C, hs) / sqrt(hs);
          raw[s] = (float)z;
          largest = fmax(largest, z);
        }
        for (int s = 0; s <= t; ++s)
          sum += exp(dot64(here + (size_t)t * 3 * C, here + (size_t)s * 3 * C + C, hs) / sqrt(hs) - largest);
        for (int s = 0; s < T; ++s)
        {
          a[s] = 0.0f;
          if (s <= t)
          {
            double const z = dot64(here + (size_t)t * 3 * C, here + (size_t)s * 3 * C + C, hs) / sqrt(hs);
            a[s] = (float)(exp(z - largest) / sum);
          }
          else
          {
            raw[s] = 0.0f;
          }
        }
        for (int i = 0; i < hs; ++i)
        {
          double y = 0.0;
          for (int s = 0; s <= t; ++s)
            y += (double)a[s] * here[(size_t)s * 3 * C + 2 * C + i];
          out[(size_t)(b * T + t) * C + h * hs + i] = (float)y;
        }
      }
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
  for (size_t n = 0; n < N; ++n)
    out[n] = (float)((double)inp1[n] + (double)inp2[n]);
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
  double const scale = sqrt(2.0 / acos(-1.0));
  for (size_t n = 0; n < N; ++n)
  {
    double const x = inp[n];
    out[n] = (float)(0.5 * x * (1.0 + tanh(scale * (x + 0.044715 * pow(x, 3.0)))));
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
  for (int row = 0; row < B * T; ++row)
  {
    float const *z = &logits[(size_t)row * Vp];
    double largest = z[0], sum = 0.0;
    for (int v = 1; v < V; ++v)
      largest = fmax(largest, z[v]);
    for (int v = 0; v < V; ++v)
      sum += exp(z[v] - largest);
    for (int v = 0; v < V; ++v)
      probs[(size_t)row * Vp + v] = (float)(exp(z[v] - largest) / sum);
    for (int v = V; v < Vp; ++v)
      probs[(size_t)row * Vp + v] = 0.0f;
  }
}

// losses (B,T) = -log(probs[b,t,targets[b,t]]), in nats.
// probs (B,T,Vp), targets (B,T) tokens.
static inline void crossentropy_forward(float *losses, const float *probs, const int *targets,
                                        int B, int T, int Vp) {
  for (int row = 0; row < B * T; ++row)
    losses[row] = (float)-log((double)probs[(size_t)row * Vp + targets[row]]);
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
