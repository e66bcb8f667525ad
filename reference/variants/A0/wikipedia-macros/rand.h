// rand.h: the names of Wikipedia's article as macros, own integer types, small static helpers, one field more.
#ifndef MERSENNE_TWISTER_H
#define MERSENNE_TWISTER_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
typedef double f64;

#define MERSENNE_STATE_N 624
#define MERSENNE_STATE_M 397
#define UMASK (1u << 31)
#define LMASK (UMASK - 1)

#define N MERSENNE_STATE_N
#define M MERSENNE_STATE_M
#define F 1812433253u
#define A 0x9908b0dfu
#define U 11
#define S 7
#define B 0x9d2c5680u
#define T 15
#define C 0xefc60000u
#define L 18
#define PI 3.14159265358979323846f
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define SWAP(x, y) do { __typeof__(x) old_ = (x); (x) = (y); (y) = old_; } while (0)

typedef struct {
    unsigned long long seed_;
    int left_;
    unsigned int next_;
    unsigned int state_[N];
    unsigned int MATRIX_A[2];
    u64 draws;  // so far, to debug with
} mt19937_state;

static u32 mix(u32 word, u32 index) { return F * (word ^ (word >> 30)) + index; }

static u32 temper(u32 y) {
    y ^= y >> U;
    y ^= y << S & B;
    y ^= y << T & C;
    return y ^ y >> L;
}

static inline void manual_seed(mt19937_state *state, unsigned long long seed) {
    *state = (mt19937_state){.seed_ = seed, .left_ = 1, .state_ = {(u32)seed}, .MATRIX_A = {0, A}};
    for (u32 i = 1; i < N; i++) state->state_[i] = mix(state->state_[i - 1], i);
}

static inline void next_state(mt19937_state *state) {
    for (u32 k = 0, next = 1, far = M; k < N; k++) {
        u32 y = (state->state_[k] & UMASK) | (state->state_[next] & LMASK);
        state->state_[k] = state->state_[far] ^ (y >> 1) ^ (y & 1 ? A : 0);
        if (++next == N) next = 0;
        if (++far == N) far = 0;
    }
    state->left_ = N, state->next_ = 0;
}

static inline unsigned int randint32(mt19937_state *state) {
    if (NULL == state) return 0;
    if (A != state->MATRIX_A[1]) manual_seed(state, 5489);
    state->draws++;
    if (--state->left_ < 1) next_state(state);
    return temper(state->state_[state->next_++]);
}

static inline unsigned long long randint64(mt19937_state *state) {
    union { u64 whole; u32 half[2]; } bits;
    const int big_endian = (const u8){((const union { u32 word; u8 byte; }){1}).byte} == 0;
    bits.half[!big_endian] = randint32(state);
    bits.half[big_endian] = randint32(state);
    return bits.whole;
}

static inline f32 randfloat32(mt19937_state *state) { return 0x1p-24f * (randint32(state) << 8 >> 8); }

static inline f64 randfloat64(mt19937_state *state) {
    f64 high = randint32(state) & 0x1fffff, low = randint32(state);
    return (high * 4294967296.0 + low) / 9007199254740992.0;
}

static inline void uniform_(f32 *data, unsigned int numel, f32 from, f32 to, mt19937_state *state) {
    for (u32 i = 0; i < numel; i++) {
        f32 u = randfloat32(state);
        data[i] = (1 - u) * from + u * to;
    }
}

static void pair(f32 u1, f32 u2, f32 mean, f32 std, f32 *cosine, f32 *sine) {
    f32 radius = sqrtf(-2 * logf(1 - u1 + 1e-12f));
    *cosine = radius * cosf(2 * PI * u2) * std + mean;
    *sine = radius * sinf(2 * PI * u2) * std + mean;
}

static inline void normal_fill_16(f32 *data, f32 mean, f32 std) {
    for (f32 *d = data; d != data + 8; d++) pair(d[0], d[8], mean, std, d, d + 8);
}

static inline void normal_fill(f32 *data, unsigned int numel, f32 mean, f32 std,
                               mt19937_state *state) {
    u32 i = 0;
    uniform_(data, numel, 0, 1, state);
    do normal_fill_16(data + i, mean, std), i += 16; while (i + 16 <= numel);
    if (i == numel) return;
    uniform_(data + numel - 16, 16, 0, 1, state);
    normal_fill_16(data + numel - 16, mean, std);
}

static inline void normal_(f32 *data, unsigned int numel, f32 mean, f32 std, mt19937_state *state) {
    if (numel > 15) { normal_fill(data, numel, mean, std, state); return; }
    for (u32 i = 0; i < numel; i += 2) {
        f32 both[2], angle = (f32)randfloat64(state);
        pair((f32)randfloat64(state), angle, mean, std, &both[0], &both[1]);
        for (u32 k = i; k < MIN(i + 2, numel); k++) data[k] = both[k - i];
    }
}

static inline void init_identity_permutation(int *data, int numel) {
    int i = 0;
    while (i < numel) *data++ = i++;
}

static inline void random_permutation(int *data, int numel, mt19937_state *state) {
    for (int i = numel; i > 1; i--) {
        u32 j = randint32(state) % (u32)i;
        SWAP(data[j], data[i - 1]);
    }
}

#undef B
#undef T
#undef C
#undef L
#undef S
#endif
