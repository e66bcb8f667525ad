// layers.h: a softmax in one pass, and in its backward pass dout . out, with out made again; running means; gelu as x
// times a logistic function; a loss that steps around its target.
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
	const int *token = inp;
	for (int row = 0; row < B * T; row++, token++) {
		int t = row % T;
		for (int c = 0; c < C; c++)
			out[(size_t)row * C + c] = wpe[(size_t)t * C + c] + wte[(size_t)*token * C + c];
	}
}

// dwte (V,C), dwpe (at least T, C) += from dout (B,T,C); inp (B,T) tokens.
static inline void encoder_backward(float *dwte, float *dwpe, const float *dout, const int *inp,
                                    int B, int T, int C) {
    // TODO (A2): encoder_backward
    // HINT: a token that occurs twice gets both gradients, a position those of all sequences.
	for (int row = B * T - 1; row >= 0; row--) {
		const float *d = dout + (size_t)row * C;
		float *token = dwte + (size_t)inp[row] * C, *position = dwpe + (size_t)(row % T) * C;
		for (int c = 0; c < C; c++) {
			token[c] += d[c];
			position[c] += d[c];
		}
	}
}

// out (B,T,C) = (inp - mean) * rstd * weight + bias, each position by itself.
// mean (B,T) over the channels; rstd (B,T) = 1 / sqrt(variance + 1e-5), the variance divided by C.
// inp (B,T,C), weight (C), bias (C).
static inline void layernorm_forward(float *out, float *mean, float *rstd, const float *inp,
                                     const float *weight, const float *bias, int B, int T, int C) {
    // TODO (A1): layernorm_forward
    // HINT: the variance is the mean of (inp - mean)^2; 1e-5 is added to it, under the root.
	for (int row = 0; row < B * T; row++) {
		const float *x = inp + (size_t)row * C;
		float m = 0, m2 = 0;		// Welford 1962
		for (int c = 0; c < C; c++) {
			float delta = x[c] - m;
			m += delta / (float)(c + 1);
			m2 += delta * (x[c] - m);
		}
		mean[row] = m;
		rstd[row] = 1.0f / sqrtf(m2 / (float)C + LAYERNORM_EPS);
		for (int c = 0; c < C; c++)
			out[(size_t)row * C + c] = weight[c] * rstd[row] * (x[c] - m) + bias[c];
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
	// dnorm in chunks on the stack: its mean and its share along norm are running means
	for (int row = 0; row < B * T; row++) {
		const float *x = inp + (size_t)row * C, *d = dout + (size_t)row * C;
		float plain = 0, along = 0;
		for (int start = 0; start < C; start += 64) {
			int n = C - start < 64 ? C - start : 64;
			float dnorm[64], norm[64];
			for (int i = 0; i < n; i++) {
				dnorm[i] = weight[start + i] * d[start + i];
				norm[i] = rstd[row] * (x[start + i] - mean[row]);
				dweight[start + i] += norm[i] * d[start + i];
				dbias[start + i] += d[start + i];
			}
			for (int i = 0; i < n; i++) {
				plain += (dnorm[i] - plain) / (float)(start + i + 1);
				along += (dnorm[i] * norm[i] - along) / (float)(start + i + 1);
			}
		}
		for (int c = 0; c < C; c++) {
			float norm = rstd[row] * (x[c] - mean[row]);
			dinp[(size_t)row * C + c] += rstd[row] * ((weight[c] * d[c] - plain) - along * norm);
		}
	}
}

// out (B,T,OC) = inp (B,T,C) times weight (OC,C) transposed, + bias (OC); bias may be NULL.
static inline void matmul_forward(float *out, const float *inp, const float *weight,
                                  const float *bias, int B, int T, int C, int OC) {
    // TODO (A1): matmul_forward
    // HINT: both inp's row and weight's row are C long: a dot product for each output.
	// the bias first, then all the products are added to it
	for (int row = 0; row < B * T; row++) {
		float *y = out + (size_t)row * OC;
		for (int o = 0; o < OC; o++) {
			y[o] = bias ? bias[o] : 0.0f;
			for (int c = 0; c < C; c++)
				y[o] += inp[(size_t)row * C + c] * weight[(size_t)o * C + c];
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
	for (int o = 0; o < OC; o++) {
		for (int row = 0; row < B * T; row++) {
			const float d = dout[(size_t)row * OC + o];
			if (dbias)
				dbias[o] += d;
			for (int c = 0; c < C; c++) {
				dinp[(size_t)row * C + c] += d * weight[(size_t)o * C + c];
				dweight[(size_t)o * C + c] += d * inp[(size_t)row * C + c];
			}
		}
	}
}

// What an online softmax knows of the numbers so far.
typedef struct {
	float max;
	float sum;		// of exp(number - max)
} Running;

// Takes one more number; returns what everything summed up so far has to be multiplied with.
static inline float running_add(Running *r, float x) {
	if (x <= r->max) {
		r->sum += expf(x - r->max);
		return 1.0f;
	}
	float shrink = expf(r->max - x);	// 0 at the first one
	r->sum = r->sum * shrink + 1.0f;
	r->max = x;
	return shrink;
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
	const int hs = C / NH, stride = 3 * C;
	for (int b = 0; b < B; b++)
	for (int h = 0; h < NH; h++)
	for (int t = 0; t < T; t++) {
		const float *q = inp + (size_t)(b * T + t) * stride + h * hs;
		float *y = out + (size_t)(b * T + t) * C + h * hs;
		float *pre = preatt + ((size_t)(b * NH + h) * T + t) * T;
		float *a = att + ((size_t)(b * NH + h) * T + t) * T;
		Running r = { -INFINITY, 0.0f };
		for (int i = 0; i < hs; i++)
			y[i] = 0.0f;
		for (int t2 = 0; t2 < T; t2++) {
			if (t2 > t) {
				pre[t2] = -INFINITY;	// masked
				continue;
			}
			const float *k = inp + (size_t)(b * T + t2) * stride + C + h * hs;
			const float *v = k + C;
			pre[t2] = dot(q, k, hs) / sqrtf((float)hs);
			float shrink = running_add(&r, pre[t2]);
			float share = expf(pre[t2] - r.max);
			for (int i = 0; i < hs; i++)
				y[i] = y[i] * shrink + share * v[i];
		}
		for (int i = 0; i < hs; i++)
			y[i] /= r.sum;
		for (int t2 = 0; t2 < T; t2++)
			a[t2] = expf(pre[t2] - r.max) / r.sum;	// exp(-inf) is 0
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
	// what the softmax takes off is dout . out (Dao et al. 2022), and out is made again from att and values
	const int hs = C / NH, stride = 3 * C;
	for (int b = 0; b < B; b++)
	for (int h = 0; h < NH; h++)
	for (int t = 0; t < T; t++) {
		const float *x = inp + (size_t)b * T * stride + h * hs;
		float *dx = dinp + (size_t)b * T * stride + h * hs;
		const float *d = dout + (size_t)(b * T + t) * C + h * hs;
		const size_t at = ((size_t)(b * NH + h) * T + t) * T;
		float taken = 0;
		for (int i = 0; i < hs; i++) {
			float y = 0;
			for (int t2 = 0; t2 <= t; t2++)
				y += att[at + t2] * x[(size_t)t2 * stride + 2 * C + i];
			taken += d[i] * y;
		}
		for (int t2 = t; t2 >= 0; t2--) {
			const float *k = x + (size_t)t2 * stride + C, *v = k + C;
			float *dk = dx + (size_t)t2 * stride + C, *dv = dk + C;
			const float arrived = dot(d, v, hs), score = att[at + t2] * (arrived - taken);
			datt[at + t2] += arrived;
			dpreatt[at + t2] += score;
			for (int i = 0; i < hs; i++) {
				dv[i] += att[at + t2] * d[i];
				dx[(size_t)t * stride + i] += score / sqrtf((float)hs) * k[i];
				dk[i] += score / sqrtf((float)hs) * x[(size_t)t * stride + i];
			}
		}
	}
}

// out (N) = inp1 (N) + inp2 (N).
static inline void residual_forward(float *out, const float *inp1, const float *inp2, size_t N) {
    // TODO (A1): residual_forward
    // HINT: element by element.
	for (size_t i = N; i-- > 0;)
		out[i] = inp2[i] + inp1[i];
}

// dinp1 (N), dinp2 (N) += from dout (N).
static inline void residual_backward(float *dinp1, float *dinp2, const float *dout, size_t N) {
    // TODO (A2): residual_backward
    // HINT: a sum hands its gradient to both.
	for (size_t i = N; i-- > 0;) {
		const float d = dout[i];
		dinp1[i] = dinp1[i] + d;
		dinp2[i] = dinp2[i] + d;
	}
}

// out (N) = gelu(inp (N)), the tanh form:
// gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
static inline void gelu_forward(float *out, const float *inp, size_t N) {
    // TODO (A1): gelu_forward
    // HINT: tanhf of a float; the constants are above.
	// (1 + tanh(u)) / 2 is the logistic function of 2u
	for (size_t i = 0; i < N; i++) {
		float x = inp[i], u = GELU_SCALE * x * (1.0f + GELU_CUBIC * x * x);
		out[i] = x / (1.0f + expf(-2.0f * u));
	}
}

// dinp (N) += from dout (N); inp (N) what the forward was given.
static inline void gelu_backward(float *dinp, const float *inp, const float *dout, size_t N) {
    // TODO (A2): gelu_backward
    // HINT: x stands before the bracket and inside the tanh: a product of two functions of x.
	// with s the logistic function of 2u: (x s)' = s + x s (1 - s) 2u'
	for (size_t i = 0; i < N; i++) {
		float x = inp[i], u = GELU_SCALE * x * (1.0f + GELU_CUBIC * x * x);
		float s = 1.0f / (1.0f + expf(-2.0f * u)), rest = 1.0f / (1.0f + expf(2.0f * u));
		float du = GELU_SCALE * (1.0f + 3.0f * GELU_CUBIC * x * x);
		dinp[i] += dout[i] * (s + 2.0f * x * s * rest * du);
	}
}

// probs (B,T,Vp) = softmax of the first V logits of each position; 0 for the padding.
// logits (B,T,Vp), of any size: exp must not overflow.
static inline void softmax_forward(float *probs, const float *logits, int B, int T, int V, int Vp) {
    // TODO (A1): softmax_forward
    // HINT: take the largest of the V logits off first.
	for (int row = 0; row < B * T; row++) {
		const float *z = logits + (size_t)row * Vp;
		float *p = probs + (size_t)row * Vp;
		Running r = { -INFINITY, 0.0f };
		for (int v = 0; v < V; v++)
			running_add(&r, z[v]);
		for (int v = 0; v < Vp; v++)
			p[v] = v < V ? expf(z[v] - r.max) / r.sum : 0.0f;
	}
}

// losses (B,T) = -log(probs[b,t,targets[b,t]]), in nats.
// probs (B,T,Vp), targets (B,T) tokens.
static inline void crossentropy_forward(float *losses, const float *probs, const int *targets,
                                        int B, int T, int Vp) {
    // TODO (A1): crossentropy_forward
    // HINT: rows of probs are Vp apart.
	for (int row = 0; row < B * T; row++)
		losses[row] = -0.69314718056f * log2f(probs[(size_t)row * Vp + targets[row]]);
}

// dlogits (B,T,Vp) += from dlosses (B,T), through the loss and the softmax at once; nothing is
// added to the padding.
// probs (B,T,Vp) as softmax_forward left them, targets (B,T) tokens.
static inline void crossentropy_softmax_backward(float *dlogits, const float *dlosses,
                                                 const float *probs, const int *targets, int B,
                                                 int T, int V, int Vp) {
    // TODO (A2): crossentropy_softmax_backward
    // HINT: what the softmax says, less what it should have said.
	for (int row = 0; row < B * T; row++) {
		const float *p = probs + (size_t)row * Vp, d = dlosses[row];
		float *dz = dlogits + (size_t)row * Vp;
		const int target = targets[row];
		for (int v = 0; v < target; v++)
			dz[v] += d * p[v];
		dz[target] += d * (p[target] - 1.0f);
		for (int v = target + 1; v < V; v++)
			dz[v] += d * p[v];
	}
}

#endif
