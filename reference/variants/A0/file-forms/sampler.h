/* sampler.h: a byte order mark, line ends now CRLF, now LF, and no newline at the end. */
#pragma once
#include <math.h>
#include "todo.h"
static inline unsigned int random_u32(unsigned long long *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (unsigned int)((*state * 0x2545F4914F6CDD1Dull) >> 32);
}
static inline float random_f32(unsigned long long *state) {
    return (float)(random_u32(state) >> 8) / 16777216.0f;
}
static inline int sample_softmax(const float *logits, int n, float coin) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += exp((double)logits[i]);
    double goal = (double)coin * sum;
    double running = 0.0;
    for (int i = 0; i < n; i++) {
        running += exp((double)logits[i]);
        if (running > goal) return i;
    }
    return n - 1;
}