// model.h: one function for each half of a block, forward and backward, over a struct of offsets; one call of AdamW
// for each run of neighbours that decay, or do not.
//
// A checkpoint: 256 int32, then the parameter tensors, float32, in the order of Parameters.
//     header[0] = 20240326   magic
//     header[1] = 3          version
//     header[2..7]           max_seq_len, vocab_size, num_layers, num_heads, channels,
//                            padded_vocab_size; the rest zeros
#ifndef LLMC_MODEL_H
#define LLMC_MODEL_H

#include <sys/stat.h>

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

// Reads one tensor and looks at every number in it.
static inline void read_tensor(float *to, size_t count, FILE *file, const char *path)
{
    must_read(to, sizeof(float), count, file, path);
    for (size_t i = 0; i < count; ++i) {
        if (isnan(to[i]) || isinf(to[i]))
            die("run train_gpt2.py again", "%s: a parameter is no number", path);
    }
}

// Sets every field: config and parameters from a checkpoint, the rest empty. The caller frees with
// gpt2_free. Ends the program with one line for a file that is no checkpoint, of another version
// (the hint: run train_gpt2.py again), with sizes that cannot be, shorter or longer than they say,
// or with a parameter that is no finite number.
static inline void gpt2_build_from_checkpoint(GPT2 *model, const char *path) {
    FILE *file = must_open(path, "rb");
    int32_t header[CHECKPOINT_HEADER] = {0};
    GPT2Config config;
    struct stat about;
    size_t sizes[NUM_PARAMETER_TENSORS];

    must_read(header, sizeof(header), 1, file, path);
    if (header[0] != CHECKPOINT_MAGIC || header[1] != CHECKPOINT_VERSION)
        die("run train_gpt2.py again", "%s: magic %d, version %d", path, header[0], header[1]);
    config.max_seq_len = header[2];
    config.vocab_size = header[3];
    config.num_layers = header[4];
    config.num_heads = header[5];
    config.channels = header[6];
    config.padded_vocab_size = header[7];
    must_config(config, path);

    const size_t floats = parameter_sizes(sizes, config);
    if (fstat(fileno(file), &about) != 0)
        die("is it an ordinary file?", "%s: how long is it?", path);
    if ((size_t)about.st_size != 4 * (CHECKPOINT_HEADER + floats))
        die("was it written to the end?", "%s: not %zu parameters", path, floats);

    gpt2_allocate(model, config);
    float *to = model->params_memory;
    for (int i = 0; i < NUM_PARAMETER_TENSORS; ++i) {
        read_tensor(to, sizes[i], file, path);
        to += sizes[i];
    }
    fclose(file);
}

// Writes config and parameters as a checkpoint, beside `path` at first, then renamed, so that
// nobody ever reads half of one. Ends the program with one line if that cannot be.
static inline void gpt2_write_checkpoint(const GPT2 *model, const char *path) {
    int32_t header[CHECKPOINT_HEADER];
    memset(header, 0, sizeof(header));
    header[0] = CHECKPOINT_MAGIC;
    header[1] = CHECKPOINT_VERSION;
    header[2] = model->config.max_seq_len;
    header[3] = model->config.vocab_size;
    header[4] = model->config.num_layers;
    header[5] = model->config.num_heads;
    header[6] = model->config.channels;
    header[7] = model->config.padded_vocab_size;

    char temporary[4096];
    const int length = snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    if (length < 0 || (size_t)length >= sizeof(temporary))
        die("a shorter name", "%s: too long", path);
    FILE *file = must_open(temporary, "wb");
    setvbuf(file, NULL, _IOFBF, 1 << 16);
    const float *from = model->params_memory;
    size_t ok = fwrite(header, sizeof(header), 1, file);
    for (int i = 0; i < NUM_PARAMETER_TENSORS; ++i) {
        ok += fwrite(from, sizeof(float), model->param_sizes[i], file) == model->param_sizes[i];
        from += model->param_sizes[i];
    }
    if (fflush(file) != 0 || ferror(file) || ok != 1 + NUM_PARAMETER_TENSORS)
        die("is the disk full?", "%s: not all of it was written", temporary);
    if (fclose(file) != 0)
        die("is the disk full?", "%s: cannot close", temporary);
    if (rename(temporary, path) != 0)
        die("may you write there?", "%s: cannot rename %s", path, temporary);
}

