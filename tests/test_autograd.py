"""The tensor engine: values by plain formulas, gradients by finite differences, what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from reference.llmc import autograd as ad
from reference.llmc.autograd import Array, Tensor, no_grad
from reference.llmc.rand import PCG32

Call = Callable[..., Tensor]
STEP, BOUND = 1e-5, 1e-8  # of central differences: their own error is about STEP² + 1e-16 / STEP

IDS = np.array([[0, 2, 2], [1, 0, 2]])
TARGETS = np.array([[4, -100, 0], [4, 2, -100]])  # the last class, and two to be ignored


def new(kind: Callable[..., Call], *options: object, **named: object) -> Call:
    """Calls an instance of its own each time."""
    return lambda *tensors: kind(*options, **named)(*tensors)


def part_of(parts: int, which: int) -> Call:
    return lambda x: ad.split(x, parts)[which]


# Name → (what is computed, the shapes of what it is given).
CASES: dict[str, tuple[Call, Sequence[tuple[int, ...]]]] = {
    "add": (lambda a, b: a + b, [(2, 3), (2, 3)]),
    "add, several axes": (lambda a, b: a + b, [(2, 3, 4), (3, 1)]),
    "add, both stretched": (lambda a, b: a + b, [(2, 1, 4), (3, 1)]),
    "add a number": (lambda a: 1.5 + a, [(2, 3)]),
    "add to one number": (lambda a, b: a + b, [(), (2, 3)]),
    "mul": (lambda a, b: a * b, [(2, 3), (2, 3)]),
    "mul, several axes": (lambda a, b: a * b, [(1, 3, 1), (2, 1, 4)]),
    "sub": (lambda a, b: a - b, [(2, 3), (3,)]),
    "exp": (new(ad.Exp), [(2, 3)]),
    "log": (lambda x: ad.Log()(x * x + 0.5), [(2, 3)]),
    "tanh": (new(ad.Tanh), [(2, 3)]),
    "relu": (new(ad.ReLU), [(4, 5)]),
    "gelu": (new(ad.GELU), [(4, 5)]),
    "sum": (new(ad.Sum), [(2, 3, 4)]),
    "sum, an axis": (new(ad.Sum, 1), [(2, 3, 4)]),
    "sum, axes kept": (new(ad.Sum, (0, -1), keepdims=True), [(2, 3, 4)]),
    "mean": (new(ad.Mean), [(2, 3, 4)]),
    "mean, axes": (new(ad.Mean, (0, 2)), [(2, 3, 4)]),
    "reshape": (new(ad.Reshape, 4, -1), [(2, 3, 4)]),
    "transpose": (new(ad.Transpose, 0, -1), [(2, 3, 4)]),
    "split, first": (part_of(3, 0), [(2, 6)]),
    "split, last": (part_of(3, 2), [(2, 6)]),
    "matmul": (lambda a, b: a @ b, [(2, 3), (3, 4)]),
    "matmul, one matrix for a batch": (lambda a, b: a @ b, [(2, 5, 3), (3, 4)]),
    "matmul, of a transposed": (lambda a, b: a @ ad.Transpose(0, 1)(b), [(2, 5, 3), (4, 3)]),
    "matmul, batches broadcast": (lambda a, b: a @ b, [(2, 1, 3, 4), (5, 4, 1)]),
    "embedding": (new(ad.Embedding, IDS), [(3, 4)]),
    "softmax": (new(ad.Softmax), [(2, 5)]),
    "layernorm": (new(ad.LayerNorm), [(2, 3, 5), (5,), (5,)]),
    "attention": (new(ad.CausalAttention), [(2, 3, 4, 5)] * 3),
    "attention, T = 1": (new(ad.CausalAttention), [(1, 1, 1, 3)] * 3),
    "cross entropy": (new(ad.CrossEntropy, TARGETS), [(2, 3, 5)]),
    "mse": (new(ad.MSE), [(2, 3), (2, 3)]),
    "bce": (new(ad.BCEWithLogits, np.array([0.0, 1.0, 0.3])), [(3,)]),
    "dropout": (lambda x: ad.Dropout(0.4, PCG32(3))(x), [(4, 5)]),
    "used twice": (lambda a, b: a * b + a * a, [(2, 3), (2, 3)]),
}


def given(name: str) -> list[Array]:
    random = np.random.RandomState(5)
    return [random.standard_normal(shape) for shape in CASES[name][1]]


def differences(call: Call, arrays: Sequence[Array], along: Array) -> list[Array]:
    """Central differences of Σ along * call(arrays), by each element of each array."""

    def value() -> float:
        with no_grad():
            return float((call(*map(Tensor, arrays)).data * along).sum())

    result = []
    for array in arrays:
        slopes = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            middle = array[place]
            array[place] = middle + STEP
            above = value()
            array[place] = middle - STEP
            slopes[place] = (above - value()) / (2 * STEP)
            array[place] = middle
        result.append(slopes)
    return result


pytestmark = pytest.mark.filterwarnings("error")  # of numpy's: overflow, division by 0


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_what_differences_say(name: str) -> None:
    call, arrays = CASES[name][0], given(name)
    tensors = [Tensor(array.copy(), requires_grad=True) for array in arrays]
    result = call(*tensors)
    along = np.random.RandomState(6).standard_normal(result.shape)
    result.backward(along)
    for tensor, slopes in zip(tensors, differences(call, arrays, along), strict=True):
        assert tensor.grad is not None
        assert tensor.grad.shape == tensor.shape
        error = np.linalg.norm(tensor.grad - slopes)
        assert error <= BOUND * max(1.0, float(np.linalg.norm(slopes)))


@pytest.mark.parametrize("name", CASES)
def test_float32_stays_float32_from_forward_to_gradient(name: str) -> None:
    tensors = [Tensor(array.astype(np.float32), requires_grad=True) for array in given(name)]
    result = CASES[name][0](*tensors)
    assert result.dtype == np.float32
    result.backward(np.ones_like(result.data))
    assert [tensor.grad.dtype for tensor in tensors if tensor.grad is not None] == [
        np.dtype(np.float32)
    ] * len(tensors)


# ---------------------------------------------------------------- values


def softmax(row: Sequence[float]) -> list[float]:
    powers = [math.exp(x - max(row)) for x in row]
    return [power / math.fsum(powers) for power in powers]


def test_softmax_of_equal_and_of_far_apart_logits() -> None:
    rows = [[7.0, 7.0, 7.0, 7.0], [80.0, -80.0, 79.0, 0.0], [1e5, -1e5, 0.0, 1e5]]
    result = ad.Softmax()(Tensor(np.array(rows))).data
    assert np.allclose(result, [softmax(row) for row in rows], rtol=1e-14, atol=0)
    assert result[0].tolist() == [0.25] * 4


def test_gelu_and_its_tails() -> None:
    xs = [-80.0, -3.0, -0.5, 0.0, 0.5, 3.0, 80.0]
    wanted = [0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) for x in xs]
    assert np.allclose(ad.GELU()(Tensor(xs)).data, wanted, rtol=1e-14, atol=0)


def test_layernorm_of_numbers_by_hand() -> None:
    x, weight, bias = Tensor([[1.0, 3.0]]), Tensor([2.0, 10.0]), Tensor([0.5, -1.0])
    scale = 1 / math.sqrt(1 + 1e-5)  # mean 2, variance 1
    wanted = [[-2 * scale + 0.5, 10 * scale - 1]]
    assert np.allclose(ad.LayerNorm()(x, weight, bias).data, wanted, rtol=1e-15)


def test_attention_sees_no_later_position_and_scales_by_the_root_of_the_head() -> None:
    random = np.random.RandomState(4)
    q, k, v = (random.standard_normal((4, 9)) for _ in range(3))
    result = ad.CausalAttention()(*map(Tensor, (q, k, v))).data
    for t in range(4):
        weights = softmax([float(q[t] @ k[s]) / 3 for s in range(t + 1)])
        wanted = sum(w * v[s] for s, w in enumerate(weights))
        assert np.allclose(result[t], wanted, rtol=1e-13)


def test_cross_entropy_of_targets_that_count() -> None:
    logits = np.random.RandomState(3).standard_normal((2, 3, 5)) * 30
    pairs = [((0, 0), 4), ((0, 2), 0), ((1, 0), 4), ((1, 1), 2)]
    losses = [-math.log(softmax(logits[place].tolist())[target]) for place, target in pairs]
    got = ad.CrossEntropy(TARGETS)(Tensor(logits)).data
    assert math.isclose(float(got), math.fsum(losses) / 4, rel_tol=1e-13)


def test_losses_of_far_apart_logits_are_finite() -> None:
    far = Tensor(np.array([[1000.0, -1000.0]]), requires_grad=True)
    loss = ad.CrossEntropy(np.array([1]))(far)
    loss.backward()
    assert float(loss.data) == 2000.0
    assert far.grad is not None
    assert far.grad.tolist() == [[1.0, -1.0]]
    logits = Tensor(np.array([-800.0, 800.0]), requires_grad=True)
    loss = ad.BCEWithLogits(np.array([1.0, 0.0]))(logits)
    loss.backward()
    assert float(loss.data) == 800.0
    assert logits.grad is not None
    assert logits.grad.tolist() == [-0.5, 0.5]


def test_a_gradient_of_bce_is_precise_where_the_probability_is_small() -> None:
    logits = Tensor(np.array([-20.0], np.float32), requires_grad=True)
    ad.BCEWithLogits(np.zeros(1))(logits).backward()
    assert logits.grad is not None
    assert math.isclose(float(logits.grad[0]), 1 / (1 + math.exp(20)), rel_tol=1e-6)


def test_options_are_taken_into_account() -> None:
    scale = 1 / math.sqrt(1 + 0.5)
    layernorm = ad.LayerNorm(eps=0.5)(Tensor([[1.0, 3.0]]), Tensor([1.0, 1.0]), Tensor([0.0, 0.0]))
    assert np.allclose(layernorm.data, [[-scale, scale]], rtol=1e-15)
    logits = Tensor(np.log([[0.25, 0.75], [0.5, 0.5]]))
    loss = ad.CrossEntropy(np.array([1, 0]), ignore_index=0)(logits)
    assert math.isclose(float(loss.data), -math.log(0.75), rel_tol=1e-15)
    assert ad.Embedding(np.zeros((0, 3), np.uint8))(Tensor(np.ones((2, 4)))).shape == (0, 3, 4)


def test_a_mask_is_no_large_number() -> None:
    q, v = Tensor(np.array([[1e6], [1e6]])), Tensor(np.array([[1.0], [2.0]]))
    k = Tensor(np.array([[-1e6], [1e6]]))  # position 0 scores itself -1e12
    assert ad.CausalAttention()(q, k, v).data.tolist() == [[1.0], [2.0]]


def test_the_derivative_of_relu_at_0_is_0() -> None:
    x = Tensor([0.0, 1.0, -1.0], requires_grad=True)
    ad.Sum()(ad.ReLU()(x)).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_dropout_draws_a_uniform_an_element_and_keeps_the_mean() -> None:
    x = Tensor(np.ones((20, 50)))
    kept = PCG32(9).uniforms(1000).reshape(20, 50) >= 0.25
    rng = PCG32(9)
    result = ad.Dropout(0.25, rng)(x).data
    assert np.array_equal(result, np.where(kept, 1 / 0.75, 0.0))
    after = PCG32(9)
    after.uniforms(1000)
    assert rng.state() == after.state()
    assert ad.Dropout(0.0, rng)(x).data.tolist() == x.data.tolist()


# ---------------------------------------------------------------- the engine


def test_gradients_add_up_and_no_array_is_changed() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    start = np.array([1.0, 1.0])
    y = x + x
    y.backward(start)
    first = x.grad
    assert first is not None
    assert first.tolist() == [2.0, 2.0]
    y.backward(start)
    assert x.grad is not None
    assert x.grad.tolist() == [4.0, 4.0]
    assert (first.tolist(), start.tolist()) == ([2.0, 2.0], [1.0, 1.0])


def test_no_two_gradients_share_memory_and_all_can_be_written() -> None:
    a, b = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0], requires_grad=True)
    start = np.array([1.0, 1.0])
    (a + b).backward(start)
    c = Tensor(np.ones((2, 3)), requires_grad=True)
    ad.Sum()(c).backward()
    number = Tensor(3.0, requires_grad=True)
    (number * number).backward()
    for tensor in (a, b, c, number):
        assert type(tensor.grad) is np.ndarray
        tensor.grad *= 0.5
    assert a.grad is not None
    assert b.grad is not None
    assert (a.grad.tolist(), b.grad.tolist()) == ([0.5, 0.5], [0.5, 0.5])
    assert start.tolist() == [1.0, 1.0]


def test_a_diamond_is_walked_once_from_its_tip() -> None:
    x = Tensor(3.0, requires_grad=True)
    y = x * x
    (y * y + y).backward()  # x⁴ + x²
    assert x.grad is not None
    assert float(x.grad) == 4 * 27 + 2 * 3


def test_a_graph_of_5000_nodes() -> None:
    x = Tensor([1.0], requires_grad=True)
    y = x
    for _ in range(5000):
        y = y + x
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [5001.0]


def test_constants_get_no_gradient_and_make_no_graph() -> None:
    x, c = Tensor([2.0], requires_grad=True), Tensor([5.0])
    (x * c).backward()
    assert (x.grad.tolist() if x.grad is not None else None, c.grad) == ([5.0], None)
    assert (c * c).creator is None


def test_no_grad_remembers_nothing_and_ends_with_an_error_too() -> None:
    x = Tensor([2.0], requires_grad=True)
    with pytest.raises(ZeroDivisionError), no_grad():
        assert not (x * x).requires_grad
        1 / 0  # noqa: B018  the error is the point
    assert (x * x).requires_grad
    with no_grad():
        with no_grad():
            pass
        assert not (x * x).requires_grad, "the outer one still holds"
    assert (x * x).requires_grad
    assert not no_grad()(lambda: x * x)().requires_grad


def test_numbers_and_tensors_mix_on_both_sides() -> None:
    x = Tensor(np.array([2.0, 3.0], np.float32), requires_grad=True)
    y = 1.0 - 2.0 * x + np.float64(0.5) - 1
    assert (y.data.tolist(), y.dtype) == ([-3.5, -5.5], np.float32)
    for mixed in (lambda: x + np.ones(2), lambda: np.ones(2) * x):
        with pytest.raises(TypeError, match=r"an array \(2,\) beside Tensor"):
            mixed()


def test_a_backward_of_another_shape_is_named() -> None:
    class Broken(ad.Exp):
        def backward(self, grad: Array) -> ad.Gradients:
            return (grad[:1],)

    with pytest.raises(
        TypeError, match=r"Broken.backward returned \(1,\) float64; want \(2,\) float64"
    ):
        Broken()(Tensor([1.0, 2.0], requires_grad=True)).backward(np.ones(2))


def called_twice(operation: Call) -> Tensor:
    with no_grad():
        operation(Tensor([1.0]))
    return operation(Tensor([1.0]))


REFUSED: dict[str, tuple[type[Exception], str, Callable[[], object]]] = {
    "ints": (TypeError, "int64 data, want float32 or float64", lambda: Tensor([1, 2])),
    "two dtypes": (
        TypeError,
        "float32 and float64 in Add",
        lambda: Tensor(np.ones(2, np.float32)) + Tensor(np.ones(2)),
    ),
    "called twice": (RuntimeError, "this Exp was called before", lambda: called_twice(ad.Exp())),
    "ids of floats": (
        TypeError,
        "ids of type float64, want integers",
        lambda: ad.Embedding(np.ones(1))(Tensor(np.ones((3, 1)))),
    ),
    "targets of bools": (
        TypeError,
        "targets of type bool, want integers",
        lambda: ad.CrossEntropy(np.array([True]))(Tensor(np.ones((1, 3)))),
    ),
    "target -1": (
        IndexError,
        r"target -1 is outside 0\.\.2",
        lambda: ad.CrossEntropy(np.array([-1]))(Tensor(np.ones((1, 3)))),
    ),
    "0 parts": (ValueError, "has no 0 equal parts", lambda: ad.split(Tensor(np.ones(2)), 0)),
    "a gradient turned around": (
        ValueError,
        r"a gradient of shape \(1, 2\)",
        lambda: Tensor([1.0, 2.0], requires_grad=True).backward(np.ones((1, 2))),
    ),
    "a gradient of another dtype": (
        TypeError,
        "a gradient of float32 for",
        lambda: Tensor([1.0], requires_grad=True).backward(np.ones(1, np.float32)),
    ),
    "no graph": (ValueError, "requires a gradient", lambda: Tensor([1.0]).backward()),
    "several elements": (
        ValueError,
        r"Tensor\(2,\) of float64 is not a single number",
        lambda: Tensor([1.0, 2.0], requires_grad=True).backward(),
    ),
    "another shape": (
        ValueError,
        r"a gradient of shape \(2,\) for Tensor\(1,\)",
        lambda: Tensor([1.0], requires_grad=True).backward(np.ones(2)),
    ),
    "a vector": (
        ValueError,
        r"shape \(2, 3\) and \(3,\), want two axes",
        lambda: Tensor(np.ones((2, 3))) @ Tensor(np.ones(3)),
    ),
    "an uneven split": (
        ValueError,
        "axis -1 has no 2 equal parts",
        lambda: ad.split(Tensor(np.ones((2, 3))), 2),
    ),
    "id V": (
        IndexError,
        r"id 3 is outside 0\.\.2",
        lambda: ad.Embedding(np.array([0, 3]))(Tensor(np.ones((3, 1)))),
    ),
    "id -1": (
        IndexError,
        r"id -1 is outside 0\.\.2",
        lambda: ad.Embedding(np.array([-1, 0]))(Tensor(np.ones((3, 1)))),
    ),
    "target V": (
        IndexError,
        r"target 3 is outside 0\.\.2",
        lambda: ad.CrossEntropy(np.array([3]))(Tensor(np.ones((1, 3)))),
    ),
    "no target": (
        ValueError,
        "none of 2 targets",
        lambda: ad.CrossEntropy(np.array([-100, -100]))(Tensor(np.ones((2, 3)))),
    ),
    "targets of another shape": (
        ValueError,
        r"targets of shape \(2,\) for logits \(1, 3\)",
        lambda: ad.CrossEntropy(np.array([0, 0]))(Tensor(np.ones((1, 3)))),
    ),
    "mse of two shapes": (
        ValueError,
        r"shapes \(2,\) and \(1,\)",
        lambda: ad.MSE()(Tensor(np.ones(2)), Tensor(np.ones(1))),
    ),
    "bce of two shapes": (
        ValueError,
        r"targets of shape \(2,\) for logits \(1,\)",
        lambda: ad.BCEWithLogits(np.ones(2))(Tensor(np.ones(1))),
    ),
    "p 1": (ValueError, r"p is 1, not within \[0, 1\)", lambda: ad.Dropout(1, PCG32(0))),
    "p NaN": (ValueError, "p is nan", lambda: ad.Dropout(math.nan, PCG32(0))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name: str) -> None:
    kind, message, call = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()
