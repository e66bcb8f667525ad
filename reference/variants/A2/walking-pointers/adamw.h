// adamw.h: the powers of the betas by multiplying t times; three loops, one for each array; fma.
#ifndef LLMC_ADAMW_H
#define LLMC_ADAMW_H

#include <math.h>
#include <stddef.h>

#include "todo.h"

// One step of AdamW (Loshchilov and Hutter 2019, algorithm 2, with lr also in front of the decay).
// params, m, v (count), updated in place; m and v are 0 before the first step. grads (count).
// m = beta1 * m + (1 - beta1) * grad; v = beta2 * v + (1 - beta2) * grad^2;
// param -= lr * (mhat / (sqrt(vhat) + eps) + weight_decay * param), the param of before the step,
// where mhat = m / (1 - beta1^t), vhat = v / (1 - beta2^t), and t >= 1 is the number of this step.
static inline void adamw_update(float *params, const float *grads, float *m, float *v, size_t count,
                                float lr, float beta1, float beta2, float eps, float weight_decay,
                                int t) {
	float power1 = 1, power2 = 1;
	for (int i = 0; i < t; i++) {
		power1 *= beta1;
		power2 *= beta2;
	}
	for (size_t i = 0; i < count; i++) m[i] = fmaf(beta1, m[i], (1 - beta1) * grads[i]);
	for (size_t i = 0; i < count; i++) v[i] = fmaf(beta2, v[i], (1 - beta2) * (grads[i] * grads[i]));
	while (count-- > 0) {
		const float denominator = sqrtf(*v++ / (1 - power2)) + eps;
		const float decay = lr * weight_decay * *params;
		*params -= lr / (1 - power1) * *m++ / denominator;
		*params++ -= decay;
	}
}

#endif
