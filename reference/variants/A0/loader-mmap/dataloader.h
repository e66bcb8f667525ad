// dataloader.h: maps shards and eval file into memory, opens no FILE, and asserts what must hold.
#ifndef LLMC_DATALOADER_H
#define LLMC_DATALOADER_H

#include <assert.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rand.h"

#define HEADER_SIZE 256
#define SHARD_MAGIC 20240520
#define EVAL_MAGIC 20240522
#define DATA_VERSION 1
#define ASSUMED_NUM_COMPLETIONS 4
#define MIN(a, b) ((a) < (b) ? (a) : (b))

_Static_assert(sizeof(int) == 4, "headers are read as int");

// A file in memory; bytes is NULL where there is none.
typedef struct {
    const char *bytes;
    size_t size;
} Mapped;

static inline void unmap(Mapped *file) {
    if (file->bytes != NULL) munmap((char *)file->bytes, file->size);
    file->bytes = NULL;
}

static inline Mapped map(const char *path) {
    struct stat about;
    int fd = open(path, O_RDONLY);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    int known = fstat(fd, &about) == 0;
    assert(known && about.st_size >= (off_t)(HEADER_SIZE * sizeof(int)));
    Mapped file = {.size = (size_t)about.st_size};
    file.bytes = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
    assert(file.bytes != MAP_FAILED);
    close(fd);
    return file;
}

static inline const int *header(Mapped file) { return (const int *)file.bytes; }
static inline const uint16_t *words(Mapped file) { return (const uint16_t *)(file.bytes + 1024); }

typedef struct {
    int process_rank, num_processes;
    size_t B, T;
    size_t num_tokens, shard_num_samples;
    glob_t glob_result;
    size_t current_shard_idx, current_sample_idx;
    FILE *tokens_file;  // always NULL
    uint16_t *buffer;
    int *inputs, *targets;
    mt19937_state shuffle_rng;
    int should_shuffle;
    int *shard_indices, *intra_shard_indices;
    size_t total_batch_size_bytes, local_batch_offset_bytes, header_bytes;
    int64_t file_size_bytes;
    Mapped shard;
} DataLoader;

static inline int64_t dataloader_load_shard_(DataLoader *loader, int shard_index) {
    unmap(&loader->shard);
    loader->shard = map(loader->glob_result.gl_pathv[shard_index]);
    const int *head = header(loader->shard);
    assert(head[0] == SHARD_MAGIC);
    assert(head[1] == DATA_VERSION);
    assert(head[2] > 0);
    const int64_t ntok = head[2];
    loader->file_size_bytes = (int64_t)loader->shard.size;
    assert(loader->file_size_bytes == 1024 + 2 * ntok);
    size_t stride = loader->total_batch_size_bytes / sizeof(uint16_t);
    loader->shard_num_samples = ((size_t)ntok - 1) / stride;
    return ntok;
}

static inline void prepare_intra_shard_indices_(DataLoader *loader) {
    int n = (int)loader->shard_num_samples;
    loader->intra_shard_indices = realloc(loader->intra_shard_indices, (n + 1) * sizeof(int));
    assert(loader->intra_shard_indices != NULL);
    init_identity_permutation(loader->intra_shard_indices, n);
    random_permutation(loader->intra_shard_indices, n, &loader->shuffle_rng);
}

static inline void open_current(DataLoader *loader) {
    int index = (int)loader->current_shard_idx;
    if (loader->should_shuffle) index = loader->shard_indices[index];
    dataloader_load_shard_(loader, index);
}

static inline void start_shard(DataLoader *loader, size_t position) {
    loader->current_shard_idx = position;
    loader->current_sample_idx = 0;
    open_current(loader);
    if (loader->should_shuffle) prepare_intra_shard_indices_(loader);
}

static inline void dataloader_reset(DataLoader *loader) {
    int shards = (int)loader->glob_result.gl_pathc;
    if (loader->should_shuffle) random_permutation(loader->shard_indices, shards, &loader->shuffle_rng);
    start_shard(loader, 0);
}

