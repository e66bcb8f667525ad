// tokenizer.h: Latin-1 in a comment (naïve, 20 °C), form feeds between functions, blanks at line ends, no newline at the end.
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
    char **token_table;  	
    int init_ok;  	
    int eot_token;  	
} Tokenizer;  	

static inline void safe_printf(const char *piece) {
    if (piece == NULL || piece[0] == '\0') return;  	
    if (piece[1] == '\0') {
        unsigned char byte = (unsigned char)piece[0];  	
        if (!isprint(byte) && !isspace(byte)) return;  	
    }
    printf("%s", piece);  	
}

static inline void tokenizer_init(Tokenizer *tokenizer, const char *filename) {
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
}

static inline const char *tokenizer_decode(Tokenizer *tokenizer, uint32_t token_id) {
    if (!tokenizer->init_ok || token_id >= tokenizer->vocab_size) return NULL;  	
    return tokenizer->token_table[token_id];  	
}

static inline void tokenizer_free(Tokenizer *tokenizer) {
    if (!tokenizer->init_ok) return;  	
    for (uint32_t i = 0; i < tokenizer->vocab_size; i++) free(tokenizer->token_table[i]);  	
    free(tokenizer->token_table);  	
    tokenizer->token_table = NULL;  	
    tokenizer->init_ok = 0;  	
}
#endif