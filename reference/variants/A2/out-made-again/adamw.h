// adamw.h: the corrections in the step size and in eps, once for all elements (Kingma and Ba 2015, end of section 2);
// decay first, as a factor.
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
    // TODO (A2): adamw_update
    // HINT: 1 - beta^t with powf; both corrections are the same for all elements.
    const float root = sqrtf(1.0f - powf(beta2, t));
    const float step = lr * root / (1.0f - powf(beta1, t)), small = eps * root, keep = 1.0f - lr * weight_decay;
    for (size_t i = 0; i < count; ++i) {
        m[i] += (1.0f - beta1) * (grads[i] - m[i]);
        v[i] += (1.0f - beta2) * (grads[i] * grads[i] - v[i]);
        params[i] = params[i] * keep - step * m[i] / (sqrtf(v[i]) + small);
    }
}

#endif
