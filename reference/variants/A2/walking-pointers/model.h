// model.h: pointers that walk through the layers, forwards and backwards; only V rows of wte take part in the logits
// and their gradients, position by position.
//
// A checkpoint: 256 int32, then the parameter tensors, float32, in the order of Parameters.
//     header[0] = 20240326   magic
//     header[1] = 3          version
//     header[2..7]           max_seq_len, vocab_size, num_layers, num_heads, channels,
//                            padded_vocab_size; the rest zeros
#ifndef LLMC_MODEL_H
#define LLMC_MODEL_H

#include <fcntl.h>
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

// Reads or dies.
static void fd_read(int fd, void *to, size_t bytes, const char *path) {
	while (bytes > 0) {
		ssize_t got = read(fd, to, bytes);
		if (got <= 0) die("was it written to the end?", "%s: %zu bytes are missing", path, bytes);
		to = (char *)to + got;
		bytes -= got;
	}
}

// Writes; 0 if that went well.
static int fd_write(int fd, const void *from, size_t bytes) {
	while (bytes > 0) {
		ssize_t put = write(fd, from, bytes);
		if (put < 0) return -1;
		from = (const char *)from + put;
		bytes -= put;
	}
	return 0;
}

// Sets every field: config and parameters from a checkpoint, the rest empty. The caller frees with
// gpt2_free. Ends the program with one line for a file that is no checkpoint, of another version
// (the hint: run train_gpt2.py again), with sizes that cannot be, shorter or longer than they say,
// or with a parameter that is no finite number.
static inline void gpt2_build_from_checkpoint(GPT2 *model, const char *path) {
	struct { int32_t magic, version, maxT, V, L, NH, C, Vp, rest[CHECKPOINT_HEADER - 8]; } header;
	size_t sizes[NUM_PARAMETER_TENSORS];
	int fd = open(path, O_RDONLY);
	if (fd < 0) die("is the path right?", "%s: cannot open", path);
	off_t end = lseek(fd, 0, SEEK_END);
	lseek(fd, 0, SEEK_SET);
	fd_read(fd, &header, sizeof header, path);
	if (header.magic != CHECKPOINT_MAGIC) die("is it a checkpoint?", "%s: another magic number", path);
	if (header.version != CHECKPOINT_VERSION) die("run train_gpt2.py again", "%s: version %d", path, header.version);
	GPT2Config config = { header.maxT, header.V, header.Vp, header.L, header.NH, header.C };
	must_config(config, path);
	uint64_t bytes = sizeof(float) * (uint64_t)parameter_sizes(sizes, config);
	if (end < 0 || (uint64_t)end != bytes + sizeof header) die("was it cut?", "%s: %lld bytes", path, (long long)end);
	gpt2_allocate(model, config);
	fd_read(fd, model->params_memory, bytes, path);
	close(fd);
	// 0 * x is 0 for every finite x, and NaN for all others
	float sum = 0.0f;
	for (size_t i = 0; i < model->num_parameters; i++) sum += 0.0f * model->params_memory[i];
	if (!(sum == 0.0f)) die("run train_gpt2.py again", "%s: holds NaN or infinity", path);
}

// Writes config and parameters as a checkpoint, beside `path` at first, then renamed, so that
// nobody ever reads half of one. Ends the program with one line if that cannot be.
static inline void gpt2_write_checkpoint(const GPT2 *model, const char *path) {
	int32_t header[CHECKPOINT_HEADER] = { [0] = CHECKPOINT_MAGIC, [1] = CHECKPOINT_VERSION };
	const GPT2Config *c = &model->config;
	int32_t *h = header + 2;
	*h++ = c->max_seq_len;
	*h++ = c->vocab_size;
	*h++ = c->num_layers;
	*h++ = c->num_heads;
	*h++ = c->channels;
	*h++ = c->padded_vocab_size;
	char *name = must_malloc(strlen(path) + 8);
	sprintf(name, "%s~XXXXXX", path);
	int fd = mkstemp(name);
	if (fd < 0) die("is there such a folder?", "%s: cannot be written", path);
	if (fchmod(fd, 0644) != 0 || fd_write(fd, header, sizeof header) != 0 ||
	    fd_write(fd, model->params_memory, model->num_parameters * sizeof(float)) != 0 || fsync(fd) != 0 ||
	    close(fd) != 0 || rename(name, path) != 0) {
		unlink(name);
		die("is the disk full?", "%s: cannot be written", path);
	}
	free(name);
}

