// model.h: a checkpoint is mapped into memory; all uniforms are drawn before the first normal is made; a forward pass
// with macros for layer l's part of a tensor.
//
// A checkpoint: 256 int32, then the parameter tensors, float32, in the order of Parameters.
//     header[0] = 20240326   magic
//     header[1] = 3          version
//     header[2..7]           max_seq_len, vocab_size, num_layers, num_heads, channels,
//                            padded_vocab_size; the rest zeros
#ifndef LLMC_MODEL_H
#define LLMC_MODEL_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
    struct stat s;
    size_t sizes[NUM_PARAMETER_TENSORS], count;
    int fd;
    int32_t *map;
    float *numbers;
    GPT2Config config;

    fd = open(path, O_RDONLY);
    if (fd == -1 || fstat(fd, &s) == -1)
        die("is the path right, and may you read it?", "%s: cannot open", path);
    if (s.st_size < 4 * CHECKPOINT_HEADER)
        die("was it written to the end?", "%s: has no header", path);
    map = mmap(NULL, s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        die("is it an ordinary file?", "%s: cannot map", path);
    numbers = (float *)(map + CHECKPOINT_HEADER);

    switch (map[1]) {
    case CHECKPOINT_VERSION:
        break;
    default:
        die("run train_gpt2.py again", "%s: version %d", path, map[1]);
    }
    if (*map != CHECKPOINT_MAGIC)
        die("run train_gpt2.py", "%s: no checkpoint", path);
    memset(&config, 0, sizeof(config));
    config.padded_vocab_size = map[7], config.channels = map[6], config.num_heads = map[5];
    config.num_layers = map[4], config.vocab_size = map[3], config.max_seq_len = map[2];
    must_config(config, path);
    count = parameter_sizes(sizes, config);
    if ((size_t)s.st_size / 4 != CHECKPOINT_HEADER + count || s.st_size % 4 != 0)
        die("was it written to the end?", "%s: %lld bytes", path, (long long)s.st_size);
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(numbers[i]) <= 3.40282347e38f)) /* also if it is no number */
            die("run train_gpt2.py again", "%s: parameter %zu of %zu", path, i, count);

    gpt2_allocate(model, config);
    memcpy(model->params_memory, numbers, count * sizeof(*numbers));
    munmap(map, s.st_size);
}

// Writes config and parameters as a checkpoint, beside `path` at first, then renamed, so that
// nobody ever reads half of one. Ends the program with one line if that cannot be.
static inline void gpt2_write_checkpoint(const GPT2 *model, const char *path) {
    // TODO (A1): gpt2_write_checkpoint
    // HINT: fwrite, fclose and rename can each fail.
    const char *suffix = ".new";
    char *other = strcpy(must_calloc(strlen(path) + strlen(suffix) + 1, 1), path);
    FILE *f = must_open(strcat(other, suffix), "wb");
    const int32_t fields[8] = {
        CHECKPOINT_MAGIC,
        CHECKPOINT_VERSION,
        model->config.max_seq_len,
        model->config.vocab_size,
        model->config.num_layers,
        model->config.num_heads,
        model->config.channels,
        model->config.padded_vocab_size,
    };
    const int32_t zero = 0;
    int failed = 0;

    for (int i = 0; i < CHECKPOINT_HEADER; i++)
        failed |= fwrite(i < 8 ? &fields[i] : &zero, 4, 1, f) != 1;
    for (size_t i = 0; i < model->num_parameters; i++)
        failed |= fwrite(&model->params_memory[i], 4, 1, f) != 1;
    failed |= fclose(f);
    if (!failed)
        failed = rename(other, path);
    if (failed)
        die("is there space?", "%s: cannot write", other);
    free(other);
}

// Frees all that the functions of this file allocated.
static inline void gpt2_free(GPT2 *model) {
    // TODO (A1): gpt2_free
    // HINT: free(NULL) does nothing.
    void *all[8] = { model->targets, model->inputs, model->activation_grads_memory, model->activations_memory,
                     model->v_memory, model->m_memory, model->grads_memory, model->params_memory };
    for (int i = 0; i < 8; i++)
        free(all[i]);
}

// ---------------------------------------------------------------- initial parameters

