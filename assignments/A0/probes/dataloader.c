// dataloader.c: observes llmc/dataloader.h on shards and eval files of its own, and on real shards.
#include "llmc/dataloader.h"

#include <glob.h>
#include <unistd.h>

#include "given.h"
#include "observe.h"

#define GIVEN_B 2
#define GIVEN_T 3
#define GIVEN_BT (GIVEN_B * GIVEN_T)
#define GIVEN_PATTERN "shard_*.bin"
#define GIVEN_EVAL_FILE "eval.bin"

// ---------------------------------------------------------------- shards

// The token at a place of a shard.
static uint16_t given_token(uint64_t seed, int shard, uint64_t place) {
    return (uint16_t)given_u64(seed, ((uint64_t)shard << 32) + place);
}

static void given_shard_header(FILE *file, int magic, int version, int tokens) {
    int header[256] = {magic, version, tokens};
    given_write(file, header, sizeof(int), 256);
}

static void given_shard_as(const char *path, int magic, int version, int claimed, uint64_t seed,
                           int shard, int tokens) {
    FILE *file = given_file(path);
    given_shard_header(file, magic, version, claimed);
    for (int i = 0; i < tokens; i++) {
        uint16_t token = given_token(seed, shard, (uint64_t)i);
        given_write(file, &token, sizeof(token), 1);
    }
    fclose(file);
}

static void given_shards(uint64_t seed, const int *sizes, int count) {
    for (int i = 0; i < count; i++) {
        char path[32];
        snprintf(path, sizeof(path), "shard_%d.bin", i);
        given_shard_as(path, 20240520, 1, sizes[i], seed, i, sizes[i]);
    }
}

static const int GIVEN_TWO_SHARDS[] = {41, 30};
static const int GIVEN_FOUR_SHARDS[] = {41, 24, 33, 27};

static void case_load_shard(uint64_t seed) {
    DataLoader loader;
    given_shards(seed, GIVEN_TWO_SHARDS, 2);
    dataloader_init(&loader, GIVEN_PATTERN, GIVEN_B, GIVEN_T, 0, 1, 0);
    for (int shard = 1; shard >= 0; shard--) {
        int64_t tokens = dataloader_load_shard_(&loader, shard);
        observe_int(shard ? "tokens_1" : "tokens_0", tokens);
        observe_int(shard ? "samples_1" : "samples_0", (int64_t)loader.shard_num_samples);
        observe_int(shard ? "bytes_1" : "bytes_0", loader.file_size_bytes);
    }
    given_shard_as("shard_1.bin", 20240520, 1, 1, seed, 1, 1);  // enough for a shard, not for init
    observe_int("tokens_least", dataloader_load_shard_(&loader, 1));
    observe_int("samples_least", (int64_t)loader.shard_num_samples);
}

static void case_init(uint64_t seed) {
    DataLoader loader;
    memset(&loader, 0xA5, sizeof(loader));
    given_shards(seed, GIVEN_TWO_SHARDS, 2);
    dataloader_init(&loader, GIVEN_PATTERN, GIVEN_B, GIVEN_T, 1, 2, 0);
    observe_int("process_rank", loader.process_rank);
    observe_int("num_processes", loader.num_processes);
    observe_int("B", (int64_t)loader.B);
    observe_int("T", (int64_t)loader.T);
    observe_int("should_shuffle", loader.should_shuffle);
    observe_int("shards", (int64_t)loader.glob_result.gl_pathc);
    observe_int("num_tokens", (int64_t)loader.num_tokens);
    observe_int("shard_num_samples", (int64_t)loader.shard_num_samples);
    observe_int("file_size_bytes", loader.file_size_bytes);
    observe_int("header_bytes", (int64_t)loader.header_bytes);
    observe_int("total_batch_size_bytes", (int64_t)loader.total_batch_size_bytes);
    observe_int("local_batch_offset_bytes", (int64_t)loader.local_batch_offset_bytes);
    observe_int("current_shard_idx", (int64_t)loader.current_shard_idx);
    observe_int("current_sample_idx", (int64_t)loader.current_sample_idx);
}

#define GIVEN_MOST 40  // batches in one observation
static int32_t taken_inputs[GIVEN_MOST * GIVEN_BT], taken_targets[GIVEN_MOST * GIVEN_BT],
    taken_samples[GIVEN_MOST];

