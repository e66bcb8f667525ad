// model.c: observes the forward half of llmc/model.h.
#include "llmc/model.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "given.h"
#include "given_model.h"
#include "observe.h"

#define GIVEN_PATH "given.bin"

// Fields of the config, in the order of the struct.
static void observe_config(GPT2Config c) {
    const int32_t fields[6] = {c.max_seq_len, c.vocab_size, c.padded_vocab_size,
                               c.num_layers,  c.num_heads,  c.channels};
    observe_i32("config", fields, 6);
}

// Where each tensor starts, counted in floats.
static void observe_places(const GPT2 *model) {
    const Parameters *p = &model->params;
    const float *starts[NUM_PARAMETER_TENSORS] = {
        p->wte,  p->wpe,  p->ln1w, p->ln1b, p->qkvw,    p->qkvb,    p->attprojw, p->attprojb,
        p->ln2w, p->ln2b, p->fcw,  p->fcb,  p->fcprojw, p->fcprojb, p->lnfw,     p->lnfb};
    int32_t places[NUM_PARAMETER_TENSORS];
    for (int i = 0; i < NUM_PARAMETER_TENSORS; i++) {
        const ptrdiff_t place = starts[i] - model->params_memory;
        places[i] = place < 0 || place > 1 << 24 ? -1 : (int32_t)place;
    }
    observe_i32("places", places, NUM_PARAMETER_TENSORS);
}

// Of what stays empty until it is needed: how many fields are not.
static void observe_empty(const GPT2 *m) {
    observe_int("not_empty", (m->grads_memory != NULL) + (m->m_memory != NULL) +
                                 (m->v_memory != NULL) + (m->activations_memory != NULL) +
                                 (m->activation_grads_memory != NULL) + (m->inputs != NULL) +
                                 (m->targets != NULL) + (m->max_B != 0) + (m->max_T != 0));
}

// A checkpoint of the first exam's model, of which change(header, parameters) may spoil something;
// `more` floats are written behind it, or left out.
static void given_checkpoint(uint64_t seed, void (*change)(int32_t *header, float *params),
                             int more) {
    GPT2 model;
    given_model(&model, given_exams[0], seed);
    const GPT2Config *sizes = &model.config;
    int32_t header[256] = {20240326, 3};
    header[2] = sizes->max_seq_len;
    header[3] = sizes->vocab_size;
    header[4] = sizes->num_layers;
    header[5] = sizes->num_heads;
    header[6] = sizes->channels;
    header[7] = sizes->padded_vocab_size;
    if (change != NULL) change(header, model.params_memory);
    FILE *file = given_file(GIVEN_PATH);
    const float beyond = 0.0f;
    given_write(file, header, sizeof(int32_t), 256);
    given_write(file, model.params_memory, sizeof(float),
                model.num_parameters - (more < 0 ? (size_t)-more : 0));
    if (more > 0) given_write(file, &beyond, sizeof(float), 1);
    fclose(file);
    free(model.params_memory);
}

static void case_build(uint64_t seed) {
    GPT2 model;
    memset(&model, 0xA5, sizeof(model));
    given_checkpoint(seed, NULL, 0);
    gpt2_build_from_checkpoint(&model, GIVEN_PATH);
    observe_config(model.config);
    observe_int("num_parameters", (int64_t)model.num_parameters);
    observe_places(&model);
    observe_empty(&model);
    observe_f32("params", model.params_memory, model.num_parameters);
}

static void call_build(const char *path) {
    GPT2 model;
    gpt2_build_from_checkpoint(&model, path);
}

static void given_magic(int32_t *header, float *params) {
    (void)params;
    header[0]++;
}

static void given_version(int32_t *header, float *params) {
    (void)params;
    header[1] = 1;
}

static void given_no_layer(int32_t *header, float *params) {
    (void)params;
    header[4] = 0;
}

static void given_huge(int32_t *header, float *params) {
    (void)params;
    header[3] = header[7] = 0x7fffff80;
}

static void given_heads(int32_t *header, float *params) {
    (void)params;
    header[5] = 5;
}

static void given_padding(int32_t *header, float *params) {
    (void)params;
    header[7] = header[3] - 1;
}

