// tokenizer.h: maps the file, checks all of it against the file's size, then makes one block of memory
// that holds the pointers and, behind them, the strings.
#ifndef TOKENIZER_H
#define TOKENIZER_H

#define _XOPEN_SOURCE 700

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef unsigned char byte;

typedef struct {
    uint32_t vocab_size;
    char **token_table;
    int init_ok;
    int eot_token;
} Tokenizer;

static inline void safe_printf(const char *piece) {
    if (!piece || !*piece) return;
    bool single = strlen(piece) < 2;
    if (single && strchr(" \t\n\v\f\r", *piece) == NULL && (*piece < '!' || *piece > '~')) return;
    fputs(piece, stdout);
}

static inline void check(bool good, const char *filename, const char *what) {
    if (good) return;
    fprintf(stderr, "%s: %s\n", filename, what);
    exit(EXIT_FAILURE);
}

// Bytes that the strings need with a 0 behind each; every token lies before `end`.
static size_t count_bytes(const byte *at, const byte *end, uint32_t tokens, const char *filename) {
    size_t bytes = 0;
    while (tokens-- > 0) {
        check(at < end && *at > 0 && *at < end - at, filename, "bad or missing token");
        bytes += *at + 1u;
        at += *at + 1;
    }
    check(at == end, filename, "bytes behind the last token");
    return bytes;
}

static inline void tokenizer_init(Tokenizer *tokenizer, const char *filename) {
    struct stat status;
    tokenizer->init_ok = 0;
    int fd = open(filename, O_RDONLY);
    if (fd < 0 || fstat(fd, &status) != 0) {
        perror(filename);
        return;
    }
    const size_t size = status.st_size;
    check(size >= 1024, filename, "no header");
    const byte *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0), *at = file + 1024;
    check(file != MAP_FAILED, filename, "cannot map");
    close(fd);
    uint32_t header[4];
    memcpy(header, file, sizeof(header));
    check(header[0] == 20240328, filename, "bad magic");
    check(header[1] == 1 || header[1] == 2, filename, "bad version");
    check(header[1] == 2 || header[2] == 50257, filename, "bad vocabulary size");
    size_t bytes = count_bytes(at, file + size, header[2], filename);
    char **table = malloc(header[2] * sizeof(char *) + bytes);
    check(table != NULL, filename, "no memory");
    char *string = (char *)(table + header[2]);
    for (uint32_t id = 0; id < header[2]; id++) {
        table[id] = string;
        string = memcpy(string, at + 1, *at);
        string += *at;
        *string++ = '\0';
        at += *at + 1;
    }
    munmap((void *)file, size);
    *tokenizer = (Tokenizer){header[2], table, 1, header[1] == 1 ? 50256 : (int)header[3]};
}

static inline const char *tokenizer_decode(Tokenizer *tokenizer, uint32_t token_id) {
    if (tokenizer->init_ok == 0) return NULL;
    return token_id < tokenizer->vocab_size ? tokenizer->token_table[token_id] : NULL;
}

static inline void tokenizer_free(Tokenizer *tokenizer) {
    if (!tokenizer->init_ok) return;
    free(tokenizer->token_table);
    tokenizer->init_ok = 0;
}

#endif