// The next `count` batches: inputs and targets, and current_sample_idx after each.
static void observe_taken(DataLoader *loader, int count) {
    for (int i = 0; i < count; i++) {
        dataloader_next_batch(loader);
        memcpy(taken_inputs + i * GIVEN_BT, loader->inputs, sizeof(int) * GIVEN_BT);
        memcpy(taken_targets + i * GIVEN_BT, loader->targets, sizeof(int) * GIVEN_BT);
        taken_samples[i] = (int32_t)loader->current_sample_idx;
    }
}

static void observe_inputs(const char *name, DataLoader *loader, int count) {
    observe_taken(loader, count);
    observe_i32(name, taken_inputs, (size_t)(count * GIVEN_BT));
}

static void case_batches(uint64_t seed) {
    DataLoader loader;
    given_shards(seed, GIVEN_TWO_SHARDS, 1);
    dataloader_init(&loader, GIVEN_PATTERN, GIVEN_B, GIVEN_T, 0, 1, 0);
    dataloader_load_batch(&loader);
    observe_i32("loaded_inputs", loader.inputs, GIVEN_BT);
    observe_i32("loaded_targets", loader.targets, GIVEN_BT);
    observe_taken(&loader, 6);
    observe_i32("inputs", taken_inputs, 6 * GIVEN_BT);
    observe_i32("targets", taken_targets, 6 * GIVEN_BT);
    observe_i32("samples", taken_samples, 6);
}

// A shard of 1.1e9 tokens, all hole but for its end.
static void case_far_end(uint64_t seed) {
    const int tokens = 1100000001;
    const int count = 4 * 1000 + 1;
    FILE *file = given_file("shard_0.bin");
    given_shard_header(file, 20240520, 1, tokens);
    fseeko(file, (off_t)1024 + ((off_t)tokens - count) * 2, SEEK_SET);
    for (int i = 0; i < count; i++) {
        uint16_t token = given_token(seed, 0, (uint64_t)i);
        given_write(file, &token, sizeof(token), 1);
    }
    fclose(file);
    DataLoader loader;
    dataloader_init(&loader, GIVEN_PATTERN, 4, 1000, 0, 1, 0);
    loader.current_sample_idx = loader.shard_num_samples - 1;
    dataloader_load_batch(&loader);
    observe_int("samples", (int64_t)loader.shard_num_samples);
    observe_i32("first_inputs", loader.inputs, 8);
    observe_i32("last_targets", loader.targets + 3992, 8);
    unlink("shard_0.bin");
}

static void call_init(const char *pattern) {
    DataLoader loader;
    dataloader_init(&loader, pattern, GIVEN_B, GIVEN_T, 0, 1, 0);
}

static void call_init_2(const char *pattern) {
    DataLoader loader;
    dataloader_init(&loader, pattern, GIVEN_B, GIVEN_T, 0, 2, 0);
}

// Two good shards, of which the second loses all its tokens before it is opened: dataloader_init
// would refuse it for another reason as well.
static void call_load_shard(const char *path) {
    DataLoader loader;
    dataloader_init(&loader, "pair_*.bin", GIVEN_B, GIVEN_T, 0, 1, 0);
    given_shard_as(path, 20240520, 1, 0, 0, 0, 0);
    dataloader_load_shard_(&loader, 1);
}

