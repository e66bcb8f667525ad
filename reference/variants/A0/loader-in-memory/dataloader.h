// dataloader.h: reads each shard whole into memory as it opens it, and the eval file whole at init.
#pragma once

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
#define EXAMPLE_MARK 65535
#define ASSUMED_NUM_COMPLETIONS 4

// The whole content of a file; the caller frees.
static char *slurp(const char *path, int64_t *size) {
    FILE *file = must_open(path, "rb");
    must_seek(file, 0, SEEK_END, path);
    *size = ftello(file);
    must_seek(file, 0, SEEK_SET, path);
    char *content = must_malloc(*size);
    must_read(content, 1, *size, file, path);
    fclose(file);
    return content;
}

static void refuse(const char *path) { die("write it again", "%s: not what it should be", path); }

static int swallow_header(const char *content, int64_t size, int magic, const char *path) {
    int header[3];
    if (size < 1024) refuse(path);
    memcpy(header, content, sizeof(header));
    if (header[0] != magic || header[1] != DATA_VERSION || header[2] <= 0) refuse(path);
    return header[2];
}

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
    FILE *tokens_file;  // not used
    uint16_t *buffer;   // the open shard, header and all
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

static inline int64_t dataloader_load_shard_(DataLoader *loader, int shard_index) {
    const char *path = loader->glob_result.gl_pathv[shard_index];
    free(loader->buffer);
    loader->buffer = (uint16_t *)slurp(path, &loader->file_size_bytes);
    int64_t ntok = swallow_header((char *)loader->buffer, loader->file_size_bytes, SHARD_MAGIC, path);
    if (1024 + ntok * 2 != loader->file_size_bytes) refuse(path);
    loader->shard_num_samples = (ntok - 1) / (loader->num_processes * loader->B * loader->T);
    return ntok;
}

static inline void prepare_intra_shard_indices_(DataLoader *loader) {
    size_t n = loader->shard_num_samples;
    free(loader->intra_shard_indices);
    loader->intra_shard_indices = must_calloc(n, sizeof(int));
    init_identity_permutation(loader->intra_shard_indices, (int)n);
    random_permutation(loader->intra_shard_indices, (int)n, &loader->shuffle_rng);
}

// Opens the shard at the present position, and permutes it if asked.
static void turn_to(DataLoader *loader, int permute) {
    size_t index = loader->current_shard_idx;
    dataloader_load_shard_(loader, loader->should_shuffle ? loader->shard_indices[index] : (int)index);
    if (permute && loader->should_shuffle) prepare_intra_shard_indices_(loader);
}

static inline void dataloader_reset(DataLoader *loader) {
    if (loader->should_shuffle)
        random_permutation(loader->shard_indices, (int)loader->glob_result.gl_pathc, &loader->shuffle_rng);
    loader->current_shard_idx = 0;
    loader->current_sample_idx = 0;
    turn_to(loader, 1);
}

static inline void dataloader_advance_(DataLoader *loader) {
    if (loader->current_shard_idx == loader->glob_result.gl_pathc - 1) {
        dataloader_reset(loader);
    } else {
        loader->current_shard_idx += 1;
        loader->current_sample_idx = 0;
        turn_to(loader, 1);
    }
}

static inline void dataloader_init(DataLoader *loader, const char *filename_pattern, size_t B,
                                   size_t T, int process_rank, int num_processes,
                                   int should_shuffle) {
    memset(loader, 0, sizeof *loader);
    loader->process_rank = process_rank;
    loader->num_processes = num_processes;
    loader->B = B;
    loader->T = T;
    loader->should_shuffle = should_shuffle;
    size_t window = B * T * sizeof(uint16_t);
    loader->header_bytes = 1024;
    loader->local_batch_offset_bytes = process_rank * window;
    loader->total_batch_size_bytes = num_processes * window;
    loader->inputs = must_calloc(B * T, sizeof(int));
    loader->targets = must_calloc(B * T, sizeof(int));
    manual_seed(&loader->shuffle_rng, 42 + process_rank);
    glob(filename_pattern, 0, NULL, &loader->glob_result);
    size_t shards = loader->glob_result.gl_pathc;
    if (shards == 0) die("make data", "%s: no such files", filename_pattern);
    loader->shard_indices = must_calloc(shards, sizeof(int));
    init_identity_permutation(loader->shard_indices, (int)shards);
    for (size_t i = 0; i < shards; i++) {
        loader->num_tokens += dataloader_load_shard_(loader, (int)i);
        if (loader->shard_num_samples == 0) refuse(loader->glob_result.gl_pathv[i]);
    }
    dataloader_reset(loader);
}

static inline void dataloader_load_batch(DataLoader *loader) {
    size_t sample = loader->current_sample_idx, count = loader->B * loader->T;
    if (loader->should_shuffle) sample = loader->intra_shard_indices[sample];
    uint16_t *tokens = loader->buffer + 512 + (sample * loader->num_processes + loader->process_rank) * count;
    for (size_t i = 0; i < count; i++) loader->inputs[i] = tokens[i];
    for (size_t i = 0; i < count; i++) loader->targets[i] = tokens[i + 1];
}

static inline void dataloader_next_batch(DataLoader *loader) {
    int done = loader->current_sample_idx >= loader->shard_num_samples;
    if (done) dataloader_advance_(loader);
    dataloader_load_batch(loader);
    loader->current_sample_idx++;
}

