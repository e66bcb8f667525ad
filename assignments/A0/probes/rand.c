// rand.c: observes llmc/rand.h. Generator states are filled here, word by word, so that each
// function is seen alone wherever its contract allows.
#include "llmc/rand.h"

#include "given.h"
#include "observe.h"

#define GIVEN_SAMPLE 100000  // draws behind a statistic

// A state as it stands `drawn` (1..624) draws after a twist.
static mt19937_state given_state(uint64_t seed, unsigned int drawn) {
    mt19937_state s = {.seed_ = seed, .MATRIX_A = {0, 0x9908b0df}};
    for (int i = 0; i < MERSENNE_STATE_N; i++) s.state_[i] = given_u32(seed, (uint64_t)i);
    s.next_ = drawn;
    s.left_ = (int)(MERSENNE_STATE_N + 1 - drawn);
    return s;
}

static void observe_place(const char *name, const mt19937_state *s) {
    int32_t place[2] = {s->left_, (int32_t)s->next_};
    observe_i32(name, place, 2);
}

static void case_manual_seed(uint64_t seed) {
    static const char *words[] = {"words_137", "words_42", "words_wide", "words_seed"};
    static const char *places[] = {"place_137", "place_42", "place_wide", "place_seed"};
    static const char *matrices[] = {"matrix_137", "matrix_42", "matrix_wide", "matrix_seed"};
    static const char *kept[] = {"kept_137", "kept_42", "kept_wide", "kept_seed"};
    const unsigned long long seeds[] = {137, 42, (7ull << 32) + 9, given_u64(seed, 0)};
    for (int i = 0; i < 4; i++) {
        mt19937_state s;
        memset(&s, 0xA5, sizeof(s));
        manual_seed(&s, seeds[i]);
        observe_u32(words[i], s.state_, MERSENNE_STATE_N);
        observe_place(places[i], &s);
        observe_u32(matrices[i], s.MATRIX_A, 2);
        observe_int(kept[i], (int64_t)s.seed_);
    }
}

static void case_next_state(uint64_t seed) {
    mt19937_state s = given_state(seed, 500);
    next_state(&s);
    observe_u32("words", s.state_, MERSENNE_STATE_N);
    observe_place("place", &s);
    next_state(&s);
    observe_u32("words_again", s.state_, MERSENNE_STATE_N);
    for (int i = 0; i < 8; i++) next_state(&s);  // the last word's y was odd and even by now
    observe_u32("words_later", s.state_, MERSENNE_STATE_N);
}

static void observe_draws(const char *name, mt19937_state *s, int count) {
    uint32_t draws[16];
    for (int i = 0; i < count; i++) draws[i] = randint32(s);
    observe_u32(name, draws, (size_t)count);
}

static void case_randint32_golden(uint64_t seed) {
    (void)seed;
    mt19937_state s;
    memset(&s, 0xA5, sizeof(s));
    manual_seed(&s, 137);
    observe_draws("draws_137", &s, 5);
    manual_seed(&s, 42);
    observe_draws("draws_42", &s, 5);
}

static void case_randint32_temper(uint64_t seed) {
    mt19937_state s = given_state(seed, 1);
    observe_draws("draws", &s, 8);
    observe_place("place", &s);
    observe_u32("words_after", s.state_, 16);
}

static void case_randint32_twist(uint64_t seed) {
    mt19937_state s = given_state(seed, 622);
    observe_draws("draws", &s, 5);
    observe_place("place", &s);
}

static void case_randint32_edges(uint64_t seed) {
    (void)seed;
    observe_int("null", randint32(NULL));
    mt19937_state never_seeded;
    memset(&never_seeded, 0, sizeof(never_seeded));
    observe_draws("unseeded", &never_seeded, 3);
}

static void case_randint64(uint64_t seed) {
    mt19937_state s = given_state(seed, 10);
    uint32_t halves[8];
    for (int i = 0; i < 4; i++) {
        unsigned long long draw = randint64(&s);
        halves[2 * i] = (uint32_t)(draw >> 32);
        halves[2 * i + 1] = (uint32_t)draw;
    }
    observe_u32("halves", halves, 8);
    observe_place("place", &s);
}

// Draws that reach both ends: tempered, these words are 0, 2^32 - 1, 2^24 - 1 and 2^32 - 2^24.
static const uint32_t GIVEN_END_WORDS[] = {0x00000000, 0x12dd9bb3, 0xf62d7a6f, 0xe4f0e1dc};

