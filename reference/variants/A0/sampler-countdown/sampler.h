// sampler.h: counts the scaled coin down to below zero instead of a sum up, in long double; plain global functions.
#ifndef SAMPLER_H
#define SAMPLER_H

#include <tgmath.h>

typedef unsigned long long u64;
typedef unsigned int u32;

u64 step(u64 x, int shift) { return shift > 0 ? x ^ x >> shift : x ^ x << -shift; }

u32 random_u32(u64 *state) {
    return (u32)((*state = step(step(step(*state, 12), -25), 27)) * 0x2545F4914F6CDD1D >> 32);
}

float random_f32(u64 *state) {
    return (float)(random_u32(state) / 256) / (1 << 24);
}

int sample_softmax(const float *logits, int n, float coin) {
    long double left = 0;
    int i = 0;
    while (i < n) left += exp((long double)logits[i++]);
    left *= coin;
    for (i = 0; i < n - 1; i++) {
        left -= exp((long double)logits[i]);
        if (left < 0) break;
    }
    return i;
}

#endif
