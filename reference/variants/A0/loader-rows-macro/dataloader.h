// dataloader.h: ROWS names the rows of an example, tokens are read one at a time, the losses of an example
// are compared without a division, and one struct of reading helpers serves both loaders.
#ifndef DATA_H
#define DATA_H

#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rand.h"
#include "todo.h"
#include "utils.h"

#define HEADER_SIZE 256
#define SHARD_MAGIC 20240520
#define EVAL_MAGIC 20240522
#define DATA_VERSION 1
#define ASSUMED_NUM_COMPLETIONS 4
#define ROWS ASSUMED_NUM_COMPLETIONS  // of an example in the batch

typedef struct {
    int process_rank, num_processes;
    size_t B, T;
    size_t num_tokens;
    size_t shard_num_samples;
    glob_t glob_result;
    size_t current_shard_idx;
    size_t current_sample_idx;
    FILE *tokens_file;
    uint16_t *buffer;
    int *inputs, *targets;
    mt19937_state shuffle_rng;
    int should_shuffle;
    int *shard_indices;
    int *intra_shard_indices;
    size_t total_batch_size_bytes, local_batch_offset_bytes, header_bytes;
    int64_t file_size_bytes;
} DataLoader;

static inline int take(FILE *file, const char *path) {
    unsigned char pair[2];
    must_read(pair, 1, 2, file, path);
    return pair[0] | pair[1] << 8;
}

// Opens a file behind its header; returns the third word of it.
static inline int begin(FILE **file, const char *path, int magic) {
    int32_t header[HEADER_SIZE];
    *file = must_open(path, "rb");
    must_read(header, sizeof(header), 1, *file, path);
    if (header[0] != magic || header[1] != DATA_VERSION || header[2] <= 0)
        die("make data", "%s: header says %d %d %d", path, header[0], header[1], header[2]);
    return header[2];
}

static inline int64_t dataloader_load_shard_(DataLoader *loader, int shard_index) {
    const char *path = loader->glob_result.gl_pathv[shard_index];
    if (loader->tokens_file) fclose(loader->tokens_file);
    int64_t ntok = begin(&loader->tokens_file, path, SHARD_MAGIC);
    must_seek(loader->tokens_file, 2 * ntok - 2, SEEK_CUR, path);
    take(loader->tokens_file, path);  // the last token is there,
    loader->file_size_bytes = ftello(loader->tokens_file);
    if (fgetc(loader->tokens_file) != EOF) die("make data", "%s: longer than it says", path);  // and is the last
    loader->shard_num_samples = (size_t)(ntok - 1) / (loader->num_processes * loader->B * loader->T);
    return ntok;
}

static inline void prepare_intra_shard_indices_(DataLoader *loader) {
    int n = loader->shard_num_samples;
    free(loader->intra_shard_indices);
    loader->intra_shard_indices = must_malloc(sizeof(int[n]));
    init_identity_permutation(loader->intra_shard_indices, n);
    random_permutation(loader->intra_shard_indices, n, &loader->shuffle_rng);
}

static inline void dataloader_reset(DataLoader *loader) {
    if (loader->should_shuffle)
        random_permutation(loader->shard_indices, loader->glob_result.gl_pathc, &loader->shuffle_rng);
    dataloader_load_shard_(loader, loader->should_shuffle ? *loader->shard_indices : 0);
    if (loader->should_shuffle) prepare_intra_shard_indices_(loader);
    loader->current_shard_idx = loader->current_sample_idx = 0;
}

static inline void dataloader_advance_(DataLoader *loader) {
    size_t next = loader->current_shard_idx + 1;
    if (next == loader->glob_result.gl_pathc) {
        dataloader_reset(loader);
        return;
    }
    dataloader_load_shard_(loader, loader->should_shuffle ? loader->shard_indices[next] : (int)next);
    if (loader->should_shuffle) prepare_intra_shard_indices_(loader);
    loader->current_shard_idx = next;
    loader->current_sample_idx = 0;
}

