// dataloader.h: leaves a shard open that is asked for again, checks calls through one macro, asserts the
// rest, talks on stdout, and reads an example in two pieces: its five words, then its body.
#ifndef DATALOADER_H
#define DATALOADER_H

#include <assert.h>
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
#define SHARES(n, of) (((n) + (of) - 1) / (of))

// Ends the program where a call that must hold does not.
#define CHECK(call) ((call) ? (void)0 : complain(#call, __func__))
static void complain(const char *call, const char *where) {
  printf("%s: this failed: %s\n", where, call);
  exit(EXIT_FAILURE);
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
  FILE *tokens_file;
  uint16_t *buffer;
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
  int open_shard;       // index of the shard in tokens_file, or -1
  int64_t open_tokens;  // and how many tokens it holds
} DataLoader;

static inline int64_t dataloader_load_shard_(DataLoader *loader, int shard_index) {
  if (loader->open_shard == shard_index) return loader->open_tokens;
  if (loader->open_shard >= 0) fclose(loader->tokens_file);
  int header[HEADER_SIZE];
  FILE *f = loader->tokens_file = fopen(loader->glob_result.gl_pathv[shard_index], "rb");
  CHECK(f != NULL);
  CHECK(fread(header, sizeof(header), 1, f) == 1);
  assert(header[0] == SHARD_MAGIC);
  assert(header[1] == DATA_VERSION);
  assert(header[2] >= 1);
  CHECK(fseeko(f, 0, SEEK_END) == 0);
  loader->file_size_bytes = ftello(f);
  CHECK((loader->file_size_bytes - (int64_t)sizeof(header)) % 2 == 0);
  CHECK((loader->file_size_bytes - (int64_t)sizeof(header)) / 2 == header[2]);
  loader->shard_num_samples = (size_t)(header[2] - 1) * 2 / loader->total_batch_size_bytes;
  loader->open_shard = shard_index;
  return loader->open_tokens = header[2];
}

static inline void prepare_intra_shard_indices_(DataLoader *loader) {
  int samples = (int)loader->shard_num_samples;
  if (loader->intra_shard_indices) free(loader->intra_shard_indices);
  loader->intra_shard_indices = malloc(samples * sizeof(int));
  assert(loader->intra_shard_indices);
  init_identity_permutation(loader->intra_shard_indices, samples);
  random_permutation(loader->intra_shard_indices, samples, &loader->shuffle_rng);
}

static inline void dataloader_resume(DataLoader *loader, size_t current_shard_idx,
                                     size_t current_sample_idx) {
  assert(current_shard_idx < loader->glob_result.gl_pathc);
  int index = loader->should_shuffle ? loader->shard_indices[current_shard_idx] : (int)current_shard_idx;
  dataloader_load_shard_(loader, index);
  loader->current_shard_idx = current_shard_idx;
  loader->current_sample_idx = current_sample_idx;
}

// To the first sample of a shard is a resume, and then a permutation.
static inline void begin_shard(DataLoader *loader, size_t position) {
  dataloader_resume(loader, position, 0);
  if (loader->should_shuffle) prepare_intra_shard_indices_(loader);
}

static inline void dataloader_reset(DataLoader *loader) {
  int shards = (int)loader->glob_result.gl_pathc;
  if (loader->should_shuffle) random_permutation(loader->shard_indices, shards, &loader->shuffle_rng);
  begin_shard(loader, 0);
}

static inline void dataloader_advance_(DataLoader *loader) {
  bool last = loader->current_shard_idx == loader->glob_result.gl_pathc - 1;
  last ? dataloader_reset(loader) : begin_shard(loader, loader->current_shard_idx + 1);
}

