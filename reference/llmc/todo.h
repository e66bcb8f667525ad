// todo.h: what a function does that you have not written yet: it says so and ends the program with
// status 77.
#ifndef LLMC_TODO_H
#define LLMC_TODO_H

#include <stdio.h>
#include <stdlib.h>

#define TODO_STATUS 77

#if defined(__GNUC__)
__attribute__((noreturn))
#endif
static inline void todo_exit(const char *what) {
    fflush(stdout);
    fprintf(stderr, "TODO: %s is not written yet\n", what);
    exit(TODO_STATUS);
}

// TODO("A0: randint32") stands where a solution will; replace it.
#define TODO(what) todo_exit(what)

#endif
