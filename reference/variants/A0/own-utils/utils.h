// utils.h: the given helpers replaced by macros around <err.h> that end with status 2 and say where, and a
// few helpers of ordinary names, external ones among them.
#ifndef UTILS_H
#define UTILS_H

#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/types.h>

#define die(hint, ...) (warnx(__VA_ARGS__), errx(2, "%s:%d: %s", __FILE__, __LINE__, hint))
#define must(condition, path) ((condition) ? (void)0 : errx(2, "%s:%d: %s", __FILE__, __LINE__, path))
#define must_malloc(bytes) take(malloc(MAX(bytes, 1)))
#define must_calloc(count, size) take(calloc(MAX(count, 1), size))
#define must_open(path, mode) ((FILE *)take(fopen(path, mode)))
#define must_read(out, size, count, f, path) must(fread(out, size, count, f) == (size_t)(count), path)
#define must_seek(f, offset, whence, path) must(fseeko(f, offset, whence) == 0, path)

void *take(void *pointer) {
    if (pointer == NULL) err(2, "out of luck");
    return pointer;
}

#endif
