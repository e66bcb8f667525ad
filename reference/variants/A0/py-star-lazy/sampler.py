"""sampler.py with everything imported by star, or only when it is needed, and no annotation."""
from math import *
from operator import *
from itertools import *
from llmc.rand import *

Refusal = ValueError


def random_u32(state):
    within64(state)
    for shift in (rshift, 12), (lshift, 25), (rshift, 27):
        state = and_(xor(state, shift[0](state, shift[1])), MASK64)
    return rshift(and_(mul(state, 0x2545F4914F6CDD1D), MASK64), 32), state


def within64(state):
    if not (state > 0 and state <= MASK64):
        raise Refusal("state", state)


def random_f32(state):
    value, state = random_u32(state)
    from fractions import Fraction

    return float(Fraction(value >> 8, 1 << 24)), state


def sample_softmax(logits, coin):
    import numpy

    if len(logits) < 1:
        raise Refusal("%d logits" % 0)
    if isnan(sum(logits)):
        raise Refusal("there is a nan")
    if lt(coin, 0) or ge(coin, 1):
        raise Refusal("coin", coin)
    running = numpy.fromiter(accumulate(exp(z) for z in logits), float)
    return int((running <= coin * running[-1]).sum())


def check_sampling(logits, temperature, top_k, top_p):
    import numpy

    if numpy.ndim(logits) != 1 or not len(logits):
        raise Refusal("logits", numpy.shape(logits))
    for i, logit in enumerate(logits):
        if isnan(logit) or (isinf(logit) and logit > 0):
            raise Refusal(f"logit {i}: {float(logit)}")
    if all(map(isinf, logits)):
        raise Refusal("only logits of", -inf)
    for name, value, fine in (
        ("temperature", temperature, lambda: isfinite(temperature) and temperature >= 0),
        ("top_k", top_k, lambda: top_k is None or top_k >= 1),
        ("top_p", top_p, lambda: top_p is None or (top_p > 0 and top_p <= 1)),
    ):
        if not fine():
            raise Refusal(name, value)


def softmax_weights(logits, temperature):
    import numpy, warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = numpy.array(logits, dtype="double") / temperature
    top = max(z)
    if isinf(top):
        raise Refusal("temperature", temperature)
    return numpy.array([exp(each - top) for each in z])


def cut(weights, top_k=None, top_p=None):
    import numpy

    order = sorted(range(len(weights)), key=weights.__getitem__, reverse=True)  # stable, too
    order = list(islice(order, top_k))
    if top_p is not None and top_p < 1:
        sums = list(accumulate(weights[i] for i in order))
        order = list(compress(order, [True] + [s < top_p * sums[-1] for s in sums]))
    kept = numpy.array(weights)
    numpy.put(kept, sorted(set(range(len(weights))) - set(order)), 0)
    return kept


def sample_pcg(logits, temperature, rng, top_k=None, top_p=None):
    check_sampling(logits, temperature, top_k, top_p)
    if temperature == 0:
        import numpy

        return numpy.argsort(-logits, kind="stable").tolist()[0]
    sums = [0.0, *accumulate(cut(softmax_weights(logits, temperature), top_k, top_p))]
    limit = sums[-1] * rng.uniform()
    return next(i for i, s in enumerate(sums[1:]) if s > limit)