static void case_refuse(uint64_t seed) {
    given_shard_as("good.bin", 20240520, 1, GIVEN_BT + 1, seed, 0, GIVEN_BT + 1);
    observe_ending("good", call_init, "good.bin");
    observe_ending("no_match", call_init, "nothing_*.bin");
    if (symlink("nowhere.bin", "dangling.bin") != 0) abort();
    observe_ending("unreadable", call_init, "dangl*.bin");
    given_shard_as("magic.bin", 20240521, 1, 20, seed, 0, 20);
    observe_ending("bad_magic", call_init, "magic.bin");
    given_shard_as("version.bin", 20240520, 2, 20, seed, 0, 20);
    observe_ending("bad_version", call_init, "version.bin");
    given_shard_as("count.bin", 20240520, 1, 30, seed, 0, 20);
    observe_ending("more_tokens_claimed", call_init, "count.bin");
    given_shard_as("longer.bin", 20240520, 1, 20, seed, 0, 30);
    observe_ending("fewer_tokens_claimed", call_init, "longer.bin");
    given_shard_as("pair_0.bin", 20240520, 1, 20, seed, 0, 20);
    given_shard_as("pair_1.bin", 20240520, 1, 20, seed, 1, 20);
    observe_ending("zero_tokens", call_load_shard, "pair_1.bin");
    given_shard_as("short.bin", 20240520, 1, GIVEN_BT, seed, 0, GIVEN_BT);
    observe_ending("too_few_tokens", call_init, "short.bin");
    given_shard_as("half.bin", 20240520, 1, 2 * GIVEN_BT, seed, 0, 2 * GIVEN_BT);
    observe_ending("too_few_for_2", call_init_2, "half.bin");
    const int start[3] = {20240520, 1, 20};
    FILE *file = given_file("header.bin");
    given_write(file, start, sizeof(int), 3);
    fclose(file);
    observe_ending("header_cut_short", call_init, "header.bin");
}

static void case_rollover(uint64_t seed) {
    DataLoader loader;
    given_shards(seed, GIVEN_FOUR_SHARDS, 4);
    dataloader_init(&loader, GIVEN_PATTERN, GIVEN_B, GIVEN_T, 0, 1, 0);
    observe_inputs("inputs", &loader, 36);
    observe_i32("targets", taken_targets, 36 * GIVEN_BT);
}

static void case_striding(uint64_t seed) {
    static const char *names[] = {"rank_0", "rank_1", "rank_2"};
    const int sizes[] = {41, 57};
    given_shards(seed, sizes, 2);
    for (int rank = 0; rank < 3; rank++) {
        DataLoader loader;
        dataloader_init(&loader, GIVEN_PATTERN, GIVEN_B, GIVEN_T, rank, 3, 0);
        observe_inputs(names[rank], &loader, 7);
    }
}

static void case_shuffled(uint64_t seed) {
    DataLoader loader;
    given_shards(seed, GIVEN_FOUR_SHARDS, 4);
    dataloader_init(&loader, GIVEN_PATTERN, GIVEN_B, GIVEN_T, 0, 1, 1);
    observe_inputs("inputs", &loader, 36);
}

static void case_shuffled_ranks(uint64_t seed) {
    static const char *names[] = {"rank_0", "rank_1"};
    given_shards(seed, GIVEN_FOUR_SHARDS, 4);
    for (int rank = 0; rank < 2; rank++) {
        DataLoader loader;
        dataloader_init(&loader, GIVEN_PATTERN, GIVEN_B, GIVEN_T, rank, 2, 1);
        observe_inputs(names[rank], &loader, 16);
    }
}

static void call_resume(const char *shard) {
    DataLoader loader;
    dataloader_init(&loader, GIVEN_PATTERN, GIVEN_B, GIVEN_T, 0, 1, 0);
    dataloader_resume(&loader, (size_t)atoi(shard), 0);
}

static void case_resume(uint64_t seed) {
    DataLoader loader;
    given_shards(seed, GIVEN_FOUR_SHARDS, 4);
    dataloader_init(&loader, GIVEN_PATTERN, GIVEN_B, GIVEN_T, 0, 1, 0);
    dataloader_resume(&loader, 2, 3);
    observe_int("shard", (int64_t)loader.current_shard_idx);
    observe_int("sample", (int64_t)loader.current_sample_idx);
    observe_inputs("inputs", &loader, 6);
    observe_ending("good", call_resume, "3");
    observe_ending("no_such_shard", call_resume, "4");
    observe_ending("far_shard", call_resume, "9");  // gl_pathv[4] is there, too: NULL
}

static void case_resume_shuffled(uint64_t seed) {
    DataLoader loader;
    given_shards(seed, GIVEN_FOUR_SHARDS, 4);
    dataloader_init(&loader, GIVEN_PATTERN, GIVEN_B, GIVEN_T, 0, 1, 1);
    dataloader_resume(&loader, 0, 2);
    observe_inputs("inputs", &loader, 24);
}

