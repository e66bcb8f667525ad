// train_gpt2.c: trains GPT-2 on shards of tokens, with nothing but llmc/*.h.
//
//     make train_gpt2 && build/train_gpt2            41 steps on the shards that `make data` wrote
//     build/train_gpt2 --help                        all options
//
// A line for each step goes to the terminal, and to main.log in --out.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "llmc/dataloader.h"
#include "llmc/model.h"
#include "llmc/options.h"
#include "llmc/sampler.h"
#include "llmc/tokenizer.h"
#include "llmc/utils.h"

#define VALIDATE_EVERY 10  // steps
#define VALIDATION_BATCHES 5
#define SAMPLED 64  // tokens at the end
#define BETA1 0.9f
#define BETA2 0.999f
#define EPS 1e-8f

typedef struct {
    const char *model, *train, *val, *tokenizer, *out, *checkpoint;
    int B, T, steps, seed;
    float lr, decay;
} Settings;

static const struct {
    const char *name;
    int L, NH, C;
} SIZES[] = {
    {"d2", 2, 2, 128},    {"d4", 4, 4, 256},     {"d6", 6, 6, 384},
    {"d12", 12, 12, 768}, {"d24", 24, 16, 1024},
};

// A checkpoint, or a fresh model of one of the sizes above.
static void make_model(GPT2 *model, const Settings *s) {
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
        if (strcmp(SIZES[i].name, s->model) == 0) {
            const GPT2Config config = {
                .max_seq_len = 1024,
                .vocab_size = 50257,
                .padded_vocab_size = 50304,
                .num_layers = SIZES[i].L,
                .num_heads = SIZES[i].NH,
                .channels = SIZES[i].C,
            };
            gpt2_init_random(model, config, (unsigned long long)s->seed);
            return;
        }
    }
    gpt2_build_from_checkpoint(model, s->model);
}

// The mean loss of the first batches of the validation shards.
static double validate(GPT2 *model, DataLoader *loader) {
    double sum = 0.0;
    dataloader_reset(loader);
    for (int i = 0; i < VALIDATION_BATCHES; i++) {
        dataloader_next_batch(loader);
        gpt2_forward(model, loader->inputs, loader->targets, loader->B, loader->T);
        sum += (double)model->mean_loss;
    }
    return sum / VALIDATION_BATCHES;
}

// Prints a text of SAMPLED tokens; each costs a forward over those before it.
static void sample(GPT2 *model, Tokenizer *tokenizer, const Settings *s) {
    unsigned long long state = (unsigned long long)s->seed + 1;
    int tokens[SAMPLED] = {tokenizer->init_ok ? tokenizer->eot_token : 0};
    const int limit = s->T < SAMPLED ? s->T : SAMPLED;
    for (int t = 1; t < limit; t++) {
        gpt2_forward(model, tokens, NULL, 1, (size_t)t);
        const size_t last = (size_t)(t - 1) * (size_t)model->config.padded_vocab_size;
        const float *logits = model->activations.logits + last;
        tokens[t] = sample_softmax(logits, model->config.vocab_size, random_f32(&state));
        if (tokenizer->init_ok) {
            safe_printf(tokenizer_decode(tokenizer, (uint32_t)tokens[t]));
        } else {
            printf("%d ", tokens[t]);
        }
        fflush(stdout);
    }
    printf("\n");
}

static double seconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// One step on the next batch; returns its loss from before the update.
static float train_step(GPT2 *model, DataLoader *loader, const Settings *s, int step) {
    dataloader_next_batch(loader);
    gpt2_forward(model, loader->inputs, loader->targets, loader->B, loader->T);
    const float loss = model->mean_loss;
    gpt2_zero_grad(model);
    gpt2_backward(model);
    gpt2_update(model, s->lr, BETA1, BETA2, EPS, s->decay, step);
    return loss;
}

