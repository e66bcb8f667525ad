// adamw.c: observes llmc/adamw.h.
#include "llmc/adamw.h"

#include <stdio.h>

#include "given.h"
#include "observe.h"

typedef struct {
    const char *name, *text;
    size_t count;
    float lr, beta1, beta2, eps, decay;
} GivenStep;

static const GivenStep given_steps[] = {
    {"plain", "lr 1/4, betas 0.875 and 0.96875, eps 2^-20", 7, 0.25f, 0.875f, 0.96875f, 0x1p-20f,
     0.0f},
    {"decay", "the same, decay 1/2", 7, 0.25f, 0.875f, 0.96875f, 0x1p-20f, 0.5f},
    {"edge_eps", "lr 1/4, betas 1/2 and 3/4, eps 1/4", 5, 0.25f, 0.5f, 0.75f, 0.25f, 0.0f},
    {"edge_one", "one number, decay 1/2", 1, 0.25f, 0.875f, 0.96875f, 0x1p-20f, 0.5f},
};

// Three steps from moments of 0.
static void case_steps(uint64_t seed) {
    for (size_t i = 0; i < sizeof(given_steps) / sizeof(given_steps[0]); i++) {
        const GivenStep s = given_steps[i];
        uint64_t at = 10000 * i;
        float *params = given_floats(seed, &at, s.count, 4.0f);
        float *m = given_same(0.0f, s.count), *v = given_same(0.0f, s.count);
        observe_sample(s.name, s.text);
        for (int t = 1; t <= 3; t++) {
            char name[32];
            float *grads = given_floats(seed, &at, s.count, 4.0f);
            adamw_update(params, grads, m, v, s.count, s.lr, s.beta1, s.beta2, s.eps, s.decay, t);
            snprintf(name, sizeof(name), "after_step_%d", t);
            observe_tensor(s.name, name, params, s.count);
            free(grads);
        }
        observe_tensor(s.name, "m", m, s.count);
        observe_tensor(s.name, "v", v, s.count);
        free(params);
        free(m);
        free(v);
    }
}

const ObserveCase observe_cases[] = {
    {"steps", case_steps},
    {NULL, NULL},
};
