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
#include <stdint.h>
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
#define CHECKPOINT_HEADER 256  // int32
#define NUM_PARAMETER_TENSORS 16
#define NUM_ACTIVATION_TENSORS 23
#define INIT_STD 0.02

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
    // activations and their gradients, for the B and T of the first gpt2_forward
    Activations activations;
    size_t num_activations;
    float *activations_memory;  // (num_activations) NULL before the first gpt2_forward
    Activations activation_grads;
    float *activation_grads_memory;  // (num_activations) NULL before the first gpt2_zero_grad
    size_t max_B, max_T;             // that they are sized for; 0 before the first gpt2_forward
    // the batch of the last gpt2_forward
    size_t batch_size;  // B <= max_B
    size_t seq_len;     // T <= max_T
    int *inputs;        // (B,T) a copy
    int *targets;       // (B,T) a copy
    float mean_loss;    // over (B,T), in nats; -1 where it had no targets
} GPT2;

// ---------------------------------------------------------------- given: where tensors lie

// Elements of each tensor of Parameters, in their order; returns the sum.
static inline size_t parameter_sizes(size_t sizes[NUM_PARAMETER_TENSORS], GPT2Config config) {
    const size_t L = (size_t)config.num_layers;
    const size_t C = (size_t)config.channels;
    const size_t found[NUM_PARAMETER_TENSORS] = {
        (size_t)config.padded_vocab_size * C,  // wte
        (size_t)config.max_seq_len * C,        // wpe
        L * C,                                 // ln1w
        L * C,                                 // ln1b
        L * 3 * C * C,                         // qkvw
        L * 3 * C,                             // qkvb
        L * C * C,                             // attprojw
        L * C,                                 // attprojb
        L * C,                                 // ln2w
        L * C,                                 // ln2b
        L * 4 * C * C,                         // fcw
        L * 4 * C,                             // fcb
        L * C * 4 * C,                         // fcprojw
        L * C,                                 // fcprojb
        C,                                     // lnfw
        C,                                     // lnfb
    };
    size_t sum = 0;
    for (size_t i = 0; i < NUM_PARAMETER_TENSORS; i++) sum += sizes[i] = found[i];
    return sum;
}

// Points every tensor to its place in memory, one behind the other.
static inline void place_parameters(Parameters *params, float *memory,
                                    const size_t sizes[NUM_PARAMETER_TENSORS]) {
    float **const each[NUM_PARAMETER_TENSORS] = {
        &params->wte,     &params->wpe,     &params->ln1w,     &params->ln1b,
        &params->qkvw,    &params->qkvb,    &params->attprojw, &params->attprojb,
        &params->ln2w,    &params->ln2b,    &params->fcw,      &params->fcb,
        &params->fcprojw, &params->fcprojb, &params->lnfw,     &params->lnfb,
    };
    for (size_t i = 0; i < NUM_PARAMETER_TENSORS; i++) {
        *each[i] = memory;
        memory += sizes[i];
    }
}

// Elements of each tensor of Activations, in their order, for a batch (B,T); returns the sum.
static inline size_t activation_sizes(size_t sizes[NUM_ACTIVATION_TENSORS], GPT2Config config,
                                      size_t B, size_t T) {
    const size_t L = (size_t)config.num_layers;
    const size_t C = (size_t)config.channels;
    const size_t BT = B * T, Vp = (size_t)config.padded_vocab_size;
    const size_t scores = L * BT * (size_t)config.num_heads * T;
    const size_t found[NUM_ACTIVATION_TENSORS] = {
        BT * C,          // encoded
        L * BT * C,      // ln1
        L * BT,          // ln1_mean
        L * BT,          // ln1_rstd
        L * BT * 3 * C,  // qkv
        scores,          // preatt
        scores,          // att
        L * BT * C,      // atty
        L * BT * C,      // attproj
        L * BT * C,      // residual2
        L * BT * C,      // ln2
        L * BT,          // ln2_mean
        L * BT,          // ln2_rstd
        L * BT * 4 * C,  // fch
        L * BT * 4 * C,  // fch_gelu
        L * BT * C,      // fcproj
        L * BT * C,      // residual3
        BT * C,          // lnf
        BT,              // lnf_mean
        BT,              // lnf_rstd
        BT * Vp,         // logits
        BT * Vp,         // probs
        BT,              // losses
    };
    size_t sum = 0;
    for (int i = 0; i < NUM_ACTIVATION_TENSORS; i++) sum += sizes[i] = found[i];
    return sum;
}

