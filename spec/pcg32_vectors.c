// pcg32_vectors.c: prints spec/pcg32.vectors.json, from the recurrences as their authors give them.
//
//     cc -std=c11 -o vectors spec/pcg32_vectors.c && ./vectors > spec/pcg32.vectors.json
//
// It shares no code with llmc/. PCG32 is O'Neill's (2014), SplitMix64 that of Steele, Lea and Flood
// (2014), FNV-1a that of Fowler, Noll and Vo; what is drawn from them is spec/pcg32.md, step by
// step. Words of 64 bits are printed as hex digits in a string, for not every reader of JSON keeps
// 64 bits; doubles with 17 digits, which give the same double back.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OUTPUTS 1024
#define DRAWS 64
#define FIRST 8             // of a sub-stream
#define LARGE (3ull << 30)  // a quarter of all words are rejected

static const uint64_t SEEDS[] = {0, 1, UINT64_C(1) << 63};
static const char *const PURPOSES[] = {"init", "dropout", "shuffle", "sample", "mutation"};

static uint64_t state, inc;  // of the one generator there is

static uint32_t draw(void) {
    const uint64_t before = state;
    state = UINT64_C(6364136223846793005) * before + inc;
    const uint32_t folded = (uint32_t)((before ^ (before >> 18)) >> 27);
    uint32_t turned = folded;
    for (unsigned steps = (unsigned)(before >> 59); steps > 0; steps--) {
        turned = turned >> 1 | turned << 31;
    }
    return turned;
}

static void start(uint64_t seed, uint64_t seq) {
    inc = 2 * seq + 1;
    state = 0;
    draw();
    state += seed;
    draw();
}

static double unit(void) {
    const uint64_t a = draw();
    const uint64_t b = draw();
    const uint64_t whole = (a / 32) * 67108864 + b / 64;
    return (double)whole / 9007199254740992.0;
}

static uint32_t below(uint64_t n) {
    for (;;) {
        const uint64_t r = draw();
        if (r >= (UINT64_C(1) << 32) % n) return (uint32_t)(r % n);
    }
}

// Output `k` (from 1) of SplitMix64 seeded with `seed`.
static uint64_t split_mix(uint64_t seed, int k) {
    uint64_t z = 0;
    for (int i = 0; i < k; i++) {
        z = seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
    }
    return z;
}

static uint64_t fnv1a(const char *text) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < strlen(text); i++) {
        hash ^= (unsigned char)text[i];
        hash *= UINT64_C(1099511628211);
    }
    return hash;
}

// ---------------------------------------------------------------- JSON

// What stands before element i of a list or an object: a comma, and a line's end every `row`.
static void before(size_t i, size_t row) {
    if (i > 0) printf(",");
    printf(i % row == 0 ? "\n" : " ");
}

static void print_u32(void) {
    for (size_t i = 0; i < OUTPUTS; i++) {
        before(i, 8);
        printf("%" PRIu32, draw());
    }
}

static void print_uniform(void) {
    for (size_t i = 0; i < DRAWS; i++) {
        before(i, 4);
        printf("%.17g", unit());
    }
}

static void print_below_10(void) {
    for (size_t i = 0; i < DRAWS; i++) {
        before(i, 32);
        printf("%" PRIu32, below(10));
    }
}

static void print_below_large(void) {
    for (size_t i = 0; i < DRAWS; i++) {
        before(i, 8);
        printf("%" PRIu32, below(LARGE));
    }
}

static void print_shuffle(void) {
    unsigned values[10];
    for (unsigned i = 0; i < 10; i++) values[i] = i;
    for (unsigned i = 9; i >= 1; i--) {
        const uint32_t j = below(i + 1);
        const unsigned kept = values[i];
        values[i] = values[j];
        values[j] = kept;
    }
    for (size_t i = 0; i < 10; i++) {
        before(i, 10);
        printf("%u", values[i]);
    }
}

// `"NAME": {"SEED": [...], ...},`: each seed's stream, read by `print` from its start.
static void print_streams(const char *name, void (*print)(void)) {
    printf("\"%s\": {", name);
    for (size_t i = 0; i < COUNT(SEEDS); i++) {
        before(i, 1);
        printf("\"%" PRIu64 "\": [", SEEDS[i]);
        start(SEEDS[i], 54);
        print();
        printf("]");
    }
    printf("},\n");
}

static void print_substreams(void) {
    printf("\"substreams\": {");
    for (size_t i = 0; i < COUNT(SEEDS); i++) {
        before(i, 1);
        printf("\"%" PRIu64 "\": {", SEEDS[i]);
        for (size_t p = 0; p < COUNT(PURPOSES); p++) {
            before(p, 1);
            const int id = (int)p + 1;
            const uint64_t child = split_mix(SEEDS[i], id);
            printf("\"%s\": {\"id\": %d, ", PURPOSES[p], id);
            printf("\"child_seed\": \"0x%016" PRIx64 "\", \"next_u32\": [", child);
            start(child, (uint64_t)id);
            for (size_t k = 0; k < FIRST; k++) {
                before(k, FIRST);
                printf("%" PRIu32, draw());
            }
            printf("]}");
        }
        printf("}");
    }
    printf("},\n");
}

static void print_split_mix(void) {
    const uint64_t seeds[] = {0, 1234567};
    printf("\"splitmix64\": {");
    for (size_t i = 0; i < COUNT(seeds); i++) {
        before(i, 1);
        printf("\"%" PRIu64 "\": [", seeds[i]);
        for (int k = 1; k <= FIRST; k++) {
            before((size_t)k - 1, 4);
            printf("\"0x%016" PRIx64 "\"", split_mix(seeds[i], k));
        }
        printf("]");
    }
    printf("},\n");
}

static void print_fnv1a(void) {
    // clang-format off
    const char *const texts[] = {
        "", "a", "b", "c", "d", "e", "f", "fo", "foo", "foob", "fooba", "foobar",
    };
    // clang-format on
    printf("\"fnv1a64\": {");
    for (size_t i = 0; i < COUNT(texts); i++) {
        before(i, 3);
        printf("\"%s\": \"0x%016" PRIx64 "\"", texts[i], fnv1a(texts[i]));
    }
    printf("}\n");
}

int main(void) {
    printf(
        "{\"algorithm\": \"spec/pcg32.md\", \"made_by\": \"spec/pcg32_vectors.c\", \"seq\": 54,\n");
    print_streams("next_u32", print_u32);
    print_streams("uniform_f64", print_uniform);
    print_streams("below_10", print_below_10);
    print_streams("below_3221225472", print_below_large);
    print_streams("shuffle_10", print_shuffle);
    print_substreams();
    print_split_mix();
    print_fnv1a();
    printf("}\n");
    return 0;
}
