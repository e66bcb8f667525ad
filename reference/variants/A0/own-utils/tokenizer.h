// tokenizer.h: fixed slots of 256 bytes in one array instead of a string each, and no message anywhere.
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include "llmc/utils.h"

#include <ctype.h>
#include <stdbool.h>

typedef char Slot[256];

typedef struct {
    uint32_t vocab_size;
    char **token_table;
    int init_ok, eot_token;
    Slot *slots;
} Tokenizer;

static inline void safe_printf(const char *piece) {
    bool silent = !piece || (strnlen(piece, 2) == 1 && !isprint((unsigned char)*piece) &&
                             !isspace((unsigned char)*piece));
    if (!silent) printf("%.*s", (int)strlen(piece), piece);
}

void init(Tokenizer *tokenizer, uint32_t vocab_size, int eot_token) {
    tokenizer->vocab_size = vocab_size;
    tokenizer->eot_token = eot_token;
    tokenizer->slots = must_calloc(vocab_size, sizeof(Slot));
    tokenizer->token_table = must_calloc(vocab_size, sizeof(char *));
    for (uint32_t i = 0; i < vocab_size; i++) tokenizer->token_table[i] = tokenizer->slots[i];
}

static inline void tokenizer_init(Tokenizer *tokenizer, const char *filename) {
    uint32_t header[256];
    FILE *file = fopen(filename, "r");
    tokenizer->init_ok = false;
    if (!file) return;
    must_read(header, 4, 256, file, filename);
    must(header[0] == 20240328, filename);
    must((header[1] == 1 && header[2] == 50257) || header[1] == 2, filename);
    init(tokenizer, header[2], header[1] == 1 ? 50256 : (int)header[3]);
    for (uint32_t i = 0; i < header[2]; i++) {
        int length = fgetc(file);
        must(length > 0, filename);  // EOF is below 0
        must_read(tokenizer->slots[i], 1, length, file, filename);
    }
    fclose(file);
    tokenizer->init_ok = true;
}

static inline const char *tokenizer_decode(Tokenizer *tokenizer, uint32_t token_id) {
    if (!tokenizer->init_ok) return NULL;
    if (token_id >= tokenizer->vocab_size) return NULL;
    return tokenizer->slots[token_id];
}

static inline void tokenizer_free(Tokenizer *tokenizer) {
    if (!tokenizer->init_ok) return;
    free(tokenizer->slots);
    free(tokenizer->token_table);
    tokenizer->init_ok = false;
}

#endif
