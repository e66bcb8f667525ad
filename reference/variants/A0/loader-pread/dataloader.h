// dataloader.h: open and pread on a bare descriptor; inputs and targets are two views of one array; the
// eval file is taken token by token.
#ifndef DATALOADER_H
#define DATALOADER_H

#define _XOPEN_SOURCE 700
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "../llmc/rand.h"
#include "utils.h"

#define HEADER_SIZE 256
#define SHARD_MAGIC 20240520
#define EVAL_MAGIC 20240522
#define ASSUMED_NUM_COMPLETIONS 4

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
	int fd; // the open shard, or -1
} DataLoader;

// Reads exactly `bytes` bytes from `offset` on.
static void take(int fd, void *out, size_t bytes, off_t offset, const char *path)
{
	char *to = out;
	while (bytes > 0) {
		ssize_t got = pread(fd, to, bytes, offset);
		if (got == 0 || (got < 0 && errno != EINTR))
			die("is it whole?", "%s: cannot read %zu bytes at %lld", path, bytes, (long long)offset);
		if (got > 0) {
			to += got;
			offset += got;
			bytes -= got;
		}
	}
}

static int shard_at(const DataLoader *loader, size_t position)
{
	return loader->should_shuffle ? loader->shard_indices[position] : (int)position;
}

static inline int64_t dataloader_load_shard_(DataLoader *loader, int shard_index)
{
	const char *path = loader->glob_result.gl_pathv[shard_index];
	int32_t header[HEADER_SIZE];

	if (loader->fd != -1)
		close(loader->fd);
	loader->fd = open(path, O_RDONLY);
	if (loader->fd == -1)
		die("may you read it?", "%s: %s", path, strerror(errno));
	take(loader->fd, header, sizeof(header), 0, path);
	loader->file_size_bytes = lseek(loader->fd, 0, SEEK_END);
	if (header[0] != SHARD_MAGIC || header[1] != 1 || header[2] < 1)
		die("is it a shard?", "%s: bad header", path);
	if (loader->file_size_bytes != (int64_t)sizeof(header) + 2 * (int64_t)header[2])
		die("is it whole?", "%s: not %d tokens", path, header[2]);
	loader->shard_num_samples = 0;
	size_t stride = loader->num_processes * loader->B * loader->T;
	while ((loader->shard_num_samples + 1) * stride + 1 <= (size_t)header[2])
		loader->shard_num_samples++;
	return header[2];
}

static inline void prepare_intra_shard_indices_(DataLoader *loader)
{
	int n = loader->shard_num_samples;
	int *indices = malloc(n * sizeof(int));
	init_identity_permutation(indices, n);
	random_permutation(indices, n, &loader->shuffle_rng);
	free(loader->intra_shard_indices);
	loader->intra_shard_indices = indices;
}

static inline void dataloader_reset(DataLoader *loader)
{
	loader->current_shard_idx = loader->current_sample_idx = 0;
	if (!loader->should_shuffle) {
		dataloader_load_shard_(loader, 0);
		return;
	}
	random_permutation(loader->shard_indices, loader->glob_result.gl_pathc, &loader->shuffle_rng);
	dataloader_load_shard_(loader, loader->shard_indices[0]);
	prepare_intra_shard_indices_(loader);
}

static inline void dataloader_advance_(DataLoader *loader)
{
	loader->current_sample_idx = 0;
	if (++loader->current_shard_idx == loader->glob_result.gl_pathc) {
		dataloader_reset(loader);
		return;
	}
	dataloader_load_shard_(loader, shard_at(loader, loader->current_shard_idx));
	if (loader->should_shuffle)
		prepare_intra_shard_indices_(loader);
}