static void given_nan(int32_t *header, float *params) {
    (void)header;
    params[77] = NAN;
}

static void given_infinity(int32_t *header, float *params) {
    (void)header;
    params[78] = -INFINITY;
}

static void case_build_refused(uint64_t seed) {
    static const struct {
        const char *name;
        void (*change)(int32_t *header, float *params);
        int more;
    } files[] = {
        {"good", NULL, 0},
        {"magic", given_magic, 0},
        {"version", given_version, 0},
        {"no_layer", given_no_layer, 0},
        {"huge", given_huge, 0},
        {"heads", given_heads, 0},
        {"padding", given_padding, 0},
        {"nan", given_nan, 0},
        {"infinity", given_infinity, 0},
        {"short", NULL, -1},
        {"long", NULL, 1},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        given_checkpoint(seed, files[i].change, files[i].more);
        observe_ending(files[i].name, call_build, GIVEN_PATH);
    }
    observe_ending("missing", call_build, "there-is-no-such-file.bin");
}

static void call_write(const char *path) {
    GPT2 model;
    given_model(&model, given_exams[0], 0);
    gpt2_write_checkpoint(&model, path);
    free(model.params_memory);
}

// Where so many bytes less fit into a file than a checkpoint has.
static void call_write_full(const char *missing) {
    GPT2 model;
    given_model(&model, given_exams[0], 0);
    const rlim_t bytes = 256 * sizeof(int32_t) + model.num_parameters * sizeof(float);
    const struct rlimit most = {bytes - (rlim_t)atoi(missing), bytes};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &most) != 0) abort();
    gpt2_write_checkpoint(&model, GIVEN_PATH);
    free(model.params_memory);
}

static void case_write(uint64_t seed) {
    GPT2 model;
    given_model(&model, given_exams[0], seed);
    FILE *older = given_file(GIVEN_PATH);  // that somebody reads meanwhile
    given_write(older, "older", 1, 5);
    fclose(older);
    older = fopen(GIVEN_PATH, "rb");
    if (older == NULL) abort();
    int32_t header[256] = {0};
    const size_t count = model.num_parameters;
    float *params = given_same(0.0f, count);
    gpt2_write_checkpoint(&model, GIVEN_PATH);
    FILE *file = fopen(GIVEN_PATH, "rb");
    if (file == NULL) abort();
    size_t read = fread(header, sizeof(int32_t), 256, file);
    read += fread(params, sizeof(float), count, file);
    observe_int("read", (int64_t)read);
    observe_int("beyond", fgetc(file) != EOF);
    observe_i32("header", header, 256);
    observe_f32("params", params, count);
    fclose(file);
    observe_int("unchanged", model.num_parameters == count);
    char text[16] = {0};
    observe_u8("older", text, fread(text, 1, sizeof(text), older));
    fclose(older);
    observe_ending("good", call_write, GIVEN_PATH);
    observe_ending("no_folder", call_write, "no-such-folder/model.bin");
    if (mkdir("folder.bin", 0700) != 0) abort();
    fclose(given_file("folder.bin/file"));
    observe_ending("folder", call_write, "folder.bin");
    observe_ending("full", call_write_full, "20000");
    observe_ending("full_late", call_write_full, "1");
    free(params);
    free(model.params_memory);
}

static void case_normals(uint64_t seed) {
    static const struct {
        const char *name;
        size_t n;
    } sizes[] = {{"16", 16}, {"48", 48}, {"20", 20}, {"31", 31}};
    for (size_t i = 0; i < 4; i++) {
        char name[16];
        mt19937_state state;
        manual_seed(&state, (unsigned int)seed);
        float *data = given_same(777.0f, sizes[i].n);
        initial_normals(data, sizes[i].n, 0.5, &state);
        const uint32_t next = randint32(&state);
        snprintf(name, sizeof(name), "n_%s", sizes[i].name);
        observe_f32(name, data, sizes[i].n);
        snprintf(name, sizeof(name), "after_%s", sizes[i].name);
        observe_u32(name, &next, 1);
        free(data);
    }
}

static const GivenTiny given_fresh = {"fresh", 5, 7, 2, 2, 4, 1, 5};

