// generate.c: from a checkpoint to text, one token after the other; also from a bigram's directory.
//
//     make generate && build/generate --model .data/gpt2_d2.bin
//     build/generate --model FOLDER      a bigram that python -m llmc wrote
//     build/generate --prompt FILE       ids to begin with, as text; - is standard input
//
// Keys and values of all positions are kept, so that a token costs one position and not all of
// them. The same checkpoint and seed give the same ids as llmc/sampler.py, a bigram's as bigram.py.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llmc/bigram.h"
#include "llmc/layers.h"
#include "llmc/model.h"
#include "llmc/options.h"
#include "llmc/pcg32.h"
#include "llmc/sampler.h"
#include "llmc/tokenizer.h"
#include "llmc/utils.h"

enum { BYTES = 256, NEWLINE = 10, MOST_IDS = 1 << 16 };  // of a bigram: its prompt

// What one position needs: keys and values of all layers and positions, and room for one position's
// activations.
typedef struct {
    float *keys, *values;  // (L,maxT,C)
    float *x, *y;          // (C)
    float *wide;           // (4C): qkv, then the MLP
    float *wide2;          // (4C)
    float *shares;         // (maxT)
    float *logits;         // (V)
} Cache;

static Cache make_cache(const GPT2Config c) {
    const size_t C = (size_t)c.channels, maxT = (size_t)c.max_seq_len;
    const size_t kept = (size_t)c.num_layers * maxT * C;
    Cache cache = {
        .keys = must_malloc(kept * sizeof(float)),
        .values = must_malloc(kept * sizeof(float)),
        .x = must_malloc(C * sizeof(float)),
        .y = must_malloc(C * sizeof(float)),
        .wide = must_malloc(4 * C * sizeof(float)),
        .wide2 = must_malloc(4 * C * sizeof(float)),
        .shares = must_malloc(maxT * sizeof(float)),
        .logits = must_malloc((size_t)c.vocab_size * sizeof(float)),
    };
    return cache;
}

static void free_cache(Cache *cache) {
    free(cache->keys);
    free(cache->values);
    free(cache->x);
    free(cache->y);
    free(cache->wide);
    free(cache->wide2);
    free(cache->shares);
    free(cache->logits);
}

// out (C): attention of the query (C) at position t, over keys and values (t + 1, C) kept so far.
static void attend(float *out, float *shares, const float *query, const float *keys,
                   const float *values, size_t t, size_t C, size_t NH) {
    const size_t hs = C / NH;
    memset(out, 0, C * sizeof(float));
    for (size_t at = 0; at < C; at += hs) {
        float largest = -INFINITY, sum = 0.0f;
        for (size_t t2 = 0; t2 <= t; t2++) {
            shares[t2] = dot(query + at, keys + t2 * C + at, hs) / sqrtf((float)hs);
            if (shares[t2] > largest) largest = shares[t2];
        }
        for (size_t t2 = 0; t2 <= t; t2++) sum += shares[t2] = expf(shares[t2] - largest);
        for (size_t t2 = 0; t2 <= t; t2++) {
            axpy(out + at, shares[t2] / sum, values + t2 * C + at, hs);
        }
    }
}

// Takes a token at position t, and leaves the logits of the next in the cache.
static void step(const GPT2 *model, Cache *k, int token, size_t t) {
    const Parameters *p = &model->params;
    const int c = model->config.channels;
    const size_t C = (size_t)c, maxT = (size_t)model->config.max_seq_len;
    float mean, rstd;
    for (size_t i = 0; i < C; i++) k->x[i] = p->wte[(size_t)token * C + i] + p->wpe[t * C + i];
    for (size_t l = 0; l < (size_t)model->config.num_layers; l++) {
        float *keys = k->keys + l * maxT * C, *values = k->values + l * maxT * C;
        layernorm_forward(k->y, &mean, &rstd, k->x, p->ln1w + l * C, p->ln1b + l * C, 1, 1, c);
        matmul_forward(k->wide, k->y, p->qkvw + l * 3 * C * C, p->qkvb + l * 3 * C, 1, 1, c, 3 * c);
        memcpy(keys + t * C, k->wide + C, C * sizeof(float));
        memcpy(values + t * C, k->wide + 2 * C, C * sizeof(float));
        attend(k->y, k->shares, k->wide, keys, values, t, C, (size_t)model->config.num_heads);
        matmul_forward(k->wide, k->y, p->attprojw + l * C * C, p->attprojb + l * C, 1, 1, c, c);
        axpy(k->x, 1.0f, k->wide, C);
        layernorm_forward(k->y, &mean, &rstd, k->x, p->ln2w + l * C, p->ln2b + l * C, 1, 1, c);
        matmul_forward(k->wide, k->y, p->fcw + l * 4 * C * C, p->fcb + l * 4 * C, 1, 1, c, 4 * c);
        gelu_forward(k->wide2, k->wide, 4 * C);
        matmul_forward(k->y, k->wide2, p->fcprojw + l * 4 * C * C, p->fcprojb + l * C, 1, 1, 4 * c,
                       c);
        axpy(k->x, 1.0f, k->y, C);
    }
    layernorm_forward(k->y, &mean, &rstd, k->x, p->lnfw, p->lnfb, 1, 1, c);
    matmul_forward(k->logits, k->y, p->wte, NULL, 1, 1, c, model->config.vocab_size);
}

