"""words.py: a module of the student's own, which others of llmc use."""
MASK64 = 2**64 - 1


def inside(name, value, low, high):
    if not (low <= value <= high):
        raise ValueError(f"{name}: {value} (want {low} to {high})")
    return value


def mixed(x, *steps):
    for shift, factor in steps:
        x = ((x ^ (x >> shift)) * factor) & MASK64
    return x
