// rand.h: MT19937 the way PyTorch's CPU generator runs it: seed, twist, draw, and the fills built
// on the draws.
//
// What it must match, to the bit (numpy's legacy generator is the same recurrence):
//
//     import numpy as np
//     np.random.RandomState(137).randint(0, 2**32, size=5, dtype=np.uint32)
//     # 4053805790 2173880614 380293709 1237255315 2986595568
//
//     import torch
//     torch.manual_seed(137)
//     (torch.empty(5).uniform_() * 2**24).long()
//     # the low 24 bits of the same five words: 10496734 9619750 11194957 12518547 251120
//
// (torch.randint is not the oracle: current releases may spend 64 bits on one draw.)
#ifndef LLMC_RAND_H
#define LLMC_RAND_H

#include <math.h>
#include <stddef.h>

#include "todo.h"

#define MERSENNE_STATE_N 624
#define MERSENNE_STATE_M 397
#define UMASK 0x80000000u  // the top bit of a word
#define LMASK 0x7fffffffu  // the other 31

typedef struct {
    unsigned long long seed_;               // what manual_seed was given
    int left_;                              // draws until the next twist, that one included
    unsigned int next_;                     // index in state_ of the next word to draw
    unsigned int state_[MERSENNE_STATE_N];  // the words
    unsigned int MATRIX_A[2];               // {0, 0x9908b0df}, indexed by the low bit of y
} mt19937_state;

// Keeps `seed` in seed_, sets MATRIX_A, fills state_ from the low 32 bits of `seed`, and arranges
// that the first draw twists: left_ = 1, next_ = 0.
static inline void manual_seed(mt19937_state *state, unsigned long long seed) {
    // TODO (A0): manual_seed
    // HINT: word j comes from word j - 1: xor it with itself >> 30, times 1812433253, plus j, in 32
    // bits.
    // BEGIN SOLUTION
    state->MATRIX_A[0] = 0x0u;
    state->MATRIX_A[1] = 0x9908b0dfu;
    state->seed_ = seed;
    state->state_[0] = (unsigned int)(seed & 0xffffffffu);
    for (unsigned int j = 1; j < MERSENNE_STATE_N; j++) {
        unsigned int previous = state->state_[j - 1];
        state->state_[j] = 1812433253u * (previous ^ (previous >> 30)) + j;
    }
    state->left_ = 1;
    state->next_ = 0;
    // END SOLUTION
}

// The twist: replaces all 624 words by the next 624, in place; left_ = 624, next_ = 0.
static inline void next_state(mt19937_state *state) {
    // TODO (A0): next_state
    // HINT: three runs: words whose partner j + 397 is still ahead, words whose partner has
    // wrapped, the last word.
    // BEGIN SOLUTION
    const int n = MERSENNE_STATE_N, m = MERSENNE_STATE_M;
    unsigned int *s = state->state_;
    unsigned int y;
    state->left_ = n;
    state->next_ = 0;
    for (int j = 0; j < n - m; j++) {
        y = (s[j] & UMASK) | (s[j + 1] & LMASK);
        s[j] = s[j + m] ^ (y >> 1) ^ state->MATRIX_A[y & 1];
    }
    for (int j = n - m; j < n - 1; j++) {
        y = (s[j] & UMASK) | (s[j + 1] & LMASK);
        s[j] = s[j + m - n] ^ (y >> 1) ^ state->MATRIX_A[y & 1];
    }
    y = (s[n - 1] & UMASK) | (s[0] & LMASK);
    s[n - 1] = s[m - 1] ^ (y >> 1) ^ state->MATRIX_A[y & 1];
    // END SOLUTION
}