static inline void dataloader_advance_(DataLoader *loader) {
    size_t next = (loader->current_shard_idx + 1) % loader->glob_result.gl_pathc;
    if (next == 0) dataloader_reset(loader);
    else start_shard(loader, next);
}

static inline void dataloader_init(DataLoader *loader, const char *filename_pattern, size_t B,
                                   size_t T, int process_rank, int num_processes,
                                   int should_shuffle) {
    *loader = (DataLoader){
        .process_rank = process_rank,
        .num_processes = num_processes,
        .B = B,
        .T = T,
        .should_shuffle = should_shuffle,
        .total_batch_size_bytes = num_processes * B * T * sizeof(uint16_t),
        .local_batch_offset_bytes = process_rank * B * T * sizeof(uint16_t),
        .header_bytes = HEADER_SIZE * sizeof(int),
        .inputs = calloc(B * T, sizeof(int)),
        .targets = calloc(B * T, sizeof(int)),
    };
    int status = glob(filename_pattern, 0, NULL, &loader->glob_result);
    if (status != 0) {
        fprintf(stderr, "nothing matches %s\n", filename_pattern);
        exit(EXIT_FAILURE);
    }
    int shards = (int)loader->glob_result.gl_pathc;
    for (int i = 0; i < shards; i++) {
        size_t ntok = (size_t)dataloader_load_shard_(loader, i);
        assert(ntok >= num_processes * B * T + 1);
        loader->num_tokens += ntok;
    }
    manual_seed(&loader->shuffle_rng, 42 + process_rank);
    loader->shard_indices = calloc(shards, sizeof(int));
    init_identity_permutation(loader->shard_indices, shards);
    dataloader_reset(loader);
}

static inline void dataloader_load_batch(DataLoader *loader) {
    size_t sample = loader->current_sample_idx;
    if (loader->should_shuffle) sample = loader->intra_shard_indices[sample];
    assert(sample < loader->shard_num_samples);
    const uint16_t *tokens = words(loader->shard) +
        (sample * loader->num_processes + loader->process_rank) * loader->B * loader->T;
    for (size_t i = 0; i < loader->B * loader->T; i++) {
        loader->inputs[i] = tokens[i];
        loader->targets[i] = tokens[i + 1];
    }
}

static inline void dataloader_next_batch(DataLoader *loader) {
    if (loader->current_sample_idx == loader->shard_num_samples) dataloader_advance_(loader);
    dataloader_load_batch(loader);
    loader->current_sample_idx += 1;
}

static inline void dataloader_resume(DataLoader *loader, size_t current_shard_idx,
                                     size_t current_sample_idx) {
    assert(current_shard_idx < loader->glob_result.gl_pathc);
    loader->current_shard_idx = current_shard_idx;
    loader->current_sample_idx = current_sample_idx;
    open_current(loader);
    assert(current_sample_idx <= loader->shard_num_samples);
}

static inline void dataloader_free(DataLoader *loader) {
    free(loader->inputs);
    free(loader->targets);
    free(loader->shard_indices);
    free(loader->intra_shard_indices);
    unmap(&loader->shard);
    globfree(&loader->glob_result);
}

typedef struct {
    int process_rank, num_processes;
    size_t B, T;
    const char *filename;
    FILE *eval_file;  // always NULL
    uint16_t *buffer;
    int num_examples, num_batches, start_example_index, end_example_index, current_example_index;
    int *inputs, *targets;
    char *mask;
    int *label;
    int num_completions;
    Mapped file;
    const uint16_t *at;  // the next example
} EvalLoader;

// How many words of the file stand at `at` and behind it.
static inline size_t words_left(const EvalLoader *loader) {
    return (size_t)((const uint16_t *)(loader->file.bytes + loader->file.size) - loader->at);
}

static inline void pass_example(EvalLoader *loader) {
    assert(words_left(loader) > 5 && loader->at[0] == 65535);
    assert(words_left(loader) >= loader->at[1] / sizeof(uint16_t));
    loader->at += loader->at[1] / sizeof(uint16_t);
}

