// rand.h: a byte order mark, CRLF line ends, a Latin-1 comment (café, µ, §) and tabs.
#ifndef LLMC_RAND_H
#define LLMC_RAND_H
#include <math.h>
#include <stddef.h>
#include "todo.h"
#define MERSENNE_STATE_N \
	624
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
}
static inline void next_state(mt19937_state *state) {
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
}
static inline unsigned int randint32(mt19937_state *state) {
	if (state == NULL) return 0;
	if (state->MATRIX_A[0] != 0x0u || state->MATRIX_A[1] != 0x9908b0dfu) manual_seed(state, 5489);
	if (--state->left_ <= 0) next_state(state);
	unsigned int y = state->state_[state->next_++];
	y ^= y >> 11;
	y ^= (y << 7) & 0x9d2c5680u;
	y ^= (y << 15) & 0xefc60000u;
	y ^= y >> 18;
	return y;
}
static inline unsigned long long randint64(mt19937_state *state) {
	unsigned long long high = randint32(state);
	unsigned long long low = randint32(state);
	return (high << 32) | low;
}
static inline float randfloat32(mt19937_state *state) {
	return (float)(randint32(state) & ((1u << 24) - 1)) * (1.0f / (float)(1u << 24));
}
static inline double randfloat64(mt19937_state *state) {
	return (double)(randint64(state) & ((1ull << 53) - 1)) * (1.0 / (double)(1ull << 53));
}
static inline void uniform_(float *data, unsigned int numel, float from, float to,
							mt19937_state *state) {
	for (unsigned int i = 0; i < numel; i++) data[i] = randfloat32(state) * (to - from) + from;
}
static inline void normal_fill_16(float *data, float mean, float std) {
	const float two_pi = 6.28318530717958647692f;
	for (int t = 0; t < 8; t++) {
		float u1 = 1.0f - data[t];
		float u2 = data[t + 8];
		float radius = sqrtf(-2.0f * logf(u1 + 1e-12f));
		float theta = two_pi * u2;
		data[t] = radius * cosf(theta) * std + mean;
		data[t + 8] = radius * sinf(theta) * std + mean;
	}
}
static inline void normal_fill(float *data, unsigned int numel, float mean, float std,
							   mt19937_state *state) {
	for (unsigned int i = 0; i < numel; i++) data[i] = randfloat32(state);
	for (unsigned int i = 0; i + 16 <= numel; i += 16) normal_fill_16(data + i, mean, std);
	if (numel % 16 != 0) {
		float *tail = data + numel - 16;
		for (int i = 0; i < 16; i++) tail[i] = randfloat32(state);
		normal_fill_16(tail, mean, std);
	}
}
static inline void normal_(float *data, unsigned int numel, float mean, float std,
						   mt19937_state *state) {
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
}
static inline void init_identity_permutation(int *data, int numel) {
	for (int i = 0; i < numel; i++) data[i] = i;
}
static inline void random_permutation(int *data, int numel, mt19937_state *state) {
	for (int i = numel - 1; i > 0; i--) {
		int j = (int)(randint32(state) % (unsigned int)(i + 1));
		int kept = data[i];
		data[i] = data[j];
		data[j] = kept;
	}
}
#endif
