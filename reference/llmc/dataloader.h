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
    // BEGIN SOLUTION
    const char *hint = "write the shards again: `make data`";
    const char *path = loader->glob_result.gl_pathv[shard_index];
    if (loader->tokens_file != NULL) fclose(loader->tokens_file);
    loader->tokens_file = must_open(path, "rb");
    int header[HEADER_SIZE];
    must_read(header, sizeof(int), HEADER_SIZE, loader->tokens_file, path);
    if (header[0] != SHARD_MAGIC)
        die(hint, "%s: bad magic %d, want %d", path, header[0], SHARD_MAGIC);
    if (header[1] != DATA_VERSION)
        die(hint, "%s: bad version %d, want %d", path, header[1], DATA_VERSION);
    int64_t ntok = header[2];
    if (ntok <= 0) die(hint, "%s: %lld tokens", path, (long long)ntok);
    must_seek(loader->tokens_file, 0, SEEK_END, path);
    loader->file_size_bytes = (int64_t)ftello(loader->tokens_file);
    int64_t expected = (int64_t)sizeof(header) + ntok * (int64_t)sizeof(uint16_t);
    if (loader->file_size_bytes != expected) {
        die(hint, "%s: %lld bytes, but %lld tokens need %lld", path,
            (long long)loader->file_size_bytes, (long long)ntok, (long long)expected);
    }
    loader->shard_num_samples =
        (size_t)(ntok - 1) / ((size_t)loader->num_processes * loader->B * loader->T);
    return ntok;
    // END SOLUTION
}

// intra_shard_indices: a fresh permutation of the samples of the open shard, drawn from
// shuffle_rng.
static inline void prepare_intra_shard_indices_(DataLoader *loader) {
    // TODO (A0): prepare_intra_shard_indices_
    // HINT: the next shard may hold another number of samples; start from the identity each time.
    // BEGIN SOLUTION
    free(loader->intra_shard_indices);
    loader->intra_shard_indices = must_malloc(loader->shard_num_samples * sizeof(int));
    init_identity_permutation(loader->intra_shard_indices, (int)loader->shard_num_samples);
    random_permutation(loader->intra_shard_indices, (int)loader->shard_num_samples,
                       &loader->shuffle_rng);
    // END SOLUTION
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
    // BEGIN SOLUTION
    loader->current_shard_idx = 0;
    loader->current_sample_idx = 0;
    if (loader->should_shuffle) {
        random_permutation(loader->shard_indices, (int)loader->glob_result.gl_pathc,
                           &loader->shuffle_rng);
    }
    dataloader_load_shard_(loader, dataloader_current_shard_(loader));
    if (loader->should_shuffle) prepare_intra_shard_indices_(loader);
    // END SOLUTION
}

// To the first sample of the next shard, with a fresh permutation when shuffled; behind the last
// shard, dataloader_reset.
static inline void dataloader_advance_(DataLoader *loader) {
    // TODO (A0): dataloader_advance_
    // HINT: an epoch ends here, so dataloader_reset already does what the last shard needs.
    // BEGIN SOLUTION
    if (loader->current_shard_idx + 1 >= loader->glob_result.gl_pathc) {
        dataloader_reset(loader);
        return;
    }
    loader->current_shard_idx++;
    loader->current_sample_idx = 0;
    dataloader_load_shard_(loader, dataloader_current_shard_(loader));
    if (loader->should_shuffle) prepare_intra_shard_indices_(loader);
    // END SOLUTION
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
    // BEGIN SOLUTION
    memset(loader, 0, sizeof(*loader));
    loader->process_rank = process_rank;
    loader->num_processes = num_processes;
    loader->B = B;
    loader->T = T;
    loader->should_shuffle = should_shuffle;
    loader->header_bytes = HEADER_SIZE * sizeof(int);
    loader->total_batch_size_bytes = (size_t)num_processes * B * T * sizeof(uint16_t);
    loader->local_batch_offset_bytes = (size_t)process_rank * B * T * sizeof(uint16_t);
    if (glob(filename_pattern, 0, NULL, &loader->glob_result) != 0) {
        die("quote the pattern, and run `make data` first", "%s: no file matches",
            filename_pattern);
    }
    int num_shards = (int)loader->glob_result.gl_pathc;
    if (should_shuffle) {
        manual_seed(&loader->shuffle_rng, 42 + (unsigned long long)process_rank);
        loader->shard_indices = must_malloc((size_t)num_shards * sizeof(int));
        init_identity_permutation(loader->shard_indices, num_shards);
    }
    for (int i = 0; i < num_shards; i++) {
        int64_t ntok = dataloader_load_shard_(loader, i);
        if (ntok < (int64_t)((size_t)num_processes * B * T + 1)) {
            die("longer shards, or a smaller B, T or number of processes",
                "%s: %lld tokens, a batch needs %zu", loader->glob_result.gl_pathv[i],
                (long long)ntok, (size_t)num_processes * B * T + 1);
        }
        loader->num_tokens += (size_t)ntok;
    }
    loader->buffer = must_malloc((B * T + 1) * sizeof(uint16_t));
    loader->inputs = must_malloc(B * T * sizeof(int));
    loader->targets = must_malloc(B * T * sizeof(int));
    dataloader_reset(loader);
    // END SOLUTION
}

