// dataloader.h: batches for training from shards of tokens, and batches for evaluation from
// multiple-choice examples.
//
// A shard: 256 int32 (magic 20240520, version 1, number of tokens, zeros), then the tokens, uint16.
//
// An eval file: 256 int32 (magic 20240522, version 1, number of examples, bytes of the longest
// example, zeros), then for each example, in uint16:
//     65535, bytes of the example (these five words included), its index, label, number of
//     completions; then count and tokens of the context; then count and tokens of each completion
#ifndef LLMC_DATALOADER_H
#define LLMC_DATALOADER_H

#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rand.h"
#include "todo.h"
#include "utils.h"

#define HEADER_SIZE 256  // int32 words at the start of every file
#define SHARD_MAGIC 20240520
#define EVAL_MAGIC 20240522
#define DATA_VERSION 1
#define EXAMPLE_MARK 65535
#define EVAL_BUFFER 32768  // words; an example counts its bytes in a uint16, so none is longer
#define ASSUMED_NUM_COMPLETIONS 4

typedef struct {
    // the place of this process among all
    int process_rank;
    int num_processes;
    // a batch of this process
    size_t B;
    size_t T;
    // all shards together, and the open one
    size_t num_tokens;         // sum over the shards
    size_t shard_num_samples;  // of the open one: (ntok - 1) / (num_processes * B * T)
    // where we are
    glob_t glob_result;         // the shard files, sorted by name
    size_t current_shard_idx;   // position in the order of shards
    size_t current_sample_idx;  // position in the order of samples: the next batch
    FILE *tokens_file;          // the open shard
    // what was read
    uint16_t *buffer;  // (B*T + 1) tokens as they stand in the file
    int *inputs;       // (B,T)
    int *targets;      // (B,T) inputs one token later
    // the orders, when shuffled; else position and index are the same
    mt19937_state shuffle_rng;  // manual_seed(42 + process_rank)
    int should_shuffle;
    int *shard_indices;        // (number of shards) index in gl_pathv at each position
    int *intra_shard_indices;  // (shard_num_samples) sample of the open shard at each position
    // sizes in bytes
    size_t total_batch_size_bytes;    // num_processes * B * T tokens: from sample to sample
    size_t local_batch_offset_bytes;  // process_rank * B * T tokens: where in a sample we read
    size_t header_bytes;
    int64_t file_size_bytes;  // the open shard
} DataLoader;

// Opens the shard gl_pathv[shard_index] in place of the open one, checks magic, version and that
// the file holds exactly as many tokens as it says (at least one), sets file_size_bytes and
// shard_num_samples, returns the number of tokens.
static inline int64_t dataloader_load_shard_(DataLoader *loader, int shard_index) {
    // TODO (A0): dataloader_load_shard_
    // HINT: close the shard that is open; a count in the header proves nothing until the file's
    // size agrees.
    TODO("A0: dataloader_load_shard_");
}

// intra_shard_indices: a fresh permutation of the samples of the open shard, drawn from
// shuffle_rng.
static inline void prepare_intra_shard_indices_(DataLoader *loader) {
    // TODO (A0): prepare_intra_shard_indices_
    // HINT: the next shard may hold another number of samples; start from the identity each time.
    TODO("A0: prepare_intra_shard_indices_");
}

// The shard at current_shard_idx, as an index of gl_pathv: through shard_indices when shuffled.
// Given.
static inline int dataloader_current_shard_(const DataLoader *loader) {
    int position = (int)loader->current_shard_idx;
    return loader->should_shuffle ? loader->shard_indices[position] : position;
}

// To the first sample of the first shard. Shuffled: shard_indices is shuffled further (from the
// order it has), then the first shard is opened and its samples get a fresh permutation, in this
// order.
static inline void dataloader_reset(DataLoader *loader) {
    // TODO (A0): dataloader_reset
    // HINT: the shard must be open before its samples can be permuted.
    TODO("A0: dataloader_reset");
}

// To the first sample of the next shard, with a fresh permutation when shuffled; behind the last
// shard, dataloader_reset.
static inline void dataloader_advance_(DataLoader *loader) {
    // TODO (A0): dataloader_advance_
    // HINT: an epoch ends here, so dataloader_reset already does what the last shard needs.
    TODO("A0: dataloader_advance_");
}

// Sets every field: finds the shards, checks each (at least num_processes*B*T + 1 tokens), sizes
// the buffers, seeds shuffle_rng with 42 + process_rank, starts from the identity order of shards,
// and resets. The caller frees with dataloader_free. No match, or a shard that does not fit, ends
// the program with one line.
static inline void dataloader_init(DataLoader *loader, const char *filename_pattern, size_t B,
                                   size_t T, int process_rank, int num_processes,
                                   int should_shuffle) {
    // TODO (A0): dataloader_init
    // HINT: the struct comes uninitialised; what load_shard_ closes and prepare_ frees must be NULL
    // first.
    TODO("A0: dataloader_init");
}

