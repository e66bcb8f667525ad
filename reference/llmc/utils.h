// utils.h: the few helpers that every file of llmc/ shares; each either succeeds or ends the
// program with one clear line.
#ifndef LLMC_UTILS_H
#define LLMC_UTILS_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

// Prints one line, `error: WHAT (HINT)`, on stderr and exits with status 1. `what` is a printf
// format.
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
static inline void die(const char *hint, const char *what, ...) {
    va_list args;
    va_start(args, what);
    fflush(stdout);
    fputs("error: ", stderr);
    vfprintf(stderr, what, args);
    fprintf(stderr, " (%s)\n", hint);
    va_end(args);
    exit(1);
}

// malloc that never returns NULL; the caller frees.
static inline void *must_malloc(size_t bytes) {
    void *p = malloc(bytes);
    if (p == NULL && bytes > 0) die("ask for less", "out of memory for %zu bytes", bytes);
    return p;
}

// calloc that never returns NULL; the caller frees.
static inline void *must_calloc(size_t count, size_t size) {
    void *p = calloc(count, size);
    if (p == NULL && count > 0 && size > 0) {
        die("ask for less", "out of memory for %zu times %zu bytes", count, size);
    }
    return p;
}

// fopen that never returns NULL; the caller closes.
static inline FILE *must_open(const char *path, const char *mode) {
    FILE *f = fopen(path, mode);
    if (f == NULL) die("is the path right, and may you read it?", "%s: cannot open", path);
    return f;
}

// fread of exactly `count` elements; `path` is for the message.
static inline void must_read(void *out, size_t size, size_t count, FILE *f, const char *path) {
    if (fread(out, size, count, f) != count)
        die("was it written to the end?", "%s: cut short", path);
}

// fseek with a 64-bit offset from `whence` (SEEK_SET, SEEK_CUR, SEEK_END); `path` is for the
// message.
static inline void must_seek(FILE *f, int64_t offset, int whence, const char *path) {
    if (fseeko(f, (off_t)offset, whence) != 0) {
        die("is it an ordinary file?", "%s: cannot seek to %lld", path, (long long)offset);
    }
}

#endif