// Points every tensor to its place in memory, one behind the other.
static inline void place_activations(Activations *a, float *memory,
                                     const size_t sizes[NUM_ACTIVATION_TENSORS]) {
    float **const each[NUM_ACTIVATION_TENSORS] = {
        &a->encoded,  &a->ln1,      &a->ln1_mean, &a->ln1_rstd,  &a->qkv,       &a->preatt,
        &a->att,      &a->atty,     &a->attproj,  &a->residual2, &a->ln2,       &a->ln2_mean,
        &a->ln2_rstd, &a->fch,      &a->fch_gelu, &a->fcproj,    &a->residual3, &a->lnf,
        &a->lnf_mean, &a->lnf_rstd, &a->logits,   &a->probs,     &a->losses,
    };
    for (int i = 0; i < NUM_ACTIVATION_TENSORS; i++) {
        *each[i] = memory;
        memory += sizes[i];
    }
}

// Ends the program with one line unless a GPT-2 can have these sizes; `what` is what has them.
static inline void must_config(GPT2Config c, const char *what) {
    const char *hint = "run train_gpt2.py again";
    const int sizes[] = {c.max_seq_len, c.vocab_size, c.num_layers, c.num_heads, c.channels};
    for (int i = 0; i < 5; i++) {
        if (sizes[i] < 1 || sizes[i] > 1 << 24) die(hint, "%s: a size of %d", what, sizes[i]);
    }
    if (c.num_layers > 1 << 12 || c.channels > 1 << 16) {
        die(hint, "%s: %d layers of %d channels", what, c.num_layers, c.channels);
    }
    if (c.channels % c.num_heads != 0) {
        die(hint, "%s: %d channels for %d heads", what, c.channels, c.num_heads);
    }
    if (c.padded_vocab_size < c.vocab_size || c.padded_vocab_size > 1 << 25) {
        die(hint, "%s: %d rows for %d tokens", what, c.padded_vocab_size, c.vocab_size);
    }
}

// Sets config and sizes, parameters (num_parameters) of 0 and where each tensor lies; the rest
// empty.
static inline void gpt2_allocate(GPT2 *model, GPT2Config config) {
    memset(model, 0, sizeof(*model));
    model->config = config;
    model->num_parameters = parameter_sizes(model->param_sizes, config);
    model->params_memory = must_calloc(model->num_parameters, sizeof(float));
    place_parameters(&model->params, model->params_memory, model->param_sizes);
    model->mean_loss = -1.0f;
}

// ---------------------------------------------------------------- from and to files

// Sets every field: config and parameters from a checkpoint, the rest empty. The caller frees with
// gpt2_free. Ends the program with one line for a file that is no checkpoint, of another version
// (the hint: run train_gpt2.py again), with sizes that cannot be, shorter or longer than they say,
// or with a parameter that is no finite number.
static inline void gpt2_build_from_checkpoint(GPT2 *model, const char *path) {
    // TODO (A1): gpt2_build_from_checkpoint
    // HINT: config's fields stand in another order in the header. gpt2_allocate needs must_config
    // before it, and how long a file is, fseek and ftell can tell: a header may claim anything.
    // BEGIN SOLUTION
    int32_t header[CHECKPOINT_HEADER];
    FILE *file = must_open(path, "rb");
    must_read(header, sizeof(int32_t), CHECKPOINT_HEADER, file, path);
    if (header[0] != CHECKPOINT_MAGIC) die("is it the right file?", "%s: no checkpoint", path);
    if (header[1] != CHECKPOINT_VERSION) {
        die("run train_gpt2.py again", "%s: version %d, not %d", path, header[1],
            CHECKPOINT_VERSION);
    }
    GPT2Config config = {
        .max_seq_len = header[2],
        .vocab_size = header[3],
        .padded_vocab_size = header[7],
        .num_layers = header[4],
        .num_heads = header[5],
        .channels = header[6],
    };
    must_config(config, path);
    size_t sizes[NUM_PARAMETER_TENSORS];
    const size_t wanted = sizeof(header) + parameter_sizes(sizes, config) * sizeof(float);
    must_seek(file, 0, SEEK_END, path);
    if ((uint64_t)ftello(file) != wanted) {
        die("was it written to the end?", "%s: %lld bytes, not %zu", path, (long long)ftello(file),
            wanted);
    }
    must_seek(file, sizeof(header), SEEK_SET, path);
    gpt2_allocate(model, config);
    must_read(model->params_memory, sizeof(float), model->num_parameters, file, path);
    fclose(file);
    for (size_t i = 0; i < model->num_parameters; i++) {
        if (!isfinite(model->params_memory[i])) {
            die("run train_gpt2.py again", "%s: parameter %zu is %f", path, i,
                (double)model->params_memory[i]);
        }
    }
    // END SOLUTION
}