// Of the first real training shard: two batches, the number in an epoch, and the sum of all inputs.
static void case_real(uint64_t seed) {
    (void)seed;
    char pattern[4096];
    glob_t found;
    DataLoader loader;
    snprintf(pattern, sizeof(pattern), "%s/*_train_*.bin", observe_data ? observe_data : ".");
    if (glob(pattern, 0, NULL, &found) != 0) abort();
    dataloader_init(&loader, found.gl_pathv[0], 4, 64, 0, 1, 0);
    int64_t count = 0, sum = 0;
    do {
        dataloader_next_batch(&loader);
        if (count < 2) observe_i32(count ? "inputs_1" : "inputs_0", loader.inputs, 256);
        if (count < 2) observe_i32(count ? "targets_1" : "targets_0", loader.targets, 256);
        for (int i = 0; i < 256; i++) sum += loader.inputs[i];
        count++;
    } while (loader.current_sample_idx < loader.shard_num_samples);
    observe_int("batches", count);
    observe_int("sum", sum);
}

// ---------------------------------------------------------------- multiple choice

#define GIVEN_EVAL_T 24

static void given_eval_header(FILE *file, int magic, int version, int examples, int longest) {
    int header[256] = {magic, version, examples, longest};
    given_write(file, header, sizeof(int), 256);
}

// Appends a count and that many tokens, none of them the mark. Returns how many words that is.
static size_t given_counted(uint16_t *words, uint64_t seed, uint64_t place, int count) {
    words[0] = (uint16_t)count;
    for (int i = 0; i < count; i++) {
        words[1 + i] = (uint16_t)(given_u64(seed, place + (uint64_t)i) % 50000);
    }
    return (size_t)count + 1;
}

static void given_head(uint16_t *words, size_t used, int e, int label) {
    const uint16_t head[5] = {65535, (uint16_t)(used * sizeof(uint16_t)), (uint16_t)e,
                              (uint16_t)label, 4};
    memcpy(words, head, sizeof(head));
}

// Example `e`: a context of 3 to 10 tokens, completions of 1 to 8. Of example 1 the context and a
// completion have one token; the last row of example 2 fills T. Returns its words.
static size_t given_example(uint64_t seed, int e, uint16_t *words) {
    const uint64_t place = 1000000 + (uint64_t)e * 1000;
    const int context = e == 1 ? 1 : e == 2 ? GIVEN_EVAL_T - 8 : given_int(seed, place, 3, 8);
    size_t used = 5 + given_counted(words + 5, seed, place + 100, context);
    for (int c = 0; c < 4; c++) {
        int length = given_int(seed, place + 1 + (uint64_t)c, 1, 8);
        if (e == 1 && c == 1) length = 1;
        if (e == 2 && c == 3) length = 8;
        used += given_counted(words + used, seed, place + 200 + (uint64_t)c * 100, length);
    }
    given_head(words, used, e, given_int(seed, place + 5, 0, 4));
    return used;
}

static void given_eval_as(const char *path, int magic, int version, int claimed, uint64_t seed,
                          int examples) {
    uint16_t words[128];
    size_t longest = 0;
    FILE *file = given_file(path);
    for (int e = 0; e < examples; e++) {
        size_t used = given_example(seed, e, words);
        if (used > longest) longest = used;
    }
    given_eval_header(file, magic, version, claimed, (int)(longest * sizeof(uint16_t)));
    for (int e = 0; e < examples; e++) {
        size_t used = given_example(seed, e, words);
        given_write(file, words, sizeof(uint16_t), used);
    }
    fclose(file);
}

// Three examples, with `change` added to one word of one of them; of the last one, `cut` words are
// neither there nor counted.
static void given_eval_edited(const char *path, uint64_t seed, int edited, int word, int change,
                              size_t cut) {
    uint16_t words[128];
    FILE *file = given_file(path);
    given_eval_header(file, 20240522, 1, 3, 256);
    for (int e = 0; e < 3; e++) {
        size_t used = given_example(seed, e, words) - (e == 2 ? cut : 0);
        words[1] = (uint16_t)(used * sizeof(uint16_t));
        if (e == edited) words[word] = (uint16_t)(words[word] + change);
        given_write(file, words, sizeof(uint16_t), used);
    }
    fclose(file);
}

