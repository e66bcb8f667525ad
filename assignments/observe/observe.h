// observe.h: what a probe reports with: a typed record for each named value, on its own descriptor.
//
// A probe is a program beside the student's code: it calls that code on given inputs and reports
// what came back. It judges nothing and knows no expected value. It defines `observe_cases`; main()
// is in observe.c and takes a case, a seed and the folder of real data:
//
//     ./rand randint32_golden 137    prints the records for people
//     OBS_FD=3 ./rand ...            writes them for the grader, a line each: NAME TYPE COUNT HEX
//
// Names in a probe start with case_, given_, call_ or observe_, out of the way of a student's own.
#ifndef OBSERVE_H
#define OBSERVE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name;
    void (*run)(uint64_t seed);
} ObserveCase;

extern const ObserveCase observe_cases[];  // of the probe; ends with {NULL, NULL}
extern const char *observe_data;           // folder of real data, or NULL

void observe_int(const char *name, int64_t value);
void observe_i32(const char *name, const int32_t *values, size_t count);
void observe_u32(const char *name, const uint32_t *values, size_t count);
void observe_u8(const char *name, const void *values, size_t count);
void observe_f32(const char *name, const float *values, size_t count);
void observe_f64(const char *name, const double *values, size_t count);

// Reports `text`, what a sample is, as SAMPLE_text.
void observe_sample(const char *sample, const char *text);

// Reports a tensor of a sample, as SAMPLE_NAME_f32.
void observe_tensor(const char *sample, const char *name, const float *values, size_t count);

// How many files are open now.
int observe_open_files(void);

// Reports `name` = 1 if memory is lost, 0 if not, -1 where this build cannot tell (the grader finds
// out and says so in OBSERVE_LEAKS).
void observe_leaks(const char *name);

// Runs action(argument) in a forked child and reports how it ended: its exit status, 128 + the
// signal that ended it, or -1 if it used 5 seconds of CPU. For calls that may end the program.
void observe_ending(const char *name, void (*action)(const char *argument), const char *argument);

// Runs action(argument) with stdout going to a file and reports the bytes that came out.
void observe_stdout(const char *name, void (*action)(const void *argument), const void *argument);

#endif