// data (n), n >= 16: normals of mean 0, as normal_fill draws them, but computed in double and
// rounded once. A uniform is the low 24 bits of a word, over 2^24; of a block of 16 uniforms, t and
// t + 8 make a pair: radius sqrt(-2 log(1 - u)), angle 2 pi u. Where 16 does not divide n, n words
// are drawn all the same, then 16 more for the last 16 elements.
static inline void initial_normals(float *data, size_t n, double std, mt19937_state *state) {
    // TODO (A1): initial_normals
    // HINT: GPT2 in Python begins with the same numbers: llmc/model.py, normals.
    /* n words, and 16 more where something is left over */
    const size_t left = n % 16, drawn = n + (left ? 16 : 0);
    double *u = must_malloc(drawn * sizeof(double));

    for (size_t i = 0; i < drawn; i++)
        u[i] = ldexp(randint32(state) % (1u << 24), -24);
    for (size_t i = 0; i < n; i++) {
        /* which block is i in? at the end it is the last 16 */
        const int is_last = left && i >= n - 16;
        const size_t start = is_last ? n - 16 : i / 16 * 16, j = i - start;
        const double *block = is_last ? u + n : u + start;
        const double r = sqrt(-2 * log(1 - block[j % 8]));
        const double turn = block[j % 8 + 8] * 2 * 3.14159265358979323846;
        data[i] = std * r * (j < 8 ? cos(turn) : sin(turn));
    }
    free(u);
}