// Reads the B*T + 1 tokens of this process in sample current_sample_idx (through
// intra_shard_indices when shuffled): inputs are the first B*T of them, targets the last B*T. Moves
// nothing on.
static inline void dataloader_load_batch(DataLoader *loader) {
    // TODO (A0): dataloader_load_batch
    // HINT: a shard may be longer than 2 GiB; keep the offset in 64 bits.
    TODO("A0: dataloader_load_batch");
}

// The next batch: advances first if the shard has no sample left, loads, then counts
// current_sample_idx up.
static inline void dataloader_next_batch(DataLoader *loader) {
    // TODO (A0): dataloader_next_batch
    // HINT: after this, current_sample_idx names the batch that comes next.
    TODO("A0: dataloader_next_batch");
}

// Jumps to a sample of a shard, both as positions (see current_shard_idx). No permutation and no
// draw: whoever resumes a shuffled run restores shuffle_rng and the two index arrays as well,
// unless they are already the right ones. A shard that does not exist ends the program.
static inline void dataloader_resume(DataLoader *loader, size_t current_shard_idx,
                                     size_t current_sample_idx) {
    // TODO (A0): dataloader_resume
    // HINT: two fields, and the shard that belongs to them.
    TODO("A0: dataloader_resume");
}

// Frees the buffers and permutations, closes the shard, frees the list of files.
static inline void dataloader_free(DataLoader *loader) {
    // TODO (A0): dataloader_free
    // HINT: five arrays, a file, a glob.
    TODO("A0: dataloader_free");
}

// Multiple choice: the model answers an example with the completion whose tokens cost it least, on
// average. The four completions of an example stand in four rows of the batch, each behind the same
// context.
typedef struct {
    // the place of this process among all
    int process_rank;
    int num_processes;
    // a batch of this process
    size_t B;  // rows: B / 4 examples
    size_t T;
    // what was read
    const char *filename;  // for messages; the caller's string
    FILE *eval_file;
    uint16_t *buffer;  // (EVAL_BUFFER) one example
    // where we are, in examples
    int num_examples;         // in the file
    int num_batches;          // that ceil(num_examples / num_processes) examples need
    int start_example_index;  // of this process
    int end_example_index;    // behind its last; <= start where there is none
    int current_example_index;
    // a batch
    int *inputs;          // (B,T)
    int *targets;         // (B,T)
    char *mask;           // (B,T) 1 where the target is a token of a completion
    int *label;           // (B / 4) index of the right completion
    int num_completions;  // of an example
} EvalLoader;

// To the first example of this process.
static inline void evalloader_reset(EvalLoader *loader) {
    // TODO (A0): evalloader_reset
    // HINT: examples differ in length: to pass one, read its second word.
    TODO("A0: evalloader_reset");
}

// Sets every field and resets. Process r takes examples [r*n, (r+1)*n) with n = ceil(num_examples /
// num_processes), as far as there are any. B < 4, or a malformed file, ends the program with one
// line.
static inline void evalloader_init(EvalLoader *loader, const char *filename, size_t B, size_t T,
                                   int process_rank, int num_processes) {
    // TODO (A0): evalloader_init
    // HINT: the last processes may have fewer examples, or none; a batch must not show what malloc
    // left in it.
    TODO("A0: evalloader_init");
}

// Reads the next example of the file into rows 4*example_batch_index .. + 3 of the batch, and its
// label. Each row is the context followed by one completion; targets are the row shifted by one;
// mask is 1 where the target is of the completion. The caller counts it. An example longer than T
// ends the program.
static inline void evalloader_next_example_(EvalLoader *loader, int example_batch_index) {
    // TODO (A0): evalloader_next_example_
    // HINT: the first token of a completion is predicted at the last position of the context.
    TODO("A0: evalloader_next_example_");
}

// The next B / 4 examples of this process; fewer, or none, where it has no more. Rows without an
// example have mask 0.
static inline void evalloader_next_batch(EvalLoader *loader) {
    // TODO (A0): evalloader_next_batch
    // HINT: a mask of the batch before must not show through.
    TODO("A0: evalloader_next_batch");
}

// losses (B,T): how many examples of this batch the model got right. Its answer is the completion
// with the lowest mean loss over the positions with mask 1. Rows without an example (mask all 0)
// count for nothing.
static inline int evalloader_stat_losses(EvalLoader *loader, const float *losses) {
    // TODO (A0): evalloader_stat_losses
    // HINT: a mean, not a sum: completions differ in length.
    TODO("A0: evalloader_stat_losses");
}

// Frees all that evalloader_init allocated and closes the file.
static inline void evalloader_free(EvalLoader *loader) {
    // TODO (A0): evalloader_free
    // HINT: five arrays and a file.
    TODO("A0: evalloader_free");
}

#endif
