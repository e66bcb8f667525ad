// tokenizer.h: from token ids back to text: reads the vocabulary file and hands out its byte
// strings.
//
// The file: 256 uint32, then for each token one byte of length (1 to 255) and that many bytes.
//     header[0] = 20240328   magic
//     header[1] = 1 or 2     version
//     header[2]              number of tokens; version 1 is always GPT-2's, 50257
//     header[3]              version 2: the end-of-text token; version 1: not stored, it is 50256
#ifndef LLMC_TOKENIZER_H
#define LLMC_TOKENIZER_H

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "todo.h"
#include "utils.h"

#define TOKENIZER_MAGIC 20240328u
#define GPT2_VOCAB_SIZE 50257u
#define GPT2_EOT_TOKEN 50256

typedef struct {
    uint32_t vocab_size;
    char **token_table;  // (vocab_size) strings, each with a 0 behind its bytes
    int init_ok;         // 1 after a successful tokenizer_init, else 0
    int eot_token;       // the <|endoftext|> id
} Tokenizer;

// Prints a token. Of single bytes only those that isprint or isspace accept are printed; longer
// tokens go out as they are. NULL and the empty string print nothing.
static inline void safe_printf(const char *piece) {
    // TODO (A0): safe_printf
    // HINT: ctype's functions want an unsigned char; a token may hold a % sign.
    TODO("A0: safe_printf");
}

// Reads the vocabulary. A file that cannot be opened is no error: init_ok = 0, and training goes on
// without one. A file that is no vocabulary (magic, version, a length of 0, cut short) ends the
// program with one line that says so.
static inline void tokenizer_init(Tokenizer *tokenizer, const char *filename) {
    // TODO (A0): tokenizer_init
    // HINT: the length byte is unsigned; allocate one byte more for the 0; set every field.
    TODO("A0: tokenizer_init");
}

// The string of a token, owned by the tokenizer; NULL without a vocabulary or outside it.
static inline const char *tokenizer_decode(Tokenizer *tokenizer, uint32_t token_id) {
    // TODO (A0): tokenizer_decode
    // HINT: the first id outside is vocab_size.
    TODO("A0: tokenizer_decode");
}

// Frees what tokenizer_init allocated, nothing if init_ok is 0, and leaves init_ok = 0.
static inline void tokenizer_free(Tokenizer *tokenizer) {
    // TODO (A0): tokenizer_free
    // HINT: the strings before the table.
    TODO("A0: tokenizer_free");
}

#endif
