// dataloader.h: both index arrays always exist (the identity where nothing is shuffled), a permutation draws
// all its words before it swaps, targets come by memmove, and offsets of all eval examples are kept.
#ifndef LLMC_DATALOADER_H
#define LLMC_DATALOADER_H

#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rand.h"
#include "utils.h"

#define HEADER_SIZE 256
#define SHARD_MAGIC 20240520
#define EVAL_MAGIC 20240522
#define DATA_VERSION 1
#define ASSUMED_NUM_COMPLETIONS 4
#define min(a, b) ((a) < (b) ? (a) : (b))

typedef uint16_t token;

typedef struct {
    int process_rank;
    int num_processes;
    size_t B;
    size_t T;
    size_t num_tokens;
    size_t shard_num_samples;
    glob_t glob_result;
    size_t current_shard_idx;
    size_t current_sample_idx;
    FILE *tokens_file;
    token *buffer;
    int *inputs;
    int *targets;
    mt19937_state shuffle_rng;
    int should_shuffle;
    int *shard_indices;
    int *intra_shard_indices;
    size_t total_batch_size_bytes;
    size_t local_batch_offset_bytes;
    size_t header_bytes;
    int64_t file_size_bytes;
} DataLoader;

static inline void read_header(FILE *file, int *header, int magic, const char *path) {
    must_read(header, sizeof(int), HEADER_SIZE, file, path);
    if (header[0] != magic) die("is it the right file?", "%s: magic %d, not %d", path, header[0], magic);
    if (header[1] != DATA_VERSION) die("is it too new?", "%s: version %d", path, header[1]);
    if (header[2] < 1) die("is it empty?", "%s: nothing in it", path);
}

static inline int64_t dataloader_load_shard_(DataLoader *loader, int shard_index) {
    int header[HEADER_SIZE];
    const char *path = loader->glob_result.gl_pathv[shard_index];
    FILE *file = must_open(path, "rb");
    if (loader->tokens_file) fclose(loader->tokens_file);
    loader->tokens_file = file;
    read_header(file, header, SHARD_MAGIC, path);
    must_seek(file, 0, SEEK_END, path);
    loader->file_size_bytes = ftello(file);
    if (loader->file_size_bytes != (int64_t)(HEADER_SIZE * sizeof(int) + header[2] * sizeof(token)))
        die("was it written to the end?", "%s: its size is wrong", path);
    loader->shard_num_samples = (header[2] * sizeof(token) - sizeof(token)) / loader->total_batch_size_bytes;
    return header[2];
}

// data (n): what random_permutation makes of it, with all draws first; nothing where not shuffled.
static inline void shuffle(DataLoader *loader, int *data, int n) {
    if (!loader->should_shuffle || n < 2) return;
    unsigned int *draws = must_malloc(n * sizeof(*draws));
    for (int i = n - 1; i > 0; i--) draws[i] = randint32(&loader->shuffle_rng) % (i + 1);
    for (int i = n - 1; i > 0; i--) {
        int kept = data[i];
        data[i] = data[draws[i]];
        data[draws[i]] = kept;
    }
    free(draws);
}

static inline void prepare_intra_shard_indices_(DataLoader *loader) {
    int n = (int)loader->shard_num_samples;
    loader->intra_shard_indices = realloc(loader->intra_shard_indices, (size_t)n * sizeof(int));
    for (int i = 0; i < n; i++) loader->intra_shard_indices[i] = i;
    shuffle(loader, loader->intra_shard_indices, n);
}

static inline void dataloader_reset(DataLoader *loader) {
    loader->current_shard_idx = 0;
    loader->current_sample_idx = 0;
    shuffle(loader, loader->shard_indices, (int)loader->glob_result.gl_pathc);
    dataloader_load_shard_(loader, loader->shard_indices[0]);
    prepare_intra_shard_indices_(loader);
}

static inline void dataloader_advance_(DataLoader *loader) {
    loader->current_sample_idx = 0;
    loader->current_shard_idx++;
    if (loader->current_shard_idx >= loader->glob_result.gl_pathc) return dataloader_reset(loader);
    dataloader_load_shard_(loader, loader->shard_indices[loader->current_shard_idx]);
    prepare_intra_shard_indices_(loader);
}