// Reads ids, with blanks between them; returns how many. More than `most` are an error.
static int read_prompt(int *ids, int most, const char *path, int V) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : must_open(path, "r");
    int count = 0;
    char word[16];
    while (fscanf(file, "%15s", word) == 1) {
        char *end = NULL;
        const long id = strtol(word, &end, 10);
        if (*end != '\0') die("ids with blanks between them", "%s: %s is no id", path, word);
        if (id < 0 || id >= V) {
            die("is it this model's tokenizer?", "id %ld is outside 0..%d", id, V - 1);
        }
        if (count == most) die("a shorter one", "%s: more than %d ids", path, most);
        ids[count++] = (int)id;
    }
    if (file != stdin) fclose(file);
    return count;
}

// What the command line says.
typedef struct {
    const char *path, *vocabulary, *prompt;  // prompt: NULL where there is none
    int seed, tokens, as_ids;
    float temperature;
} Request;

// Bytes of a bigram, or ids of one whose vocabulary is another.
static void serve_bigram(const Request r) {
    if (r.seed < 0) die("0 or more", "seed %d", r.seed);
    Bigram bigram;
    bigram_load(&bigram, r.path);
    const int V = bigram.vocab_size;
    int *ids = must_malloc(MOST_IDS * sizeof(int));
    const int count = r.prompt == NULL ? 0 : read_prompt(ids, MOST_IDS, r.prompt, V);
    int id = count > 0 ? ids[count - 1] : NEWLINE % V;
    pcg32 rng;
    pcg32_seed(&rng, (uint64_t)r.seed, PCG32_SEQ);
    for (int t = 0; t < r.tokens; t++) {
        id = bigram_sample(&bigram, id, (double)r.temperature, &rng);
        if (r.as_ids || V != BYTES) {
            printf("%d ", id);
        } else {
            putchar(id);
        }
        fflush(stdout);
    }
    printf("\n");
    free(ids);
    bigram_free(&bigram);
}

// Text of a GPT-2, or ids where there is no vocabulary.
static void serve_gpt2(const Request r) {
    if (r.seed == 0) die("any other", "seed 0 stays 0 for ever");
    GPT2 model;
    Tokenizer tokenizer;
    gpt2_build_from_checkpoint(&model, r.path);
    tokenizer_init(&tokenizer, r.vocabulary);
    const int maxT = model.config.max_seq_len, V = model.config.vocab_size;
    int *ids = must_malloc((size_t)maxT * sizeof(int));
    int count = r.prompt == NULL ? 0 : read_prompt(ids, maxT, r.prompt, V);
    if (count == 0) ids[count++] = tokenizer.init_ok ? tokenizer.eot_token : V - 1;
    Cache cache = make_cache(model.config);
    unsigned long long state = (unsigned long long)r.seed;
    int left = r.tokens;
    for (int t = 0; t < maxT && left > 0; t++) {
        step(&model, &cache, ids[t], (size_t)t);
        if (t + 1 < count) continue;  // still the prompt
        for (int v = 0; v < V; v++) cache.logits[v] /= r.temperature;
        const int id = sample_softmax(cache.logits, V, random_f32(&state));
        if (t + 1 < maxT) ids[count++] = id;
        left--;
        if (r.as_ids || !tokenizer.init_ok) {
            printf("%d ", id);
        } else {
            safe_printf(tokenizer_decode(&tokenizer, (uint32_t)id));
        }
        fflush(stdout);
    }
    printf("\n");
    free_cache(&cache);
    free(ids);
    gpt2_free(&model);
    tokenizer_free(&tokenizer);
}

int main(int argc, char **argv) {
    Request r = {
        .path = ".data/gpt2_d2.bin",
        .vocabulary = ".data/gpt2_tokenizer.bin",
        .seed = 1,
        .tokens = 64,
        .temperature = 1.0f,
    };
    const Option options[] = {
        {"--model", 's', &r.path, "a checkpoint, or a bigram's folder"},
        {"--tokenizer", 's', &r.vocabulary, "the vocabulary of a checkpoint"},
        {"--prompt", 's', &r.prompt, "a file of ids; - is standard input"},
        {"--tokens", 'i', &r.tokens, "how many to generate"},
        {"--temperature", 'f', &r.temperature, "what logits are divided by"},
        {"--seed", 'i', &r.seed, "of the coin; of a checkpoint's, not 0"},
        {"--ids", 'i', &r.as_ids, "1 prints ids in the place of text"},
        {NULL, 0, NULL, NULL},
    };
    take_options(argc, argv, "Generates text from a checkpoint.", options);
    if (!(r.temperature > 0.0f && r.temperature < INFINITY)) {
        die("1 leaves logits as they are", "--temperature %g is not above 0", r.temperature);
    }
    if (bigram_is_there(r.path)) {
        serve_bigram(r);
    } else {
        serve_gpt2(r);
    }
    return 0;
}
