// observe.c: the observation runtime: main(), the records, and what a probe may want to watch.
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#endif
#if defined(HAS_ASAN) && defined(__linux__)
#include <sanitizer/lsan_interface.h>
#endif

const char *observe_data;
static int descriptor = -1;  // -1: print for people

static void put(const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t wrote = write(descriptor, bytes, count);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return;
        bytes += wrote;
        count -= (size_t)wrote;
    }
}

// One record, in one piece as far as the buffer reaches.
static void record(const char *name, const char *type, size_t size, const void *values,
                   size_t count) {
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = values;
    char line[4096];
    int used = snprintf(line, sizeof(line), "%s %s %zu ", name, type, count);
    size_t at = (size_t)used;
    for (size_t i = 0; i < size * count; i++) {
        line[at++] = digits[bytes[i] >> 4];
        line[at++] = digits[bytes[i] & 15];
        if (at + 3 > sizeof(line)) {
            put(line, at);
            at = 0;
        }
    }
    line[at++] = '\n';
    put(line, at);
}

static void print_value(const char *type, const void *values, size_t i) {
    if (strcmp(type, "i64") == 0) printf(" %" PRId64, ((const int64_t *)values)[i]);
    if (strcmp(type, "i32") == 0) printf(" %" PRId32, ((const int32_t *)values)[i]);
    if (strcmp(type, "u32") == 0) printf(" %" PRIu32, ((const uint32_t *)values)[i]);
    if (strcmp(type, "u8") == 0) printf(" %u", ((const uint8_t *)values)[i]);
    if (strcmp(type, "f32") == 0) printf(" %.9g", (double)((const float *)values)[i]);
    if (strcmp(type, "f64") == 0) printf(" %.17g", ((const double *)values)[i]);
}

static void report(const char *name, const char *type, size_t size, const void *values,
                   size_t count) {
    if (descriptor >= 0) {
        record(name, type, size, values, count);
        return;
    }
    const size_t shown = count < 24 ? count : 24;
    printf("%s %s[%zu]", name, type, count);
    for (size_t i = 0; i < shown; i++) print_value(type, values, i);
    printf(shown < count ? " ...\n" : "\n");
    fflush(stdout);
}

void observe_int(const char *name, int64_t value) {
    report(name, "i64", sizeof(value), &value, 1);
}
void observe_i32(const char *name, const int32_t *values, size_t count) {
    report(name, "i32", sizeof(*values), values, count);
}
void observe_u32(const char *name, const uint32_t *values, size_t count) {
    report(name, "u32", sizeof(*values), values, count);
}
void observe_u8(const char *name, const void *values, size_t count) {
    report(name, "u8", 1, values, count);
}
void observe_f32(const char *name, const float *values, size_t count) {
    report(name, "f32", sizeof(*values), values, count);
}
void observe_f64(const char *name, const double *values, size_t count) {
    report(name, "f64", sizeof(*values), values, count);
}

void observe_sample(const char *sample, const char *text) {
    char name[64];
    snprintf(name, sizeof(name), "%s_text", sample);
    observe_u8(name, text, strlen(text));
}

void observe_tensor(const char *sample, const char *name, const float *values, size_t count) {
    char whole[64];
    snprintf(whole, sizeof(whole), "%s_%s_f32", sample, name);
    observe_f32(whole, values, count);
}

int observe_open_files(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) != -1;
    return count;
}

// Overwrites the stack below, where a stale copy of a lost pointer would hide the loss.
static void __attribute__((noinline)) wipe_stack(void) {
    volatile char bytes[65536];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = 0;
}

void observe_leaks(const char *name) {
    wipe_stack();
    const char *told = getenv("OBSERVE_LEAKS");
    int leaks = -1;
#if defined(HAS_ASAN) && defined(__linux__)
    if (told != NULL && strcmp(told, "1") == 0) leaks = __lsan_do_recoverable_leak_check() ? 1 : 0;
#endif
    observe_int(name, told != NULL ? leaks : -1);
}

void observe_ending(const char *name, void (*action)(const char *argument), const char *argument) {
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) {
        const struct rlimit seconds = {5, 6};
        descriptor = -1;
        setrlimit(RLIMIT_CPU, &seconds);
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        action(argument);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status)) observe_int(name, WEXITSTATUS(status));
    if (WIFSIGNALED(status)) {
        observe_int(name, WTERMSIG(status) == SIGXCPU ? -1 : 128 + WTERMSIG(status));
    }
}

void observe_stdout(const char *name, void (*action)(const void *argument), const void *argument) {
    char path[] = "stdout-XXXXXX";
    static char bytes[65536];
    fflush(stdout);
    int kept = dup(STDOUT_FILENO), file = mkstemp(path);
    dup2(file, STDOUT_FILENO);
    action(argument);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    ssize_t count = pread(file, bytes, sizeof(bytes), 0);
    close(kept);
    close(file);
    unlink(path);
    observe_u8(name, bytes, count > 0 ? (size_t)count : 0);
}

static int usage(const char *program) {
    fprintf(stderr, "usage: %s CASE SEED [DATA]\ncases:", program);
    for (const ObserveCase *c = observe_cases; c->name; c++) fprintf(stderr, " %s", c->name);
    fprintf(stderr, "\n");
    return 2;
}

int main(int argc, char **argv) {
    if (argc < 3) return usage(argv[0]);
    const char *fd = getenv("OBS_FD");
    if (fd) descriptor = atoi(fd);
    observe_data = argc > 3 ? argv[3] : NULL;
    for (const ObserveCase *c = observe_cases; c->name; c++) {
        if (strcmp(c->name, argv[1]) != 0) continue;
        observe_int("begin", 1);
        c->run(strtoull(argv[2], NULL, 10));
        fflush(stdout);
        observe_int("end", 1);
        return 0;
    }
    return usage(argv[0]);
}