static inline void dataloader_init(DataLoader *loader, const char *filename_pattern, size_t B,
                                   size_t T, int process_rank, int num_processes,
                                   int should_shuffle) {
    memset(loader, 0, sizeof(DataLoader));
    loader->process_rank = process_rank;
    loader->num_processes = num_processes;
    loader->B = B;
    loader->T = T;
    loader->should_shuffle = should_shuffle;
    loader->header_bytes = HEADER_SIZE * sizeof(int);
    loader->total_batch_size_bytes = num_processes * B * T * sizeof(token);
    loader->local_batch_offset_bytes = process_rank * B * T * sizeof(token);
    if (glob(filename_pattern, GLOB_TILDE_CHECK, NULL, &loader->glob_result) != 0)
        die("look at the pattern", "%s matches nothing", filename_pattern);
    for (char **path = loader->glob_result.gl_pathv; *path != NULL; path++) {
        int index = (int)(path - loader->glob_result.gl_pathv);
        size_t tokens = dataloader_load_shard_(loader, index);
        if ((tokens - 1) * sizeof(token) < loader->total_batch_size_bytes)
            die("a smaller batch", "%s has only %zu tokens", *path, tokens);
        loader->num_tokens += tokens;
    }
    loader->buffer = calloc(B * T + 1, sizeof(token));
    loader->inputs = calloc(B * T, sizeof(int));
    loader->targets = calloc(B * T, sizeof(int));
    loader->shard_indices = calloc(loader->glob_result.gl_pathc, sizeof(int));
    for (size_t i = 0; i < loader->glob_result.gl_pathc; i++) loader->shard_indices[i] = (int)i;
    manual_seed(&loader->shuffle_rng, (unsigned long long)(42 + process_rank));
    dataloader_reset(loader);
}

static inline void dataloader_load_batch(DataLoader *loader) {
    const size_t n = loader->B * loader->T;
    const char *path = loader->glob_result.gl_pathv[loader->shard_indices[loader->current_shard_idx]];
    const int64_t sample = loader->intra_shard_indices[loader->current_sample_idx];
    int64_t place = loader->header_bytes + loader->local_batch_offset_bytes;
    place += sample * (int64_t)loader->total_batch_size_bytes;
    must_seek(loader->tokens_file, place, SEEK_SET, path);
    must_read(loader->buffer, sizeof(token), n + 1, loader->tokens_file, path);
    for (size_t i = 0; i < n; i++) loader->inputs[i] = loader->buffer[i];
    memmove(loader->targets, loader->inputs + 1, (n - 1) * sizeof(int));
    loader->targets[n - 1] = loader->buffer[n];
}

static inline void dataloader_next_batch(DataLoader *loader) {
    if (loader->current_sample_idx >= loader->shard_num_samples) dataloader_advance_(loader);
    dataloader_load_batch(loader);
    ++loader->current_sample_idx;
}

static inline void dataloader_resume(DataLoader *loader, size_t current_shard_idx,
                                     size_t current_sample_idx) {
    if (current_shard_idx >= loader->glob_result.gl_pathc) die("other shards?", "no shard %zu", current_shard_idx);
    loader->current_shard_idx = current_shard_idx;
    loader->current_sample_idx = current_sample_idx;
    dataloader_load_shard_(loader, loader->shard_indices[current_shard_idx]);
    if (!loader->should_shuffle) prepare_intra_shard_indices_(loader);  // the identity, as long as this shard
}

static inline void dataloader_free(DataLoader *loader) {
    fclose(loader->tokens_file);
    globfree(&loader->glob_result);
    free(loader->intra_shard_indices);
    free(loader->shard_indices);
    free(loader->targets);
    free(loader->inputs);
    free(loader->buffer);
    memset(loader, 0, sizeof(DataLoader));
}

typedef struct {
    int process_rank;
    int num_processes;
    size_t B;
    size_t T;
    const char *filename;
    FILE *eval_file;
    token *buffer;
    int num_examples;
    int num_batches;
    int start_example_index;
    int end_example_index;
    int current_example_index;
    int *inputs;
    int *targets;
    char *mask;
    int *label;
    int num_completions;
    int64_t *offsets;  // (num_examples + 1) of the examples, and the end of the last
} EvalLoader;

static inline void evalloader_reset(EvalLoader *loader) {
    loader->current_example_index = loader->start_example_index;
}