// Frees all that the functions of this file allocated.
static inline void gpt2_free(GPT2 *model) {
    float **blocks[] = {
        &model->params_memory, &model->grads_memory, &model->m_memory, &model->v_memory,
        &model->activations_memory, &model->activation_grads_memory,
    };
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); ++i) {
        free(*blocks[i]);
        *blocks[i] = NULL;
    }
    free(model->inputs);
    free(model->targets);
    model->inputs = model->targets = NULL;
}

// ---------------------------------------------------------------- initial parameters

// Sixteen normals from the next sixteen words.
static inline void sixteen_normals(float *out, double std, mt19937_state *state)
{
    double u[16];
    for (int i = 0; i < 16; ++i)
        u[i] = randfloat32(state);
    for (int i = 0; i < 8; ++i) {
        const double radius = std * sqrt(-2.0 * log1p(-u[i]));
        const double angle = 2.0 * M_PI * u[i + 8];
        out[i] = (float)(radius * cos(angle));
        out[i + 8] = (float)(radius * sin(angle));
    }
}

// data (n), n >= 16: normals of mean 0, as normal_fill draws them, but computed in double and
// rounded once. A uniform is the low 24 bits of a word, over 2^24; of a block of 16 uniforms, t and
// t + 8 make a pair: radius sqrt(-2 log(1 - u)), angle 2 pi u. Where 16 does not divide n, n words
// are drawn all the same, then 16 more for the last 16 elements.
static inline void initial_normals(float *data, size_t n, double std, mt19937_state *state) {
    size_t i;
    for (i = 0; i + 16 <= n; i += 16)
        sixteen_normals(data + i, std, state);
    if (i == n)
        return;
    for (; i < n; ++i)
        (void)randint32(state);
    sixteen_normals(data + n - 16, std, state);
}

