// sampler.h: subtracts the largest logit first, as for any softmax, and keeps the generator in a local.
#ifndef LLMC_SAMPLER_H
#define LLMC_SAMPLER_H

#include <math.h>
#include <stdint.h>

#define MULTIPLIER 2685821657736338717ull

static inline unsigned int random_u32(unsigned long long *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (uint32_t)(x * MULTIPLIER >> 32);
}

static inline float random_f32(unsigned long long *state) {
    return ldexpf((float)(random_u32(state) >> 8), -24);
}

static double weight(const float *logits, int i, float top) { return exp((double)logits[i] - top); }

static inline int sample_softmax(const float *logits, int n, float coin) {
    float top = -INFINITY;
    for (int i = 0; i < n; i++) top = fmaxf(top, logits[i]);
    double total = 0, cdf = 0;
    for (int i = 0; i < n; i++) total += weight(logits, i, top);
    for (int i = 0; i < n; i++) {
        cdf += weight(logits, i, top);
        if (cdf / total > coin) return i;
    }
    return n - 1;
}

#endif
