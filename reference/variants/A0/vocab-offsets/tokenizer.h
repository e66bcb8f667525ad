// tokenizer.h: strings grow in one block, held by their offsets until the block stops moving; errors go
// through goto to one place, and text goes out through write(2).
#pragma once

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint32_t u32;

typedef struct {
	u32 vocab_size;
	char **token_table; // token_table[0] is the block
	int init_ok;
	int eot_token;
} Tokenizer;

int printable(unsigned char c)
{
	return isprint(c) | isspace(c);
}

static inline void safe_printf(const char *piece)
{
	if (piece == NULL || (piece[0] && !piece[1] && !printable(piece[0])))
		return;
	fflush(stdout);
	for (size_t left = strlen(piece); left > 0;) {
		ssize_t count = write(STDOUT_FILENO, piece, left);
		if (count < 0 && errno != EINTR)
			return;
		if (count > 0)
			piece += count, left -= count;
	}
}

static inline void tokenizer_init(Tokenizer *tokenizer, const char *filename)
{
	static u32 header[256];
	const char *why = "cut short";
	char *block = NULL;
	size_t used = 0, room = 0, *offsets = NULL;
	FILE *f = fopen(filename, "rb");
	*tokenizer = (Tokenizer){0};
	if (f == NULL) {
		fprintf(stderr, "%s: %s\n", filename, strerror(errno));
		return;
	}
	if (fread(header, sizeof(header), 1, f) != 1)
		goto bad;
	why = "not a vocabulary";
	if (header[0] != 0x134d7c8 || header[1] - 1 > 1)
		goto bad;
	u32 version = header[1], count = header[2];
	if (version == 1 && count != 50257)
		goto bad;
	offsets = malloc(count * sizeof(size_t));
	for (u32 id = 0; id < count; id++) {
		why = "cut short";
		int length = getc(f);
		if (length == EOF)
			goto bad;
		why = "empty token";
		if (length == 0)
			goto bad;
		if (used + length + 1 > room)
			block = realloc(block, room = 2 * room + 256);
		if (block == NULL || offsets == NULL)
			goto bad;
		why = "cut short";
		if (fread(block + used, length, 1, f) != 1)
			goto bad;
		block[used + length] = '\0';
		offsets[id] = used;
		used += length + 1;
	}
	fclose(f);
	tokenizer->token_table = malloc(count * sizeof(char *));
	for (u32 id = 0; id < count; id++)
		tokenizer->token_table[id] = block + offsets[id];
	free(offsets);
	tokenizer->vocab_size = count;
	tokenizer->eot_token = version == 2 ? (int)header[3] : 50256;
	tokenizer->init_ok = 1;
	return;
bad:
	fprintf(stderr, "%s: %s\n", filename, why);
	fclose(f);
	free(block);
	free(offsets);
	exit(2);
}

static inline const char *tokenizer_decode(Tokenizer *tokenizer, u32 token_id)
{
	if (!tokenizer->init_ok || token_id >= tokenizer->vocab_size)
		return NULL;
	return tokenizer->token_table[token_id];
}

static inline void tokenizer_free(Tokenizer *tokenizer)
{
	if (!tokenizer->init_ok)
		return;
	if (tokenizer->vocab_size > 0)
		free(tokenizer->token_table[0]);
	free(tokenizer->token_table);
	*tokenizer = (Tokenizer){0};
}
