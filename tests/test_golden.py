"""Golden values: fresh from their sources, and the sources agree with others that are not ours."""

from __future__ import annotations

import json

import numpy as np
import pytest

from autograder import observe, rubric, sandbox
from autograder.build import Source
from autograder.compare import Seen
from autograder.run import REFERENCE, checks_of, golden, programs
from reference.oracle import a0
from staff import golden as writer
from staff.trees import BUILD

# torch 2.13.0+cpu: torch.manual_seed(137), then torch.empty(n).uniform_() or .normal_().
TORCH_UNIFORM_5 = [0.6256541013717651, 0.573381781578064, 0.6672714352607727, 0.746163547039032,
                   0.014967918395996094]  # fmt: skip
TORCH_NORMAL_20 = [
    1.1220245361328125, -0.6631278395652771, -0.5289731025695801, 1.0454034805297852,
    1.077274203300476, 0.7767236232757568, -1.2813878059387207, -2.646395683288574,
    -0.06569503247737885, 0.2180829495191574, -0.46536165475845337, -0.33108410239219666,
    -0.018033871427178383, 0.43016669154167175, 0.8460659980773926, 0.9462448358535767,
    -0.2913765013217926, 0.34313806891441345, -1.1186704635620117, -0.18305328488349915,
]  # fmt: skip
TORCH_NORMAL_16 = [
    1.1220245361328125, -0.6631278395652771, -0.5289731025695801, 1.0454034805297852,
    -0.05533837899565697, 0.16621369123458862, 0.09195917099714279, 0.680029571056366,
    -0.840363621711731, -1.1242743730545044, -1.3860172033309937, 1.284235954284668,
    0.16462017595767975, 0.5371099710464478, -0.6570116281509399, 0.16786012053489685,
]  # fmt: skip
TORCH_NORMAL_3 = [
    0.908078134059906, 0.029868587851524353, 0.9619589447975159,
]  # fmt: skip


@pytest.mark.parametrize("assignment", rubric.assignments())
def test_the_files_are_what_their_sources_give(assignment: str) -> None:
    for path, content in writer.files(assignment).items():
        assert writer.agree(path.read_bytes(), content), f"{path.name}: run `make regenerate`"


def test_published_words() -> None:
    assert a0.Words(137).draw(5).tolist() == [
        4053805790, 2173880614, 380293709, 1237255315, 2986595568,
    ]  # fmt: skip
    assert a0.Words(42).draw(1).tolist() == [1608637542]
    # Matsumoto and Nishimura's code, default seed: the 10000th word (also in the C++11 standard)
    assert a0.Words(5489).draw(10000)[-1] == 4123659995


def test_splitmix64_agrees_with_its_published_sequence() -> None:
    # Vigna's splitmix64.c, seed 1234567
    assert [a0.given_u64(1234567, i) for i in range(3)] == [
        6457827717110365317, 3203168211198807973, 9817491932198370423,
    ]  # fmt: skip


def test_xorshift_star_agrees_with_its_definition() -> None:
    """By hand for state 1: 1 ^ 1 << 25 = 0x2000001, no bit of it survives >> 27."""
    draws, state = a0.xorshift(1, 1)
    assert state == 0x2000001
    assert draws == [(0x2000001 * 0x2545F4914F6CDD1D % 2**64) >> 32]


def test_the_oracle_agrees_with_pytorch() -> None:
    words = a0.Words(137)
    assert words.f32(5).tolist() == TORCH_UNIFORM_5
    for n, wanted in ((20, TORCH_NORMAL_20), (16, TORCH_NORMAL_16), (3, TORCH_NORMAL_3)):
        ours = (a0.few if n < 16 else a0.filled)(a0.Words(137), n, 0.0, 1.0)
        assert np.abs(ours - np.array(wanted)).max() < 1e-5


def test_gpt2_tokens_agree_with_tiktoken() -> None:
    tiktoken = pytest.importorskip("tiktoken", reason="the data extra is not installed")
    del tiktoken
    import sys

    sys.path.insert(0, str(rubric.ROOT / "dev" / "data"))
    import gpt2

    encoding = gpt2.encoding()
    ids = (15496, 995, 0, 198, 220, 262, 3336, 50255)
    text = b"".join(encoding.decode_single_token_bytes(i) + b"|" for i in ids)
    assert a0.tokenizer_gpt2(0)["text"].tobytes() == text