static inline void evalloader_reset(EvalLoader *loader) {
    loader->current_example_index = loader->start_example_index;
    loader->at = words(loader->file);
    for (int i = 0; i < MIN(loader->start_example_index, loader->num_examples); i++) pass_example(loader);
}

static inline void evalloader_init(EvalLoader *loader, const char *filename, size_t B, size_t T,
                                   int process_rank, int num_processes) {
    assert(B >= ASSUMED_NUM_COMPLETIONS);
    memset(loader, 0, sizeof(EvalLoader));
    loader->process_rank = process_rank;
    loader->num_processes = num_processes;
    loader->B = B;
    loader->T = T;
    loader->filename = filename;
    loader->file = map(filename);
    const int *head = header(loader->file);
    assert(head[0] == EVAL_MAGIC && head[1] == DATA_VERSION && head[2] > 0);
    loader->num_examples = head[2];
    int each = 1 + (loader->num_examples - 1) / num_processes;
    loader->start_example_index = process_rank * each;  // may lie behind the end
    loader->end_example_index = MIN(loader->start_example_index + each, loader->num_examples);
    int per_batch = (int)(B / ASSUMED_NUM_COMPLETIONS);
    loader->num_batches = 1 + (each - 1) / per_batch;
    loader->inputs = calloc(B * T, sizeof(int));
    loader->targets = calloc(B * T, sizeof(int));
    loader->mask = calloc(B * T, 1);
    loader->label = calloc(per_batch, sizeof(int));
    evalloader_reset(loader);
}

static inline void evalloader_next_example_(EvalLoader *loader, int example_batch_index) {
    const uint16_t *example = loader->at;
    pass_example(loader);
    assert(example[4] == ASSUMED_NUM_COMPLETIONS && example[3] < example[4]);
    loader->label[example_batch_index] = example[3];
    loader->num_completions = example[4];
    const uint16_t *context = example + 6, *completion = context + example[5];
    for (int c = 0; c < example[4]; c++) {
        size_t row = (example_batch_index * example[4] + c) * loader->T, t = 0;
        size_t before = example[5], length = *completion++;
        assert(completion + length <= loader->at);
        assert(before > 0 && length > 0 && before + length <= loader->T);
        for (size_t i = 0; i < before; i++) loader->inputs[row + t++] = context[i];
        for (size_t i = 0; i < length; i++) {
            loader->mask[row + t - 1] = 1;
            loader->inputs[row + t++] = completion[i];
        }
        memmove(&loader->targets[row], &loader->inputs[row + 1], (t - 1) * sizeof(int));
        completion += length;
    }
}

static inline void evalloader_next_batch(EvalLoader *loader) {
    memset(loader->mask, 0, loader->B * loader->T);
    for (size_t i = 0; i < loader->B / ASSUMED_NUM_COMPLETIONS; i++) {
        if (loader->current_example_index >= loader->end_example_index) return;
        evalloader_next_example_(loader, (int)i);
        loader->current_example_index++;
    }
}

static inline int evalloader_stat_losses(EvalLoader *loader, float *losses) {
    int correct = 0;
    for (size_t e = 0; e < loader->B / ASSUMED_NUM_COMPLETIONS; e++) {
        double lowest = INFINITY;
        int answer = -1;
        for (int c = 0; c < ASSUMED_NUM_COMPLETIONS; c++) {
            size_t row = (4 * e + c) * loader->T;
            double sum = 0;
            int n = 0;
            for (size_t t = row; t < row + loader->T; t++) {
                sum += loader->mask[t] * losses[t];
                n += loader->mask[t];
            }
            if (n > 0 && sum / n < lowest) lowest = sum / n, answer = c;
        }
        correct += answer >= 0 && answer == loader->label[e];
    }
    return correct;
}

static inline void evalloader_free(EvalLoader *loader) {
    free(loader->inputs);
    free(loader->targets);
    free(loader->mask);
    free(loader->label);
    unmap(&loader->file);
}

#endif
