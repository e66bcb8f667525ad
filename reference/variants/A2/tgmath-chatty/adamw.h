// adamw.h: tgmath, a helper for one number, very many words.
#ifndef LLMC_ADAMW_H
#define LLMC_ADAMW_H

#include <tgmath.h>

#include <math.h>
#include <stddef.h>

#include "todo.h"

/* One number's step, given what is the same for all of them. c1 and c2 are the corrections: at the first step m is only
 * (1 - beta1) times the gradient, far too small, and 1 / c1 makes up for it. */
static inline float adamw_one(float param, float grad, float *m, float *v, float c1, float c2, float lr, float beta1,
                              float beta2, float eps, float weight_decay) {
    *m = beta1 * *m + (1 - beta1) * grad;           /* where to */
    *v = beta2 * *v + (1 - beta2) * grad * grad;    /* how loud it is there */
    float direction = (*m * c1) / (sqrt(*v * c2) + eps);
    return param - lr * direction - lr * weight_decay * param;
}

// One step of AdamW (Loshchilov and Hutter 2019, algorithm 2, with lr also in front of the decay).
// params, m, v (count), updated in place; m and v are 0 before the first step. grads (count).
// m = beta1 * m + (1 - beta1) * grad; v = beta2 * v + (1 - beta2) * grad^2;
// param -= lr * (mhat / (sqrt(vhat) + eps) + weight_decay * param), the param of before the step,
// where mhat = m / (1 - beta1^t), vhat = v / (1 - beta2^t), and t >= 1 is the number of this step.
static inline void adamw_update(float *params, const float *grads, float *m, float *v, size_t count,
                                float lr, float beta1, float beta2, float eps, float weight_decay,
                                int t) {
    /* beta^t is exp(t log beta), but a beta of 0 has no logarithm, and pow knows that. */
    float c1 = 1 / (1 - pow(beta1, (float)t));
    float c2 = 1 / (1 - pow(beta2, (float)t));

    for (size_t n = 0; n < count; n++)
        params[n] = adamw_one(params[n], grads[n], &m[n], &v[n], c1, c2, lr, beta1, beta2, eps, weight_decay);
}

#endif