// Frees all that the functions of this file allocated.
static inline void gpt2_free(GPT2 *model) {
	free(model->params_memory);
	if (model->grads_memory) free(model->grads_memory);
	if (model->m_memory) free(model->m_memory);
	if (model->v_memory) free(model->v_memory);
	if (model->max_B > 0) {
		free(model->activations_memory);
		free(model->inputs);
		free(model->targets);
	}
	if (model->activation_grads_memory) free(model->activation_grads_memory);
	memset(model, 0, sizeof *model);
}

// ---------------------------------------------------------------- initial parameters

// 16 uniforms become 16 normals, where they are.
static void box_muller_16(float *at, double std) {
	for (float *end = at + 8; at < end; at++) {
		double radius = sqrt(-2 * log(1 - (double)at[0])), angle = 8 * atan(1.0) * at[8];
		at[0] = radius * cos(angle) * std;
		at[8] = radius * sin(angle) * std;
	}
}

// data (n), n >= 16: normals of mean 0, as normal_fill draws them, but computed in double and
// rounded once. A uniform is the low 24 bits of a word, over 2^24; of a block of 16 uniforms, t and
// t + 8 make a pair: radius sqrt(-2 log(1 - u)), angle 2 pi u. Where 16 does not divide n, n words
// are drawn all the same, then 16 more for the last 16 elements.
static inline void initial_normals(float *data, size_t n, double std, mt19937_state *state) {
	uniform_(data, n, 0, 1, state);
	for (size_t at = 0; at < n / 16 * 16; at += 16) box_muller_16(&data[at], std);
	if (n % 16 != 0) {
		float *last = &data[n - 16];
		uniform_(last, 16, 0, 1, state);
		box_muller_16(last, std);
	}
}

static void fill(float *to, size_t n, float value) {
	while (n--) *to++ = value;
}

// Sets every field: fresh parameters, the rest empty; the caller frees with gpt2_free. LayerNorm
// weights are 1, biases 0, all other tensors initial_normals of std 0.02 (attprojw and fcprojw:
// 0.02 / sqrt(2L)), from one generator with this seed: wte, of which (V,C) is drawn and the padding
// is 0; wpe; then for each layer qkvw, attprojw, fcw, fcprojw. Sizes that cannot be end the program
// with one line.
static inline void gpt2_init_random(GPT2 *model, GPT2Config config, unsigned long long seed) {
	must_config(config, "gpt2_init_random");
	gpt2_allocate(model, config);
	Parameters at = model->params;	// moves on, layer by layer
	size_t C = config.channels;
	mt19937_state state;
	manual_seed(&state, seed);
	initial_normals(at.wte, C * config.vocab_size, INIT_STD, &state);
	initial_normals(at.wpe, C * config.max_seq_len, INIT_STD, &state);
	for (int l = config.num_layers; l > 0; l--) {
		double std = INIT_STD / sqrt(2 * config.num_layers);
		initial_normals(at.qkvw, 3 * C * C, INIT_STD, &state), at.qkvw += 3 * C * C;
		initial_normals(at.attprojw, C * C, std, &state), at.attprojw += C * C;
		initial_normals(at.fcw, 4 * C * C, INIT_STD, &state), at.fcw += 4 * C * C;
		initial_normals(at.fcprojw, 4 * C * C, std, &state), at.fcprojw += 4 * C * C;
		fill(at.ln1w, C, 1), at.ln1w += C;
		fill(at.ln2w, C, 1), at.ln2w += C;
	}
	fill(at.lnfw, C, 1);
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
	gpt2_take_batch(model, inputs, targets, B, T);
	const int C = model->config.channels, V = model->config.vocab_size, Vp = model->config.padded_vocab_size;
	const size_t BT = B * T, n = BT * C, m = (size_t)C * C;
	Parameters p = model->params;	// both move on, layer by layer
	Activations a = model->activations;
	float *x = a.encoded;

	encoder_forward(x, inputs, p.wte, p.wpe, B, T, C);
	for (int l = 0; l < model->config.num_layers; l++) {
		layernorm_forward(a.ln1, a.ln1_mean, a.ln1_rstd, x, p.ln1w, p.ln1b, B, T, C);
		matmul_forward(a.qkv, a.ln1, p.qkvw, p.qkvb, B, T, C, 3 * C);
		attention_forward(a.atty, a.preatt, a.att, a.qkv, B, T, C, model->config.num_heads);
		matmul_forward(a.attproj, a.atty, p.attprojw, p.attprojb, B, T, C, C);
		residual_forward(a.residual2, x, a.attproj, n);
		layernorm_forward(a.ln2, a.ln2_mean, a.ln2_rstd, a.residual2, p.ln2w, p.ln2b, B, T, C);
		matmul_forward(a.fch, a.ln2, p.fcw, p.fcb, B, T, C, 4 * C);
		gelu_forward(a.fch_gelu, a.fch, 4 * n);
		matmul_forward(a.fcproj, a.fch_gelu, p.fcprojw, p.fcprojb, B, T, 4 * C, C);
		residual_forward(a.residual3, a.fcproj, a.residual2, n);
		x = a.residual3;

		p.ln1w += C, p.ln1b += C, p.qkvw += 3 * m, p.qkvb += 3 * C, p.attprojw += m, p.attprojb += C;
		p.ln2w += C, p.ln2b += C, p.fcw += 4 * m, p.fcb += 4 * C, p.fcprojw += 4 * m, p.fcprojb += C;
		a.ln1 += n, a.ln1_mean += BT, a.ln1_rstd += BT, a.qkv += 3 * n, a.atty += n, a.attproj += n;
		a.preatt += BT * T * model->config.num_heads, a.att += BT * T * model->config.num_heads;
		a.residual2 += n, a.ln2 += n, a.ln2_mean += BT, a.ln2_rstd += BT, a.fch += 4 * n, a.fch_gelu += 4 * n;
		a.fcproj += n, a.residual3 += n;
	}
	layernorm_forward(a.lnf, a.lnf_mean, a.lnf_rstd, x, p.lnfw, p.lnfb, B, T, C);
	memset(a.logits, 0, BT * Vp * sizeof(float));
	for (size_t i = 0; i < BT; i++)		// the padding stays as it is
		matmul_forward(a.logits + i * Vp, a.lnf + i * C, p.wte, NULL, 1, 1, C, V);
	softmax_forward(a.probs, a.logits, B, T, V, Vp);
	model->mean_loss = targets ? 0.0f : -1.0f;
	if (!targets) return;
	crossentropy_forward(a.losses, a.probs, targets, B, T, Vp);
	for (size_t i = 0; i < BT; i++) model->mean_loss += a.losses[i] / BT;
}