// Writes config and parameters as a checkpoint, beside `path` at first, then renamed, so that
// nobody ever reads half of one. Ends the program with one line if that cannot be.
static inline void gpt2_write_checkpoint(const GPT2 *model, const char *path) {
    // TODO (A1): gpt2_write_checkpoint
    // HINT: fwrite, fclose and rename can each fail.
    // BEGIN SOLUTION
    const GPT2Config c = model->config;
    const int32_t header[CHECKPOINT_HEADER] = {
        CHECKPOINT_MAGIC, CHECKPOINT_VERSION, c.max_seq_len, c.vocab_size,
        c.num_layers,     c.num_heads,        c.channels,    c.padded_vocab_size,
    };
    const size_t length = strlen(path) + sizeof(".part");
    char *beside = must_malloc(length);
    snprintf(beside, length, "%s.part", path);
    FILE *file = must_open(beside, "wb");
    int written = fwrite(header, sizeof(header), 1, file) == 1 &&
                  fwrite(model->params_memory, sizeof(float), model->num_parameters, file) ==
                      model->num_parameters;
    written = fclose(file) == 0 && written;  // also where a write failed
    if (!written || rename(beside, path) != 0) {
        die("is the disk full?", "%s: cannot be written", path);
    }
    free(beside);
    // END SOLUTION
}

// Frees all that the functions of this file allocated.
static inline void gpt2_free(GPT2 *model) {
    // TODO (A1): gpt2_free
    // HINT: free(NULL) does nothing.
    // BEGIN SOLUTION
    free(model->params_memory);
    free(model->grads_memory);
    free(model->m_memory);
    free(model->v_memory);
    free(model->activations_memory);
    free(model->activation_grads_memory);
    free(model->inputs);
    free(model->targets);
    // END SOLUTION
}

// ---------------------------------------------------------------- initial parameters

// data (n), n >= 16: normals of mean 0, as normal_fill draws them, but computed in double and
// rounded once. A uniform is the low 24 bits of a word, over 2^24; of a block of 16 uniforms, t and
// t + 8 make a pair: radius sqrt(-2 log(1 - u)), angle 2 pi u. Where 16 does not divide n, n words
// are drawn all the same, then 16 more for the last 16 elements.
static inline void initial_normals(float *data, size_t n, double std, mt19937_state *state) {
    // TODO (A1): initial_normals
    // HINT: GPT2 in Python begins with the same numbers: llmc/model.py, normals.
    // BEGIN SOLUTION
    const double two_pi = 6.283185307179586;
    const size_t blocks = n / 16, tail = n % 16;
    for (size_t block = 0; block <= blocks; block++) {
        if (block == blocks && tail == 0) break;
        if (block == blocks) {
            for (size_t i = 0; i < tail; i++) randint32(state);
        }
        float *at = block < blocks ? data + 16 * block : data + n - 16;
        double uniforms[16];
        for (int i = 0; i < 16; i++) uniforms[i] = (randint32(state) & 0xFFFFFF) / 16777216.0;
        for (int t = 0; t < 8; t++) {
            const double radius = sqrt(-2.0 * log(1.0 - uniforms[t]));
            at[t] = (float)(std * radius * cos(two_pi * uniforms[t + 8]));
            at[t + 8] = (float)(std * radius * sin(two_pi * uniforms[t + 8]));
        }
    }
    // END SOLUTION
}