static inline void dataloader_init(DataLoader *loader, const char *filename_pattern, size_t B,
                                   size_t T, int process_rank, int num_processes,
                                   int should_shuffle) {
    const size_t window = sizeof(uint16_t) * B * T;
    *loader = (DataLoader){.process_rank = process_rank, .num_processes = num_processes, .B = B, .T = T};
    loader->should_shuffle = should_shuffle;
    loader->header_bytes = sizeof(int32_t[HEADER_SIZE]);
    loader->total_batch_size_bytes = window * num_processes;
    loader->local_batch_offset_bytes = window * process_rank;
    if (glob(filename_pattern, 0, NULL, &loader->glob_result) != 0)
        die("make data", "%s: no shards", filename_pattern);
    int n = loader->glob_result.gl_pathc;
    for (int i = 0; i < n; i++) {
        loader->num_tokens += dataloader_load_shard_(loader, i);
        if (loader->shard_num_samples < 1)
            die("a smaller batch", "%s: too few tokens", loader->glob_result.gl_pathv[i]);
    }
    if (should_shuffle) {
        manual_seed(&loader->shuffle_rng, 42 + process_rank);
        loader->shard_indices = must_malloc(sizeof(int[n]));
        init_identity_permutation(loader->shard_indices, n);
    }
    loader->inputs = must_calloc(2 * B * T, sizeof(int));  // both in one block
    loader->targets = loader->inputs + B * T;
    dataloader_reset(loader);
}

static inline void dataloader_load_batch(DataLoader *loader) {
    size_t at = loader->current_sample_idx, position = loader->current_shard_idx;
    if (loader->should_shuffle) at = loader->intra_shard_indices[at], position = loader->shard_indices[position];
    const char *path = loader->glob_result.gl_pathv[position];
    at = at * loader->total_batch_size_bytes + loader->local_batch_offset_bytes + loader->header_bytes;
    must_seek(loader->tokens_file, at, SEEK_SET, path);
    int token = take(loader->tokens_file, path);
    for (size_t i = 0; i < loader->B * loader->T; i++) {
        loader->inputs[i] = token;
        loader->targets[i] = token = take(loader->tokens_file, path);
    }
}

static inline void dataloader_next_batch(DataLoader *loader) {
    if (loader->shard_num_samples <= loader->current_sample_idx) dataloader_advance_(loader);
    dataloader_load_batch(loader);
    loader->current_sample_idx++;
}

static inline void dataloader_resume(DataLoader *loader, size_t current_shard_idx,
                                     size_t current_sample_idx) {
    int shard = current_shard_idx;
    if (current_shard_idx >= loader->glob_result.gl_pathc) die("other shards?", "no shard %d", shard);
    dataloader_load_shard_(loader, loader->should_shuffle ? loader->shard_indices[shard] : shard);
    loader->current_shard_idx = current_shard_idx;
    loader->current_sample_idx = current_sample_idx;
}

static inline void dataloader_free(DataLoader *loader) {
    free(loader->inputs);
    free(loader->shard_indices);
    free(loader->intra_shard_indices);
    fclose(loader->tokens_file);
    globfree(&loader->glob_result);
}

typedef struct {
    int process_rank, num_processes;
    size_t B, T;
    const char *filename;
    FILE *eval_file;
    uint16_t *buffer;
    int num_examples, num_batches;
    int start_example_index, end_example_index, current_example_index;
    int *inputs, *targets;
    char *mask;
    int *label;
    int num_completions;
} EvalLoader;

static inline void mark(const EvalLoader *loader) {
    if (take(loader->eval_file, loader->filename) != 65535)
        die("make data", "%s: an example does not start with its mark", loader->filename);
}