// Sets the gradients of parameters and activations to 0; the first call allocates them. Behind a
// gpt2_forward.
static inline void gpt2_zero_grad(GPT2 *model) {
	size_t sizes[NUM_ACTIVATION_TENSORS];
	float **grads = &model->grads_memory, **acts = &model->activation_grads_memory;
	if (!*grads) *grads = must_malloc(model->num_parameters * sizeof **grads);
	if (!*acts) *acts = must_malloc(model->num_activations * sizeof **acts);
	activation_sizes(sizes, model->config, model->max_B, model->max_T);
	place_parameters(&model->grads, *grads, model->param_sizes);	// the same places each time
	place_activations(&model->activation_grads, *acts, sizes);
	fill(*grads, model->num_parameters, 0);
	fill(*acts, model->num_activations, 0);
}

// Layer l's part of every tensor.
static Parameters parameters_of(Parameters p, size_t l, size_t C) {
	p.ln1w += l * C, p.ln1b += l * C, p.ln2w += l * C, p.ln2b += l * C;
	p.qkvw += l * 3 * C * C, p.qkvb += l * 3 * C;
	p.attprojw += l * C * C, p.attprojb += l * C;
	p.fcw += l * 4 * C * C, p.fcb += l * 4 * C;
	p.fcprojw += l * 4 * C * C, p.fcprojb += l * C;
	return p;
}

// The same; n is B T C, rows is B T, scores is B NH T T.
static Activations activations_of(Activations a, size_t l, size_t n, size_t rows, size_t scores) {
	a.ln1 += l * n, a.ln1_mean += l * rows, a.ln1_rstd += l * rows, a.qkv += l * 3 * n;
	a.preatt += l * scores, a.att += l * scores, a.atty += l * n, a.attproj += l * n, a.residual2 += l * n;
	a.ln2 += l * n, a.ln2_mean += l * rows, a.ln2_rstd += l * rows;
	a.fch += l * 4 * n, a.fch_gelu += l * 4 * n, a.fcproj += l * n, a.residual3 += l * n;
	return a;
}