@pytest.mark.parametrize("probe", a0.CASES)
@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1, 987654321])
def test_the_reference_agrees_with_the_oracle_on_any_seed(probe: str, seed: int, tools) -> None:
    loaded = rubric.load("A0")
    source = Source(probe, loaded.folder / "probes" / f"{probe}.c")
    binary = programs([source], REFERENCE, tools, BUILD, 1)[probe].binary
    limits = sandbox.Limits(file_mib=4096, memory_mib=2048)
    names = [name for name in a0.CASES[probe] if name != "tokenizer_gpt2"]
    cases = [observe.Case(binary, name, limits, seed, None, True) for name in names]
    for name, seen in zip(names, observe.run(cases, BUILD, 1), strict=True):
        for key, wanted in a0.CASES[probe][name][1](seed).items():
            got = seen.values[key]
            assert got.dtype == wanted.dtype and got.shape == wanted.shape, f"{name}: {key}"
            if got.dtype == np.float32:
                assert np.abs(got - wanted).max() <= 3e-5, f"{name}: {key}"
            elif not (name == "eval_rows" and key.startswith(("inputs", "targets", "label"))):
                off = np.flatnonzero(got != wanted)
                assert off.size <= (4 if name == "softmax_distribution" else 0), f"{name}: {key}"


ORACLES = {
    (name, probe): cases for name in ("A1", "A2") for probe, cases in writer.oracle(name).items()
}
SEED = 4711


@pytest.mark.parametrize(("assignment", "probe"), ORACLES)
def test_every_row_accepts_the_reference_by_the_oracle_on_another_seed(
    assignment: str, probe: str, tools
) -> None:
    """The checks themselves, with the oracle's values in the place of PyTorch's and golden ones."""
    loaded, cases = rubric.load(assignment), ORACLES[assignment, probe]
    credits = [c for _, item in loaded.items() for c in item.credits if c.probe == probe]
    built = programs([Source(probe, loaded.probe(probe))], REFERENCE, tools, BUILD, 1)[probe]
    names = sorted({credit.case for credit in credits} & set(cases))
    forked = probe.endswith(rubric.PYTHON)
    limits = sandbox.Limits()
    runs = [observe.Case(built.binary, n, limits, SEED, leaks=True, forked=forked) for n in names]
    seen = dict(zip(names, observe.run(runs, BUILD, 1), strict=True))
    checks = checks_of(loaded, probe)
    for credit in (credit for credit in credits if credit.case in names):
        wanted = cases[credit.case][1](SEED)
        getattr(checks, credit.check)(Seen(seen[credit.case], wanted, built, None, True))


@pytest.mark.parametrize(
    ("assignment", "probe"),
    [("A1", "autograd_py"), ("A1", "model_py"), ("A2", "autograd_py"), ("A2", "optim_py")],
)
def test_the_python_halves_hold_pytorchs_values(assignment: str, probe: str) -> None:
    path = rubric.load(assignment).folder / "golden" / f"{probe}.json"
    head = json.loads(path.read_text())
    assert head["torch"].startswith("2."), "run `python -m reference.oracle.torch_golden`"
    by_torch = [case for case in head["cases"].values() if "PyTorch" in case["origin"]]
    assert len(by_torch) >= 2


@pytest.mark.parametrize(("by", "fine"), [(0.0, True), (1e-15, True), (1e-9, False)])
def test_pytorchs_values_have_to_agree_with_the_oracles(by: float, fine: bool) -> None:
    def of(value: float) -> bytes:
        values = {"x": ["f64", [value, 2.0]], "n": ["i64", [3]]}
        return json.dumps({"torch": "2", "cases": {"a": {"values": values}}}).encode()

    assert writer.agree(of(1.0 + by), of(1.0)) == fine
    assert not writer.agree(of(1.0), of(1.0).replace(b"[3]", b"[4]"))
    assert not writer.agree(of(1.0), of(1.0).replace(b'"x"', b'"y"'))
    assert not writer.agree(of(1.0).replace(b'"torch"', b'"numpy"'), of(1.0 + 1e-15))


def test_values_of_numpys_functions_may_differ_in_the_last_bits_and_no_others() -> None:
    def of(value: float, origin: str, **head: str) -> bytes:
        entry = {"origin": origin, "values": {"x": ["f64", [value, 2.0]]}}
        return json.dumps({**head, "cases": {"a": entry}}).encode()

    formula, hand = "formulas in float64, numpy", "by hand"
    assert writer.agree(of(1.0, formula), of(1.0 + 1e-15, formula))
    assert not writer.agree(of(1.0, formula), of(1.0 + 1e-9, formula))
    assert not writer.agree(of(1.0, hand), of(1.0 + 1e-15, hand))
    assert not writer.agree(of(1.0, hand), of(1.0, formula))
    assert not writer.agree(of(1.0, formula, seed="1"), of(1.0, formula, seed="2"))


def test_golden_values_are_read_with_their_types() -> None:
    values = golden(rubric.load("A0"), "rand")
    assert values["rand", "normal_"]["n7"].dtype == np.float32
    assert values["rand", "randint32_golden"]["draws_137"].dtype == np.uint32
