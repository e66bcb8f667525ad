// adamw.h: all of a step in double, the two corrections with pow.
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
  double const left1 = 1.0 - pow(beta1, t);
  double const left2 = 1.0 - pow(beta2, t);
  for (size_t i = 0; i < count; ++i)
  {
    double const g = grads[i];
    double const m_new = (double)beta1 * m[i] + (1.0 - beta1) * g;
    double const v_new = (double)beta2 * v[i] + (1.0 - beta2) * g * g;
    double const step = (m_new / left1) / (sqrt(v_new / left2) + eps) + (double)weight_decay * params[i];
    m[i] = (float)m_new;
    v[i] = (float)v_new;
    params[i] = (float)(params[i] - lr * step);
  }
}

#endif
