// native.c: what Python calls of the C half (llmc/native.py), as a shared library: `make native`.
#include "llmc/layers.h"

void llmc_matmul_forward(float *out, const float *inp, const float *weight, const float *bias,
                         int B, int T, int C, int OC);
long long llmc_rows(void);

static long long rows = 0;

void llmc_matmul_forward(float *out, const float *inp, const float *weight, const float *bias,
                         int B, int T, int C, int OC) {
    rows += (long long)B * T;
    matmul_forward(out, inp, weight, bias, B, T, C, OC);
}

// How many rows of inp it has multiplied so far, for the row that wants it to.
long long llmc_rows(void) {
    return rows;
}
