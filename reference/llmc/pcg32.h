// pcg32.h: PCG32 as rand.py has it, given: the same draws, sub-streams and hashes in C, to the bit.
//
// The algorithm is in spec/pcg32.md, what it must give in spec/pcg32.vectors.json.
#ifndef LLMC_PCG32_H
#define LLMC_PCG32_H

#include <stddef.h>
#include <stdint.h>

#include "utils.h"

#define PCG32_MULTIPLIER 6364136223846793005ull
#define PCG32_SEQ 54u  // the stream where none is named
#define PCG32_GOLDEN 0x9e3779b97f4a7c15ull
#define PCG32_FNV_BASIS 0xcbf29ce484222325ull
#define PCG32_FNV_PRIME 0x100000001b3ull

typedef enum {
    PCG32_INIT = 1,
    PCG32_DROPOUT = 2,
    PCG32_SHUFFLE = 3,
    PCG32_SAMPLE = 4,
    PCG32_MUTATION = 5,
} pcg32_purpose;

typedef struct {
    uint64_t state;
    uint64_t inc;   // odd
    uint64_t seed;  // what pcg32_seed was given; sub-streams depend on it alone
} pcg32;

// The next 32 bits: a permutation of the old state. A rotation by 0 must shift left by 0, too: a
// shift by 32 is undefined.
static inline uint32_t pcg32_next_u32(pcg32 *rng) {
    uint64_t old = rng->state;
    rng->state = old * PCG32_MULTIPLIER + rng->inc;
    uint32_t word = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return (word >> turn) | (word << ((32u - turn) & 31u));
}

// Stream `seq` (below 2^63), at the place that `seed` chooses.
static inline void pcg32_seed(pcg32 *rng, uint64_t seed, uint64_t seq) {
    if (seq >> 63 != 0) {
        die("it must be less than 2^63", "stream %llu", (unsigned long long)seq);
    }
    *rng = (pcg32){.state = 0, .inc = seq << 1 | 1, .seed = seed};
    pcg32_next_u32(rng);
    rng->state += seed;
    pcg32_next_u32(rng);
}

// Uniform on [0, 1), a multiple of 2^-53: 27 bits of a first draw, then 26 of a second.
static inline double pcg32_uniform(pcg32 *rng) {
    uint64_t high = pcg32_next_u32(rng) >> 5;
    uint64_t low = pcg32_next_u32(rng) >> 6;
    return (double)(high << 26 | low) * (1.0 / (double)(1ull << 53));
}

// Uniform on 0 .. n - 1, without bias. 1 <= n <= 2^32.
static inline uint32_t pcg32_below(pcg32 *rng, uint64_t n) {
    const uint64_t words = 1ull << 32;
    if (n < 1 || n > words) {
        die("it must be 1 to 2^32", "below %llu", (unsigned long long)n);
    }
    uint64_t smallest = words % n;
    uint64_t word = pcg32_next_u32(rng);
    while (word < smallest) word = pcg32_next_u32(rng);
    return (uint32_t)(word % n);
}

// data (n): shuffled in place (Fisher-Yates). n <= 2^32.
static inline void pcg32_shuffle(int *data, size_t n, pcg32 *rng) {
    for (size_t i = n; i > 1; i--) {
        size_t j = pcg32_below(rng, i);
        int kept = data[i - 1];
        data[i - 1] = data[j];
        data[j] = kept;
    }
}

// The mixer of SplitMix64: output k of that generator seeded with s is this of s + k *
// PCG32_GOLDEN.
static inline uint64_t pcg32_splitmix64(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static inline uint64_t pcg32_child_seed(uint64_t seed, uint64_t purpose_id) {
    return pcg32_splitmix64(seed + purpose_id * PCG32_GOLDEN);
}

// The generator of one purpose: it depends on what `rng` was seeded with, not on where it stands.
static inline pcg32 pcg32_substream(const pcg32 *rng, pcg32_purpose purpose) {
    pcg32 child;
    pcg32_seed(&child, pcg32_child_seed(rng->seed, purpose), purpose);
    return child;
}

// FNV-1a of data (n); `h` is PCG32_FNV_BASIS, or the hash of what came before.
static inline uint64_t pcg32_fnv1a64(const void *data, size_t n, uint64_t h) {
    const uint8_t *bytes = data;
    for (size_t i = 0; i < n; i++) h = (h ^ bytes[i]) * PCG32_FNV_PRIME;
    return h;
}

#endif