// Reads the B*T + 1 tokens of this process in sample current_sample_idx (through
// intra_shard_indices when shuffled): inputs are the first B*T of them, targets the last B*T. Moves
// nothing on.
static inline void dataloader_load_batch(DataLoader *loader) {
    // TODO (A0): dataloader_load_batch
    // HINT: a shard may be longer than 2 GiB; keep the offset in 64 bits.
    // BEGIN SOLUTION
    size_t sample = loader->current_sample_idx;
    if (loader->should_shuffle) sample = (size_t)loader->intra_shard_indices[sample];
    int64_t offset = (int64_t)(loader->header_bytes + sample * loader->total_batch_size_bytes +
                               loader->local_batch_offset_bytes);
    size_t count = loader->B * loader->T;
    const char *path = loader->glob_result.gl_pathv[dataloader_current_shard_(loader)];
    must_seek(loader->tokens_file, offset, SEEK_SET, path);
    must_read(loader->buffer, sizeof(uint16_t), count + 1, loader->tokens_file, path);
    for (size_t i = 0; i < count; i++) {
        loader->inputs[i] = loader->buffer[i];
        loader->targets[i] = loader->buffer[i + 1];
    }
    // END SOLUTION
}

// The next batch: advances first if the shard has no sample left, loads, then counts
// current_sample_idx up.
static inline void dataloader_next_batch(DataLoader *loader) {
    // TODO (A0): dataloader_next_batch
    // HINT: after this, current_sample_idx names the batch that comes next.
    // BEGIN SOLUTION
    if (loader->current_sample_idx >= loader->shard_num_samples) dataloader_advance_(loader);
    dataloader_load_batch(loader);
    loader->current_sample_idx++;
    // END SOLUTION
}

// Jumps to a sample of a shard, both as positions (see current_shard_idx). No permutation and no
// draw: whoever resumes a shuffled run restores shuffle_rng and the two index arrays as well,
// unless they are already the right ones. A shard that does not exist ends the program.
static inline void dataloader_resume(DataLoader *loader, size_t current_shard_idx,
                                     size_t current_sample_idx) {
    // TODO (A0): dataloader_resume
    // HINT: two fields, and the shard that belongs to them.
    // BEGIN SOLUTION
    if (current_shard_idx >= loader->glob_result.gl_pathc) {
        die("resume with the same shards", "no shard %zu among %zu", current_shard_idx,
            (size_t)loader->glob_result.gl_pathc);
    }
    loader->current_shard_idx = current_shard_idx;
    loader->current_sample_idx = current_sample_idx;
    dataloader_load_shard_(loader, dataloader_current_shard_(loader));
    // END SOLUTION
}