// The next tempered word. NULL draws 0; a state never seeded (MATRIX_A not set) seeds itself with
// 5489.
static inline unsigned int randint32(mt19937_state *state) {
    // TODO (A0): randint32
    // HINT: count left_ down before you look at it; twist when it reaches 0; temper a copy of the
    // word.
    // BEGIN SOLUTION
    if (state == NULL) return 0;
    if (state->MATRIX_A[0] != 0x0u || state->MATRIX_A[1] != 0x9908b0dfu) manual_seed(state, 5489);
    if (--state->left_ <= 0) next_state(state);
    unsigned int y = state->state_[state->next_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    y ^= y >> 18;
    return y;
    // END SOLUTION
}

// 64 bits from two draws, the first one high.
static inline unsigned long long randint64(mt19937_state *state) {
    // TODO (A0): randint64
    // HINT: C does not say which operand of | is evaluated first; draw into two variables.
    // BEGIN SOLUTION
    unsigned long long high = randint32(state);
    unsigned long long low = randint32(state);
    return (high << 32) | low;
    // END SOLUTION
}

// Uniform on [0, 1): the low 24 bits of one draw, times 2^-24.
static inline float randfloat32(mt19937_state *state) {
    // TODO (A0): randfloat32
    // HINT: a float holds 24 bits exactly; with more, rounding would reach 1.
    // BEGIN SOLUTION
    return (float)(randint32(state) & ((1u << 24) - 1)) * (1.0f / (float)(1u << 24));
    // END SOLUTION
}

// Uniform on [0, 1): the low 53 bits of randint64, times 2^-53.
static inline double randfloat64(mt19937_state *state) {
    // TODO (A0): randfloat64
    // HINT: 1 << 53 does not fit in an int.
    // BEGIN SOLUTION
    return (double)(randint64(state) & ((1ull << 53) - 1)) * (1.0 / (double)(1ull << 53));
    // END SOLUTION
}

// data (numel): uniforms on [from, to), one randfloat32 each, in order.
static inline void uniform_(float *data, unsigned int numel, float from, float to,
                            mt19937_state *state) {
    // TODO (A0): uniform_
    // HINT: stretch by (to - from), then shift by from.
    // BEGIN SOLUTION
    for (unsigned int i = 0; i < numel; i++) data[i] = randfloat32(state) * (to - from) + from;
    // END SOLUTION
}

// data (16): 16 uniforms in, 16 normals out, by Box-Muller; element t is paired with element t + 8.
static inline void normal_fill_16(float *data, float mean, float std) {
    // TODO (A0): normal_fill_16
    // HINT: u1 = 1 - data[t] keeps the logarithm away from 0; add 1e-12 to it as well, in float: in
    // double log(1 + 1e-12) is positive, and the root of its negative is not a number.
    // BEGIN SOLUTION
    const float two_pi = 6.28318530717958647692f;
    for (int t = 0; t < 8; t++) {
        float u1 = 1.0f - data[t];
        float u2 = data[t + 8];
        float radius = sqrtf(-2.0f * logf(u1 + 1e-12f));
        float theta = two_pi * u2;
        data[t] = radius * cosf(theta) * std + mean;
        data[t + 8] = radius * sinf(theta) * std + mean;
    }
    // END SOLUTION
}

// data (numel), numel >= 16: uniforms first, all of them, then Box-Muller block by block. Where 16
// does not divide numel, the last 16 elements are drawn afresh and transformed once more, over what
// stands there.
static inline void normal_fill(float *data, unsigned int numel, float mean, float std,
                               mt19937_state *state) {
    // TODO (A0): normal_fill
    // HINT: only whole blocks in the first pass; the tail overlaps the last of them.
    // BEGIN SOLUTION
    for (unsigned int i = 0; i < numel; i++) data[i] = randfloat32(state);
    for (unsigned int i = 0; i + 16 <= numel; i += 16) normal_fill_16(data + i, mean, std);
    if (numel % 16 != 0) {
        float *tail = data + numel - 16;
        for (int i = 0; i < 16; i++) tail[i] = randfloat32(state);
        normal_fill_16(tail, mean, std);
    }
    // END SOLUTION
}

// data (numel): normals. From 16 elements on normal_fill; below, pairs from float64 draws: u1 then
// u2, each cast to float; radius from u2, angle from u1; the cosine first, the sine for the element
// after it. An odd last sine is dropped.
static inline void normal_(float *data, unsigned int numel, float mean, float std,
                           mt19937_state *state) {
    // TODO (A0): normal_
    // HINT: below 16, radius = sqrt(-2 log(1 - u2 + 1e-12)) and theta = 2 pi u1.
    // BEGIN SOLUTION
    if (numel >= 16) {
        normal_fill(data, numel, mean, std, state);
        return;
    }
    const float two_pi = 6.28318530717958647692f;
    for (unsigned int i = 0; i < numel; i += 2) {
        float u1 = (float)randfloat64(state);
        float u2 = (float)randfloat64(state);
        float radius = sqrtf(-2.0f * logf(1.0f - u2 + 1e-12f));
        float theta = two_pi * u1;
        data[i] = radius * cosf(theta) * std + mean;
        if (i + 1 < numel) data[i + 1] = radius * sinf(theta) * std + mean;
    }
    // END SOLUTION
}

// data (numel): 0, 1, ..., numel - 1.
static inline void init_identity_permutation(int *data, int numel) {
    // TODO (A0): init_identity_permutation
    // HINT: element i is i.
    // BEGIN SOLUTION
    for (int i = 0; i < numel; i++) data[i] = i;
    // END SOLUTION
}

// data (numel): shuffled in place (Fisher-Yates). For i = numel - 1 down to 1: swap i with j =
// randint32 mod (i + 1).
static inline void random_permutation(int *data, int numel, mt19937_state *state) {
    // TODO (A0): random_permutation
    // HINT: j may equal i; one draw for each i; the draw is unsigned.
    // BEGIN SOLUTION
    for (int i = numel - 1; i > 0; i--) {
        int j = (int)(randint32(state) % (unsigned int)(i + 1));
        int kept = data[i];
        data[i] = data[j];
        data[j] = kept;
    }
    // END SOLUTION
}

#endif
