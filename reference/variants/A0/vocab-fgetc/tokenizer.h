// tokenizer.h: reads byte by byte with fgetc, asserts what must hold, grows each string with realloc, and
// takes 50257 as the size of version 1 without asking the header.
#ifndef _TOKENIZER_H
#define _TOKENIZER_H
#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "todo.h"

enum { MAGIC = 20240328, HEADER_WORDS = 256 };

typedef struct {
  uint32_t vocab_size;
  char **token_table;
  int init_ok;
  int eot_token;
} Tokenizer;

static inline void safe_printf(const char *piece)
{
  if (piece == NULL) return;
  if (piece[0] != '\0' && piece[1] == '\0') {
    int c = piece[0] & 0xff;
    if (isprint(c) || isspace(c)) putchar(c);
    return;
  }
  for (const char *p = piece; *p; ++p) putchar(*p);
}

static int take(FILE *f)
{
  int c = fgetc(f);
  assert(c != EOF);
  return c;
}

static uint32_t take_word(FILE *f)
{
  uint32_t word = 0;
  for (int shift = 0; shift < 32; shift += 8) word |= (uint32_t)take(f) << shift;
  return word;
}

static char *take_token(FILE *f)
{
  int length = take(f);
  assert(length > 0);
  char *s = NULL;
  for (int i = 0; i < length; ++i) {
    s = realloc(s, i + 2);
    assert(s);
    s[i] = take(f);
    s[i + 1] = 0;
  }
  return s;
}

static inline void tokenizer_init(Tokenizer *tokenizer, const char *filename)
{
  FILE *f = fopen(filename, "rb");
  tokenizer->init_ok = f != NULL;
  if (!tokenizer->init_ok) {
    fprintf(stderr, "WARNING: cannot open %s\n", filename);
    return;
  }
  assert(take_word(f) == MAGIC);
  uint32_t version = take_word(f);
  assert(version == 1 || version == 2);
  tokenizer->vocab_size = take_word(f);
  tokenizer->eot_token = take_word(f);
  if (version == 1) {
    tokenizer->vocab_size = 50257;
    tokenizer->eot_token = 50256;
  }
  for (int i = 4; i < HEADER_WORDS; ++i) take_word(f);
  tokenizer->token_table = calloc(tokenizer->vocab_size, sizeof *tokenizer->token_table);
  assert(tokenizer->token_table);
  for (uint32_t i = 0; i < tokenizer->vocab_size; ++i) tokenizer->token_table[i] = take_token(f);
  fclose(f);
}

static inline const char *tokenizer_decode(Tokenizer *tokenizer, uint32_t token_id)
{
  return !tokenizer->init_ok || tokenizer->vocab_size <= token_id ? NULL : tokenizer->token_table[token_id];
}

static inline void tokenizer_free(Tokenizer *tokenizer)
{
  while (tokenizer->init_ok && tokenizer->vocab_size > 0) free(tokenizer->token_table[--tokenizer->vocab_size]);
  if (tokenizer->init_ok) free(tokenizer->token_table);
  tokenizer->init_ok = 0;
}
#endif