static mt19937_state given_end_state(void) {
    mt19937_state s = given_state(0, 1);
    for (int i = 0; i < 8; i++) s.state_[1 + i] = GIVEN_END_WORDS[i % 4];
    return s;
}

static void case_randfloat32_golden(uint64_t seed) {
    mt19937_state s = given_state(seed, 20);
    float draws[8];
    for (int i = 0; i < 8; i++) draws[i] = randfloat32(&s);
    observe_f32("draws", draws, 8);
    s = given_end_state();
    for (int i = 0; i < 4; i++) draws[i] = randfloat32(&s);
    observe_f32("ends", draws, 4);
}

static void case_randfloat32_sample(uint64_t seed) {
    static float sample[GIVEN_SAMPLE];
    mt19937_state s = given_state(seed, 1);
    for (int i = 0; i < GIVEN_SAMPLE; i++) sample[i] = randfloat32(&s);
    observe_f32("sample", sample, GIVEN_SAMPLE);
}

static void case_randfloat64_golden(uint64_t seed) {
    mt19937_state s = given_state(seed, 30);
    double draws[6];
    for (int i = 0; i < 6; i++) draws[i] = randfloat64(&s);
    observe_f64("draws", draws, 6);
    s = given_end_state();
    s.state_[1] = s.state_[2] = GIVEN_END_WORDS[1];
    for (int i = 0; i < 2; i++) draws[i] = randfloat64(&s);
    observe_f64("ends", draws, 2);
}

static void case_randfloat64_sample(uint64_t seed) {
    static double sample[GIVEN_SAMPLE / 4];
    mt19937_state s = given_state(seed, 1);
    for (int i = 0; i < GIVEN_SAMPLE / 4; i++) sample[i] = randfloat64(&s);
    observe_f64("sample", sample, GIVEN_SAMPLE / 4);
}

// Calls fill(data + 4, ...) between guards, and reports what it left in both.
#define GIVEN_GUARD 777.0f
#define GIVEN_GUARDED 72
static void observe_guarded(const char *name, const char *guards, const float *data, size_t n) {
    float outside[8];
    for (size_t i = 0; i < 4; i++) {
        outside[i] = data[i];
        outside[4 + i] = data[4 + n + i];
    }
    observe_f32(name, data + 4, n);
    observe_f32(guards, outside, 8);
}

static float *given_guarded(void) {
    static float data[GIVEN_GUARDED];
    for (int i = 0; i < GIVEN_GUARDED; i++) data[i] = GIVEN_GUARD;
    return data;
}

static void case_uniform(uint64_t seed) {
    mt19937_state s = given_state(seed, 40);
    float *data = given_guarded();
    uniform_(data + 4, 50, -2.0f, 3.0f, &s);
    observe_guarded("wide", "wide_guards", data, 50);
    observe_place("wide_place", &s);
    data = given_guarded();
    uniform_(data + 4, 17, -0.75f, -0.25f, &s);
    observe_guarded("narrow", "narrow_guards", data, 17);
    observe_place("narrow_place", &s);
    uniform_(data, 0, 0.0f, 1.0f, &s);
    observe_place("empty_place", &s);
}

static void case_normal_fill_16(uint64_t seed) {
    float *data = given_guarded();
    for (int i = 0; i < 16; i++) data[4 + i] = given_unit(seed, (uint64_t)i);
    normal_fill_16(data + 4, 0.0f, 1.0f);
    observe_guarded("standard", "standard_guards", data, 16);
    data = given_guarded();
    for (int i = 0; i < 16; i++) data[4 + i] = given_unit(seed, (uint64_t)i);
    normal_fill_16(data + 4, 1.5f, 0.25f);
    observe_guarded("scaled", "scaled_guards", data, 16);
    const float far[16] = {16777215.0f / 16777216.0f};  // the largest uniform, with the angle 0
    memcpy(data + 4, far, sizeof(far));
    normal_fill_16(data + 4, 0.0f, 1.0f);
    observe_f32("farthest", data + 4, 1);
}

static void case_normal_fill(uint64_t seed) {
    static const char *names[] = {"n16", "n48", "n37", "n17", "n31"};
    static const char *guards[] = {"n16_guards", "n48_guards", "n37_guards", "n17_guards",
                                   "n31_guards"};
    static const char *places[] = {"n16_place", "n48_place", "n37_place", "n17_place", "n31_place"};
    const unsigned int sizes[] = {16, 48, 37, 17, 31};
    for (int i = 0; i < 5; i++) {
        mt19937_state s = given_state(seed, (unsigned int)(50 + i));
        float *data = given_guarded();
        normal_fill(data + 4, sizes[i], -0.5f, 2.0f, &s);
        observe_guarded(names[i], guards[i], data, sizes[i]);
        observe_place(places[i], &s);
    }
}

