// rand.h: <tgmath.h>, plain global helpers, and normals made in a local array of 16 that is then copied.
#ifndef _RAND_H_
#define _RAND_H_

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tgmath.h>

#define MERSENNE_STATE_N 624
#define MERSENNE_STATE_M 397
#define UMASK 0x80000000u
#define LMASK 0x7fffffffu
#define BLOCK 16

typedef struct mt19937 {
    unsigned long long seed_;
    int left_;
    unsigned int next_;
    unsigned int state_[MERSENNE_STATE_N];
    unsigned int MATRIX_A[2];
} mt19937_state;

static const unsigned int matrix[2] = {0x0u, 0x9908b0dfu};

bool is_seeded(const mt19937_state *state) {
    return state->MATRIX_A[0] == matrix[0] && state->MATRIX_A[1] == matrix[1];
}

void swap(int *a, int *b) {
    int c = *a;
    *a = *b;
    *b = c;
}

void manual_seed(mt19937_state *state, unsigned long long seed) {
    int j;
    state->seed_ = seed;
    state->left_ = 1;
    state->next_ = 0;
    for (j = 0; j < 2; j++) state->MATRIX_A[j] = matrix[j];
    state->state_[0] = seed & 0xffffffffUL;
    for (j = 1; j < MERSENNE_STATE_N; j++) {
        state->state_[j] = (1812433253UL * (state->state_[j - 1] ^ (state->state_[j - 1] >> 30)) + j);
        state->state_[j] &= 0xffffffffUL;
    }
}

static unsigned int twist(const unsigned int *words, int here, int next, int partner) {
    unsigned int y = (words[here] & UMASK) | (words[next] & LMASK);
    return words[partner] ^ (y >> 1) ^ matrix[y & 1];
}

void next_state(mt19937_state *state) {
    const int n = MERSENNE_STATE_N, ahead = MERSENNE_STATE_M, behind = n - ahead;
    unsigned int *words = state->state_;
    int i = 0;
    for (; i < behind; i++) words[i] = twist(words, i, i + 1, i + ahead);
    for (; i < n - 1; i++) words[i] = twist(words, i, i + 1, i - behind);
    words[i] = twist(words, i, 0, i - behind);
    state->left_ = n;
    state->next_ = 0;
}

unsigned int randint32(mt19937_state *state) {
    if (state == 0) return 0;
    if (!is_seeded(state)) manual_seed(state, 5489UL);
    if (--(state->left_) <= 0) next_state(state);
    uint64_t y = state->state_[(state->next_)++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680UL;
    y ^= (y << 15) & 0xefc60000UL;
    y ^= y >> 18;
    return (unsigned int)y;
}

unsigned long long randint64(mt19937_state *state) {
    unsigned long long draw = 0;
    for (int i = 0; i < 2; i++) draw = (draw << 32) | randint32(state);
    return draw;
}

float randfloat32(mt19937_state *state) {
    return (randint32(state) & ((1ull << 24) - 1)) * (1.0f / (1ull << 24));
}

double randfloat64(mt19937_state *state) {
    return (randint64(state) & ((1ull << 53) - 1)) * (1.0 / (1ull << 53));
}

void uniform_(float *data, unsigned int numel, float from, float to, mt19937_state *state) {
    for (unsigned int t = 0; t < numel; t++) {
        data[t] = randfloat32(state);
        data[t] *= to - from;
        data[t] += from;
    }
}

void normal_fill_16(float *data, float mean, float std) {
    for (int t = 0; t < BLOCK / 2; t++) {
        float u1 = 1 - data[t], u2 = data[t + BLOCK / 2];
        float radius = sqrt(-2 * log(u1 + 1e-12f));
        float theta = 4 * acos(0.0f) * u2;
        data[t] = radius * cos(theta) * std + mean;
        data[t + BLOCK / 2] = radius * sin(theta) * std + mean;
    }
}

void draw_block(float *out, float mean, float std, mt19937_state *state) {
    float block[BLOCK];
    uniform_(block, BLOCK, 0.0f, 1.0f, state);
    normal_fill_16(block, mean, std);
    memcpy(out, block, sizeof(block));
}

void normal_fill(float *data, unsigned int numel, float mean, float std, mt19937_state *state) {
    unsigned int rest = numel % BLOCK;
    for (unsigned int t = 0; t < numel / BLOCK; t++) {
        draw_block(data + t * BLOCK, mean, std, state);
    }
    for (unsigned int t = 0; t < rest; t++) randint32(state);  // drawn, then drawn again
    if (rest > 0) draw_block(data + numel - BLOCK, mean, std, state);
}

void normal_(float *data, unsigned int numel, float mean, float std, mt19937_state *state) {
    if (numel >= BLOCK) return normal_fill(data, numel, mean, std, state);
    float block[BLOCK];
    for (unsigned int t = 0; t < numel; t += 2) {
        float u1 = randfloat64(state), u2 = randfloat64(state);
        float radius = sqrt(-2 * log(1 - u2 + 1e-12f)), theta = 4 * acos(0.0f) * u1;
        block[t] = radius * cos(theta) * std + mean;
        block[t + 1] = radius * sin(theta) * std + mean;
    }
    memcpy(data, block, numel * sizeof(float));
}

void init_identity_permutation(int *data, int numel) {
    for (int i = 0; i < numel; i++) data[i] = i;
}

void random_permutation(int *data, int numel, mt19937_state *state) {
    for (int i = numel - 1; i > 0; i--) swap(&data[i], &data[randint32(state) % (i + 1)]);
}

#endif
