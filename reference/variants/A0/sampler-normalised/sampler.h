// sampler.h: float throughout: expf, a float sum, probabilities normalised into a malloc'd array, one exit.
#ifndef LLMC_SAMPLER_H
#define LLMC_SAMPLER_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "todo.h"

static inline unsigned int random_u32(unsigned long long *state)
{
	assert(*state != 0);
	*state = *state ^ (*state >> 12);
	*state = *state ^ (*state << 25);
	*state = *state ^ (*state >> 27);
	unsigned long long product = *state * 0x2545F4914F6CDD1Dull;
	return product / 4294967296;
}

static inline float random_f32(unsigned long long *state)
{
	return (random_u32(state) >> 8) * 0x1p-24f;
}

static void softmax(float *probabilities, const float *logits, int n)
{
	float maximum = logits[0], sum = 0.0f;
	for (int i = 1; i < n; i++)
		if (logits[i] > maximum)
			maximum = logits[i];
	for (int i = 0; i < n; i++)
		sum += probabilities[i] = expf(logits[i] - maximum);
	for (int i = 0; i < n; i++)
		probabilities[i] /= sum;
}

static inline int sample_softmax(const float *logits, int n, float coin)
{
	float *probabilities = (float *)malloc(n * sizeof(float));
	assert(probabilities != NULL);
	softmax(probabilities, logits, n);
	int chosen = n - 1;
	float running = 0.0f;
	bool found = false;
	for (int i = 0; i < n && !found; i++) {
		running += probabilities[i];
		if (coin < running) {
			chosen = i;
			found = true;
		}
	}
	free(probabilities);
	return chosen;
}

#endif