// One example that is nearly as long as its count of bytes can say: the context and each of its
// four completions.
#define GIVEN_LONG_CONTEXT 16000
#define GIVEN_LONG 4189
static void given_eval_long(uint64_t seed) {
    static uint16_t words[32768];
    size_t used = 5 + given_counted(words + 5, seed, 9000000, GIVEN_LONG_CONTEXT);
    for (uint64_t c = 0; c < 4; c++) {
        used += given_counted(words + used, seed, 9100000 + c * 10000, GIVEN_LONG);
    }
    given_head(words, used, 0, 3);
    FILE *file = given_file("long.bin");
    given_eval_header(file, 20240522, 1, 1, (int)(used * sizeof(uint16_t)));
    given_write(file, words, sizeof(uint16_t), used);
    fclose(file);
}

static void observe_eval_batch(int i, const EvalLoader *l) {
    static const char *names[][4] = {{"inputs_0", "targets_0", "mask_0", "label_0"},
                                     {"inputs_1", "targets_1", "mask_1", "label_1"},
                                     {"inputs_2", "targets_2", "mask_2", "label_2"}};
    observe_i32(names[i][0], l->inputs, 8 * GIVEN_EVAL_T);
    observe_i32(names[i][1], l->targets, 8 * GIVEN_EVAL_T);
    observe_u8(names[i][2], l->mask, 8 * GIVEN_EVAL_T);
    observe_i32(names[i][3], l->label, 2);
}

// The last target of each row of an example that nearly fills the buffer.
static void observe_eval_long(uint64_t seed) {
    const size_t T = GIVEN_LONG_CONTEXT + GIVEN_LONG;
    EvalLoader loader;
    int32_t targets[4];
    given_eval_long(seed);
    evalloader_init(&loader, "long.bin", 4, T, 0, 1);
    evalloader_next_batch(&loader);
    for (size_t row = 0; row < 4; row++) targets[row] = loader.targets[row * T + T - 2];
    observe_i32("long_targets", targets, 4);
}

static void case_eval_rows(uint64_t seed) {
    EvalLoader loader;
    memset(&loader, 0xA5, sizeof(loader));
    given_eval_as(GIVEN_EVAL_FILE, 20240522, 1, 5, seed, 5);
    evalloader_init(&loader, GIVEN_EVAL_FILE, 10, GIVEN_EVAL_T, 0,
                    1);  // two rows are too few for an example
    observe_int("num_examples", loader.num_examples);
    observe_int("num_batches", loader.num_batches);
    observe_int("filename", loader.filename && strcmp(loader.filename, GIVEN_EVAL_FILE) == 0);
    for (int i = 0; i < 3; i++) {
        evalloader_next_batch(&loader);
        observe_eval_batch(i, &loader);
    }
    evalloader_reset(&loader);
    evalloader_next_batch(&loader);
    observe_i32("inputs_reset", loader.inputs, 3);
    observe_int("num_completions", loader.num_completions);
    observe_eval_long(seed);
}

// For each process of several: how many examples it has, what its first batch holds, and which of
// how many it says it is.
static void observe_processes(const char *counts, const char *firsts, const char *masked,
                              const char *batches, const char *places, uint64_t seed,
                              int processes) {
    int32_t count[8], first[8] = {0}, ones[8] = {0}, batch[8], place[16];
    given_eval_as(GIVEN_EVAL_FILE, 20240522, 1, 7, seed, 7);
    for (int rank = 0; rank < processes; rank++) {
        EvalLoader l;
        memset(&l, 0xA5, sizeof(l));
        evalloader_init(&l, GIVEN_EVAL_FILE, 8, GIVEN_EVAL_T, rank, processes);
        int has = l.end_example_index - l.start_example_index;
        count[rank] = has > 0 ? has : 0;
        batch[rank] = l.num_batches;
        place[2 * rank] = l.process_rank;
        place[2 * rank + 1] = l.num_processes;
        evalloader_next_batch(&l);
        if (has > 0) first[rank] = l.inputs[0];
        for (int i = 0; i < 8 * GIVEN_EVAL_T; i++) ones[rank] += l.mask[i];
    }
    observe_i32(counts, count, (size_t)processes);
    observe_i32(firsts, first, (size_t)processes);
    observe_i32(masked, ones, (size_t)processes);
    observe_i32(batches, batch, (size_t)processes);
    observe_i32(places, place, 2 * (size_t)processes);
}

