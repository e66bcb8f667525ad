// tokenizer.c: observes llmc/tokenizer.h on vocabularies written here, and on GPT-2's if present.
#include "llmc/tokenizer.h"

#include "given.h"
#include "observe.h"

#define GIVEN_SMALL 300  // tokens of the small vocabulary
#define GIVEN_SMALL_EOT 17
#define GIVEN_FILE_NAME "vocab.bin"

// Bytes of token `id`: the 256 single bytes, then longer ones with any byte, two of them long.
static int given_token(uint64_t seed, int id, unsigned char *bytes) {
    int length = id < 256 ? 1 : id == 256 ? 255 : id == 257 ? 128 : given_int(seed, id, 2, 9);
    for (int i = 0; i < length; i++) {
        bytes[i] = id < 256 ? (unsigned char)id
                            : (unsigned char)given_u64(seed, (uint64_t)(id * 1000 + i));
    }
    return length;
}

static FILE *given_header(uint32_t magic, uint32_t version, uint32_t tokens, uint32_t eot) {
    uint32_t header[256] = {magic, version, tokens, eot};
    FILE *file = given_file(GIVEN_FILE_NAME);
    given_write(file, header, sizeof(uint32_t), 256);
    return file;
}

// Writes tokens 0 .. count - 1; past the small vocabulary they repeat.
static void given_tokens(FILE *file, uint64_t seed, int count) {
    unsigned char bytes[256];
    for (int id = 0; id < count; id++) {
        unsigned char length = (unsigned char)given_token(seed, id % GIVEN_SMALL, bytes);
        given_write(file, &length, 1, 1);
        given_write(file, bytes, 1, length);
    }
}

static void given_small_vocabulary(uint64_t seed) {
    FILE *file = given_header(20240328, 2, GIVEN_SMALL, GIVEN_SMALL_EOT);
    given_tokens(file, seed, GIVEN_SMALL);
    fclose(file);
}

static void observe_fields(const Tokenizer *t) {
    observe_int("vocab_size", t->vocab_size);
    observe_int("eot_token", t->eot_token);
    observe_int("init_ok", t->init_ok);
}

// The bytes of tokens [from, to), each with the 0 behind it; how long they are is known here.
static void observe_strings(const char *name, Tokenizer *t, uint64_t seed, int from, int to) {
    static unsigned char all[16384];
    unsigned char given[256];
    size_t used = 0;
    for (int id = from; id < to; id++) {
        size_t length = (size_t)given_token(seed, id % GIVEN_SMALL, given) + 1;
        const char *token = tokenizer_decode(t, (uint32_t)id);
        if (token == NULL) break;
        memcpy(all + used, token, length);
        used += length;
    }
    observe_u8(name, all, used);
}

static void call_safe_printf(const void *piece) {
    safe_printf(piece);
}

static void call_safe_printf_bytes(const void *unused) {
    (void)unused;
    for (int value = 1; value < 256; value++) {
        const char piece[2] = {(char)value, '\0'};
        safe_printf(piece);
    }
}

static void case_safe_printf_single(uint64_t seed) {
    (void)seed;
    observe_stdout("all_bytes", call_safe_printf_bytes, NULL);
    observe_stdout("empty", call_safe_printf, "");
    observe_stdout("null", call_safe_printf, NULL);
}

static void case_safe_printf_long(uint64_t seed) {
    (void)seed;
    observe_stdout("words", call_safe_printf, " the");
    observe_stdout("utf8", call_safe_printf, "\xc3\xa9t\xc3\xa9");
    observe_stdout("controls", call_safe_printf, "\x01\x02\x07");
    observe_stdout("high", call_safe_printf, "\xff\xfe");
    observe_stdout("percent", call_safe_printf, "100%d%%s");
    observe_stdout("newlines", call_safe_printf, "\n\n");
}

static void case_version_2(uint64_t seed) {
    Tokenizer t;
    memset(&t, 0xA5, sizeof(t));
    given_small_vocabulary(seed);
    tokenizer_init(&t, GIVEN_FILE_NAME);
    observe_fields(&t);
    observe_strings("first", &t, seed, 0, 8);
}

static void case_version_1(uint64_t seed) {
    Tokenizer t;
    memset(&t, 0xA5, sizeof(t));
    FILE *file = given_header(20240328, 1, 50257, 12345);  // header[3] means nothing in version 1
    given_tokens(file, seed, 50257);
    fclose(file);
    tokenizer_init(&t, GIVEN_FILE_NAME);
    observe_fields(&t);
    observe_strings("last", &t, seed, 50249, 50257);
}

static void case_missing(uint64_t seed) {
    Tokenizer t;
    given_small_vocabulary(seed);
    tokenizer_init(&t, GIVEN_FILE_NAME);
    observe_strings("first", &t, seed, 0, 8);
    memset(&t, 0xA5, sizeof(t));
    tokenizer_init(&t, "there-is-no-such-file.bin");
    observe_int("init_ok", t.init_ok);
    observe_int("decodes_to_null", tokenizer_decode(&t, 0) == NULL);
    tokenizer_free(&t);
    observe_int("freed", 1);
}