// Sets every field: fresh parameters, the rest empty; the caller frees with gpt2_free. LayerNorm
// weights are 1, biases 0, all other tensors initial_normals of std 0.02 (attprojw and fcprojw:
// 0.02 / sqrt(2L)), from one generator with this seed: wte, of which (V,C) is drawn and the padding
// is 0; wpe; then for each layer qkvw, attprojw, fcw, fcprojw. Sizes that cannot be end the program
// with one line.
static inline void gpt2_init_random(GPT2 *model, GPT2Config config, unsigned long long seed) {
    must_config(config, "a new model");
    gpt2_allocate(model, config);

    const size_t L = config.num_layers, C = config.channels;
    const double small = INIT_STD * pow(2.0 * L, -0.5);
    // the four matrices of a layer, in the order in which they are drawn
    const struct {
        float *tensor;
        size_t size;
        double std;
    } matrices[] = {
        { model->params.qkvw, 3 * C * C, INIT_STD },
        { model->params.attprojw, C * C, small },
        { model->params.fcw, 4 * C * C, INIT_STD },
        { model->params.fcprojw, 4 * C * C, small },
    };
    mt19937_state rng;
    manual_seed(&rng, seed);
    initial_normals(model->params.wte, config.vocab_size * C, INIT_STD, &rng);
    initial_normals(model->params.wpe, config.max_seq_len * C, INIT_STD, &rng);
    for (size_t l = 0; l < L; ++l)
        for (int i = 0; i < 4; ++i)
            initial_normals(matrices[i].tensor + l * matrices[i].size, matrices[i].size, matrices[i].std, &rng);
    for (size_t i = 0; i < L * C; ++i) {
        model->params.ln1w[i] = 1;
        model->params.ln2w[i] = 1;
        if (i < C)
            model->params.lnfw[i] = 1;
    }
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

// Where layer l begins: in tensors of activations and in tensors of parameters.
typedef struct {
    size_t btc, bt, scores; // (B,T,C), (B,T), (B,NH,T,T)
    size_t c, cc;           // (C), (C,C)
} LayerOffsets;

static inline LayerOffsets layer_offsets(const GPT2 *model, size_t l)
{
    const size_t BT = model->batch_size * model->seq_len, C = model->config.channels;
    LayerOffsets o;
    o.btc = l * BT * C;
    o.bt = l * BT;
    o.scores = l * BT * model->seq_len * model->config.num_heads;
    o.c = l * C;
    o.cc = l * C * C;
    return o;
}

// What goes into layer l.
static inline float *layer_input(const GPT2 *model, const Activations *a, size_t l)
{
    return l == 0 ? a->encoded : a->residual3 + layer_offsets(model, l - 1).btc;
}

static inline void forward_attention_half(GPT2 *model, size_t l)
{
    const Parameters *p = &model->params;
    const Activations *a = &model->activations;
    const LayerOffsets o = layer_offsets(model, l);
    const int B = model->batch_size, T = model->seq_len, C = model->config.channels;
    const float *x = layer_input(model, a, l);

    layernorm_forward(a->ln1 + o.btc, a->ln1_mean + o.bt, a->ln1_rstd + o.bt, x, p->ln1w + o.c, p->ln1b + o.c, B,
                      T, C);
    matmul_forward(a->qkv + 3 * o.btc, a->ln1 + o.btc, p->qkvw + 3 * o.cc, p->qkvb + 3 * o.c, B, T, C, 3 * C);
    attention_forward(a->atty + o.btc, a->preatt + o.scores, a->att + o.scores, a->qkv + 3 * o.btc, B, T, C,
                      model->config.num_heads);
    matmul_forward(a->attproj + o.btc, a->atty + o.btc, p->attprojw + o.cc, p->attprojb + o.c, B, T, C, C);
    residual_forward(a->residual2 + o.btc, x, a->attproj + o.btc, (size_t)B * T * C);
}

static inline void forward_mlp_half(GPT2 *model, size_t l)
{
    const Parameters *p = &model->params;
    const Activations *a = &model->activations;
    const LayerOffsets o = layer_offsets(model, l);
    const int B = model->batch_size, T = model->seq_len, C = model->config.channels;
    const size_t BTC = (size_t)B * T * C;

    layernorm_forward(a->ln2 + o.btc, a->ln2_mean + o.bt, a->ln2_rstd + o.bt, a->residual2 + o.btc, p->ln2w + o.c,
                      p->ln2b + o.c, B, T, C);
    matmul_forward(a->fch + 4 * o.btc, a->ln2 + o.btc, p->fcw + 4 * o.cc, p->fcb + 4 * o.c, B, T, C, 4 * C);
    gelu_forward(a->fch_gelu + 4 * o.btc, a->fch + 4 * o.btc, 4 * BTC);
    matmul_forward(a->fcproj + o.btc, a->fch_gelu + 4 * o.btc, p->fcprojw + 4 * o.cc, p->fcprojb + o.c, B, T, 4 * C,
                   C);
    residual_forward(a->residual3 + o.btc, a->residual2 + o.btc, a->fcproj + o.btc, BTC);
}

// From the last layer to the probabilities.
static inline void forward_head(GPT2 *model)
{
    const Activations *a = &model->activations;
    const GPT2Config *c = &model->config;
    const int B = model->batch_size, T = model->seq_len, V = c->vocab_size, Vp = c->padded_vocab_size;

    layernorm_forward(a->lnf, a->lnf_mean, a->lnf_rstd, layer_input(model, a, c->num_layers), model->params.lnfw,
                      model->params.lnfb, B, T, c->channels);
    matmul_forward(a->logits, a->lnf, model->params.wte, NULL, B, T, c->channels, Vp);
    for (int i = 0; i < B * T; ++i)
        memset(a->logits + (size_t)i * Vp + V, 0, (Vp - V) * sizeof(float));
    softmax_forward(a->probs, a->logits, B, T, V, Vp);
}

// Runs the model: activations, and mean_loss. The first call fixes how much memory there is. Ends
// the program with one line for a larger B or T afterwards, a T above max_seq_len, or a token
// outside the vocabulary. Logits of the padding are 0.
// inputs (B,T) tokens; targets (B,T) tokens, or NULL: then only logits and probs.
static inline void gpt2_forward(GPT2 *model, const int *inputs, const int *targets, size_t B,
                                size_t T) {
    gpt2_take_batch(model, inputs, targets, B, T);
    encoder_forward(model->activations.encoded, model->inputs, model->params.wte, model->params.wpe, B, T,
                    model->config.channels);
    for (int l = 0; l < model->config.num_layers; ++l) {
        forward_attention_half(model, l);
        forward_mlp_half(model, l);
    }
    forward_head(model);
    if (targets == NULL) {
        model->mean_loss = -1.0f;
    } else {
        float sum = 0.0f;
        crossentropy_forward(model->activations.losses, model->activations.probs, model->targets, B, T,
                             model->config.padded_vocab_size);
        for (size_t i = 0; i < B * T; ++i)
            sum += model->activations.losses[i];
        model->mean_loss = sum / (B * T);
    }
}

// Sets the gradients of parameters and activations to 0; the first call allocates them. Behind a
// gpt2_forward.
static inline void gpt2_zero_grad(GPT2 *model) {
    if (!model->grads_memory) {
        size_t sizes[NUM_ACTIVATION_TENSORS];
        const size_t count = activation_sizes(sizes, model->config, model->max_B, model->max_T);
        model->grads_memory = must_calloc(model->num_parameters, sizeof(float));
        model->activation_grads_memory = must_calloc(count, sizeof(float));
        place_parameters(&model->grads, model->grads_memory, model->param_sizes);
        place_activations(&model->activation_grads, model->activation_grads_memory, sizes);
        return; // calloc has done it
    }
    for (size_t i = 0; i < model->num_parameters; ++i)
        model->grads_memory[i] = 0.0f;
    for (size_t i = 0; i < model->num_activations; ++i)
        model->activation_grads_memory[i] = 0.0f;
}

static inline void backward_head(GPT2 *model)
{
    const Activations *a = &model->activations, *da = &model->activation_grads;
    const GPT2Config *c = &model->config;
    const int B = model->batch_size, T = model->seq_len, V = c->vocab_size, Vp = c->padded_vocab_size;

    for (int i = 0; i < B * T; ++i)
        da->losses[i] = 1.0f / (B * T);
    crossentropy_softmax_backward(da->logits, da->losses, a->probs, model->targets, B, T, V, Vp);
    matmul_backward(da->lnf, model->grads.wte, NULL, da->logits, a->lnf, model->params.wte, B, T, c->channels, Vp);
    layernorm_backward(layer_input(model, da, c->num_layers), model->grads.lnfw, model->grads.lnfb, da->lnf,
                       layer_input(model, a, c->num_layers), model->params.lnfw, a->lnf_mean, a->lnf_rstd, B, T,
                       c->channels);
}

static inline void backward_mlp_half(GPT2 *model, size_t l)
{
    const Parameters *p = &model->params, *dp = &model->grads;
    const Activations *a = &model->activations, *da = &model->activation_grads;
    const LayerOffsets o = layer_offsets(model, l);
    const int B = model->batch_size, T = model->seq_len, C = model->config.channels;
    const size_t BTC = (size_t)B * T * C;

    residual_backward(da->residual2 + o.btc, da->fcproj + o.btc, da->residual3 + o.btc, BTC);
    matmul_backward(da->fch_gelu + 4 * o.btc, dp->fcprojw + 4 * o.cc, dp->fcprojb + o.c, da->fcproj + o.btc,
                    a->fch_gelu + 4 * o.btc, p->fcprojw + 4 * o.cc, B, T, 4 * C, C);
    gelu_backward(da->fch + 4 * o.btc, a->fch + 4 * o.btc, da->fch_gelu + 4 * o.btc, 4 * BTC);
    matmul_backward(da->ln2 + o.btc, dp->fcw + 4 * o.cc, dp->fcb + 4 * o.c, da->fch + 4 * o.btc, a->ln2 + o.btc,
                    p->fcw + 4 * o.cc, B, T, C, 4 * C);
    layernorm_backward(da->residual2 + o.btc, dp->ln2w + o.c, dp->ln2b + o.c, da->ln2 + o.btc, a->residual2 + o.btc,
                       p->ln2w + o.c, a->ln2_mean + o.bt, a->ln2_rstd + o.bt, B, T, C);
}

static inline void backward_attention_half(GPT2 *model, size_t l)
{
    const Parameters *p = &model->params, *dp = &model->grads;
    const Activations *a = &model->activations, *da = &model->activation_grads;
    const LayerOffsets o = layer_offsets(model, l);
    const int B = model->batch_size, T = model->seq_len, C = model->config.channels;
    float *dx = layer_input(model, da, l);

    residual_backward(dx, da->attproj + o.btc, da->residual2 + o.btc, (size_t)B * T * C);
    matmul_backward(da->atty + o.btc, dp->attprojw + o.cc, dp->attprojb + o.c, da->attproj + o.btc, a->atty + o.btc,
                    p->attprojw + o.cc, B, T, C, C);
    attention_backward(da->qkv + 3 * o.btc, da->preatt + o.scores, da->att + o.scores, da->atty + o.btc,
                       a->qkv + 3 * o.btc, a->att + o.scores, B, T, C, model->config.num_heads);
    matmul_backward(da->ln1 + o.btc, dp->qkvw + 3 * o.cc, dp->qkvb + 3 * o.c, da->qkv + 3 * o.btc, a->ln1 + o.btc,
                    p->qkvw + 3 * o.cc, B, T, C, 3 * C);
    layernorm_backward(dx, dp->ln1w + o.c, dp->ln1b + o.c, da->ln1 + o.btc, layer_input(model, a, l), p->ln1w + o.c,
                       a->ln1_mean + o.bt, a->ln1_rstd + o.bt, B, T, C);
}

// grads += d mean_loss / d params, for the last gpt2_forward. Behind a gpt2_zero_grad. Without
// targets, or without gpt2_zero_grad, it ends the program with one line that says so.
static inline void gpt2_backward(GPT2 *model) {
    if (model->grads_memory == NULL || model->activation_grads_memory == NULL)
        die("gpt2_zero_grad makes them", "gpt2_backward: there are no gradients yet");
    if (model->mean_loss == -1.0f)
        die("gpt2_forward takes targets", "gpt2_backward: there is no loss");
    backward_head(model);
    for (int l = model->config.num_layers - 1; l >= 0; --l) {
        backward_mlp_half(model, l);
        backward_attention_half(model, l);
    }
    encoder_backward(model->grads.wte, model->grads.wpe, model->activation_grads.encoded, model->inputs,
                     model->batch_size, model->seq_len, model->config.channels);
}

// Is tensor i of Parameters a matrix?
static inline int is_matrix(int i)
{
    switch (i) {
    case 0: case 1: case 4: case 6: case 10: case 12:
        return 1;
    default:
        return 0;
    }
}

// One step of AdamW on all parameters (see adamw.h); t >= 1 is the number of this step.
// weight_decay is for the matrices (wte wpe qkvw attprojw fcw fcprojw); all others get 0. Behind a
// gpt2_backward.
static inline void gpt2_update(GPT2 *model, float lr, float beta1, float beta2, float eps,
                               float weight_decay, int t) {
    if (model->m_memory == NULL)
        model->m_memory = must_calloc(model->num_parameters, sizeof(float));
    if (model->v_memory == NULL)
        model->v_memory = must_calloc(model->num_parameters, sizeof(float));
    size_t from = 0;
    for (int i = 0; i < NUM_PARAMETER_TENSORS;) {
        const int decays = is_matrix(i);
        size_t count = 0;
        for (; i < NUM_PARAMETER_TENSORS && is_matrix(i) == decays; ++i)
            count += model->param_sizes[i];
        adamw_update(&model->params_memory[from], &model->grads_memory[from], &model->m_memory[from],
                     &model->v_memory[from], count, lr, beta1, beta2, eps, weight_decay * decays, t);
        from += count;
    }
}

#endif
