// sampler.c: observes llmc/sampler.h.
#include "llmc/sampler.h"

#include "given.h"
#include "observe.h"

#define GIVEN_COINS 4000

static void case_random_u32(uint64_t seed) {
    static const char *names[] = {"draws_1", "draws_seed"};
    static const char *states[] = {"state_1", "state_seed"};
    const unsigned long long starts[] = {1, given_u64(seed, 0) | 1};
    for (int k = 0; k < 2; k++) {
        unsigned long long state = starts[k];
        uint32_t draws[8];
        for (int i = 0; i < 8; i++) draws[i] = random_u32(&state);
        observe_u32(names[k], draws, 8);
        uint32_t halves[2] = {(uint32_t)(state >> 32), (uint32_t)state};
        observe_u32(states[k], halves, 2);
    }
}

static void case_random_f32(uint64_t seed) {
    unsigned long long state = given_u64(seed, 1) | 1;
    float draws[8];
    for (int i = 0; i < 8; i++) draws[i] = random_f32(&state);
    observe_f32("draws", draws, 8);
}

// Equal logits make every running sum a small integer, exact in any order and any precision: the
// coin k / n then lies exactly on a boundary, where only `exceeds` gives k.
static void case_walk(uint64_t seed) {
    (void)seed;
    const float zeros[8] = {0};
    int32_t ids[8];
    for (int k = 0; k < 8; k++) ids[k] = sample_softmax(zeros, 8, (float)k / 8.0f);
    observe_i32("on_boundary", ids, 8);
    for (int k = 0; k < 8; k++) ids[k] = sample_softmax(zeros, 8, (float)k / 8.0f + 0.0625f);
    observe_i32("between", ids, 8);
    const float steps[4] = {-80.0f, 0.0f, 80.0f, -1.0f};  // all the weight on index 2
    for (int k = 0; k < 4; k++) ids[k] = sample_softmax(steps, 4, 0.25f * (float)k + 0.1f);
    observe_i32("peaked", ids, 4);
}

// Whatever the coin, up to the largest logits and a whole vocabulary: `ids` are of random logits;
// of `peaks` one logit is 80 and the others below 40, so that it has all the weight but 1e-12.
static void case_index(uint64_t seed) {
    static float logits[50257];
    const int sizes[] = {1, 2, 7, 1000, 50257};
    const float coins[] = {0.0f, 0.5f, 0.99999994f}, inside[] = {0.001f, 0.5f, 0.99999994f};
    int32_t ids[15], peaks[15];
    for (int i = 0; i < 15; i++) {
        const int n = sizes[i / 3];
        const uint64_t place = (uint64_t)i * 100000;
        for (int k = 0; k < n; k++) {
            logits[k] = 160.0f * given_unit(seed, place + (uint64_t)k) - 80.0f;
        }
        ids[i] = sample_softmax(logits, n, coins[i % 3]);
        for (int k = 0; k < n; k++) logits[k] /= 2.0f;
        logits[given_int(seed, place + 99999, 0, n)] = 80.0f;
        peaks[i] = sample_softmax(logits, n, inside[i % 3]);
    }
    observe_i32("ids", ids, 15);
    observe_i32("peaks", peaks, 15);
}

static void case_distribution(uint64_t seed) {
    static int32_t ids[GIVEN_COINS];
    float logits[12];
    for (int k = 0; k < 12; k++) logits[k] = 4.0f * given_unit(seed, (uint64_t)k) - 2.0f;
    for (int i = 0; i < GIVEN_COINS; i++) {
        ids[i] = sample_softmax(logits, 12, given_unit(seed, (uint64_t)(100 + i)));
    }
    observe_i32("ids", ids, GIVEN_COINS);
}

static void case_life(uint64_t seed) {
    unsigned long long state = seed | 1;
    const float logits[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int32_t ids[16];
    for (int i = 0; i < 16; i++) ids[i] = sample_softmax(logits, 4, random_f32(&state));
    observe_i32("ids", ids, 16);
    observe_leaks("leaks");
}

const ObserveCase observe_cases[] = {
    {"random_u32", case_random_u32},
    {"random_f32", case_random_f32},
    {"softmax_index", case_index},
    {"softmax_walk", case_walk},
    {"softmax_distribution", case_distribution},
    {"life", case_life},
    {NULL, NULL},
};
