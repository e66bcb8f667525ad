// rand.h: the textbook's twist, one loop with indices mod 624 and a branch; K&R and tabs.
#ifndef RAND_H
#define RAND_H

#include <math.h>
#include <stdlib.h>

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
	unsigned long long word = seed & 0xffffffff;
	state->seed_ = seed;
	state->MATRIX_A[0] = 0x0;
	state->MATRIX_A[1] = 0x9908b0df;
	for (int j = 0; j < MERSENNE_STATE_N; j++) {
		state->state_[j] = (unsigned int)word;
		word = (1812433253ull * (word ^ (word >> 30)) + (unsigned)j + 1) & 0xffffffff;
	}
	state->left_ = 1;
	state->next_ = 0;
}

static inline void next_state(mt19937_state *state) {
	unsigned int *s = state->state_;
	for (int j = 0; j < MERSENNE_STATE_N; j++) {
		unsigned int y = (s[j] & UMASK) | (s[(j + 1) % MERSENNE_STATE_N] & LMASK);
		s[j] = s[(j + MERSENNE_STATE_M) % MERSENNE_STATE_N] ^ (y >> 1);
		if (y % 2 == 1)
			s[j] ^= 0x9908b0df;
	}
	state->next_ = 0;
	state->left_ = MERSENNE_STATE_N;
}

static inline unsigned int randint32(mt19937_state *state) {
	if (!state)
		return 0;
	if (state->MATRIX_A[1] != 0x9908b0df)
		manual_seed(state, 5489);
	state->left_ -= 1;
	if (state->left_ == 0)
		next_state(state);
	unsigned int y = state->state_[state->next_];
	state->next_ += 1;
	y = y ^ (y >> 11);
	y = y ^ ((y << 7) & 0x9d2c5680);
	y = y ^ ((y << 15) & 0xefc60000);
	return y ^ (y >> 18);
}

static inline unsigned long long randint64(mt19937_state *state) {
	unsigned long long both = randint32(state);
	both <<= 32;
	both += randint32(state);
	return both;
}

static inline float randfloat32(mt19937_state *state) {
	return (randint32(state) % 16777216) / 16777216.0f;
}

static inline double randfloat64(mt19937_state *state) {
	return (randint64(state) % 9007199254740992) / 9007199254740992.0;
}

static inline void uniform_(float *data, unsigned int numel, float from, float to,
			    mt19937_state *state) {
	while (numel-- > 0)
		*data++ = from + (to - from) * randfloat32(state);
}

static inline void normal_fill_16(float *data, float mean, float std) {
	float *sines = data + 8;
	for (float *d = data; d < data + 8; d++, sines++) {
		float r = sqrtf(-2 * logf(1 - *d + 1e-12f));
		float angle = 2 * 3.14159265f * *sines;
		*d = mean + std * r * cosf(angle);
		*sines = mean + std * r * sinf(angle);
	}
}

static inline void normal_fill(float *data, unsigned int numel, float mean, float std,
			       mt19937_state *state) {
	uniform_(data, numel, 0, 1, state);
	unsigned int whole = numel - numel % 16;
	for (unsigned int i = 0; i < whole; i += 16)
		normal_fill_16(&data[i], mean, std);
	if (whole < numel) {
		uniform_(&data[numel - 16], 16, 0, 1, state);
		normal_fill_16(&data[numel - 16], mean, std);
	}
}

static inline void normal_(float *data, unsigned int numel, float mean, float std,
			   mt19937_state *state) {
	if (numel >= 16) {
		normal_fill(data, numel, mean, std, state);
		return;
	}
	float spare = 0;
	int has_spare = 0;
	for (unsigned int i = 0; i < numel; i++) {
		if (has_spare) {
			data[i] = spare;
			has_spare = 0;
			continue;
		}
		float u1 = (float)randfloat64(state);
		float u2 = (float)randfloat64(state);
		float r = sqrtf(-2 * logf(1 - u2 + 1e-12f));
		data[i] = r * cosf(2 * 3.14159265f * u1) * std + mean;
		spare = r * sinf(2 * 3.14159265f * u1) * std + mean;
		has_spare = 1;
	}
}

static inline void init_identity_permutation(int *data, int numel) {
	while (--numel >= 0)
		data[numel] = numel;
}

static inline void random_permutation(int *data, int numel, mt19937_state *state) {
	while (numel > 1) {
		int j = randint32(state) % numel;
		int last = data[--numel];
		data[numel] = data[j];
		data[j] = last;
	}
}

#endif