static void case_init(uint64_t seed) {
    GPT2 model;
    memset(&model, 0xA5, sizeof(model));
    GPT2Config config = given_config(given_fresh);
    config.padded_vocab_size = 8;
    gpt2_init_random(&model, config, (unsigned int)seed);
    observe_config(model.config);
    observe_places(&model);
    observe_empty(&model);
    observe_f32("params", model.params_memory, model.num_parameters);
}

static void call_init(const char *heads) {
    GPT2 model;
    GPT2Config config = given_config(given_fresh);
    config.num_heads = atoi(heads);
    gpt2_init_random(&model, config, 1);
}

static void case_init_refused(uint64_t seed) {
    (void)seed;
    observe_ending("good", call_init, "2");
    observe_ending("heads", call_init, "3");
    observe_ending("no_head", call_init, "0");
}

// What a forward pass leaves for the backward pass: of each tensor the squares of each layer, added
// up.
static void observe_kept(const char *sample, const GPT2 *model, size_t B, size_t T) {
    const Activations *a = &model->activations;
    const size_t L = (size_t)model->config.num_layers, C = (size_t)model->config.channels;
    const size_t n = B * T, shares = n * (size_t)model->config.num_heads * T;
    const struct {
        const char *name;
        const float *tensor;
        size_t layers, size;
    } kept[] = {
        {"encoded_squares", a->encoded, 1, n * C},
        {"ln1_squares", a->ln1, L, n * C},
        {"ln1_mean_squares", a->ln1_mean, L, n},
        {"ln1_rstd_squares", a->ln1_rstd, L, n},
        {"qkv_squares", a->qkv, L, 3 * n * C},
        {"att_squares", a->att, L, shares},
        {"atty_squares", a->atty, L, n * C},
        {"residual2_squares", a->residual2, L, n * C},
        {"ln2_squares", a->ln2, L, n * C},
        {"ln2_mean_squares", a->ln2_mean, L, n},
        {"ln2_rstd_squares", a->ln2_rstd, L, n},
        {"fch_squares", a->fch, L, 4 * n * C},
        {"fch_gelu_squares", a->fch_gelu, L, 4 * n * C},
        {"residual3_squares", a->residual3, L, n * C},
        {"lnf_squares", a->lnf, 1, n * C},
        {"lnf_mean_squares", a->lnf_mean, 1, n},
        {"lnf_rstd_squares", a->lnf_rstd, 1, n},
    };
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        float sums[8];
        for (size_t l = 0; l < kept[i].layers; l++) {
            const float *part = kept[i].tensor + l * kept[i].size;
            double sum = 0.0;
            for (size_t k = 0; k < kept[i].size; k++) sum += (double)part[k] * (double)part[k];
            sums[l] = (float)sum;
        }
        observe_tensor(sample, kept[i].name, sums, kept[i].layers);
    }
}

// A model whose padding is not 0, then a smaller batch on the same model, and one without targets.
static void case_forward(uint64_t seed) {
    const GivenTiny s = given_exams[0];
    GPT2 model;
    given_model(&model, s, seed);
    int *x = given_batch(s, seed), *y = x + (size_t)s.B * s.T;
    const size_t B = (size_t)s.B, T = (size_t)s.T;
    for (size_t i = (size_t)s.V * s.C; i < model.param_sizes[0]; i++) model.params.wte[i] = 1.0f;
    given_text(s);
    gpt2_forward(&model, x, y, B, T);
    observe_logits("plain_logits_f32", &model, B * T);
    observe_tensor("plain", "probs", model.activations.probs, B * T * 128);
    observe_tensor("plain", "losses", model.activations.losses, B * T);
    observe_tensor("plain", "mean_loss", &model.mean_loss, 1);
    observe_sample("edge_kept", "the same, squares of what a layer keeps, added up");
    observe_kept("edge_kept", &model, B, T);
    observe_sample("edge_smaller", "the same model, then a batch (1,4)");
    gpt2_forward(&model, x, y, 1, 4);
    observe_logits("edge_smaller_logits_f32", &model, 4);
    observe_tensor("edge_smaller", "mean_loss", &model.mean_loss, 1);
    observe_kept("edge_smaller", &model, 1, 4);
    observe_sample("edge_bare", "the same without targets");
    gpt2_forward(&model, x, NULL, B, T);
    observe_logits("edge_bare_logits_f32", &model, B * T);
    observe_tensor("edge_bare", "mean_loss", &model.mean_loss, 1);
    int32_t padding = 0;
    for (size_t i = 0; i < B * T * 128; i++) {
        padding += i % 128 >= (size_t)s.V && model.activations.logits[i] != 0.0f;
    }
    observe_i32("padding", &padding, 1);
}