static void case_eval_ranks(uint64_t seed) {
    observe_processes("counts_of_3", "firsts_of_3", "masked_of_3", "batches_of_3", "places_of_3",
                      seed, 3);
    observe_processes("counts_of_5", "firsts_of_5", "masked_of_5", "batches_of_5", "places_of_5",
                      seed, 5);
    observe_processes("counts_of_7", "firsts_of_7", "masked_of_7", "batches_of_7", "places_of_7",
                      seed, 7);
    observe_processes("counts_of_8", "firsts_of_8", "masked_of_8", "batches_of_8", "places_of_8",
                      seed, 8);
}

// Right answers on masks, labels and losses made here: 3 examples of 4 rows, in odd rounds the last
// one padding. Losses are (16 k + completion) / 2^16 and rows have 1, 2 or 4 of them: every mean is
// exact in float, in any order of summation, and no two of an example are equal. Then a round in
// which all losses are.
static void case_eval_stat(uint64_t seed) {
    enum { GIVEN_ROUNDS = 40, GIVEN_ROWS = 12, GIVEN_LEN = 6 };
    char mask[GIVEN_ROWS * GIVEN_LEN];
    int label[3], zeros[GIVEN_ROWS * GIVEN_LEN] = {0};
    float losses[GIVEN_ROWS * GIVEN_LEN];
    int32_t right[GIVEN_ROUNDS];
    EvalLoader loader = {.num_processes = 1,
                         .B = GIVEN_ROWS,
                         .T = GIVEN_LEN,
                         .num_examples = 2,
                         .num_batches = 1,
                         .end_example_index = 2,
                         .current_example_index = 2,
                         .inputs = zeros,
                         .targets = zeros,
                         .mask = mask,
                         .label = label,
                         .num_completions = 4};
    for (int round = 0; round < GIVEN_ROUNDS; round++) {
        const uint64_t place = 5000000 + (uint64_t)round * 1000;
        memset(mask, 0, sizeof(mask));
        for (int i = 0; i < GIVEN_ROWS * GIVEN_LEN; i++)
            losses[i] = (float)(16 * given_int(seed, place + 100 + (uint64_t)i, 0, 32768) +
                                i / GIVEN_LEN % 4) /
                        65536.0f;
        for (int row = 0; row < (round % 2 ? 8 : GIVEN_ROWS); row++) {
            int from = given_int(seed, place + (uint64_t)row, 0, 3);
            int count = 1 << given_int(seed, place + 20 + (uint64_t)row, 0, 3);
            for (int t = from; t < from + count; t++) mask[row * GIVEN_LEN + t] = 1;
        }
        for (int e = 0; e < 3; e++) label[e] = given_int(seed, place + 40 + (uint64_t)e, 0, 4);
        if (round % 2) label[2] = 0;
        right[round] = evalloader_stat_losses(&loader, losses);
    }
    observe_i32("right", right, GIVEN_ROUNDS);
    memset(mask, 1, sizeof(mask));
    for (int i = 0; i < GIVEN_ROWS * GIVEN_LEN; i++) losses[i] = 0.5f;
    for (int e = 0; e < 3; e++) label[e] = e;
    observe_int("right_of_equals", evalloader_stat_losses(&loader, losses));
}

static void call_eval(const char *path) {
    EvalLoader loader;
    evalloader_init(&loader, path, 8, GIVEN_EVAL_T, 0, 1);
    for (int i = 0; i < 2; i++) evalloader_next_batch(&loader);
}

static void call_eval_init(const char *path) {
    EvalLoader loader;
    evalloader_init(&loader, path, 8, GIVEN_EVAL_T, 0, 1);
}

static void call_eval_second(const char *path) {
    EvalLoader loader;
    evalloader_init(&loader, path, 8, GIVEN_EVAL_T, 1, 2);
}

static void call_eval_rows_3(const char *path) {
    EvalLoader loader;
    evalloader_init(&loader, path, 3, GIVEN_EVAL_T, 0, 1);
}

