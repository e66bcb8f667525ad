// options.h: the command line of a program: a table of options, each with a place for its value.
#ifndef LLMC_OPTIONS_H
#define LLMC_OPTIONS_H

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utils.h"

// `value` is where the value goes: of kind 'i' an int, 'f' a float, 's' a const char *. What stands
// there before is the default.
typedef struct {
    const char *name;  // as it is typed: --lr
    char kind;
    void *value;
    const char *help;
} Option;

// Prints the table, which ends with a name of NULL, with the defaults.
static inline void print_options(const char *about, const Option *options) {
    printf("%s\n\n", about);
    for (const Option *o = options; o->name != NULL; o++) {
        printf("  %-18s %s", o->name, o->help);
        if (o->kind == 'i') printf(" (%d)", *(const int *)o->value);
        if (o->kind == 'f') printf(" (%g)", (double)*(const float *)o->value);
        const char *text = o->kind == 's' ? *(const char *const *)o->value : NULL;
        printf(text == NULL ? "\n" : " (%s)\n", text);
    }
}

// Sets an option of kind 'i' or 'f'; returns whether the whole text is such a number.
static inline int option_number(const Option *o, const char *text) {
    char *end = NULL;
    errno = 0;
    if (o->kind == 'f') {
        *(float *)o->value = strtof(text, &end);
    } else {
        const long number = strtol(text, &end, 10);
        if (number < INT_MIN || number > INT_MAX) return 0;
        *(int *)o->value = (int)number;
    }
    return end != text && *end == '\0' && errno == 0;
}

// Sets what the words of the command line name. --help prints the table and ends the program; an
// unknown option, or a value that is none, ends it with one line and status 2.
static inline void take_options(int argc, char **argv, const char *about, const Option *options) {
    for (int i = 1; i < argc; i += 2) {
        const Option *o = options;
        while (o->name != NULL && strcmp(o->name, argv[i]) != 0) o++;
        if (strcmp(argv[i], "--help") == 0) {
            print_options(about, options);
            exit(0);
        }
        const char *text = i + 1 < argc ? argv[i + 1] : "";
        const int has_value = i + 1 < argc;
        if (o->name == NULL || !(o->kind == 's' ? has_value : option_number(o, text))) {
            fprintf(stderr, "error: %s %s: no such option or value (--help lists them)\n", argv[i],
                    text);
            exit(2);
        }
        if (o->kind == 's') *(const char **)o->value = text;
    }
}

#endif