// grads += d mean_loss / d params, for the last gpt2_forward. Behind a gpt2_zero_grad. Without
// targets, or without gpt2_zero_grad, it ends the program with one line that says so.
static inline void gpt2_backward(GPT2 *model) {
	if (model->mean_loss < 0) die("pass targets to gpt2_forward", "gpt2_backward has no targets");
	if (!model->grads_memory) die("gpt2_zero_grad comes before it", "gpt2_backward has no gradients to add to");
	const size_t B = model->batch_size, T = model->seq_len, C = model->config.channels, L = model->config.num_layers;
	const size_t NH = model->config.num_heads, V = model->config.vocab_size, Vp = model->config.padded_vocab_size;
	const size_t BT = B * T, n = BT * C, scores = BT * T * NH;
	const Activations all = model->activations, dall = model->activation_grads;

	float *dloss = dall.losses;
	fill(dloss, BT, (float)(1.0 / BT));
	crossentropy_softmax_backward(dall.logits, dloss, all.probs, model->targets, B, T, V, Vp);
	for (size_t i = 0; i < BT; i++)
		matmul_backward(dall.lnf + i * C, model->grads.wte, NULL, dall.logits + i * Vp, all.lnf + i * C,
				model->params.wte, 1, 1, C, V);
	layernorm_backward(dall.residual3 + (L - 1) * n, model->grads.lnfw, model->grads.lnfb, dall.lnf,
			   all.residual3 + (L - 1) * n, model->params.lnfw, all.lnf_mean, all.lnf_rstd, B, T, C);
	for (size_t l = L - 1; l < L; l--) {	// until it wraps around
		const Parameters p = parameters_of(model->params, l, C), dp = parameters_of(model->grads, l, C);
		const Activations a = activations_of(all, l, n, BT, scores), d = activations_of(dall, l, n, BT, scores);
		const float *x = l ? a.residual3 - n : all.encoded;
		float *dx = l ? d.residual3 - n : dall.encoded;

		residual_backward(d.fcproj, d.residual2, d.residual3, n);
		matmul_backward(d.fch_gelu, dp.fcprojw, dp.fcprojb, d.fcproj, a.fch_gelu, p.fcprojw, B, T, 4 * C, C);
		gelu_backward(d.fch, a.fch, d.fch_gelu, 4 * n);
		matmul_backward(d.ln2, dp.fcw, dp.fcb, d.fch, a.ln2, p.fcw, B, T, C, 4 * C);
		layernorm_backward(d.residual2, dp.ln2w, dp.ln2b, d.ln2, a.residual2, p.ln2w, a.ln2_mean, a.ln2_rstd, B, T, C);
		residual_backward(d.attproj, dx, d.residual2, n);
		matmul_backward(d.atty, dp.attprojw, dp.attprojb, d.attproj, a.atty, p.attprojw, B, T, C, C);
		attention_backward(d.qkv, d.preatt, d.att, d.atty, a.qkv, a.att, B, T, C, NH);
		matmul_backward(d.ln1, dp.qkvw, dp.qkvb, d.qkv, a.ln1, p.qkvw, B, T, C, 3 * C);
		layernorm_backward(dx, dp.ln1w, dp.ln1b, d.ln1, x, p.ln1w, a.ln1_mean, a.ln1_rstd, B, T, C);
	}
	encoder_backward(model->grads.wte, model->grads.wpe, dall.encoded, model->inputs, B, T, C);
}

// One step of AdamW on all parameters (see adamw.h); t >= 1 is the number of this step.
// weight_decay is for the matrices (wte wpe qkvw attprojw fcw fcprojw); all others get 0. Behind a
// gpt2_backward.
static inline void gpt2_update(GPT2 *model, float lr, float beta1, float beta2, float eps,
                               float weight_decay, int t) {
	// 'm' is a matrix, 'v' a vector; in the order of Parameters
	static const char kinds[] = "mmvvmvmvvvmvmvvv";
	float **moments[] = { &model->m_memory, &model->v_memory };
	for (int i = 0; i < 2; i++) {
		if (*moments[i]) continue;
		*moments[i] = must_malloc(model->num_parameters * sizeof(float));
		fill(*moments[i], model->num_parameters, 0);
	}
	float *p = model->params_memory, *g = model->grads_memory, *m = model->m_memory, *v = model->v_memory;
	for (const char *kind = kinds; *kind; kind++) {
		const size_t n = model->param_sizes[kind - kinds];
		adamw_update(p, g, m, v, n, lr, beta1, beta2, eps, *kind == 'm' ? weight_decay : 0, t);
		p += n, g += n, m += n, v += n;
	}
}

#endif
