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
    // BEGIN SOLUTION
    if (piece == NULL || piece[0] == '\0') return;
    if (piece[1] == '\0') {
        unsigned char byte = (unsigned char)piece[0];
        if (!isprint(byte) && !isspace(byte)) return;
    }
    printf("%s", piece);
    // END SOLUTION
}

// Reads the vocabulary. A file that cannot be opened is no error: init_ok = 0, and training goes on
// without one. A file that is no vocabulary (magic, version, a length of 0, cut short) ends the
// program with one line that says so.
static inline void tokenizer_init(Tokenizer *tokenizer, const char *filename) {
    // TODO (A0): tokenizer_init
    // HINT: the length byte is unsigned; allocate one byte more for the 0; set every field.
    // BEGIN SOLUTION
    const char *hint = "run `make data` again";
    uint32_t header[256];
    tokenizer->vocab_size = 0;
    tokenizer->token_table = NULL;
    tokenizer->init_ok = 0;
    tokenizer->eot_token = 0;
    FILE *file = fopen(filename, "rb");
    if (file == NULL) {
        fprintf(stderr,
                "%s: no vocabulary, so no text will be shown (run `make data` to write one)\n",
                filename);
        return;
    }
    must_read(header, sizeof(uint32_t), 256, file, filename);
    if (header[0] != TOKENIZER_MAGIC)
        die(hint, "%s: bad magic %u, want %u", filename, header[0], TOKENIZER_MAGIC);
    if (header[1] != 1 && header[1] != 2)
        die(hint, "%s: bad version %u, want 1 or 2", filename, header[1]);
    if (header[1] == 1 && header[2] != GPT2_VOCAB_SIZE) {
        die(hint, "%s: version 1 with %u tokens, want %u", filename, header[2], GPT2_VOCAB_SIZE);
    }
    tokenizer->vocab_size = header[2];
    tokenizer->eot_token = header[1] == 1 ? GPT2_EOT_TOKEN : (int)header[3];
    tokenizer->token_table = must_calloc(header[2], sizeof(char *));
    for (uint32_t i = 0; i < header[2]; i++) {
        unsigned char length;
        must_read(&length, 1, 1, file, filename);
        if (length == 0) die(hint, "%s: token %u has length 0", filename, i);
        tokenizer->token_table[i] = must_malloc((size_t)length + 1);
        must_read(tokenizer->token_table[i], 1, length, file, filename);
        tokenizer->token_table[i][length] = '\0';
    }
    fclose(file);
    tokenizer->init_ok = 1;
    // END SOLUTION
}

// The string of a token, owned by the tokenizer; NULL without a vocabulary or outside it.
static inline const char *tokenizer_decode(Tokenizer *tokenizer, uint32_t token_id) {
    // TODO (A0): tokenizer_decode
    // HINT: the first id outside is vocab_size.
    // BEGIN SOLUTION
    if (!tokenizer->init_ok || token_id >= tokenizer->vocab_size) return NULL;
    return tokenizer->token_table[token_id];
    // END SOLUTION
}

// Frees what tokenizer_init allocated, nothing if init_ok is 0, and leaves init_ok = 0.
static inline void tokenizer_free(Tokenizer *tokenizer) {
    // TODO (A0): tokenizer_free
    // HINT: the strings before the table.
    // BEGIN SOLUTION
    if (!tokenizer->init_ok) return;
    for (uint32_t i = 0; i < tokenizer->vocab_size; i++) free(tokenizer->token_table[i]);
    free(tokenizer->token_table);
    tokenizer->token_table = NULL;
    tokenizer->init_ok = 0;
    // END SOLUTION
}

#endif