// Sets every field: fresh parameters, the rest empty; the caller frees with gpt2_free. LayerNorm
// weights are 1, biases 0, all other tensors initial_normals of std 0.02 (attprojw and fcprojw:
// 0.02 / sqrt(2L)), from one generator with this seed: wte, of which (V,C) is drawn and the padding
// is 0; wpe; then for each layer qkvw, attprojw, fcw, fcprojw. Sizes that cannot be end the program
// with one line.
static inline void gpt2_init_random(GPT2 *model, GPT2Config config, unsigned long long seed) {
    // TODO (A1): gpt2_init_random
    // HINT: the drawing goes layer by layer, though a tensor has all layers.
    // BEGIN SOLUTION
    must_config(config, "gpt2_init_random");
    gpt2_allocate(model, config);
    const size_t L = (size_t)config.num_layers, C = (size_t)config.channels;
    const double residual = INIT_STD / sqrt(2.0 * (double)L);
    const Parameters p = model->params;
    mt19937_state state;
    manual_seed(&state, seed);
    initial_normals(p.wte, (size_t)config.vocab_size * C, INIT_STD, &state);
    initial_normals(p.wpe, (size_t)config.max_seq_len * C, INIT_STD, &state);
    for (size_t l = 0; l < L; l++) {
        initial_normals(p.qkvw + l * 3 * C * C, 3 * C * C, INIT_STD, &state);
        initial_normals(p.attprojw + l * C * C, C * C, residual, &state);
        initial_normals(p.fcw + l * 4 * C * C, 4 * C * C, INIT_STD, &state);
        initial_normals(p.fcprojw + l * 4 * C * C, 4 * C * C, residual, &state);
    }
    for (size_t i = 0; i < L * C; i++) p.ln1w[i] = p.ln2w[i] = 1.0f;
    for (size_t i = 0; i < C; i++) p.lnfw[i] = 1.0f;
    // END SOLUTION
}

// ---------------------------------------------------------------- given: the batch

// Keeps a batch in the model, and makes the activations at the first one. Ends the program with one
// line for what gpt2_forward refuses.
static inline void gpt2_take_batch(GPT2 *model, const int *inputs, const int *targets, size_t B,
                                   size_t T) {
    const int V = model->config.vocab_size;
    if (B < 1 || T < 1 || T > (size_t)model->config.max_seq_len) {
        die("shorter rows", "a batch (%zu,%zu), at most %d positions", B, T,
            model->config.max_seq_len);
    }
    if (model->max_B == 0) {
        size_t of_each[NUM_ACTIVATION_TENSORS];
        model->max_B = B;
        model->max_T = T;
        model->num_activations = activation_sizes(of_each, model->config, B, T);
        model->activations_memory = must_malloc(model->num_activations * sizeof(float));
        place_activations(&model->activations, model->activations_memory, of_each);
        model->inputs = must_malloc(B * T * sizeof(int));
        model->targets = must_malloc(B * T * sizeof(int));
    }
    if (B > model->max_B || T > model->max_T) {
        die("begin with the largest", "a batch (%zu,%zu) behind (%zu,%zu)", B, T, model->max_B,
            model->max_T);
    }
    for (size_t i = 0; i < B * T; i++) {
        if (inputs[i] < 0 || inputs[i] >= V ||
            (targets != NULL && (targets[i] < 0 || targets[i] >= V))) {
            die("is it this model's tokenizer?", "token %zu of a batch is outside 0..%d", i, V - 1);
        }
    }
    memcpy(model->inputs, inputs, B * T * sizeof(int));
    if (targets != NULL) memcpy(model->targets, targets, B * T * sizeof(int));
    model->batch_size = B;
    model->seq_len = T;
}

// ---------------------------------------------------------------- one step of training