// Sets every field: fresh parameters, the rest empty; the caller frees with gpt2_free. LayerNorm
// weights are 1, biases 0, all other tensors initial_normals of std 0.02 (attprojw and fcprojw:
// 0.02 / sqrt(2L)), from one generator with this seed: wte, of which (V,C) is drawn and the padding
// is 0; wpe; then for each layer qkvw, attprojw, fcw, fcprojw. Sizes that cannot be end the program
// with one line.
static inline void gpt2_init_random(GPT2 *model, GPT2Config config, unsigned long long seed) {
    // TODO (A1): gpt2_init_random
    // HINT: the drawing goes layer by layer, though a tensor has all layers.
    size_t V, C, L, l, i;
    Parameters *p = &model->params;
    mt19937_state *twister = must_malloc(sizeof(*twister));

    must_config(config, "the sizes of a model");
    gpt2_allocate(model, config);
    V = config.vocab_size, C = config.channels, L = config.num_layers;
    for (i = 0; i < C; i++)
        p->lnfw[i] = 1.0f;
    for (i = 0; i < L * C; i++)
        p->ln1w[i] = 1.0f;
    memcpy(p->ln2w, p->ln1w, L * C * sizeof(float));
    manual_seed(twister, seed);
    initial_normals(p->wte, V * C, 0.02, twister);
    initial_normals(p->wpe, config.max_seq_len * C, 0.02, twister);
    for (l = 0; l < L; l++) {
        const size_t square = C * C;
        initial_normals(&p->qkvw[l * 3 * square], 3 * square, 0.02, twister);
        initial_normals(&p->attprojw[l * square], square, 0.02 / sqrt(2.0 * L), twister);
        initial_normals(&p->fcw[l * 4 * square], 4 * square, 0.02, twister);
        initial_normals(&p->fcprojw[l * 4 * square], 4 * square, 0.02 / sqrt(2.0 * L), twister);
    }
    free(twister);
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

/* Layer l's part of a tensor: of parameters, (L,n); of activations, (L,B,T,n). */
#define OF_LAYER(tensor, n) ((tensor) + (size_t)l * (n))
#define OF_BATCH(tensor, n) ((tensor) + (size_t)l * B * T * (n))

// Runs the model: activations, and mean_loss. The first call fixes how much memory there is. Ends
// the program with one line for a larger B or T afterwards, a T above max_seq_len, or a token
// outside the vocabulary. Logits of the padding are 0.
// inputs (B,T) tokens; targets (B,T) tokens, or NULL: then only logits and probs.
static inline void gpt2_forward(GPT2 *model, const int *inputs, const int *targets, size_t B,
                                size_t T) {
    // TODO (A1): gpt2_forward
    // HINT: layer l's part of a tensor (L,B,T,C) starts at l * B * T * C, with the B and T of this
    // call. What goes into a layer is encoded, or residual3 of the layer before.
    GPT2Config *c = &model->config;
    Parameters *p = &model->params;
    Activations *a = &model->activations;
    size_t C = c->channels, NH = c->num_heads;
    float *before;

    gpt2_take_batch(model, inputs, targets, B, T);
    encoder_forward(a->encoded, inputs, p->wte, p->wpe, B, T, C);
    before = a->encoded;
    for (int l = 0; l < c->num_layers; l++) {
        float *ln1 = OF_BATCH(a->ln1, C), *ln2 = OF_BATCH(a->ln2, C), *qkv = OF_BATCH(a->qkv, 3 * C);
        float *atty = OF_BATCH(a->atty, C), *attproj = OF_BATCH(a->attproj, C), *between = OF_BATCH(a->residual2, C);
        float *hidden = OF_BATCH(a->fch, 4 * C), *active = OF_BATCH(a->fch_gelu, 4 * C);
        float *fcproj = OF_BATCH(a->fcproj, C), *behind = OF_BATCH(a->residual3, C);

        layernorm_forward(ln1, OF_BATCH(a->ln1_mean, 1), OF_BATCH(a->ln1_rstd, 1), before, OF_LAYER(p->ln1w, C),
                          OF_LAYER(p->ln1b, C), B, T, C);
        matmul_forward(qkv, ln1, OF_LAYER(p->qkvw, 3 * C * C), OF_LAYER(p->qkvb, 3 * C), B, T, C, 3 * C);
        attention_forward(atty, OF_BATCH(a->preatt, NH * T), OF_BATCH(a->att, NH * T), qkv, B, T, C, NH);
        matmul_forward(attproj, atty, OF_LAYER(p->attprojw, C * C), OF_LAYER(p->attprojb, C), B, T, C, C);
        residual_forward(between, before, attproj, B * T * C);
        layernorm_forward(ln2, OF_BATCH(a->ln2_mean, 1), OF_BATCH(a->ln2_rstd, 1), between, OF_LAYER(p->ln2w, C),
                          OF_LAYER(p->ln2b, C), B, T, C);
        matmul_forward(hidden, ln2, OF_LAYER(p->fcw, 4 * C * C), OF_LAYER(p->fcb, 4 * C), B, T, C, 4 * C);
        gelu_forward(active, hidden, 4 * B * T * C);
        matmul_forward(fcproj, active, OF_LAYER(p->fcprojw, 4 * C * C), OF_LAYER(p->fcprojb, C), B, T, 4 * C, C);
        residual_forward(behind, between, fcproj, B * T * C);
        before = behind;
    }
    layernorm_forward(a->lnf, a->lnf_mean, a->lnf_rstd, before, p->lnfw, p->lnfb, B, T, C);
    matmul_forward(a->logits, a->lnf, p->wte, NULL, B, T, C, c->padded_vocab_size);
    for (size_t i = 0; i < B * T * c->padded_vocab_size; i++)
        if (i % c->padded_vocab_size >= (size_t)c->vocab_size)
            a->logits[i] = 0.0f;
    softmax_forward(a->probs, a->logits, B, T, c->vocab_size, c->padded_vocab_size);
    if (targets) {
        long double total = 0.0L;
        crossentropy_forward(a->losses, a->probs, targets, B, T, c->padded_vocab_size);
        for (size_t i = 0; i < B * T; i++)
            total += a->losses[i];
        model->mean_loss = total / (B * T);
    } else
        model->mean_loss = -1;
}

// Sets the gradients of parameters and activations to 0; the first call allocates them. Behind a
// gpt2_forward.
static inline void gpt2_zero_grad(GPT2 *model) {
    // TODO (A2): gpt2_zero_grad
    // HINT: two blocks of memory, each with its tensors in it.
    TODO("A2: gpt2_zero_grad");
}

// grads += d mean_loss / d params, for the last gpt2_forward. Behind a gpt2_zero_grad. Without
// targets, or without gpt2_zero_grad, it ends the program with one line that says so.
static inline void gpt2_backward(GPT2 *model) {
    // TODO (A2): gpt2_backward
    // HINT: gpt2_forward from its last line to its first; wte gets a gradient at both ends. Each
    // position's loss is 1 / (B T) of the mean.
    TODO("A2: gpt2_backward");
}

// One step of AdamW on all parameters (see adamw.h); t >= 1 is the number of this step.
// weight_decay is for the matrices (wte wpe qkvw attprojw fcw fcprojw); all others get 0. Behind a
// gpt2_backward.
static inline void gpt2_update(GPT2 *model, float lr, float beta1, float beta2, float eps,
                               float weight_decay, int t) {
    // TODO (A2): gpt2_update
    // HINT: the moments are 0 before the first step, and kept from then on; param_sizes says where
    // one tensor ends.
    TODO("A2: gpt2_update");
}

#endif