static inline void dataloader_init(DataLoader *loader, const char *filename_pattern, size_t B,
				   size_t T, int process_rank, int num_processes, int should_shuffle)
{
	const size_t count = B * T;

	loader->process_rank = process_rank;
	loader->num_processes = num_processes;
	loader->B = B;
	loader->T = T;
	loader->should_shuffle = should_shuffle;
	loader->tokens_file = NULL;
	loader->fd = -1;
	loader->shard_indices = NULL;
	loader->intra_shard_indices = NULL;
	loader->header_bytes = 1024;
	loader->total_batch_size_bytes = 2 * num_processes * count;
	loader->local_batch_offset_bytes = 2 * process_rank * count;
	if (glob(filename_pattern, GLOB_ERR, NULL, &loader->glob_result))
		die("is the pattern quoted?", "%s: no shards", filename_pattern);
	loader->num_tokens = 0;
	for (int i = loader->glob_result.gl_pathc - 1; i >= 0; i--) {
		size_t tokens = dataloader_load_shard_(loader, i);
		if (tokens <= num_processes * count)
			die("a smaller batch", "%s: only %zu tokens", loader->glob_result.gl_pathv[i], tokens);
		loader->num_tokens += tokens;
	}
	loader->buffer = malloc((count + 1) * sizeof(uint16_t));
	loader->inputs = malloc((count + 1) * sizeof(int));
	loader->targets = loader->inputs + 1;
	manual_seed(&loader->shuffle_rng, 42ull + process_rank);
	if (should_shuffle) {
		loader->shard_indices = malloc(loader->glob_result.gl_pathc * sizeof(int));
		init_identity_permutation(loader->shard_indices, loader->glob_result.gl_pathc);
	}
	dataloader_reset(loader);
}

static inline void dataloader_load_batch(DataLoader *loader)
{
	const size_t count = loader->B * loader->T;
	const char *path = loader->glob_result.gl_pathv[shard_at(loader, loader->current_shard_idx)];
	off_t sample = loader->current_sample_idx;

	if (loader->should_shuffle)
		sample = loader->intra_shard_indices[sample];
	take(loader->fd, loader->buffer, (count + 1) * 2,
	     1024 + sample * loader->total_batch_size_bytes + loader->local_batch_offset_bytes, path);
	for (size_t i = 0; i <= count; i++)
		loader->inputs[i] = loader->buffer[i];
}

static inline void dataloader_next_batch(DataLoader *loader)
{
	if (loader->current_sample_idx >= loader->shard_num_samples)
		dataloader_advance_(loader);
	dataloader_load_batch(loader);
	loader->current_sample_idx++;
}

static inline void dataloader_resume(DataLoader *loader, size_t current_shard_idx, size_t current_sample_idx)
{
	if (current_shard_idx >= loader->glob_result.gl_pathc)
		die("fewer shards than before?", "no shard %zu", current_shard_idx);
	dataloader_load_shard_(loader, shard_at(loader, current_shard_idx));
	loader->current_shard_idx = current_shard_idx;
	loader->current_sample_idx = current_sample_idx;
}