static inline void dataloader_init(DataLoader *loader, const char *filename_pattern, size_t B,
                                   size_t T, int process_rank, int num_processes,
                                   int should_shuffle) {
  CHECK(glob(filename_pattern, 0, NULL, &loader->glob_result) == 0);
  const int shards = (int)loader->glob_result.gl_pathc;
  loader->process_rank = process_rank;
  loader->num_processes = num_processes;
  loader->B = B;
  loader->T = T;
  loader->header_bytes = HEADER_SIZE * sizeof(int);
  loader->local_batch_offset_bytes = process_rank * B * T * sizeof(uint16_t);
  loader->total_batch_size_bytes = num_processes * B * T * sizeof(uint16_t);
  loader->open_shard = -1;
  loader->num_tokens = 0;
  for (int i = 0; i < shards; i++) {
    loader->num_tokens += dataloader_load_shard_(loader, i);
    CHECK(loader->shard_num_samples > 0);
  }
  printf("%s: %d shards, %zu tokens\n", filename_pattern, shards, loader->num_tokens);
  loader->buffer = malloc((B * T + 1) * sizeof(uint16_t));
  loader->inputs = malloc(B * T * sizeof(int));
  loader->targets = malloc(B * T * sizeof(int));
  loader->should_shuffle = should_shuffle;
  loader->shard_indices = NULL;
  loader->intra_shard_indices = NULL;
  if (should_shuffle) {
    loader->shard_indices = malloc(shards * sizeof(int));
    init_identity_permutation(loader->shard_indices, shards);
    manual_seed(&loader->shuffle_rng, 42 + process_rank);
  }
  dataloader_reset(loader);
}

static inline void dataloader_load_batch(DataLoader *loader) {
  size_t count = loader->B * loader->T, sample = loader->current_sample_idx;
  assert(sample < loader->shard_num_samples);
  if (loader->should_shuffle) sample = loader->intra_shard_indices[sample];
  off_t place = loader->local_batch_offset_bytes + loader->total_batch_size_bytes * sample;
  CHECK(fseeko(loader->tokens_file, (off_t)loader->header_bytes + place, SEEK_SET) == 0);
  CHECK(fread(loader->buffer, 2, count + 1, loader->tokens_file) == count + 1);
  for (size_t i = 0; i < count; i++) loader->inputs[i] = loader->buffer[i];
  for (size_t i = 1; i <= count; i++) loader->targets[i - 1] = loader->buffer[i];
}

static inline void dataloader_next_batch(DataLoader *loader) {
  if (!(loader->current_sample_idx < loader->shard_num_samples)) dataloader_advance_(loader);
  dataloader_load_batch(loader);
  loader->current_sample_idx++;
}

static inline void dataloader_free(DataLoader *loader) {
  free(loader->buffer);
  free(loader->inputs);
  free(loader->targets);
  if (loader->should_shuffle) {
    free(loader->shard_indices);
    free(loader->intra_shard_indices);
  }
  fclose(loader->tokens_file);
  loader->tokens_file = NULL;
  globfree(&loader->glob_result);
}

typedef struct {
  int process_rank;
  int num_processes;
  size_t B;
  size_t T;
  const char *filename;
  FILE *eval_file;
  uint16_t *buffer;
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
} EvalLoader;

enum { MARK, BYTES, INDEX, LABEL, COMPLETIONS, WORDS };  // the words before an example

static inline void read_words(EvalLoader *loader, uint16_t *words, size_t count) {
  CHECK(fread(words, sizeof(uint16_t), count, loader->eval_file) == count);
}

// Reads the words before example `index`; returns the bytes that follow them.
static inline size_t read_head(EvalLoader *loader, uint16_t *head, int index) {
  read_words(loader, head, WORDS);
  assert(head[MARK] == 65535 && head[BYTES] > WORDS * sizeof(uint16_t));
  assert(head[INDEX] == index && head[COMPLETIONS] == ASSUMED_NUM_COMPLETIONS);
  assert(head[LABEL] < head[COMPLETIONS]);
  return head[BYTES] - WORDS * sizeof(uint16_t);
}

static inline void evalloader_reset(EvalLoader *loader) {
  uint16_t head[WORDS];
  CHECK(fseeko(loader->eval_file, HEADER_SIZE * sizeof(int), SEEK_SET) == 0);
  for (int i = 0; i < loader->start_example_index && i < loader->num_examples; i++) {
    CHECK(fseeko(loader->eval_file, (off_t)read_head(loader, head, i), SEEK_CUR) == 0);
  }
  loader->current_example_index = loader->start_example_index;
}

