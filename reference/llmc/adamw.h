// adamw.h: the optimizer, on one flat array of parameters.
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
    // BEGIN SOLUTION
    const float correct1 = 1.0f - powf(beta1, (float)t), correct2 = 1.0f - powf(beta2, (float)t);
    for (size_t i = 0; i < count; i++) {
        m[i] = beta1 * m[i] + (1.0f - beta1) * grads[i];
        v[i] = beta2 * v[i] + (1.0f - beta2) * grads[i] * grads[i];
        const float mhat = m[i] / correct1, vhat = v[i] / correct2;
        params[i] -= lr * (mhat / (sqrtf(vhat) + eps) + weight_decay * params[i]);
    }
    // END SOLUTION
}

#endif