// Frees the buffers and permutations, closes the shard, frees the list of files.
static inline void dataloader_free(DataLoader *loader) {
    // TODO (A0): dataloader_free
    // HINT: five arrays, a file, a glob.
    // BEGIN SOLUTION
    free(loader->buffer);
    free(loader->inputs);
    free(loader->targets);
    free(loader->shard_indices);
    free(loader->intra_shard_indices);
    fclose(loader->tokens_file);
    globfree(&loader->glob_result);
    // END SOLUTION
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
    // BEGIN SOLUTION
    const int64_t skip = 2 * (int64_t)sizeof(uint16_t);
    loader->current_example_index = loader->start_example_index;
    must_seek(loader->eval_file, HEADER_SIZE * (int64_t)sizeof(int), SEEK_SET, loader->filename);
    for (int i = 0; i < loader->start_example_index; i++) {
        uint16_t words[2];
        must_read(words, sizeof(uint16_t), 2, loader->eval_file, loader->filename);
        if (words[0] != EXAMPLE_MARK || words[1] <= skip) {
            die("write the file again", "%s: example %d does not start with %d", loader->filename,
                i, EXAMPLE_MARK);
        }
        must_seek(loader->eval_file, (int64_t)words[1] - skip, SEEK_CUR, loader->filename);
    }
    // END SOLUTION
}

// Sets every field and resets. Process r takes examples [r*n, (r+1)*n) with n = ceil(num_examples /
// num_processes), as far as there are any. B < 4, or a malformed file, ends the program with one
// line.
static inline void evalloader_init(EvalLoader *loader, const char *filename, size_t B, size_t T,
                                   int process_rank, int num_processes) {
    // TODO (A0): evalloader_init
    // HINT: the last processes may have fewer examples, or none; a batch must not show what malloc
    // left in it.
    // BEGIN SOLUTION
    const char *hint = "write the file again";
    memset(loader, 0, sizeof(*loader));
    loader->process_rank = process_rank;
    loader->num_processes = num_processes;
    loader->B = B;
    loader->T = T;
    loader->filename = filename;
    int per_batch = (int)B / ASSUMED_NUM_COMPLETIONS;
    if (per_batch == 0) {
        die("an example needs a row for each completion", "B is %zu, want at least %d", B,
            ASSUMED_NUM_COMPLETIONS);
    }
    loader->eval_file = must_open(filename, "rb");
    int header[HEADER_SIZE];
    must_read(header, sizeof(int), HEADER_SIZE, loader->eval_file, filename);
    if (header[0] != EVAL_MAGIC)
        die(hint, "%s: bad magic %d, want %d", filename, header[0], EVAL_MAGIC);
    if (header[1] != DATA_VERSION)
        die(hint, "%s: bad version %d, want %d", filename, header[1], DATA_VERSION);
    if (header[2] <= 0) die(hint, "%s: %d examples", filename, header[2]);
    if (header[3] <= 0 || header[3] > UINT16_MAX)
        die(hint, "%s: longest example of %d bytes", filename, header[3]);
    loader->num_examples = header[2];
    int share = (loader->num_examples + num_processes - 1) / num_processes;
    int start = process_rank * share, end = start + share;
    loader->start_example_index = start < loader->num_examples ? start : loader->num_examples;
    loader->end_example_index = end < loader->num_examples ? end : loader->num_examples;
    loader->num_batches = (share + per_batch - 1) / per_batch;
    loader->buffer = must_malloc(EVAL_BUFFER * sizeof(uint16_t));
    loader->inputs = must_calloc(B * T, sizeof(int));
    loader->targets = must_calloc(B * T, sizeof(int));
    loader->mask = must_calloc(B * T, sizeof(char));
    loader->label = must_calloc((size_t)per_batch, sizeof(int));
    evalloader_reset(loader);
    // END SOLUTION
}