static inline void evalloader_init(EvalLoader *loader, const char *filename, size_t B, size_t T,
                                   int process_rank, int num_processes) {
    int header[HEADER_SIZE];
    memset(loader, 0, sizeof(EvalLoader));
    loader->process_rank = process_rank;
    loader->num_processes = num_processes;
    loader->B = B;
    loader->T = T;
    loader->filename = filename;
    loader->eval_file = must_open(filename, "rb");
    read_header(loader->eval_file, header, EVAL_MAGIC, filename);
    if (B < ASSUMED_NUM_COMPLETIONS) die("4 at least", "B is %zu", B);
    loader->num_examples = header[2];
    loader->offsets = must_calloc((size_t)header[2] + 1, sizeof(int64_t));
    loader->offsets[0] = sizeof(header);
    for (int i = 0; i < header[2]; i++) {
        token mark_and_bytes[2];
        must_seek(loader->eval_file, loader->offsets[i], SEEK_SET, filename);
        must_read(mark_and_bytes, sizeof(token), 2, loader->eval_file, filename);
        if (mark_and_bytes[0] != 65535) die("write it again", "%s: example %d has no mark", filename, i);
        loader->offsets[i + 1] = loader->offsets[i] + mark_and_bytes[1];
    }
    int each = (header[2] + num_processes - 1) / num_processes, examples = (int)(B / 4);
    loader->start_example_index = min(each * process_rank, header[2]);
    loader->end_example_index = min(each * (process_rank + 1), header[2]);
    loader->num_batches = (each + examples - 1) / examples;
    loader->buffer = calloc(65536, 1);
    loader->inputs = calloc(B * T, sizeof(int));
    loader->targets = calloc(B * T, sizeof(int));
    loader->mask = calloc(B * T, sizeof(char));
    loader->label = calloc((size_t)examples, sizeof(int));
    evalloader_reset(loader);
}

static inline void evalloader_next_example_(EvalLoader *loader, int example_batch_index) {
    const int64_t *offset = &loader->offsets[loader->current_example_index];
    const size_t words = (size_t)(offset[1] - offset[0]) / sizeof(token);
    token *example = loader->buffer, *list = example + 5, *end = example + words;
    must_seek(loader->eval_file, offset[0], SEEK_SET, loader->filename);
    must_read(example, sizeof(token), words, loader->eval_file, loader->filename);
    loader->label[example_batch_index] = example[3];
    loader->num_completions = example[4];
    if (words < 5 || example[3] > 3 || example[4] != 4) die("write it again", "%s: bad example", loader->filename);
    const size_t context = example[5];
    for (int row = 4 * example_batch_index; row < 4 * example_batch_index + 4; row++) {
        int *inputs = loader->inputs + row * loader->T, *targets = loader->targets + row * loader->T;
        list += 1 + *list;
        if (end - list < 1 || end - list < 1 + *list) die("write it again", "%s: cut short", loader->filename);
        if (context + *list > loader->T) die("a larger T", "%s: too long", loader->filename);
        for (size_t t = 0; t < context; t++) inputs[t] = example[6 + t];
        for (size_t t = 0; t < *list; t++) inputs[context + t] = list[1 + t];
        memmove(targets, inputs + 1, (context + *list - 1) * sizeof(int));
        memset(loader->mask + row * loader->T + context - 1, 1, *list);
    }
}

static inline void evalloader_next_batch(EvalLoader *loader) {
    for (size_t i = 0; i < loader->B * loader->T; i++) loader->mask[i] = 0;
    for (int i = 0; i < (int)(loader->B / 4); i++) {
        if (loader->current_example_index < loader->end_example_index) {
            evalloader_next_example_(loader, i);
            loader->current_example_index++;
        }
    }
}

// The mean of the losses where mask is 1, kept up to date term by term; false where there is none.
static inline bool mean_loss(const float *losses, const char *mask, size_t n, double *mean) {
    int seen = 0;
    *mean = 0;
    for (size_t t = 0; t < n; t++) {
        if (mask[t]) *mean += (losses[t] - *mean) / ++seen;
    }
    return seen > 0;
}

static inline int evalloader_stat_losses(EvalLoader *loader, float *losses) {
    int correct = 0;
    for (size_t i = 0; i + 4 <= loader->B; i += 4) {
        double mean, least = 1e300;
        int best = -1;
        for (int c = 0; c < 4; c++) {
            size_t at = (i + c) * loader->T;
            if (!mean_loss(losses + at, loader->mask + at, loader->T, &mean) || mean >= least) continue;
            least = mean;
            best = c;
        }
        if (best != -1 && loader->label[i / 4] == best) correct++;
    }
    return correct;
}

static inline void evalloader_free(EvalLoader *loader) {
    free(loader->offsets);
    free(loader->buffer);
    free(loader->inputs);
    free(loader->targets);
    free(loader->mask);
    free(loader->label);
    fclose(loader->eval_file);
}

#endif