static inline void dataloader_free(DataLoader *loader)
{
	free(loader->buffer);
	free(loader->inputs);
	free(loader->shard_indices);
	free(loader->intra_shard_indices);
	close(loader->fd);
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

static int take_word(EvalLoader *loader)
{
	int low = fgetc(loader->eval_file), high = fgetc(loader->eval_file);
	if (high == EOF)
		die("is it whole?", "%s: cut short", loader->filename);
	return low + 256 * high;
}

static inline void evalloader_reset(EvalLoader *loader)
{
	rewind(loader->eval_file);
	for (int i = 0; i < 2 * HEADER_SIZE; i++)
		take_word(loader);
	loader->current_example_index = 0;
	while (loader->current_example_index < loader->start_example_index) {
		if (take_word(loader) != 65535)
			die("is it whole?", "%s: no example where one should be", loader->filename);
		for (int bytes = take_word(loader); bytes > 4; bytes -= 2)
			take_word(loader);
		loader->current_example_index++;
	}
}

static inline void evalloader_init(EvalLoader *loader, const char *filename, size_t B, size_t T,
				   int process_rank, int num_processes)
{
	int per_batch = B / ASSUMED_NUM_COMPLETIONS, share, header[3];

	if (per_batch < 1)
		die("4 or more", "B is %zu", B);
	loader->process_rank = process_rank;
	loader->num_processes = num_processes;
	loader->B = B;
	loader->T = T;
	loader->filename = filename;
	loader->eval_file = must_open(filename, "rb");
	for (int i = 0; i < 3; i++) {
		header[i] = take_word(loader);
		header[i] |= take_word(loader) << 16;
	}
	if (header[0] != EVAL_MAGIC || header[1] != 1 || header[2] == 0)
		die("is it an eval file?", "%s: bad header", filename);
	loader->num_examples = header[2];
	share = ceil((double)loader->num_examples / num_processes);
	loader->num_batches = ceil((double)share / per_batch);
	loader->start_example_index = fmin(process_rank * share, loader->num_examples);
	loader->end_example_index = fmin((process_rank + 1) * share, loader->num_examples);
	loader->buffer = NULL;
	loader->inputs = calloc(B * T, sizeof(int));
	loader->targets = calloc(B * T, sizeof(int));
	loader->mask = calloc(B * T, sizeof(char));
	loader->label = calloc(per_batch, sizeof(int));
	loader->num_completions = ASSUMED_NUM_COMPLETIONS;
	evalloader_reset(loader);
}

// Reads a counted list into one row, from column `column` on; returns the column behind it.
static size_t take_list(EvalLoader *loader, size_t row, size_t column, int is_completion)
{
	for (int left = take_word(loader); left > 0; left--, column++) {
		if (column == loader->T)
			die("a larger T", "%s: an example does not fit", loader->filename);
		int token = take_word(loader);
		loader->inputs[row + column] = token;
		if (column > 0) {
			loader->targets[row + column - 1] = token;
			loader->mask[row + column - 1] = is_completion;
		}
	}
	return column;
}

static inline void evalloader_next_example_(EvalLoader *loader, int example_batch_index)
{
	const size_t T = loader->T, row = 4 * T * example_batch_index;

	if (take_word(loader) != 65535)
		die("is it whole?", "%s: no example where one should be", loader->filename);
	take_word(loader);
	take_word(loader);
	loader->label[example_batch_index] = take_word(loader);
	loader->num_completions = take_word(loader);
	if (loader->num_completions != ASSUMED_NUM_COMPLETIONS)
		die("4 is what we assume", "%s: %d completions", loader->filename, loader->num_completions);
	size_t context = take_list(loader, row, 0, 0);
	for (int c = 1; c < 4; c++)
		for (size_t t = 0; t < context; t++) {
			loader->inputs[row + c * T + t] = loader->inputs[row + t];
			loader->targets[row + c * T + t] = loader->targets[row + t];
		}
	for (int c = 0; c < 4; c++)
		take_list(loader, row + c * T, context, 1);
}

static inline void evalloader_next_batch(EvalLoader *loader)
{
	int room = loader->B / 4, left = loader->end_example_index - loader->current_example_index;
	memset(loader->mask, 0, loader->B * loader->T * sizeof(*loader->mask));
	for (int i = 0; i < room && i < left; i++)
		evalloader_next_example_(loader, i);
	loader->current_example_index += left < 0 ? 0 : left < room ? left : room;
}

static inline int evalloader_stat_losses(EvalLoader *loader, float *losses)
{
	int correct = 0;
	char *mask = loader->mask;

	for (size_t i = 0; i < loader->B / 4; i++) {
		float means[4];
		int best = 0;
		for (int c = 0; c < 4; c++) {
			float sum = 0;
			int count = 0;
			for (size_t t = 0; t < loader->T; t++, mask++, losses++)
				if (*mask)
					sum += *losses, count++;
			means[c] = count ? sum / count : HUGE_VALF;
			if (means[c] < means[best])
				best = c;
		}
		if (means[best] < HUGE_VALF && best == loader->label[i])
			correct++;
	}
	return correct;
}

static inline void evalloader_free(EvalLoader *loader)
{
	free(loader->inputs);
	free(loader->targets);
	free(loader->mask);
	free(loader->label);
	fclose(loader->eval_file);
}

#endif
