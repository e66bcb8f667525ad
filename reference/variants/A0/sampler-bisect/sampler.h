// sampler.h: stores the running sums in an array of length n on the stack and bisects them.
#pragma once
#include <math.h>

#define XORSHIFT(word, shift) ((word) ^= (word) shift)
#define COUNT_LEFT(low, high) ((high) - (low))

static inline unsigned int random_u32(unsigned long long *state) {
    XORSHIFT(*state, >> 12);
    XORSHIFT(*state, << 25);
    XORSHIFT(*state, >> 27);
    return (unsigned int)(*state * 0x2545F4914F6CDD1DULL >> 32);
}

static inline float random_f32(unsigned long long *state) {
    const unsigned int bits = random_u32(state) & 0xffffff00;
    return (float)(bits / 4294967296.0);
}

static inline int sample_softmax(const float *logits, int n, float coin) {
    double sums[n];
    sums[0] = exp(logits[0]);
    for (int i = 1; i < n; i++) sums[i] = sums[i - 1] + exp(logits[i]);
    const double target = coin * sums[n - 1];
    int low = 0, high = n - 1;  // the answer is in low..high
    while (COUNT_LEFT(low, high) > 0) {
        int middle = (low + high) / 2;
        if (sums[middle] > target) high = middle;
        else low = middle + 1;
    }
    return low;
}
