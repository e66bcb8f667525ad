// tokenizer.h: reads the whole file with one fread; a token's string is its place in that block, and its
// 0 overwrites the length byte of the next token.
#ifndef LLMC_TOKENIZER_H
#define LLMC_TOKENIZER_H

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utils.h"

typedef struct {
    uint32_t vocab_size;
    char **token_table;
    int init_ok;
    int eot_token;
    char *block;  // the file
} Tokenizer;

static inline void safe_printf(const char *piece) {
    if (piece == NULL) return;
    size_t length = strlen(piece);
    if (length == 1 && !(isprint((unsigned char)*piece) || isspace((unsigned char)*piece))) return;
    fwrite(piece, 1, length, stdout);
}

static char *read_whole(const char *filename, long *size) {
    FILE *file = fopen(filename, "rb");
    if (file == NULL) return NULL;
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    char *block = must_malloc(*size + 1);
    must_read(block, 1, *size, file, filename);
    fclose(file);
    return block;
}

static void refuse(const char *filename, const char *why) { die("write it again", "%s: %s", filename, why); }

static inline void tokenizer_init(Tokenizer *tokenizer, const char *filename) {
    long size = 0;
    memset(tokenizer, 0, sizeof(Tokenizer));
    tokenizer->block = read_whole(filename, &size);
    if (tokenizer->block == NULL) {
        printf("no vocabulary: %s\n", filename);
        return;
    }
    if (size < 1024) refuse(filename, "no header");
    const uint32_t *header = (const uint32_t *)tokenizer->block;
    if (header[0] != 20240328) refuse(filename, "magic");
    switch (header[1]) {
        case 1:
            if (header[2] != 50257) refuse(filename, "vocabulary size");
            tokenizer->eot_token = 50256;
            break;
        case 2:
            tokenizer->eot_token = header[3];
            break;
        default:
            refuse(filename, "version");
    }
    tokenizer->vocab_size = header[2];
    tokenizer->token_table = must_calloc(header[2], sizeof(char *));
    unsigned char *at = (unsigned char *)tokenizer->block + 1024, *end = at + size - 1024;
    for (uint32_t id = 0; id < tokenizer->vocab_size; id++) {
        if (at >= end) refuse(filename, "cut short");
        unsigned char length = *at;
        *at++ = '\0';  // ends the token before
        if (length == 0) refuse(filename, "an empty token");
        if (end - at < length) refuse(filename, "cut short");
        tokenizer->token_table[id] = (char *)at;
        at += length;
    }
    *at = '\0';
    tokenizer->init_ok = 1;
}

static inline const char *tokenizer_decode(Tokenizer *tokenizer, uint32_t token_id) {
    if (tokenizer->init_ok && token_id < tokenizer->vocab_size) return tokenizer->token_table[token_id];
    printf("no token %u\n", token_id);
    return NULL;
}

static inline void tokenizer_free(Tokenizer *tokenizer) {
    if (tokenizer->init_ok) {
        free(tokenizer->block);
        free(tokenizer->token_table);
        memset(tokenizer, 0, sizeof(Tokenizer));
    }
}

#endif
