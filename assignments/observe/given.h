// given.h: inputs that probes give to the student's code; all of them follow from the seed alone.
#ifndef GIVEN_H
#define GIVEN_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Number i of the SplitMix64 sequence of `seed` (Steele, Lea and Flood 2014).
static inline uint64_t given_u64(uint64_t seed, uint64_t i) {
    uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static inline uint32_t given_u32(uint64_t seed, uint64_t i) {
    return (uint32_t)(given_u64(seed, i) >> 32);
}

// In [low, low + span).
static inline int given_int(uint64_t seed, uint64_t i, int low, int span) {
    return low + (int)(given_u64(seed, i) % (uint64_t)span);
}

// In (0, 1): odd multiples of 2^-24, so that neither end nor the middle occurs.
static inline float given_unit(uint64_t seed, uint64_t i) {
    return (float)((given_u64(seed, i) >> 40) | 1) / 16777216.0f;
}

// n numbers in (-scale / 2, scale / 2), never 0, that begin at number *at of the sequence, which
// moves on. They are a block of their own: whoever reads or writes beside it meets ASan.
static inline float *given_floats(uint64_t seed, uint64_t *at, size_t n, float scale) {
    float *values = malloc(n * sizeof(float));
    if (values == NULL) abort();
    for (size_t i = 0; i < n; i++) values[i] = scale * (given_unit(seed, (*at)++) - 0.5f);
    return values;
}

// n integers in [0, span).
static inline int *given_ints(uint64_t seed, uint64_t *at, size_t n, int span) {
    int *values = malloc(n * sizeof(int));
    if (values == NULL) abort();
    for (size_t i = 0; i < n; i++) {
        values[i] = (int)((double)given_unit(seed, (*at)++) * (double)span);
    }
    return values;
}

// n times the same number.
static inline float *given_same(float value, size_t n) {
    float *values = malloc(n * sizeof(float));
    if (values == NULL) abort();
    for (size_t i = 0; i < n; i++) values[i] = value;
    return values;
}

// Writes `count` elements of `size` bytes to a new file in the probe's folder.
static inline void given_write(FILE *file, const void *bytes, size_t size, size_t count) {
    if (fwrite(bytes, size, count, file) != count) abort();
}

static inline FILE *given_file(const char *path) {
    FILE *file = fopen(path, "wb");
    if (file == NULL) abort();
    return file;
}

#endif
