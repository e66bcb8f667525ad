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

// The next whole number in text, whose end is kept in *text; -1 where there is none.
static inline long long bigram_number(const char **text) {
    const char *digits = *text + strspn(*text, " \t\r\n[,");
    char *end = NULL;
    const long long number = strtoll(digits, &end, 10);
    if (end == digits || number < 0) return -1;
    *text = end;
    return number;
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
    const char *entry = bigram_value(header, "bigram.weight");
    const char *kind = entry == NULL ? NULL : bigram_value(entry, "dtype");
    const char *shape = entry == NULL ? NULL : bigram_value(entry, "shape");
    const char *place = entry == NULL ? NULL : bigram_value(entry, "data_offsets");
    if (kind == NULL || shape == NULL || place == NULL || strncmp(kind, "\"F32\"", 5) != 0) {
        die(again, "%s/model.safetensors: no float32 tensor bigram.weight in it", folder);
    }
    const long long V = bigram_number(&shape), columns = bigram_number(&shape);
    const long long start = bigram_number(&place), stop = bigram_number(&place);
    if (V < 1 || V > BIGRAM_MAX_VOCAB || columns != V || start < 0 || stop - start != 4 * V * V) {
        die(again, "%s/model.safetensors: bigram.weight is no square table", folder);
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
