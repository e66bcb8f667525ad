/* rand.h: each Box-Muller pair is a complex number, the twist fills a second array, and the golden
   values stand in a block comment:

import numpy as np
np.random.RandomState(137).randint(0, 2**32, size=5, dtype=np.uint32)
# 4053805790 2173880614 380293709 1237255315 2986595568
*/
#ifndef LLMC_RAND_H
#define LLMC_RAND_H

#include <complex.h>
#include <stddef.h>
#include <string.h>
#include <math.h>

#define MERSENNE_STATE_N 624
#define MERSENNE_STATE_M 397
#define UMASK 0x80000000u
#define LMASK 0x7fffffffu

typedef struct {
  unsigned long long seed_;
  int left_;
  unsigned int next_;
  unsigned int state_[MERSENNE_STATE_N];
  unsigned int MATRIX_A[2];
} mt19937_state;

static inline void manual_seed(mt19937_state *state, unsigned long long seed) {
  unsigned int word = seed, j = 0;
  do {
    state->state_[j++] = word;
    word = 1812433253u * (word ^ word >> 30) + j;
  } while (j < MERSENNE_STATE_N);
  memcpy(state->MATRIX_A, (unsigned int[]){0x0, 0x9908b0df}, sizeof(state->MATRIX_A));
  state->seed_ = seed;
  state->left_ = 1;
  state->next_ = 0;
}

/* New words need old ones 0 to 2 places on, and new ones from 227 places back. */
static inline void next_state(mt19937_state *state) {
  enum { n = MERSENNE_STATE_N, m = MERSENNE_STATE_M };
  unsigned int new_words[n];
  const unsigned int *old_words = state->state_;
  for (int i = 0; i < n; i++) {
    unsigned int low = i + 1 < n ? old_words[i + 1] : new_words[0];
    unsigned int partner = i + m < n ? old_words[i + m] : new_words[i + m - n];
    unsigned int y = (old_words[i] & UMASK) + (low & LMASK);
    new_words[i] = partner ^ y / 2 ^ state->MATRIX_A[y % 2];
  }
  memcpy(state->state_, new_words, sizeof(new_words));
  state->left_ = n;
  state->next_ = 0;
}

static inline unsigned int randint32(mt19937_state *state) {
  if (state == NULL) { return 0; }
  const unsigned int matrix[2] = {0, 0x9908b0df};
  if (memcmp(state->MATRIX_A, matrix, sizeof(matrix)) != 0) { manual_seed(state, 5489); }
  state->left_--;
  if (state->left_ <= 0) { next_state(state); }
  unsigned int y = state->state_[state->next_];
  state->next_++;
  y ^= (y >> 11) & 0xffffffffu;
  y ^= (y & 0x013a58adu) << 7;
  y ^= (y & 0x0001df8cu) << 15;
  y ^= y >> 18;
  return y;
}

static inline unsigned long long randint64(mt19937_state *state) {
  unsigned long long hi = randint32(state);
  unsigned long long lo = randint32(state);
  return hi * 0x100000000ull + lo;
}

static inline float randfloat32(mt19937_state *state) {
  return scalbnf((float)(randint32(state) & ~(255u << 24)), -24);
}

static inline double randfloat64(mt19937_state *state) {
  return scalbn((double)(randint64(state) << 11 >> 11), -53);
}

static inline void uniform_(float *data, unsigned int numel, float from, float to,
                            mt19937_state *state) {
  const float range = to - from;
  for (float *end = data + numel; data != end; data++) *data = fmaf(randfloat32(state), range, from);
}

static inline float complex box_muller(float u, float v) {
  return csqrtf(-2 * logf(1 - u + 1e-12f)) * cexpf(6.2831853f * v * I);
}

static inline void normal_fill_16(float *data, float mean, float std) {
  for (int t = 0; t < 8; t++) {
    float complex z = box_muller(data[t], data[t + 8]);
    data[t] = crealf(z) * std + mean;
    data[t + 8] = cimagf(z) * std + mean;
  }
}

static inline void normal_fill(float *data, unsigned int numel, float mean, float std,
                               mt19937_state *state) {
  for (unsigned int i = 0; i < numel; i++) {
    data[i] = randfloat32(state);
    if (i % 16 == 15) { normal_fill_16(&data[i - 15], mean, std); }
  }
  if (numel % 16 == 0) { return; }
  float *tail = &data[numel - 16];
  for (int i = 0; i < 16; i++) { tail[i] = randfloat32(state); }
  normal_fill_16(tail, mean, std);
}

static inline void normal_(float *data, unsigned int numel, float mean, float std,
                           mt19937_state *state) {
  if (numel >= 16) { normal_fill(data, numel, mean, std, state); return; }
  float complex z = 0;
  for (unsigned int i = 0; i < numel; i++) {
    if (i % 2 == 1) { data[i] = cimagf(z) * std + mean; continue; }
    float v = (float)randfloat64(state);
    z = box_muller((float)randfloat64(state), v);
    data[i] = crealf(z) * std + mean;
  }
}

static inline void init_identity_permutation(int *data, int numel) {
  for (int i = numel; i > 0; i--) { data[i - 1] = i - 1; }
}

static inline void random_permutation(int *data, int numel, mt19937_state *state) {
  for (int i = numel - 1; i >= 1; --i) {
    unsigned int j = randint32(state) % (i + 1u);
    int pair[2] = {data[j], data[i]};
    data[i] = pair[0];
    data[j] = pair[1];
  }
}

#endif /* LLMC_RAND_H */