static inline void evalloader_reset(EvalLoader *loader) {
    must_seek(loader->eval_file, 1024, SEEK_SET, loader->filename);
    for (int i = 0; i < loader->start_example_index; i++) {
        mark(loader);
        must_seek(loader->eval_file, take(loader->eval_file, loader->filename) - 4, SEEK_CUR, loader->filename);
    }
    loader->current_example_index = loader->start_example_index;
}

static inline void evalloader_init(EvalLoader *loader, const char *filename, size_t B, size_t T,
                                   int process_rank, int num_processes) {
    *loader = (EvalLoader){.process_rank = process_rank, .num_processes = num_processes, .B = B, .T = T};
    loader->filename = filename;
    loader->num_examples = begin(&loader->eval_file, filename, EVAL_MAGIC);
    if (B / ROWS == 0) die("at least 4", "B is %zu", B);
    int share = 0;
    while (share * num_processes < loader->num_examples) share++;
    loader->num_batches = (share - 1) / (int)(B / ROWS) + 1;
    for (int i = 0; i < loader->num_examples; i++) {
        if (i / share < process_rank) loader->start_example_index++;
        if (i / share <= process_rank) loader->end_example_index++;
    }
    loader->inputs = must_calloc(B * T, sizeof(int));
    loader->targets = must_calloc(B * T, sizeof(int));
    loader->mask = must_calloc(B, T);
    loader->label = must_calloc(B / ROWS, sizeof(int));
    evalloader_reset(loader);
}

static inline void evalloader_next_example_(EvalLoader *loader, int example_batch_index) {
    FILE *file = loader->eval_file;
    const char *path = loader->filename;
    int context[loader->T], first_row = ROWS * example_batch_index;
    mark(loader);
    for (int skipped = 0; skipped < 2; skipped++) take(file, path);
    loader->label[example_batch_index] = take(file, path);
    loader->num_completions = take(file, path);
    if (loader->num_completions != ROWS) die("make data", "%s: not four completions", path);
    size_t before = take(file, path);
    if (before >= loader->T) die("a larger T", "%s: %zu tokens of context", path, before);
    for (size_t t = 0; t < before; t++) context[t] = take(file, path);
    for (int row = first_row; row < first_row + ROWS; row++) {
        size_t length = before + take(file, path);
        if (length > loader->T) die("a larger T", "%s: %zu tokens", path, length);
        int (*inputs)[loader->T] = (void *)loader->inputs, (*targets)[loader->T] = (void *)loader->targets;
        char(*masks)[loader->T] = (void *)loader->mask;
        for (size_t t = 0; t < length; t++) {
            inputs[row][t] = t < before ? context[t] : take(file, path);
            if (t > 0) targets[row][t - 1] = inputs[row][t];
            if (t > 0) masks[row][t - 1] = t >= before;
        }
    }
}

static inline void evalloader_next_batch(EvalLoader *loader) {
    memset(loader->mask, 0, loader->B * loader->T);
    for (size_t i = 0; i < loader->B / ROWS && loader->current_example_index < loader->end_example_index; i++) {
        evalloader_next_example_(loader, i);
        loader->current_example_index++;
    }
}

static inline int evalloader_stat_losses(EvalLoader *loader, float *losses) {
    int correct = 0;
    for (size_t i = 0; i < loader->B / ROWS; i++) {
        double sum[ROWS] = {0};
        int count[ROWS] = {0}, best = -1;
        for (size_t t = 0; t < ROWS * loader->T; t++) {
            size_t at = i * ROWS * loader->T + t, row = t / loader->T;
            if (loader->mask[at]) sum[row] += losses[at], count[row]++;
        }
        for (int c = 0; c < ROWS; c++) {
            if (count[c] == 0) continue;
            if (best < 0 || sum[c] * count[best] < sum[best] * count[c]) best = c;
        }
        if (best >= 0) correct += best == loader->label[i];
    }
    return correct;
}

static inline void evalloader_free(EvalLoader *loader) {
    free(loader->inputs);
    free(loader->targets);
    free(loader->mask);
    free(loader->label);
    fclose(loader->eval_file);
}

#endif
