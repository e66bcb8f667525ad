// test_gpt2.c: one training step of llmc/model.h against what PyTorch computed from the same
// weights and the same batch.
//
// The state file: 256 int32 (magic 20240327, version 2, B, T, zeros), x and y (B,T) int32, then in
// float32: logits (B,T,V), the loss, the gradients in the order of Parameters.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "llmc/model.h"

// Both sides sum a few thousand float32 terms for an element, in different orders: about 1e-5.
#define TOLERANCE 1e-3

// got, want (count): 1, and a line, unless norm(got - want) / norm(want) is small.
static int differs(const char *name, const float *got, const float *want, size_t count) {
    double error = 0.0, size = 0.0;
    for (size_t i = 0; i < count; i++) {
        error += pow((double)got[i] - want[i], 2);
        size += pow((double)want[i], 2);
    }
    int wrong = !(sqrt(error) <= TOLERANCE * sqrt(size));  // NaN is wrong
    if (wrong) printf("FAIL   %s: off by %g, of %g\n", name, sqrt(error), sqrt(size));
    return wrong;
}

int main(int argc, char **argv) {
    if (argc != 1 && argc != 3) {
        fprintf(stderr, "usage: %s [MODEL.bin MODEL_debug_state.bin]\n", argv[0]);
        return 2;
    }
    const char *path = argc == 3 ? argv[2] : "../../gpt2_124M_debug_state.bin";
    GPT2 model;
    gpt2_build_from_checkpoint(&model, argc == 3 ? argv[1] : "../../gpt2_124M.bin");
    int32_t header[256];
    FILE *file = must_open(path, "rb");
    must_read(header, sizeof(int32_t), 256, file, path);
    if (header[0] != 20240327 || header[1] != 2) die("write it again", "%s: no debug state", path);
    size_t B = (size_t)header[2], T = (size_t)header[3], V = (size_t)model.config.vocab_size;
    size_t num_logits = B * T * V, num_floats = num_logits + 1 + model.num_parameters;
    int *x = must_malloc(2 * B * T * sizeof(int)), *y = x + B * T;
    must_read(x, sizeof(int), 2 * B * T, file, path);
    float *logits = must_malloc(num_floats * sizeof(float)), *loss = logits + num_logits;
    must_read(logits, sizeof(float), num_floats, file, path);
    fclose(file);

    int wrong = 0;
    gpt2_forward(&model, x, y, B, T);
    for (size_t i = 0; i < B * T && !wrong; i++) {
        const float *got = model.activations.logits + i * (size_t)model.config.padded_vocab_size;
        wrong = differs("logits", got, logits + i * V, V);
    }
    printf("loss %f, expected %f\n", model.mean_loss, *loss);
    wrong |= differs("loss", &model.mean_loss, loss, 1);
    gpt2_zero_grad(&model);
    gpt2_backward(&model);
    wrong |= differs("gradients", model.grads_memory, loss + 1, model.num_parameters);
    gpt2_update(&model, 1e-4f, 0.9f, 0.999f, 1e-8f, 0.0f, 1);
    gpt2_forward(&model, x, y, B, T);
    printf("loss %f after one update, expected less\n", model.mean_loss);
    wrong |= !(model.mean_loss < *loss);

    gpt2_free(&model);
    free(x);
    free(logits);
    return wrong;
}
