// rand.h: all floating-point work in double, with M_PI, ldexp, θ for an angle, and the double functions of libm; Allman braces.
#pragma once

#include <math.h>
#include <stdint.h>
#include <stddef.h>

#include "todo.h"

#define MERSENNE_STATE_N 624
#define MERSENNE_STATE_M 397
#define UMASK 0x80000000u
#define LMASK 0x7fffffffu

typedef struct
{
    unsigned long long seed_;
    int left_;
    unsigned int next_;
    unsigned int state_[MERSENNE_STATE_N];
    unsigned int MATRIX_A[2];
} mt19937_state;

static inline void manual_seed(mt19937_state *state, unsigned long long seed)
{
    const mt19937_state fresh = {
        .seed_ = seed, .left_ = 1, .next_ = 0, .MATRIX_A = {0, 0x9908b0df}};
    *state = fresh;
    state->state_[0] = (uint32_t)seed;
    for (int j = 1; j < MERSENNE_STATE_N; j++)
    {
        const uint32_t before = state->state_[j - 1];
        state->state_[j] = UINT32_C(1812433253) * (before ^ before >> 30) + (uint32_t)j;
    }
}

static inline uint32_t twisted(uint32_t high, uint32_t low, uint32_t partner)
{
    const uint32_t y = (high & UMASK) | (low & LMASK);
    return partner ^ y >> 1 ^ (-(y & 1) & 0x9908b0df);
}

static inline void next_state(mt19937_state *state)
{
    uint32_t *p = state->state_;
    state->left_ = MERSENNE_STATE_N;
    state->next_ = 0;
    for (int j = 227; j != 0; --j, p++) *p = twisted(p[0], p[1], p[397]);
    for (int j = 396; j != 0; --j, p++) *p = twisted(p[0], p[1], p[-227]);
    *p = twisted(p[0], state->state_[0], p[-227]);
}

static inline unsigned int randint32(mt19937_state *state)
{
    if (state == NULL)
    {
        return 0;
    }
    if (state->MATRIX_A[0] == state->MATRIX_A[1])
    {
        manual_seed(state, 5489u);
    }
    if (--state->left_ <= 0)
    {
        next_state(state);
    }
    uint32_t y = state->state_[state->next_++];
    y ^= (y >> 11);
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    y ^= (y >> 18);
    return y;
}

static inline unsigned long long randint64(mt19937_state *state)
{
    const uint64_t high = randint32(state), low = randint32(state);
    return high << 32 | low;
}

static inline float randfloat32(mt19937_state *state)
{
    return (float)ldexp((double)(randint32(state) & 0xffffff), -24);
}

static inline double randfloat64(mt19937_state *state)
{
    return ldexp((double)(randint64(state) & 0x1fffffffffffff), -53);
}

static inline void uniform_(float *data, unsigned int numel, float from, float to,
                            mt19937_state *state)
{
    for (unsigned int i = 0; i < numel; ++i)
    {
        data[i] = (float)((double)randfloat32(state) * ((double)to - (double)from) + (double)from);
    }
}

static inline void normal_fill_16(float *data, float mean, float std)
{
    for (int t = 0; t < 8; t++)
    {
        const double u1 = 1.0 - data[t];
        const double u2 = data[t + 8];
        const double radius = sqrt(-2.0 * fmin(log(u1 + 1e-12), 0.0));
        const double θ = 2.0 * M_PI * u2;
        data[t] = (float)(radius * cos(θ) * std + mean);
        data[t + 8] = (float)(radius * sin(θ) * std + mean);
    }
}

static inline void normal_fill(float *data, unsigned int numel, float mean, float std,
                               mt19937_state *state)
{
    for (unsigned int i = 0; i < numel; i++)
    {
        data[i] = randfloat32(state);
    }
    for (unsigned int block = 0; block < numel / 16; block++)
    {
        normal_fill_16(data + 16 * block, mean, std);
    }
    if (numel % 16 != 0)
    {
        for (unsigned int i = numel - 16; i < numel; i++)
        {
            data[i] = randfloat32(state);
        }
        normal_fill_16(data + numel - 16, mean, std);
    }
}

static inline void normal_(float *data, unsigned int numel, float mean, float std,
                           mt19937_state *state)
{
    if (numel >= 16)
    {
        normal_fill(data, numel, mean, std, state);
    }
    else
    {
        for (unsigned int i = 0; i < numel; i += 2)
        {
            const double u1 = (float)randfloat64(state);
            const double u2 = (float)randfloat64(state);
            const double radius = sqrt(-2.0 * fmin(log(1.0 - u2 + 1e-12), 0.0));
            data[i] = (float)(radius * cos(2.0 * M_PI * u1) * std + mean);
            if (i + 1 != numel)
            {
                data[i + 1] = (float)(radius * sin(2.0 * M_PI * u1) * std + mean);
            }
        }
    }
}

static inline void init_identity_permutation(int *data, int numel)
{
    for (int i = 0; i < numel; data[i] = i, i++)
    {
    }
}

static inline void random_permutation(int *data, int numel, mt19937_state *state)
{
    for (int i = numel - 1; i > 0; i--)
    {
        const int j = (int)(randint32(state) % ((uint32_t)i + 1));
        if (i != j)
        {
            data[i] ^= data[j];
            data[j] ^= data[i];
            data[i] ^= data[j];
        }
    }
}