// Runs the model: activations, and mean_loss. The first call fixes how much memory there is. Ends
// the program with one line for a larger B or T afterwards, a T above max_seq_len, or a token
// outside the vocabulary. Logits of the padding are 0.
// inputs (B,T) tokens; targets (B,T) tokens, or NULL: then only logits and probs.
static inline void gpt2_forward(GPT2 *model, const int *inputs, const int *targets, size_t B,
                                size_t T) {
    // TODO (A1): gpt2_forward
    // HINT: layer l's part of a tensor (L,B,T,C) starts at l * B * T * C, with the B and T of this
    // call. What goes into a layer is encoded, or residual3 of the layer before.
    // BEGIN SOLUTION
    const GPT2Config c = model->config;
    const int V = c.vocab_size, Vp = c.padded_vocab_size, C = c.channels, NH = c.num_heads;
    const int b = (int)B, t = (int)T;
    gpt2_take_batch(model, inputs, targets, B, T);
    const Parameters p = model->params;
    const Activations a = model->activations;
    const size_t BT = B * T, BTC = BT * C, CC = (size_t)C * C;
    encoder_forward(a.encoded, inputs, p.wte, p.wpe, b, t, C);
    const float *residual = a.encoded;
    for (size_t l = 0; l < (size_t)c.num_layers; l++) {
        const size_t x = l * BTC, row = l * BT, w = l * C, att = l * BT * NH * T;
        layernorm_forward(a.ln1 + x, a.ln1_mean + row, a.ln1_rstd + row, residual, p.ln1w + w,
                          p.ln1b + w, b, t, C);
        matmul_forward(a.qkv + 3 * x, a.ln1 + x, p.qkvw + l * 3 * CC, p.qkvb + 3 * w, b, t, C,
                       3 * C);
        attention_forward(a.atty + x, a.preatt + att, a.att + att, a.qkv + 3 * x, b, t, C, NH);
        matmul_forward(a.attproj + x, a.atty + x, p.attprojw + l * CC, p.attprojb + w, b, t, C, C);
        residual_forward(a.residual2 + x, residual, a.attproj + x, BTC);
        layernorm_forward(a.ln2 + x, a.ln2_mean + row, a.ln2_rstd + row, a.residual2 + x,
                          p.ln2w + w, p.ln2b + w, b, t, C);
        matmul_forward(a.fch + 4 * x, a.ln2 + x, p.fcw + l * 4 * CC, p.fcb + 4 * w, b, t, C, 4 * C);
        gelu_forward(a.fch_gelu + 4 * x, a.fch + 4 * x, 4 * BTC);
        matmul_forward(a.fcproj + x, a.fch_gelu + 4 * x, p.fcprojw + l * 4 * CC, p.fcprojb + w, b,
                       t, 4 * C, C);
        residual_forward(a.residual3 + x, a.residual2 + x, a.fcproj + x, BTC);
        residual = a.residual3 + x;
    }
    layernorm_forward(a.lnf, a.lnf_mean, a.lnf_rstd, residual, p.lnfw, p.lnfb, b, t, C);
    matmul_forward(a.logits, a.lnf, p.wte, NULL, b, t, C, Vp);
    for (size_t bt = 0; bt < BT; bt++) {
        for (int v = V; v < Vp; v++) a.logits[bt * Vp + v] = 0.0f;
    }
    softmax_forward(a.probs, a.logits, b, t, V, Vp);
    model->mean_loss = -1.0f;
    if (targets == NULL) return;
    crossentropy_forward(a.losses, a.probs, targets, b, t, Vp);
    double sum = 0.0;
    for (size_t bt = 0; bt < BT; bt++) sum += a.losses[bt];
    model->mean_loss = (float)(sum / (double)BT);
    // END SOLUTION
}

// Sets the gradients of parameters and activations to 0; the first call allocates them. Behind a
// gpt2_forward.
static inline void gpt2_zero_grad(GPT2 *model) {
    // TODO (A2): gpt2_zero_grad
    // HINT: two blocks of memory, each with its tensors in it.
    // BEGIN SOLUTION
    if (model->grads_memory == NULL) {
        size_t sizes[NUM_ACTIVATION_TENSORS];
        activation_sizes(sizes, model->config, model->max_B, model->max_T);
        model->grads_memory = must_malloc(model->num_parameters * sizeof(float));
        model->activation_grads_memory = must_malloc(model->num_activations * sizeof(float));
        place_parameters(&model->grads, model->grads_memory, model->param_sizes);
        place_activations(&model->activation_grads, model->activation_grads_memory, sizes);
    }
    memset(model->grads_memory, 0, model->num_parameters * sizeof(float));
    memset(model->activation_grads_memory, 0, model->num_activations * sizeof(float));
    // END SOLUTION
}