// Reads the next example of the file into rows 4*example_batch_index .. + 3 of the batch, and its
// label. Each row is the context followed by one completion; targets are the row shifted by one;
// mask is 1 where the target is of the completion. The caller counts it. An example longer than T
// ends the program.
static inline void evalloader_next_example_(EvalLoader *loader, int example_batch_index) {
    // TODO (A0): evalloader_next_example_
    // HINT: the first token of a completion is predicted at the last position of the context.
    // BEGIN SOLUTION
    const char *hint = "write the file again";
    const int index = loader->current_example_index;
    const size_t head_bytes = 5 * sizeof(uint16_t);
    uint16_t head[5];
    must_read(head, sizeof(uint16_t), 5, loader->eval_file, loader->filename);
    if (head[0] != EXAMPLE_MARK || head[1] <= head_bytes) {
        die(hint, "%s: example %d does not start with %d", loader->filename, index, EXAMPLE_MARK);
    }
    if (head[4] != ASSUMED_NUM_COMPLETIONS || head[3] >= head[4]) {
        die(hint, "%s: example %d: label %d of %d completions", loader->filename, index, head[3],
            head[4]);
    }
    loader->num_completions = head[4];
    loader->label[example_batch_index] = head[3];
    size_t words = (head[1] - head_bytes) / sizeof(uint16_t);
    uint16_t *body = loader->buffer;
    must_read(body, sizeof(uint16_t), words, loader->eval_file, loader->filename);
    size_t context = body[0], at = 1 + context;
    for (int c = 0; c < ASSUMED_NUM_COMPLETIONS; c++) {
        size_t length = at < words ? body[at] : 0;
        if (length == 0 || at + 1 + length > words)
            die(hint, "%s: example %d is cut short", loader->filename, index);
        if (context + length > loader->T) {
            die("a larger T", "%s: example %d has %zu tokens, T is %zu", loader->filename, index,
                context + length, loader->T);
        }
        size_t row =
            ((size_t)example_batch_index * ASSUMED_NUM_COMPLETIONS + (size_t)c) * loader->T;
        for (size_t t = 0; t < context + length; t++) {
            int token = t < context ? body[1 + t] : body[at + 1 + t - context];
            loader->inputs[row + t] = token;
            if (t > 0) loader->targets[row + t - 1] = token;
            if (t >= context && t > 0) loader->mask[row + t - 1] = 1;
        }
        at += 1 + length;
    }
    // END SOLUTION
}

// The next B / 4 examples of this process; fewer, or none, where it has no more. Rows without an
// example have mask 0.
static inline void evalloader_next_batch(EvalLoader *loader) {
    // TODO (A0): evalloader_next_batch
    // HINT: a mask of the batch before must not show through.
    // BEGIN SOLUTION
    memset(loader->mask, 0, loader->B * loader->T);
    int per_batch = (int)loader->B / ASSUMED_NUM_COMPLETIONS;
    for (int i = 0; i < per_batch && loader->current_example_index < loader->end_example_index;
         i++) {
        evalloader_next_example_(loader, i);
        loader->current_example_index++;
    }
    // END SOLUTION
}

// losses (B,T): how many examples of this batch the model got right. Its answer is the completion
// with the lowest mean loss over the positions with mask 1. Rows without an example (mask all 0)
// count for nothing.
static inline int evalloader_stat_losses(EvalLoader *loader, const float *losses) {
    // TODO (A0): evalloader_stat_losses
    // HINT: a mean, not a sum: completions differ in length.
    // BEGIN SOLUTION
    int correct = 0;
    int per_batch = (int)loader->B / ASSUMED_NUM_COMPLETIONS;
    for (int i = 0; i < per_batch; i++) {
        int best = -1;
        float best_loss = 0.0f;
        for (int c = 0; c < ASSUMED_NUM_COMPLETIONS; c++) {
            size_t row = ((size_t)i * ASSUMED_NUM_COMPLETIONS + (size_t)c) * loader->T;
            float sum = 0.0f;
            int count = 0;
            for (size_t t = 0; t < loader->T; t++) {
                if (loader->mask[row + t]) {
                    sum += losses[row + t];
                    count++;
                }
            }
            if (count == 0) continue;
            float mean = sum / (float)count;
            if (best < 0 || mean < best_loss) {
                best = c;
                best_loss = mean;
            }
        }
        if (best >= 0 && best == loader->label[i]) correct++;
    }
    return correct;
    // END SOLUTION
}

// Frees all that evalloader_init allocated and closes the file.
static inline void evalloader_free(EvalLoader *loader) {
    // TODO (A0): evalloader_free
    // HINT: five arrays and a file.
    // BEGIN SOLUTION
    free(loader->buffer);
    free(loader->inputs);
    free(loader->targets);
    free(loader->mask);
    free(loader->label);
    fclose(loader->eval_file);
    // END SOLUTION
}

#endif
