"""sampler.py as C would be written: loops over numbers, one after the other."""
import math

import numpy


def random_u32(state):
    if state < 1 or state >= 1 << 64:
        raise ValueError("state = %d" % state)
    state = state ^ (state >> 12)
    state = (state ^ (state << 25)) % (1 << 64)
    state = state ^ (state >> 27)
    return (state * 0x2545F4914F6CDD1D) // (1 << 32) % (1 << 32), state


def random_f32(state):
    draw, state = random_u32(state)
    return float(numpy.float32(draw >> 8) / numpy.float32(16777216.0)), state


def sample_softmax(logits, coin):
    n = len(logits)
    if n == 0:
        raise ValueError("n = 0")
    for i in range(n):
        if math.isnan(logits[i]):
            raise ValueError("logit %d = nan" % i)
    if not (0.0 <= coin and coin < 1.0):
        raise ValueError("coin = %f" % coin)
    norm = 0.0
    for i in range(n):
        norm += math.exp(logits[i])
    coin *= norm
    cdf = 0.0
    for i in range(n):
        cdf += math.exp(logits[i])
        if coin < cdf:
            return i
    return n - 1


def check_sampling(logits, temperature, top_k, top_p):
    if len(logits.shape) != 1 or logits.shape[0] == 0:
        raise ValueError("n = 0" if logits.size == 0 else "shape " + str(logits.shape))
    allowed = 0
    for i in range(len(logits)):
        if math.isnan(logits[i]) or logits[i] == math.inf:
            raise ValueError("logit %d = %f" % (i, logits[i]))
        if logits[i] != -math.inf:
            allowed += 1
    if allowed == 0:
        raise ValueError("every logit = -inf")
    if math.isnan(temperature) or math.isinf(temperature) or temperature < 0:
        raise ValueError("temperature = %s" % temperature)
    if top_k is not None:
        if top_k < 1:
            raise ValueError("top_k = %d" % top_k)
    if top_p is not None:
        if math.isnan(top_p) or top_p <= 0 or top_p > 1:
            raise ValueError("top_p = %s" % top_p)


def softmax_weights(logits, temperature):
    n = len(logits)
    weights = numpy.empty(n, dtype=numpy.float64)
    largest = -math.inf
    for i in range(n):
        z = float(logits[i]) / temperature
        if z > largest:
            largest = z
    if math.isinf(largest):
        raise ValueError("temperature = %s" % temperature)
    for i in range(n):
        weights[i] = math.exp(float(logits[i]) / temperature - largest)
    return weights


def cut(weights, top_k=None, top_p=None):
    n = len(weights)
    kept = [True] * n
    if top_k is not None:
        for _ in range(n - top_k):  # the smallest goes, of equal ones the last
            smallest = -1
            for i in range(n):
                if kept[i] and (smallest < 0 or weights[i] <= weights[smallest]):
                    smallest = i
            kept[smallest] = False
    if top_p is not None and top_p != 1:
        total = 0.0
        for i in range(n):
            if kept[i]:
                total += weights[i]
        left, kept, together = kept, [False] * n, 0.0
        while together < top_p * total:
            largest = -1
            for i in range(n):
                if left[i] and (largest < 0 or weights[i] > weights[largest]):
                    largest = i
            if largest < 0:
                break
            left[largest], kept[largest] = False, True
            together += weights[largest]
    result = numpy.zeros(n)
    for i in range(n):
        if kept[i]:
            result[i] = weights[i]
    return result


def sample_pcg(logits, temperature, rng, top_k=None, top_p=None):
    check_sampling(logits, temperature, top_k, top_p)
    if temperature == 0:
        best = 0
        for i in range(1, len(logits)):
            if logits[i] > logits[best]:
                best = i
        return best
    weights = cut(softmax_weights(logits, temperature), top_k, top_p)
    total = 0.0
    for weight in weights:
        total += weight
    limit = rng.uniform() * total
    running = 0.0
    for i, weight in enumerate(weights):
        running += weight
        if running > limit:
            return i
    raise AssertionError("u is less than 1")