static void case_decode(uint64_t seed) {
    Tokenizer t;
    given_small_vocabulary(seed);
    tokenizer_init(&t, GIVEN_FILE_NAME);
    observe_strings("single", &t, seed, 0, 256);
    observe_strings("longer", &t, seed, 256, GIVEN_SMALL);
}

static void case_range(uint64_t seed) {
    Tokenizer t;
    given_small_vocabulary(seed);
    tokenizer_init(&t, GIVEN_FILE_NAME);
    observe_int("last_is_null", tokenizer_decode(&t, GIVEN_SMALL - 1) == NULL);
    observe_int("size_is_null", tokenizer_decode(&t, GIVEN_SMALL) == NULL);
    observe_int("huge_is_null", tokenizer_decode(&t, 0xffffffffu) == NULL);
    tokenizer_free(&t);
    observe_int("ok_after_free", t.init_ok);
    observe_int("null_after_free", tokenizer_decode(&t, 0) == NULL);
    tokenizer_free(&t);
    observe_int("freed_twice", 1);
}

static void call_init(const char *path) {
    Tokenizer t;
    tokenizer_init(&t, path);
}

static void case_refuse(uint64_t seed) {
    unsigned char zero = 0;
    given_small_vocabulary(seed);
    observe_ending("good", call_init, GIVEN_FILE_NAME);

    FILE *file = given_header(20240329, 2, GIVEN_SMALL, GIVEN_SMALL_EOT);
    given_tokens(file, seed, GIVEN_SMALL);
    fclose(file);
    observe_ending("bad_magic", call_init, GIVEN_FILE_NAME);

    file = given_header(20240328, 3, GIVEN_SMALL, GIVEN_SMALL_EOT);
    given_tokens(file, seed, GIVEN_SMALL);
    fclose(file);
    observe_ending("bad_version", call_init, GIVEN_FILE_NAME);

    file = given_header(20240328, 0, GIVEN_SMALL, GIVEN_SMALL_EOT);
    given_tokens(file, seed, GIVEN_SMALL);
    fclose(file);
    observe_ending("version_0", call_init, GIVEN_FILE_NAME);

    file = given_header(20240328, 1, GIVEN_SMALL, 0);
    given_tokens(file, seed, GIVEN_SMALL);
    fclose(file);
    observe_ending("version_1_other_size", call_init, GIVEN_FILE_NAME);

    file = given_header(20240328, 2, GIVEN_SMALL, GIVEN_SMALL_EOT);
    given_tokens(file, seed, GIVEN_SMALL - 1);
    given_write(file, &zero, 1, 1);
    fclose(file);
    observe_ending("length_0", call_init, GIVEN_FILE_NAME);

    file = given_header(20240328, 2, GIVEN_SMALL, GIVEN_SMALL_EOT);
    given_tokens(file, seed, GIVEN_SMALL - 7);
    fclose(file);
    observe_ending("cut_short", call_init, GIVEN_FILE_NAME);

    file = given_header(20240328, 2, GIVEN_SMALL, GIVEN_SMALL_EOT);
    given_tokens(file, seed, GIVEN_SMALL - 1);
    given_write(file, "\x09only", 1, 5);
    fclose(file);
    observe_ending("cut_in_token", call_init, GIVEN_FILE_NAME);

    const uint32_t start[4] = {20240328, 2, 0, GIVEN_SMALL_EOT};
    file = given_file(GIVEN_FILE_NAME);
    given_write(file, start, sizeof(uint32_t), 4);
    fclose(file);
    observe_ending("header_cut_short", call_init, GIVEN_FILE_NAME);
}

static void case_gpt2(uint64_t seed) {
    (void)seed;
    static const uint32_t ids[] = {15496, 995, 0, 198, 220, 262, 3336, 50255};
    static char text[4096], path[4096];
    Tokenizer t;
    snprintf(path, sizeof(path), "%s/gpt2_tokenizer.bin", observe_data ? observe_data : ".");
    tokenizer_init(&t, path);
    observe_fields(&t);
    for (int i = 0; i < 8; i++) {
        const char *token = tokenizer_decode(&t, ids[i]);
        if (token != NULL) strncat(text, token, 255);
        strcat(text, "|");
    }
    observe_u8("text", text, strlen(text));
    tokenizer_free(&t);
}

static void call_life(uint64_t seed) {
    Tokenizer t;
    given_small_vocabulary(seed);
    tokenizer_init(&t, GIVEN_FILE_NAME);
    observe_strings("longer", &t, seed, 256, GIVEN_SMALL);
    tokenizer_free(&t);
    memset(&t, 0, sizeof(t));
}

static void case_life(uint64_t seed) {
    int before = observe_open_files();
    call_life(seed);
    observe_int("files_left_open", observe_open_files() - before);
    observe_leaks("leaks");
}

const ObserveCase observe_cases[] = {
    {"safe_printf_single", case_safe_printf_single},
    {"safe_printf_long", case_safe_printf_long},
    {"tokenizer_version_2", case_version_2},
    {"tokenizer_version_1", case_version_1},
    {"tokenizer_missing", case_missing},
    {"tokenizer_decode", case_decode},
    {"tokenizer_range", case_range},
    {"tokenizer_refuse", case_refuse},
    {"tokenizer_gpt2", case_gpt2},
    {"life", case_life},
    {NULL, NULL},
};
