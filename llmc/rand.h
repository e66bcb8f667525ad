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
    TODO("A0: manual_seed");
}

// The twist: replaces all 624 words by the next 624, in place; left_ = 624, next_ = 0.
static inline void next_state(mt19937_state *state) {
    // TODO (A0): next_state
    // HINT: three runs: words whose partner j + 397 is still ahead, words whose partner has
    // wrapped, the last word.
    TODO("A0: next_state");
}

// The next tempered word. NULL draws 0; a state never seeded (MATRIX_A not set) seeds itself with
// 5489.
static inline unsigned int randint32(mt19937_state *state) {
    // TODO (A0): randint32
    // HINT: count left_ down before you look at it; twist when it reaches 0; temper a copy of the
    // word.
    TODO("A0: randint32");
}

// 64 bits from two draws, the first one high.
static inline unsigned long long randint64(mt19937_state *state) {
    // TODO (A0): randint64
    // HINT: C does not say which operand of | is evaluated first; draw into two variables.
    TODO("A0: randint64");
}

// Uniform on [0, 1): the low 24 bits of one draw, times 2^-24.
static inline float randfloat32(mt19937_state *state) {
    // TODO (A0): randfloat32
    // HINT: a float holds 24 bits exactly; with more, rounding would reach 1.
    TODO("A0: randfloat32");
}

// Uniform on [0, 1): the low 53 bits of randint64, times 2^-53.
static inline double randfloat64(mt19937_state *state) {
    // TODO (A0): randfloat64
    // HINT: 1 << 53 does not fit in an int.
    TODO("A0: randfloat64");
}

// data (numel): uniforms on [from, to), one randfloat32 each, in order.
static inline void uniform_(float *data, unsigned int numel, float from, float to,
                            mt19937_state *state) {
    // TODO (A0): uniform_
    // HINT: stretch by (to - from), then shift by from.
    TODO("A0: uniform_");
}

// data (16): 16 uniforms in, 16 normals out, by Box-Muller; element t is paired with element t + 8.
static inline void normal_fill_16(float *data, float mean, float std) {
    // TODO (A0): normal_fill_16
    // HINT: u1 = 1 - data[t] keeps the logarithm away from 0; add 1e-12 to it as well, in float: in
    // double log(1 + 1e-12) is positive, and the root of its negative is not a number.
    TODO("A0: normal_fill_16");
}

// data (numel), numel >= 16: uniforms first, all of them, then Box-Muller block by block. Where 16
// does not divide numel, the last 16 elements are drawn afresh and transformed once more, over what
// stands there.
static inline void normal_fill(float *data, unsigned int numel, float mean, float std,
                               mt19937_state *state) {
    // TODO (A0): normal_fill
    // HINT: only whole blocks in the first pass; the tail overlaps the last of them.
    TODO("A0: normal_fill");
}

// data (numel): normals. From 16 elements on normal_fill; below, pairs from float64 draws: u1 then
// u2, each cast to float; radius from u2, angle from u1; the cosine first, the sine for the element
// after it. An odd last sine is dropped.
static inline void normal_(float *data, unsigned int numel, float mean, float std,
                           mt19937_state *state) {
    // TODO (A0): normal_
    // HINT: below 16, radius = sqrt(-2 log(1 - u2 + 1e-12)) and theta = 2 pi u1.
    TODO("A0: normal_");
}

// data (numel): 0, 1, ..., numel - 1.
static inline void init_identity_permutation(int *data, int numel) {
    // TODO (A0): init_identity_permutation
    // HINT: element i is i.
    TODO("A0: init_identity_permutation");
}

// data (numel): shuffled in place (Fisher-Yates). For i = numel - 1 down to 1: swap i with j =
// randint32 mod (i + 1).
static inline void random_permutation(int *data, int numel, mt19937_state *state) {
    // TODO (A0): random_permutation
    // HINT: j may equal i; one draw for each i; the draw is unsigned.
    TODO("A0: random_permutation");
}

#endif
