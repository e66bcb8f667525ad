// model.h: GPT-2 as one struct: parameters, their gradients, activations, and the steps of training
// on them.
//
// A checkpoint: 256 int32, then the parameter tensors, float32, in the order of Parameters.
//     header[0] = 20240326   magic
//     header[1] = 3          version
//     header[2..7]           max_seq_len, vocab_size, num_layers, num_heads, channels,
//                            padded_vocab_size; the rest zeros
#ifndef LLMC_MODEL_H
#define LLMC_MODEL_H

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adamw.h"
#include "layers.h"
#include "rand.h"
#include "todo.h"
#include "utils.h"

#define CHECKPOINT_MAGIC 20240326
#define CHECKPOINT_VERSION 3
#define NUM_PARAMETER_TENSORS 16

typedef struct {
    int max_seq_len;        // longest T
    int vocab_size;         // V
    int padded_vocab_size;  // Vp >= V; rows of wte behind V belong to no token
    int num_layers;         // L
    int num_heads;          // NH, divides C
    int channels;           // C
} GPT2Config;

// Where each tensor starts in one block of memory, in which they lie in this order.
typedef struct {
    float *wte;       // (Vp,C), also the weight of the last matmul
    float *wpe;       // (max_seq_len,C)
    float *ln1w;      // (L,C)
    float *ln1b;      // (L,C)
    float *qkvw;      // (L,3C,C)
    float *qkvb;      // (L,3C)
    float *attprojw;  // (L,C,C)
    float *attprojb;  // (L,C)
    float *ln2w;      // (L,C)
    float *ln2b;      // (L,C)
    float *fcw;       // (L,4C,C)
    float *fcb;       // (L,4C)
    float *fcprojw;   // (L,C,4C)
    float *fcprojb;   // (L,C)
    float *lnfw;      // (C)
    float *lnfb;      // (C)
} Parameters;

// What a forward leaves for the backward, in one block of memory.
typedef struct {
    float *encoded;    // (B,T,C)
    float *ln1;        // (L,B,T,C)
    float *ln1_mean;   // (L,B,T)
    float *ln1_rstd;   // (L,B,T)
    float *qkv;        // (L,B,T,3C)
    float *preatt;     // (L,B,NH,T,T)
    float *att;        // (L,B,NH,T,T)
    float *atty;       // (L,B,T,C) out of the attention
    float *attproj;    // (L,B,T,C)
    float *residual2;  // (L,B,T,C) behind the attention
    float *ln2;        // (L,B,T,C)
    float *ln2_mean;   // (L,B,T)
    float *ln2_rstd;   // (L,B,T)
    float *fch;        // (L,B,T,4C)
    float *fch_gelu;   // (L,B,T,4C)
    float *fcproj;     // (L,B,T,C)
    float *residual3;  // (L,B,T,C) behind the MLP: what the layer hands on
    float *lnf;        // (B,T,C)
    float *lnf_mean;   // (B,T)
    float *lnf_rstd;   // (B,T)
    float *logits;     // (B,T,Vp)
    float *probs;      // (B,T,Vp)
    float *losses;     // (B,T)
} Activations;

typedef struct {
    GPT2Config config;
    // parameters, and what training keeps beside each
    Parameters params;
    size_t param_sizes[NUM_PARAMETER_TENSORS];  // elements of each tensor
    size_t num_parameters;                      // their sum
    float *params_memory;                       // (num_parameters)
    Parameters grads;
    float *grads_memory;  // (num_parameters) d mean_loss; NULL before the first gpt2_zero_grad
    float *m_memory;      // (num_parameters) NULL before the first gpt2_update
    float *v_memory;      // (num_parameters) NULL before the first gpt2_update
    // activations and their gradients, sized by the first gpt2_forward
    Activations activations;
    size_t num_activations;
    float *activations_memory;  // (num_activations)
    Activations activation_grads;
    float *activation_grads_memory;  // (num_activations) NULL before the first gpt2_zero_grad
    // the batch
    size_t batch_size;  // B that the activations are sized for; 0 before the first gpt2_forward
    size_t seq_len;     // T that the activations are sized for
    int *inputs;        // (B,T) a copy
    int *targets;       // (B,T) a copy
    float mean_loss;    // over (B,T), in nats; -1 where the last gpt2_forward had no targets
} GPT2;

// Sets every field: config and parameters from a checkpoint, the rest empty. The caller frees with
// gpt2_free. A file that is no checkpoint of this version ends the program with one line.
static inline void gpt2_build_from_checkpoint(GPT2 *model, const char *path) {
    TODO("A1: gpt2_build_from_checkpoint");
}

// Sets every field: fresh parameters, the rest empty. LayerNorm weights are 1, biases 0; all other
// tensors are normal with mean 0 and std 0.02 (attprojw and fcprojw: 0.02 / sqrt(2L)), one call of
// normal_ for each in their order, from one generator with this seed. Of wte (V,C) is drawn; the
// padding is 0.
static inline void gpt2_init_random(GPT2 *model, GPT2Config config, unsigned long long seed) {
    TODO("A1: gpt2_init_random");
}

// Runs the model: activations, and mean_loss. The first call fixes how much memory there is: a
// larger B or T afterwards ends the program with one line.
// inputs (B,T) tokens; targets (B,T) tokens, or NULL: then only logits and probs.
static inline void gpt2_forward(GPT2 *model, const int *inputs, const int *targets, size_t B,
                                size_t T) {
    TODO("A1: gpt2_forward");
}

// Sets the gradients of parameters and activations to 0; the first call allocates them. Behind a
// gpt2_forward.
static inline void gpt2_zero_grad(GPT2 *model) {
    TODO("A2: gpt2_zero_grad");
}

// grads += d mean_loss / d params, for the last gpt2_forward, which must have had targets. Behind
// a gpt2_zero_grad.
static inline void gpt2_backward(GPT2 *model) {
    TODO("A2: gpt2_backward");
}

// One step of AdamW on all parameters (see adamw.h); t >= 1 is the number of this step.
// weight_decay is for the matrices (wte wpe qkvw attprojw fcw fcprojw); all others get 0.
static inline void gpt2_update(GPT2 *model, float lr, float beta1, float beta2, float eps,
                               float weight_decay, int t) {
    TODO("A2: gpt2_update");
}

// Writes config and parameters as a checkpoint. What cannot be written to the end ends the program
// with one line.
static inline void gpt2_write_checkpoint(const GPT2 *model, const char *path) {
    TODO("A1: gpt2_write_checkpoint");
}

// Frees all that the functions above allocated.
static inline void gpt2_free(GPT2 *model) {
    TODO("A1: gpt2_free");
}

#endif