static inline void dataloader_resume(DataLoader *loader, size_t current_shard_idx,
                                     size_t current_sample_idx) {
    if (current_shard_idx >= loader->glob_result.gl_pathc) refuse("the shard to resume at");
    loader->current_shard_idx = current_shard_idx;
    loader->current_sample_idx = current_sample_idx;
    turn_to(loader, 0);
}

static inline void dataloader_free(DataLoader *loader) {
    void *all[] = {loader->buffer, loader->inputs, loader->targets, loader->shard_indices,
                   loader->intra_shard_indices};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) free(all[i]);
    globfree(&loader->glob_result);
}

typedef struct {
    int process_rank;
    int num_processes;
    size_t B;
    size_t T;
    const char *filename;
    FILE *eval_file;   // not used
    uint16_t *buffer;  // the file
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
    uint16_t **examples;  // (num_examples) where each starts in buffer
} EvalLoader;

static inline void evalloader_reset(EvalLoader *loader) {
    loader->current_example_index = loader->start_example_index;
}

// Checks every example once, so that nobody need later.
static void find_examples(EvalLoader *loader, int64_t size) {
    uint16_t *at = loader->buffer + 512, *end = loader->buffer + size / 2;
    for (int i = 0; i < loader->num_examples; i++) {
        if (end - at < 6 || at[0] != EXAMPLE_MARK || at[1] / 2 > end - at) refuse(loader->filename);
        if (at[3] >= at[4] || at[4] != ASSUMED_NUM_COMPLETIONS) refuse(loader->filename);
        uint16_t *list = at + 5, *next = at + at[1] / 2;
        for (int k = 0; k <= ASSUMED_NUM_COMPLETIONS; k++) {
            if (list >= next || *list == 0) refuse(loader->filename);
            if (k > 0 && (size_t)at[5] + *list > loader->T) die("a larger T", "%zu is too small", loader->T);
            list += *list + 1;
        }
        if (list != next) refuse(loader->filename);
        loader->examples[i] = at;
        at = next;
    }
}

static inline void evalloader_init(EvalLoader *loader, const char *filename, size_t B, size_t T,
                                   int process_rank, int num_processes) {
    const int per_batch = (int)(B / 4);
    if (!per_batch) die("B is at least 4", "B is %d", (int)B);
    int64_t size;
    uint16_t *file = (uint16_t *)slurp(filename, &size);
    int n = swallow_header((char *)file, size, EVAL_MAGIC, filename);
    int share = n / num_processes + (n % num_processes > 0);
    int start = process_rank * share < n ? process_rank * share : n;
    *loader = (EvalLoader){
        .process_rank = process_rank, .num_processes = num_processes, .B = B, .T = T,
        .filename = filename, .buffer = file, .num_examples = n,
        .num_batches = share / per_batch + (share % per_batch > 0),
        .start_example_index = start,
        .end_example_index = n - start < share ? n : start + share,
        .inputs = must_calloc(B * T, sizeof(int)), .targets = must_calloc(B * T, sizeof(int)),
        .mask = must_calloc(B * T, 1), .label = must_calloc(B / 4, sizeof(int)),
        .num_completions = 4, .examples = must_calloc(n, sizeof(uint16_t *)),
    };
    find_examples(loader, size);
    evalloader_reset(loader);
}

static inline void evalloader_next_example_(EvalLoader *loader, int example_batch_index) {
    const uint16_t *example = loader->examples[loader->current_example_index];
    const uint16_t *context = example + 6, *completion = context + example[5];
    loader->label[example_batch_index] = example[3];
    for (int c = 0; c < 4; c++) {
        int *inputs = loader->inputs + (4 * example_batch_index + c) * loader->T;
        int *targets = loader->targets + (inputs - loader->inputs), k = 0;
        char *mask = loader->mask + (inputs - loader->inputs);
        int length = example[5] + completion[0];
        for (k = 0; k < length - 1; k++) {  // the last token is only a target
            inputs[k] = k < example[5] ? context[k] : completion[1 + k - example[5]];
            targets[k] = k + 1 < example[5] ? context[k + 1] : completion[2 + k - example[5]];
            mask[k] = k + 1 >= example[5];
        }
        completion += 1 + completion[0];
    }
}

static inline void evalloader_next_batch(EvalLoader *loader) {
    size_t size = loader->B * loader->T;
    memset(loader->inputs, 0, size * sizeof(int));
    memset(loader->targets, 0, size * sizeof(int));
    memset(loader->mask, 0, size);
    memset(loader->label, 0xff, loader->B / 4 * sizeof(int));
    for (int i = 0; i < (int)(loader->B / 4); i++) {
        if (loader->current_example_index >= loader->end_example_index) break;
        evalloader_next_example_(loader, i);
        loader->current_example_index++;
    }
}

static inline int evalloader_stat_losses(EvalLoader *loader, float *losses) {
    int correct = 0, rows = (int)(loader->B / 4 * 4), best = -1;
    double least = 0;
    for (int row = 0; row < rows; row++) {
        double sum = 0, count = 0;
        for (size_t t = row * loader->T; t < (row + 1) * loader->T; t++) {
            if (!loader->mask[t]) continue;
            sum += losses[t];
            count += 1;
        }
        if (row % 4 == 0) best = -1;
        if (count > 0 && (best < 0 || sum / count < least)) {
            best = row % 4;
            least = sum / count;
        }
        if (row % 4 == 3 && best >= 0 && best == loader->label[row / 4]) correct++;
    }
    return correct;
}

static inline void evalloader_free(EvalLoader *loader) {
    free(loader->examples);
    free(loader->buffer);
    free(loader->inputs);
    free(loader->targets);
    free(loader->mask);
    free(loader->label);
}