static void case_normal(uint64_t seed) {
    static const char *names[] = {"n1", "n2", "n7", "n15", "n16", "n20"};
    static const char *guards[] = {"n1_guards",  "n2_guards",  "n7_guards",
                                   "n15_guards", "n16_guards", "n20_guards"};
    static const char *places[] = {"n1_place",  "n2_place",  "n7_place",
                                   "n15_place", "n16_place", "n20_place"};
    const unsigned int sizes[] = {1, 2, 7, 15, 16, 20};
    for (int i = 0; i < 6; i++) {
        mt19937_state s = given_state(seed, (unsigned int)(60 + i));
        float *data = given_guarded();
        normal_(data + 4, sizes[i], 1.5f, 0.25f, &s);
        observe_guarded(names[i], guards[i], data, sizes[i]);
        observe_place(places[i], &s);
    }
    mt19937_state s = given_state(seed, 1);
    s.state_[3] = s.state_[4] = GIVEN_END_WORDS[1];  // u2 is 1 - 2^-53, and 1 as a float
    float pair[2];
    normal_(pair, 2, 1.5f, 0.25f, &s);
    observe_f32("farthest", pair, 2);
}

static void case_normal_sample(uint64_t seed) {
    static float sample[GIVEN_SAMPLE];
    mt19937_state s = given_state(seed, 1);
    normal_(sample, GIVEN_SAMPLE, 1.5f, 2.0f, &s);
    observe_f32("sample", sample, GIVEN_SAMPLE);
}

static void case_identity(uint64_t seed) {
    static int data[1002];
    (void)seed;
    for (int i = 0; i < 1002; i++) data[i] = -7;
    init_identity_permutation(data, 0);
    observe_i32("none", data, 2);
    init_identity_permutation(data, 1);
    observe_i32("one", data, 2);
    init_identity_permutation(data + 1, 1000);
    observe_i32("thousand", data, 1002);
}

static void observe_permuted(const char *name, const char *place, uint64_t seed, unsigned int drawn,
                             int n) {
    static int data[1000];
    mt19937_state s = given_state(seed, drawn);
    for (int i = 0; i < n; i++) data[i] = 3 * i + 1;
    random_permutation(data, n, &s);
    observe_i32(name, data, (size_t)n);
    observe_place(place, &s);
}

static void case_permutation_golden(uint64_t seed) {
    observe_permuted("ten", "ten_place", seed, 70, 10);
    observe_permuted("hundred", "hundred_place", seed, 600, 100);
}

static void case_permutation_valid(uint64_t seed) {
    observe_permuted("one", "one_place", seed, 80, 1);
    observe_permuted("two", "two_place", seed, 81, 2);
    observe_permuted("thousand", "thousand_place", seed, 82, 1000);
}

// Everything once, then the leak check.
static void case_life(uint64_t seed) {
    mt19937_state s;
    float floats[40];
    int order[40];
    manual_seed(&s, seed);
    uniform_(floats, 40, 0.0f, 1.0f, &s);
    normal_(floats, 40, 0.0f, 1.0f, &s);
    normal_(floats, 7, 0.0f, 1.0f, &s);
    manual_seed(&s, seed);
    init_identity_permutation(order, 40);
    random_permutation(order, 40, &s);
    observe_i32("order", order, 40);
    observe_leaks("leaks");
}

const ObserveCase observe_cases[] = {
    {"manual_seed", case_manual_seed},
    {"next_state", case_next_state},
    {"randint32_golden", case_randint32_golden},
    {"randint32_temper", case_randint32_temper},
    {"randint32_twist", case_randint32_twist},
    {"randint32_edges", case_randint32_edges},
    {"randint64", case_randint64},
    {"randfloat32_golden", case_randfloat32_golden},
    {"randfloat32_sample", case_randfloat32_sample},
    {"randfloat64_golden", case_randfloat64_golden},
    {"randfloat64_sample", case_randfloat64_sample},
    {"uniform_", case_uniform},
    {"normal_fill_16", case_normal_fill_16},
    {"normal_fill", case_normal_fill},
    {"normal_", case_normal},
    {"normal_sample", case_normal_sample},
    {"init_identity_permutation", case_identity},
    {"permutation_golden", case_permutation_golden},
    {"permutation_valid", case_permutation_valid},
    {"life", case_life},
    {NULL, NULL},
};