// `step N val X` now and then, `step N train X lr Y ms Z` each step: to the terminal and the log.
static void train(GPT2 *model, DataLoader *shards, DataLoader *val, const Settings *s, FILE *log) {
    for (int step = 1; step <= s->steps; step++) {
        if (val != NULL && (step % VALIDATE_EVERY == 1 || step == s->steps)) {
            const double loss = validate(model, val);
            printf("val loss %f\n", loss);
            fprintf(log, "step %d val %.9g\n", step, loss);
        }
        const double start = seconds();
        const float loss = train_step(model, shards, s, step);
        const double spent = seconds() - start;
        printf("step %4d/%d  loss %f  %7.0f ms  %6.0f tokens/s\n", step, s->steps, (double)loss,
               1000.0 * spent, (double)(s->B * s->T) / spent);
        fprintf(log, "step %d train %.9g lr %g ms %.1f\n", step, (double)loss, (double)s->lr,
                1000.0 * spent);
        fflush(stdout);
        fflush(log);
        if (!isfinite(loss))
            die("a smaller --lr?", "the loss is %f in step %d", (double)loss, step);
    }
}

// Opens shards if there are any of this pattern; `name` says what for.
static int open_shards(DataLoader *loader, const char *pattern, const Settings *s) {
    glob_t found;
    const int is_there = glob(pattern, 0, NULL, &found) == 0;
    if (is_there) {
        globfree(&found);
        dataloader_init(loader, pattern, (size_t)s->B, (size_t)s->T, 0, 1, 1);
    }
    return is_there;
}

int main(int argc, char **argv) {
    Settings s = {
        .model = "d2",
        .train = ".data/*_train_*.bin",
        .val = ".data/*_val_*.bin",
        .tokenizer = ".data/gpt2_tokenizer.bin",
        .out = ".data",
        .checkpoint = NULL,
        .B = 4,
        .T = 64,
        .steps = 41,
        .seed = 42,
        .lr = 1e-3f,
        .decay = 0.0f,
    };
    const Option options[] = {
        {"--model", 's', &s.model, "d2 d4 d6 d12 d24, or a checkpoint"},
        {"--data", 's', &s.train, "training shards"},
        {"--val", 's', &s.val, "validation shards"},
        {"--tokenizer", 's', &s.tokenizer, "the vocabulary, for the sample"},
        {"--out", 's', &s.out, "folder of main.log"},
        {"--checkpoint", 's', &s.checkpoint, "file to write at the end"},
        {"-B", 'i', &s.B, "rows of a batch"},
        {"-T", 'i', &s.T, "tokens of a row"},
        {"--steps", 'i', &s.steps, "updates"},
        {"--seed", 'i', &s.seed, "of a fresh model, and of the sample"},
        {"--lr", 'f', &s.lr, "learning rate"},
        {"--decay", 'f', &s.decay, "weight decay of matrices"},
        {NULL, 0, NULL, NULL},
    };
    take_options(argc, argv, "Trains GPT-2 on shards of tokens.", options);
    if (s.B < 1 || s.T < 1) die("at least 1 of each", "a batch (%d,%d)", s.B, s.T);
    GPT2 model;
    DataLoader shards, val;
    Tokenizer tokenizer;
    if (!open_shards(&shards, s.train, &s)) die("run `make data`", "%s: no shard", s.train);
    const int has_val = open_shards(&val, s.val, &s);
    tokenizer_init(&tokenizer, s.tokenizer);
    make_model(&model, &s);
    printf("%s: %zu parameters\n", s.model, model.num_parameters);
    const size_t length = strlen(s.out) + sizeof("/main.log");
    char *path = must_malloc(length);
    snprintf(path, length, "%s/main.log", s.out);
    FILE *log = must_open(path, "w");
    train(&model, &shards, has_val ? &val : NULL, &s, log);
    sample(&model, &tokenizer, &s);
    if (s.checkpoint != NULL) gpt2_write_checkpoint(&model, s.checkpoint);
    fclose(log);
    free(path);
    gpt2_free(&model);
    tokenizer_free(&tokenizer);
    dataloader_free(&shards);
    if (has_val) dataloader_free(&val);
    return 0;
}