// B, T and a token that stands in a batch, as in "1 8 0".
static void call_forward(const char *sizes) {
    GPT2 model;
    int x[64] = {0}, B = 0, T = 0;
    given_model(&model, given_exams[0], 0);
    if (sscanf(sizes, "%d %d %d", &B, &T, &x[3]) != 3) abort();
    gpt2_forward(&model, x, x, (size_t)B, (size_t)T);
}

static void call_forward_larger(const char *larger) {
    GPT2 model;
    int x[64] = {0};
    given_model(&model, given_exams[0], 0);
    gpt2_forward(&model, x, x, 2, 4);
    gpt2_forward(&model, x, x, larger[0] == 'B' ? 3 : 2, larger[0] == 'T' ? 5 : 4);
}

static void case_forward_refused(uint64_t seed) {
    (void)seed;
    observe_ending("good", call_forward, "1 7 18");
    observe_ending("long", call_forward, "1 8 0");
    observe_ending("beyond", call_forward, "1 7 19");
    observe_ending("negative", call_forward, "1 7 -1");
    observe_ending("larger_B", call_forward_larger, "B");
    observe_ending("larger_T", call_forward_larger, "T");
}

// Logits and loss of models as if trained, and of two as they are drawn.
static void case_exam(uint64_t seed) {
    for (size_t i = 0; i < GIVEN_EXAMS + 2; i++) {
        GivenTiny s = given_exams[i % GIVEN_EXAMS];
        GPT2 model;
        char name[64];
        if (i < GIVEN_EXAMS) {
            given_model(&model, s, seed);
        } else {
            s = (GivenTiny){i == GIVEN_EXAMS ? "initial" : "initial_one", 8, 131, 2, 2, 8, 2, 6};
            if (i > GIVEN_EXAMS) s.B = s.T = 1;
            gpt2_init_random(&model, given_config(s), (unsigned int)seed);
        }
        int *x = given_batch(s, seed), *y = x + (size_t)s.B * s.T;
        given_text(s);
        gpt2_forward(&model, x, y, (size_t)s.B, (size_t)s.T);
        snprintf(name, sizeof(name), "%s_logits_f32", s.name);
        observe_logits(name, &model, (size_t)s.B * s.T);
        observe_tensor(s.name, "loss", &model.mean_loss, 1);
        free(x);
    }
}

// Each function once, and nothing is left.
static void case_life(uint64_t seed) {
    GPT2 model;
    const GivenTiny s = given_exams[0];
    int *x = given_batch(s, seed);
    given_checkpoint(seed, NULL, 0);
    const int before = observe_open_files();
    gpt2_build_from_checkpoint(&model, GIVEN_PATH);
    gpt2_forward(&model, x, x + (size_t)s.B * s.T, (size_t)s.B, (size_t)s.T);
    gpt2_write_checkpoint(&model, GIVEN_PATH);
    observe_logits("logits", &model, (size_t)s.B * s.T);
    gpt2_forward(&model, x, NULL, 1, 4);
    gpt2_free(&model);
    gpt2_init_random(&model, given_config(given_fresh), 1);
    gpt2_free(&model);
    memset(&model, 0, sizeof(model));
    free(x);
    observe_int("files_left_open", observe_open_files() - before);
    observe_leaks("leaks");
}

const ObserveCase observe_cases[] = {
    {"build", case_build},
    {"build_refused", case_build_refused},
    {"write", case_write},
    {"normals", case_normals},
    {"init", case_init},
    {"init_refused", case_init_refused},
    {"forward", case_forward},
    {"forward_refused", case_forward_refused},
    {"exam", case_exam},
    {"life", case_life},
    {NULL, NULL},
};