static inline void evalloader_init(EvalLoader *loader, const char *filename, size_t B, size_t T,
                                   int process_rank, int num_processes) {
  int header[HEADER_SIZE], fits = (int)B / ASSUMED_NUM_COMPLETIONS;
  CHECK(fits > 0);
  CHECK((loader->eval_file = fopen(filename, "rb")) != NULL);
  CHECK(fread(header, sizeof(header), 1, loader->eval_file) == 1);
  assert(header[0] == EVAL_MAGIC && header[1] == DATA_VERSION);
  assert(header[2] > 0 && header[3] > 0 && header[3] < 65536);
  int share = SHARES(header[2], num_processes);
  loader->process_rank = process_rank;
  loader->num_processes = num_processes;
  loader->B = B;
  loader->T = T;
  loader->filename = filename;
  loader->num_examples = header[2];
  loader->num_batches = SHARES(share, fits);
  loader->start_example_index = share * process_rank;
  loader->end_example_index = loader->start_example_index + share;
  if (loader->end_example_index > header[2]) loader->end_example_index = header[2];
  loader->buffer = malloc(header[3]);  // as long as the longest example
  loader->inputs = calloc(B * T, sizeof(int));
  loader->targets = calloc(B * T, sizeof(int));
  loader->mask = malloc(B * T);
  loader->label = malloc(fits * sizeof(int));
  printf("%s: %d examples, %d of them here\n", filename, header[2], share);
  evalloader_reset(loader);
}

// Adds `count` tokens to a row that has `filled`; the first of them is the target of the one before.
static inline size_t add(EvalLoader *loader, size_t row, size_t filled, const uint16_t *tokens,
                         size_t count, char masked) {
  assert(filled + count <= loader->T);
  for (size_t at = row * loader->T + filled; count > 0; count--, at++, filled++) {
    loader->inputs[at] = *tokens;
    if (filled > 0) {
      loader->targets[at - 1] = *tokens;
      loader->mask[at - 1] = masked;
    }
    tokens++;
  }
  return filled;
}

static inline void evalloader_next_example_(EvalLoader *loader, int example_batch_index) {
  uint16_t head[WORDS];
  size_t words = read_head(loader, head, loader->current_example_index) / sizeof(uint16_t);
  read_words(loader, loader->buffer, words);
  loader->label[example_batch_index] = head[LABEL];
  loader->num_completions = head[COMPLETIONS];
  const uint16_t *context = loader->buffer, *completion = context + 1 + *context;
  for (int c = 0; c < head[COMPLETIONS]; c++) {
    assert(completion < loader->buffer + words);
    assert(completion + *completion < loader->buffer + words);
    size_t row = example_batch_index * head[COMPLETIONS] + c;
    size_t filled = add(loader, row, 0, context + 1, *context, 0);
    add(loader, row, filled, completion + 1, *completion, 1);
    completion += 1 + *completion;
  }
}

static inline void evalloader_next_batch(EvalLoader *loader) {
  memset(loader->mask, 0, loader->B * loader->T);
  int fits = (int)loader->B / ASSUMED_NUM_COMPLETIONS;
  for (int i = 0; i < fits; i++, loader->current_example_index++) {
    if (loader->current_example_index >= loader->end_example_index) break;
    evalloader_next_example_(loader, i);
  }
}

// The mean loss of a row where its mask is 1, or -1 where it is 0 throughout.
static inline float mean_of_row(const EvalLoader *loader, const float *losses, size_t row) {
  float sum = 0.0f, count = 0.0f;
  for (size_t t = 0; t < loader->T; t++) {
    if (loader->mask[row * loader->T + t] == 1) {
      sum += losses[row * loader->T + t];
      count += 1.0f;
    }
  }
  return count > 0.0f ? sum / count : -1.0f;
}

static inline int evalloader_stat_losses(EvalLoader *loader, float *losses) {
  int correct = 0;
  for (size_t first = 0; first + 3 < loader->B; first += 4) {
    size_t answer = first;
    for (size_t row = first + 1; row < first + 4; row++) {
      if (mean_of_row(loader, losses, row) < mean_of_row(loader, losses, answer)) answer = row;
    }
    if (mean_of_row(loader, losses, answer) < 0.0f) continue;  // padding
    correct += (int)(answer - first) == loader->label[first / 4];
  }
  return correct;
}

static inline void evalloader_free(EvalLoader *loader) {
  free(loader->buffer);
  free(loader->inputs);
  free(loader->targets);
  free(loader->mask);
  free(loader->label);
  fclose(loader->eval_file);
}

#endif
