// bigram.h: reads a bigram's directory, as bigram.py writes it, and draws from it. Given.
#ifndef LLMC_BIGRAM_H
#define LLMC_BIGRAM_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcg32.h"
#include "utils.h"

enum { BIGRAM_MAX_PATH = 4096, BIGRAM_MAX_HEADER = 1 << 20, BIGRAM_MAX_VOCAB = 1 << 15 };

typedef struct {
    int vocab_size;
    float *weight;  // (V,V): row i holds the logits after token i
} Bigram;

// Opens FOLDER/NAME; NULL if it cannot.
static inline FILE *bigram_open(const char *folder, const char *name) {
    char path[BIGRAM_MAX_PATH];
    const int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof(path) ? fopen(path, "rb") : NULL;
}

// Whether the path is a model's directory.
static inline int bigram_is_there(const char *folder) {
    FILE *file = bigram_open(folder, "config.json");
    if (file == NULL) return 0;
    fclose(file);
    return 1;
}

// What stands behind `"key":` in JSON, blanks skipped; NULL where there is no such key.
static inline const char *bigram_value(const char *json, const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof(quoted), "\"%s\"", key);
    const char *found = strstr(json, quoted);
    if (found == NULL) return NULL;
    found += strlen(quoted);
    found += strspn(found, " \t\r\n");
    if (*found != ':') return NULL;
    found++;
    return found + strspn(found, " \t\r\n");
}

// A whole number of at most 2^48, with blanks around it, before `close`; -1 where something else
// stands. *text moves behind.
static inline long long bigram_number(const char **text, char close) {
    char *end = NULL;
    const long long number = strtoll(*text, &end, 10);
    if (end == *text || number < 0 || number > 1LL << 48) return -1;
    end += strspn(end, " \t\r\n");
    *text = end + 1;
    return *end == close ? number : -1;
}

// Two of them in brackets: [3, 4]. Returns 0 where something else stands.
static inline int bigram_pair(const char *text, long long *first, long long *second) {
    if (*text++ != '[') return 0;
    *first = bigram_number(&text, ',');
    *second = *first < 0 ? -1 : bigram_number(&text, ']');
    return *second >= 0;
}

// Reads the config and the tensor "bigram.weight"; the caller frees with bigram_free. Ends the
// program with one line for a folder that holds something else.
static inline void bigram_load(Bigram *bigram, const char *folder) {
    static const char *again = "python -m llmc train bigram writes one";
    char config[BIGRAM_MAX_PATH] = {0};
    FILE *file = bigram_open(folder, "config.json");
    if (file == NULL) die(again, "%s: there is no config.json", folder);
    const size_t length = fread(config, 1, sizeof(config) - 1, file);
    fclose(file);
    config[length] = '\0';
    const char *name = bigram_value(config, "tl_arch");
    if (name == NULL || strncmp(name, "\"bigram\"", 8) != 0) {
        die(again, "%s/config.json: tl_arch is not bigram", folder);
    }
    file = bigram_open(folder, "model.safetensors");
    if (file == NULL) die(again, "%s: there is no model.safetensors", folder);
    unsigned char bytes[8];
    must_read(bytes, 1, sizeof(bytes), file, folder);
    uint64_t size = 0;
    for (int i = 7; i >= 0; i--) size = size << 8 | bytes[i];
    if (size > BIGRAM_MAX_HEADER) die(again, "%s/model.safetensors: no such file", folder);
    char *header = must_malloc((size_t)size + 1);
    must_read(header, 1, (size_t)size, file, folder);
    header[size] = '\0';
    char *entry = (char *)bigram_value(header, "bigram.weight");
    char *close = entry == NULL ? NULL : strchr(entry, '}');
    if (entry == NULL || *entry != '{' || close == NULL) {
        die(again, "%s/model.safetensors: no tensor bigram.weight in it", folder);
    }
    *close = '\0';  // what is looked for stands within the braces
    const char *kind = bigram_value(entry, "dtype"), *shape = bigram_value(entry, "shape");
    const char *place = bigram_value(entry, "data_offsets");
    if (kind == NULL || shape == NULL || place == NULL || strncmp(kind, "\"F32\"", 5) != 0) {
        die(again, "%s/model.safetensors: bigram.weight is not float32", folder);
    }
    long long V, columns, start, stop;
    if (!bigram_pair(shape, &V, &columns) || V > BIGRAM_MAX_VOCAB || columns != V || V < 1 ||
        !bigram_pair(place, &start, &stop) || start > stop || stop - start != 4 * V * V) {
        die(again, "%s/model.safetensors: bigram.weight is no square table", folder);
    }
    const char *stated = bigram_value(config, "vocab_size");
    if (stated == NULL || strtoll(stated, NULL, 10) != V) {
        die(again, "%s/config.json: vocab_size is not %lld", folder, V);
    }
    free(header);
    const size_t count = (size_t)(V * V);
    *bigram = (Bigram){.vocab_size = (int)V, .weight = must_malloc(count * sizeof(float))};
    must_seek(file, (int64_t)(8 + size) + start, SEEK_SET, folder);
    must_read(bigram->weight, sizeof(float), count, file, folder);
    fclose(file);
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(bigram->weight[i])) die(again, "%s: logit %zu is no number", folder, i);
    }
}

// The token after `last`: the first j at which the running sum of w_j = e^(z_j - max z), z = row /
// temperature, exceeds a uniform number times Σ w; in doubles, in the order of ids.
static inline int bigram_sample(const Bigram *bigram, int last, double temperature, pcg32 *rng) {
    const int V = bigram->vocab_size;
    const float *row = bigram->weight + (size_t)last * V;
    double largest = -INFINITY, sum = 0.0, running = 0.0;
    for (int j = 0; j < V; j++) largest = fmax(largest, row[j] / temperature);
    for (int j = 0; j < V; j++) sum += exp(row[j] / temperature - largest);
    const double wanted = pcg32_uniform(rng) * sum;
    for (int j = 0; j < V; j++) {
        running += exp(row[j] / temperature - largest);
        if (running > wanted) return j;
    }
    return V - 1;
}

static inline void bigram_free(Bigram *bigram) {
    free(bigram->weight);
    *bigram = (Bigram){0};
}

#endif