// grads += d mean_loss / d params, for the last gpt2_forward. Behind a gpt2_zero_grad. Without
// targets, or without gpt2_zero_grad, it ends the program with one line that says so.
static inline void gpt2_backward(GPT2 *model) {
    // TODO (A2): gpt2_backward
    // HINT: gpt2_forward from its last line to its first; wte gets a gradient at both ends. Each
    // position's loss is 1 / (B T) of the mean.
    // BEGIN SOLUTION
    if (model->mean_loss < 0.0f) die("give gpt2_forward targets", "gpt2_backward without targets");
    if (model->grads_memory == NULL) die("call gpt2_zero_grad", "gpt2_backward without gradients");
    const GPT2Config c = model->config;
    const int V = c.vocab_size, Vp = c.padded_vocab_size, C = c.channels, NH = c.num_heads;
    const size_t B = model->batch_size, T = model->seq_len;
    const int b = (int)B, t = (int)T;
    const Parameters p = model->params, g = model->grads;
    const Activations a = model->activations, d = model->activation_grads;
    const size_t BT = B * T, BTC = BT * C, CC = (size_t)C * C;
    for (size_t bt = 0; bt < BT; bt++) d.losses[bt] = 1.0f / (float)BT;
    crossentropy_softmax_backward(d.logits, d.losses, a.probs, model->targets, b, t, V, Vp);
    matmul_backward(d.lnf, g.wte, NULL, d.logits, a.lnf, p.wte, b, t, C, Vp);
    const size_t last = (size_t)(c.num_layers - 1) * BTC;
    layernorm_backward(d.residual3 + last, g.lnfw, g.lnfb, d.lnf, a.residual3 + last, p.lnfw,
                       a.lnf_mean, a.lnf_rstd, b, t, C);
    for (size_t l = (size_t)c.num_layers; l-- > 0;) {
        const size_t x = l * BTC, row = l * BT, w = l * C, att = l * BT * NH * T;
        const float *residual = l == 0 ? a.encoded : a.residual3 + x - BTC;
        float *dresidual = l == 0 ? d.encoded : d.residual3 + x - BTC;
        residual_backward(d.residual2 + x, d.fcproj + x, d.residual3 + x, BTC);
        matmul_backward(d.fch_gelu + 4 * x, g.fcprojw + l * 4 * CC, g.fcprojb + w, d.fcproj + x,
                        a.fch_gelu + 4 * x, p.fcprojw + l * 4 * CC, b, t, 4 * C, C);
        gelu_backward(d.fch + 4 * x, a.fch + 4 * x, d.fch_gelu + 4 * x, 4 * BTC);
        matmul_backward(d.ln2 + x, g.fcw + l * 4 * CC, g.fcb + 4 * w, d.fch + 4 * x, a.ln2 + x,
                        p.fcw + l * 4 * CC, b, t, C, 4 * C);
        layernorm_backward(d.residual2 + x, g.ln2w + w, g.ln2b + w, d.ln2 + x, a.residual2 + x,
                           p.ln2w + w, a.ln2_mean + row, a.ln2_rstd + row, b, t, C);
        residual_backward(dresidual, d.attproj + x, d.residual2 + x, BTC);
        matmul_backward(d.atty + x, g.attprojw + l * CC, g.attprojb + w, d.attproj + x, a.atty + x,
                        p.attprojw + l * CC, b, t, C, C);
        attention_backward(d.qkv + 3 * x, d.preatt + att, d.att + att, d.atty + x, a.qkv + 3 * x,
                           a.att + att, b, t, C, NH);
        matmul_backward(d.ln1 + x, g.qkvw + l * 3 * CC, g.qkvb + 3 * w, d.qkv + 3 * x, a.ln1 + x,
                        p.qkvw + l * 3 * CC, b, t, C, 3 * C);
        layernorm_backward(dresidual, g.ln1w + w, g.ln1b + w, d.ln1 + x, residual, p.ln1w + w,
                           a.ln1_mean + row, a.ln1_rstd + row, b, t, C);
    }
    encoder_backward(g.wte, g.wpe, d.encoded, model->inputs, b, t, C);
    // END SOLUTION
}

// One step of AdamW on all parameters (see adamw.h); t >= 1 is the number of this step.
// weight_decay is for the matrices (wte wpe qkvw attprojw fcw fcprojw); all others get 0. Behind a
// gpt2_backward.
static inline void gpt2_update(GPT2 *model, float lr, float beta1, float beta2, float eps,
                               float weight_decay, int t) {
    // TODO (A2): gpt2_update
    // HINT: the moments are 0 before the first step, and kept from then on; param_sizes says where
    // one tensor ends.
    // BEGIN SOLUTION
    static const int decays[NUM_PARAMETER_TENSORS] = {
        1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0,
    };
    if (model->m_memory == NULL) {
        model->m_memory = must_calloc(model->num_parameters, sizeof(float));
        model->v_memory = must_calloc(model->num_parameters, sizeof(float));
    }
    size_t at = 0;
    for (int i = 0; i < NUM_PARAMETER_TENSORS; i++) {
        adamw_update(model->params_memory + at, model->grads_memory + at, model->m_memory + at,
                     model->v_memory + at, model->param_sizes[i], lr, beta1, beta2, eps,
                     decays[i] ? weight_decay : 0.0f, t);
        at += model->param_sizes[i];
    }
    // END SOLUTION
}

#endif
