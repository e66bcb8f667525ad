// test_dataloader.c: five subtests of the DataLoader, on shards that it writes itself; each prints
// one line, and the exit status is 0 if all say ok.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "llmc/dataloader.h"
#include "llmc/todo.h"
#include "llmc/utils.h"

enum { B = 3, T = 5, WINDOW = B * T, NUM_SHARDS = 2, MAX_PROCESSES = 4, MAX_WINDOWS = 64 };

// The last target needs one token more: the first shard holds 11 windows, not 12; the second just
// holds 16.
static const int shard_tokens[NUM_SHARDS] = {12 * WINDOW, 16 * WINDOW + 1};
static const char *const shard_names[NUM_SHARDS] = {"shard_0.bin", "shard_1.bin"};

// Token p of both shards together is FIRST_TOKEN + p: a token tells its place. Some are too large
// for an int16_t.
#define FIRST_TOKEN 32700

// A loader, and what it was asked to be.
typedef struct {
    DataLoader loader;
    int rank;
    int num_processes;
    int shuffle;
    int num_windows;               // of this process in an epoch, in the order of the files
    int first_token[MAX_WINDOWS];  // of each
} Process;

static char directory[1024];  // of the shards
static const char *subtest;   // name of the one that runs

// How a subtest's process ends, besides TODO_STATUS and what a crash or a report makes of it.
enum { DIFFERED = 42, FINISHED = 43 };

// Ends the subtest with its line: what differed.
__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *what, ...) {
    va_list args;
    printf("FAIL   %s: ", subtest);
    va_start(args, what);
    vprintf(what, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    _exit(DIFFERED);  // without exit's search for leaks
}

static const char *path_of(const char *name) {
    static char path[sizeof(directory) + 32];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static void write_shards(void) {
    uint16_t token = FIRST_TOKEN;
    for (int s = 0; s < NUM_SHARDS; s++) {
        int32_t header[HEADER_SIZE] = {SHARD_MAGIC, DATA_VERSION, shard_tokens[s]};
        const char *path = path_of(shard_names[s]);
        FILE *file = must_open(path, "wb");
        fwrite(header, sizeof(header), 1, file);
        for (int i = 0; i < shard_tokens[s]; i++, token++) fwrite(&token, sizeof(token), 1, file);
        if (ferror(file) || fclose(file) != 0) die("is the disk full?", "%s: cannot write", path);
    }
}

// Windows that each of num_processes reads of a shard.
static int windows_of(int shard, int num_processes) {
    return (shard_tokens[shard] - 1) / (num_processes * WINDOW);
}

static void start(Process *p, int num_shards, int rank, int num_processes, int shuffle) {
    const char *pattern = path_of(num_shards == 1 ? shard_names[0] : "shard_*.bin");
    p->rank = rank;
    p->num_processes = num_processes;
    p->shuffle = shuffle;
    p->num_windows = 0;
    for (int s = 0, token = FIRST_TOKEN; s < num_shards; token += shard_tokens[s++]) {
        for (int w = rank; w / num_processes < windows_of(s, num_processes); w += num_processes)
            p->first_token[p->num_windows++] = token + w * WINDOW;
    }
    memset(&p->loader, 0xa5, sizeof(p->loader));  // dataloader_init has to set every field
    dataloader_init(&p->loader, pattern, B, T, rank, num_processes, shuffle);
}

// got, want (WINDOW)
static void compare(const char *where, const char *name, const int *got, const int *want) {
    for (int i = 0; i < WINDOW; i++) {
        if (got[i] != want[i])
            fail("%s, %s[%d]: got %d, expected %d", where, name, i, got[i], want[i]);
    }
}

// One epoch: each window of this process once, in the order of the files unless shuffled.
// came (num_windows) = the batch in which each came.
static void run_epoch(Process *p, int epoch, int *came) {
    for (int w = 0; w < p->num_windows; w++) came[w] = -1;
    for (int batch = 0; batch < p->num_windows; batch++) {
        char where[100];
        snprintf(where, sizeof(where), "process %d of %d, epoch %d, batch %d", p->rank,
                 p->num_processes, epoch, batch);
        dataloader_next_batch(&p->loader);
        int got = p->loader.inputs[0], w = batch;
        if (p->shuffle) {
            for (w = 0; w < p->num_windows && p->first_token[w] != got;) w++;
            if (w == p->num_windows)
                fail("%s, inputs[0]: got %d, where none of its windows starts", where, got);
            if (came[w] >= 0) fail("%s, inputs[0]: got %d, as in batch %d", where, got, came[w]);
        }
        came[w] = batch;
        int want[WINDOW + 1];
        for (int i = 0; i <= WINDOW; i++) want[i] = p->first_token[w] + i;
        compare(where, "inputs", p->loader.inputs, want);
        compare(where, "targets", p->loader.targets, want + 1);
    }
}

// Where each process reads its own windows once, all together read every window once.
static void run_processes(int num_shards, int num_processes, int shuffle) {
    Process p[MAX_PROCESSES];
    int came[MAX_WINDOWS];
    for (int r = 0; r < num_processes; r++) start(&p[r], num_shards, r, num_processes, shuffle);
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int r = 0; r < num_processes; r++) run_epoch(&p[r], epoch, came);
    }
    for (int r = 0; r < num_processes; r++) dataloader_free(&p[r].loader);
}

