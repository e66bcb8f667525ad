// sampler.h: from logits to one token: a small generator for the coin, and the walk along the
// distribution.
#ifndef LLMC_SAMPLER_H
#define LLMC_SAMPLER_H

#include <math.h>

#include "todo.h"

// xorshift*: shifts 12, 25, 27 on the 64-bit state, then the high 32 bits of state *
// 0x2545F4914F6CDD1D. state != 0.
static inline unsigned int random_u32(unsigned long long *state) {
    // TODO (A0): random_u32
    // HINT: the multiplication is not stored in the state.
    TODO("A0: random_u32");
}

// Uniform on [0, 1): the high 24 bits of one random_u32, times 2^-24.
static inline float random_f32(unsigned long long *state) {
    // TODO (A0): random_f32
    // HINT: 2^24 is 16777216.
    TODO("A0: random_f32");
}

// logits (n), |logit| <= 80; coin in [0, 1). Returns the first index at which the running sum of
// exp(logit) exceeds coin * (sum of all exp(logit)). Summed another way, rounding may keep it
// below: then the last index.
static inline int sample_softmax(const float *logits, int n, float coin) {
    // TODO (A0): sample_softmax
    // HINT: no division: scale the coin by the sum instead, and walk the same sum again.
    TODO("A0: sample_softmax");
}

#endif