static void call_eval_short_rows(const char *path) {
    EvalLoader loader;
    evalloader_init(&loader, path, 8, GIVEN_EVAL_T - 1, 0, 1);
    for (int i = 0; i < 2; i++) evalloader_next_batch(&loader);
}

static void case_eval_refuse(uint64_t seed) {
    given_eval_as("good.bin", 20240522, 1, 3, seed, 3);
    observe_ending("good", call_eval, "good.bin");
    observe_ending("missing", call_eval, "nothing.bin");
    observe_ending("rows_below_4", call_eval_rows_3, "good.bin");
    observe_ending("longer_than_T", call_eval_short_rows, "good.bin");
    given_eval_as("magic.bin", 20240520, 1, 2, seed, 2);
    observe_ending("bad_magic", call_eval, "magic.bin");
    given_eval_as("version.bin", 20240522, 2, 2, seed, 2);
    observe_ending("bad_version", call_eval, "version.bin");
    given_eval_as("cut.bin", 20240522, 1, 2, seed, 1);
    observe_ending("cut_short", call_eval, "cut.bin");
    given_eval_as("none.bin", 20240522, 1, 0, seed, 2);
    observe_ending("no_examples", call_eval, "none.bin");
    given_eval_edited("mark.bin", seed, 2, 0, -1, 0);
    observe_ending("no_mark", call_eval, "mark.bin");
    given_eval_edited("passed.bin", seed, 0, 0, -1, 0);
    observe_ending("no_mark_passed", call_eval_second, "passed.bin");
    given_eval_edited("three.bin", seed, 2, 4, -1, 0);
    observe_ending("three_completions", call_eval, "three.bin");
    given_eval_edited("token.bin", seed, 2, 0, 0, 1);
    observe_ending("last_token_missing", call_eval, "token.bin");
    given_eval_edited("last.bin", seed, 2, 0, 0, 9);  // its count and 8 tokens
    observe_ending("last_completion_missing", call_eval, "last.bin");
    const int start[255] = {20240522, 1, 2, 100};
    FILE *file = given_file("header.bin");
    given_write(file, start, sizeof(int), 255);
    fclose(file);
    observe_ending("header_cut_short", call_eval_init, "header.bin");
}

// ---------------------------------------------------------------- the whole life of both

static void call_life(void) {
    DataLoader loader;
    dataloader_init(&loader, GIVEN_PATTERN, GIVEN_B, GIVEN_T, 0, 1, 1);
    observe_inputs("inputs", &loader, 20);
    dataloader_resume(&loader, loader.current_shard_idx, 0);  // its permutation is there
    observe_inputs("resumed", &loader, 1);
    dataloader_free(&loader);
    memset(&loader, 0, sizeof(loader));
    EvalLoader eval;
    evalloader_init(&eval, GIVEN_EVAL_FILE, 8, GIVEN_EVAL_T, 0, 1);
    for (int i = 0; i < 3; i++) evalloader_next_batch(&eval);
    evalloader_reset(&eval);
    evalloader_free(&eval);
    memset(&eval, 0, sizeof(eval));
}

static void case_life(uint64_t seed) {
    given_shards(seed, GIVEN_FOUR_SHARDS, 4);
    given_eval_as(GIVEN_EVAL_FILE, 20240522, 1, 5, seed, 5);
    int before = observe_open_files();
    call_life();
    observe_int("files_left_open", observe_open_files() - before);
    observe_leaks("leaks");
}

const ObserveCase observe_cases[] = {
    {"pairs_load_shard", case_load_shard},
    {"pairs_init", case_init},
    {"pairs_batches", case_batches},
    {"pairs_far", case_far_end},
    {"pairs_refuse", case_refuse},
    {"pairs_real", case_real},
    {"eval_rows", case_eval_rows},
    {"eval_ranks", case_eval_ranks},
    {"eval_stat", case_eval_stat},
    {"eval_refuse", case_eval_refuse},
    {"order_rollover", case_rollover},
    {"order_striding", case_striding},
    {"order_shuffled", case_shuffled},
    {"order_shuffled_ranks", case_shuffled_ranks},
    {"order_resume", case_resume},
    {"order_resume_shuffled", case_resume_shuffled},
    {"life", case_life},
    {NULL, NULL},
};