static void single_shard(void) {
    run_processes(1, 1, 0);
}

static void several_processes(void) {
    for (int n = 2; n <= MAX_PROCESSES; n++) run_processes(NUM_SHARDS, n, 0);
}

static void several_processes_shuffled(void) {
    for (int n = 2; n <= MAX_PROCESSES; n++) run_processes(NUM_SHARDS, n, 1);
}

// Each shard's windows in another order than in the file, and in yet another in the next epoch.
static void shuffled(void) {
    Process p;
    int came[2][MAX_WINDOWS];
    start(&p, NUM_SHARDS, 0, 1, 1);
    for (int epoch = 0; epoch < 2; epoch++) run_epoch(&p, epoch, came[epoch]);
    dataloader_free(&p.loader);
    // w runs through the windows of all shards, leaving out the first of each
    for (int shard = 0, w = 1; shard < NUM_SHARDS; shard++, w++) {
        int in_order = 1, again = 1;
        for (int i = 1; i < windows_of(shard, 1); i++, w++) {
            int step = came[0][w] - came[0][w - 1];
            in_order &= step == 1;
            again &= step == came[1][w] - came[1][w - 1];
        }
        if (in_order) fail("shard_%d.bin, epoch 0: got the order of the file", shard);
        if (again) fail("shard_%d.bin, epoch 1: got the order of epoch 0", shard);
    }
}

// After `done` batches of the first epoch, another loader takes over; both go on for two epochs.
static void resume_after(int done, int shuffle) {
    Process whole, resumed;
    start(&whole, NUM_SHARDS, 0, 1, shuffle);
    for (int batch = 0; batch < done; batch++) dataloader_next_batch(&whole.loader);
    start(&resumed, NUM_SHARDS, 0, 1, shuffle);
    dataloader_resume(&resumed.loader, whole.loader.current_shard_idx,
                      whole.loader.current_sample_idx);
    for (int batch = done; batch < done + 2 * whole.num_windows; batch++) {
        char where[100];
        snprintf(where, sizeof(where), "%sresumed after %d, batch %d", shuffle ? "shuffled, " : "",
                 done, batch);
        dataloader_next_batch(&whole.loader);
        dataloader_next_batch(&resumed.loader);
        compare(where, "inputs", resumed.loader.inputs, whole.loader.inputs);
        compare(where, "targets", resumed.loader.targets, whole.loader.targets);
    }
    dataloader_free(&whole.loader);
    dataloader_free(&resumed.loader);
}

// Shuffled: only inside the first shard, while a fresh loader still has the same permutations.
static void resume(void) {
    for (int done = 0; done <= windows_of(0, 1) + windows_of(1, 1); done++) resume_after(done, 0);
    for (int done = 0; done <= windows_of(0, 1); done++) resume_after(done, 1);
}

// Runs one subtest in a process of its own and prints its line, unless fail has; 1 if it says ok.
// What else comes from there (a TODO, a sanitizer's report) goes straight to the terminal.
static int run(const char *name, void (*function)(void)) {
    int status;
    subtest = name;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit seconds = {60, 120};  // an endless loop ends, too
        setrlimit(RLIMIT_CPU, &seconds);
        function();
        exit(FINISHED);  // where a leak checker has its say
    }
    if (child < 0 || waitpid(child, &status, 0) != child) die("try again", "no child process");
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == FINISHED)
        printf("ok     %s\n", name);
    else if (code == TODO_STATUS)
        printf("todo   %s\n", name);
    else if (code < 0)
        printf("FAIL   %s: %s\n", name, strsignal(WTERMSIG(status)));
    else if (code != DIFFERED)
        printf("FAIL   %s: ended with status %d, see above\n", name, code);
    return code == FINISHED;
}

int main(void) {
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof(directory), "%s/test_dataloader.XXXXXX", parent ? parent : "/tmp");
    if (mkdtemp(directory) == NULL) die("set TMPDIR", "%s: cannot make it", directory);
    write_shards();
    int ok = run("single shard", single_shard);
    ok &= run("several processes", several_processes);
    ok &= run("shuffled", shuffled);
    ok &= run("several processes shuffled", several_processes_shuffled);
    ok &= run("resume", resume);
    for (int s = 0; s < NUM_SHARDS; s++) remove(path_of(shard_names[s]));
    rmdir(directory);
    return ok ? 0 : 1;
}
