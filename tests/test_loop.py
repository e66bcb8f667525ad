"""The given parts of A2's training half: counted_loss, the perceptron, native.py, the command line,
and milestones."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from autograder import cli, milestone, rubric, sandbox
from autograder.milestone import NotMeasured, Step
from autograder.rubric import ROOT
from reference.llmc import autograd as ad
from reference.llmc import bigram, native
from reference.llmc.autograd import Tensor
from reference.llmc.mlp import MultilayerPerceptron

TEXT = b"the cat sat on the mat; the rat ate the oats that the cat had not eaten. " * 20
PYTHON = ROOT / ".venv" / "bin" / "python"


# ---------------------------------------------------------------- what is given


def test_the_counted_loss_is_the_mean_over_all_pairs() -> None:
    """Loss and gradient, with pairs looked at once and with each where it stands."""
    ids = np.random.RandomState(1).randint(0, 9, 500) % 7
    start = 5 * np.random.RandomState(2).standard_normal((8, 8))
    found = []
    for counted in (True, False):
        table = Tensor(start.copy(), requires_grad=True)
        if counted:
            counts = bigram.pair_counts(ids, 8)
            loss = bigram.counted_loss(table, counts / counts.sum())
        else:
            loss = ad.CrossEntropy(ids[1:])(ad.Embedding(ids[:-1])(table))
        loss.backward()
        found.append((float(loss.data), table.grad))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-13)
    assert np.allclose(found[0][1], found[1][1], rtol=1e-11, atol=1e-15)


def test_the_counted_loss_takes_logits_of_a_thousand() -> None:
    table = Tensor(np.array([[1000.0, 0.0], [-1000.0, 1000.0]]), requires_grad=True)
    loss = bigram.counted_loss(table, np.array([[0.25, 0.25], [0, 0.5]]))
    loss.backward()
    assert float(loss.data) == 250.0
    assert np.isfinite(table.grad).all()


def test_dropout_leaves_the_first_weights_as_they_were() -> None:
    plain, dropped = MultilayerPerceptron((6, 5, 3)), MultilayerPerceptron((6, 5, 3), dropout=0.5)
    for name, weight in plain.state_dict().items():
        assert np.array_equal(weight, dropped.state_dict()[name])
    x = Tensor(np.ones((4, 6), np.float32))
    assert not np.array_equal(plain(x).data, dropped(x).data)
    dropped.eval()
    assert np.array_equal(plain(x).data, dropped(x).data)
    other = MultilayerPerceptron((6, 5, 3), seed=1)
    assert not np.array_equal(plain.layers[0].weight.data, other.layers[0].weight.data)


def test_the_perceptrons_weights_have_the_variance_that_it_says() -> None:
    weight = MultilayerPerceptron((300, 200, 2)).layers[0].weight.data
    assert float(weight.var() * 300) == pytest.approx(1, abs=0.02)
    assert float(np.abs(weight).max()) <= (3 / 300) ** 0.5


@pytest.mark.parametrize(
    ("x", "weight", "error"),
    [
        (np.zeros((2, 3), np.float32), np.zeros((4, 2), np.float32), ValueError),
        (np.zeros(3, np.float32), np.zeros((4, 3), np.float32), ValueError),
        (np.zeros((2, 3)), np.zeros((4, 3), np.float32), TypeError),
    ],
)
def test_the_native_product_refuses(x: np.ndarray, weight: np.ndarray, error: type) -> None:
    with pytest.raises(error, match=r"want"):
        native.matmul_forward(x, weight)


# ---------------------------------------------------------------- the command line


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference as a student's folder, with a text, digits and both programs."""
    folder = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "reference" / "llmc", folder / "llmc")
    (folder / "text.txt").write_bytes(TEXT)
    rows = np.random.RandomState(3).randint(0, 17, (60, 64)).astype(np.float32)
    labels = np.arange(60) % 10
    for i in range(60):  # a digit fills its own row of pixels
        rows[i, 5 * labels[i] : 5 * labels[i] + 9] += 20
    rows[:, 60] = 7  # always the same
    parts = {"train": slice(0, 40), "test": slice(40, 60)}
    arrays = {f"x_{name}": rows[part] for name, part in parts.items()}
    np.savez(folder / "digits.npz", **arrays, **{f"y_{n}": labels[p] for n, p in parts.items()})
    return folder


def llmc(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [str(PYTHON), "-m", "llmc", *words]
    kept = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", **env}
    seen = subprocess.run(command, cwd=folder, env=kept, capture_output=True, check=False)
    out, err = (stream.decode("latin-1") for stream in (seen.stdout, seen.stderr))  # any byte
    return subprocess.CompletedProcess(command, seen.returncode, out, err)


def test_a_counted_bigram_is_trained_measured_and_sampled(tree: Path) -> None:
    words = ("train", "bigram", "--method", "counts", "--data", "text.txt", "--out", "counted")
    seen = llmc(tree, *words)
    assert (seen.returncode, seen.stderr) == (0, "")
    assert json.loads((tree / "counted" / "config.json").read_text())["tl_arch"] == "bigram"
    measured = llmc(tree, "eval", "--model", "counted", "--data", "text.txt")
    assert f"{measured.stdout.split()[0]} nats a byte" in seen.stdout
    sample = llmc(tree, "generate", "--model", "counted", "--seed", "3", "--tokens", "40")
    again = llmc(tree, "generate", "--model", "counted", "--seed", "3", "--tokens", "40", "--ids")
    assert sample.stdout == bytes(map(int, again.stdout.split())).decode("latin-1") + "\n"
    assert len(again.stdout.split()) == 40


@pytest.mark.slow
def test_a_trained_bigram_reaches_the_floor_and_leaves_its_curve(tree: Path) -> None:
    words = ("train", "bigram", "--method", "autograd", "--data", "text.txt", "--out", "trained")
    seen = llmc(tree, *words, "--plot", "plots/curve.png")
    assert (seen.returncode, seen.stderr) == (0, "")
    lines = [line for line in seen.stdout.splitlines() if line.startswith("step")]
    assert len(lines) == 10 and "steps/s" in lines[-1]
    metrics = [json.loads(line) for line in (tree / "trained/metrics.jsonl").open()]
    assert [entry["step"] for entry in metrics] == list(range(1, 201))
    assert metrics[0]["loss"] == pytest.approx(np.log(256), rel=1e-6)
    assert 0 <= metrics[-1]["loss"] - metrics[-1]["floor"] < 1e-3
    assert (tree / "plots" / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_digits_are_learned_and_measured(tree: Path) -> None:
    words = ("train", "mlp", "--data", "digits.npz", "--epochs", "20", "--ckpt", "mlp")
    seen = llmc(tree, *words, "--hidden", "16", "--dropout", "0.1")
    assert (seen.returncode, seen.stderr) == (0, "")
    metrics = [json.loads(line) for line in (tree / "mlp/metrics.jsonl").open()]
    assert [entry["epoch"] for entry in metrics] == list(range(1, 21))
    assert metrics[-1]["loss"] < metrics[0]["loss"] / 2
    measured = llmc(tree, "eval", "--model", "mlp", "--data", "digits.npz").stdout
    assert f"loss {metrics[-1]['test_loss']:.6f}" in measured
    assert "20 digits" in measured


@pytest.mark.slow
@pytest.mark.parametrize("temperature", ["0.5", "1", "2.5"])
def test_generate_c_draws_what_python_draws(tree: Path, temperature: str) -> None:
    words = ("train", "bigram", "--method", "counts", "--data", "text.txt", "--out", "drawn")
    assert llmc(tree, *words).returncode == 0
    for name in ("Makefile", "generate.c"):
        shutil.copy(ROOT / name, tree)
    made = subprocess.run(["make", "-s", "generate"], cwd=tree, capture_output=True, check=False)
    assert (made.returncode, made.stderr) == (0, b"")
    more = ("--seed", "11", "--tokens", "500", "--temperature", temperature)
    theirs = llmc(tree, "generate", "--model", "drawn", *more, "--ids").stdout.split()
    command = ["build/generate", "--model", "drawn", *more, "--ids", "1"]
    ours = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True)
    assert ours.stdout.split() == theirs
    assert len(set(theirs)) > 5


BIGRAM = '{"tl_arch": "bigram", "vocab_size": 2}'
TWO = {"dtype": "F32", "shape": [2, 2]}


@pytest.mark.parametrize(
    ("config", "header", "body", "says"),
    [
        ('{"tl_arch": "mlp"}', {}, b"", "tl_arch is not bigram"),
        ("{}", {}, b"", "tl_arch is not bigram"),
        (BIGRAM, {}, b"", "no tensor bigram.weight"),
        (BIGRAM, {"other": 1}, b"", "is not float32"),
        ('{ "tl_arch" : "bigram" }', {"dtype": "F64", "shape": [2, 2]}, b"", "is not float32"),
        (BIGRAM, {"dtype": "F32", "shape": [2, 3]}, b"", "no square table"),
        (BIGRAM, {"dtype": "F32", "shape": [2, 2, 7]}, b"", "no square table"),
        (BIGRAM, {"dtype": "F32", "shape": [-2, -2]}, b"", "no square table"),
        ('{"tl_arch": "bigram", "vocab_size": 3}', TWO, b"\0" * 16, "vocab_size is not 2"),
        (BIGRAM, TWO, b"\0" * 12, "cut short"),
        (BIGRAM, TWO, b"\xff" * 16, "is no number"),
    ],
)
@pytest.mark.slow
def test_generate_c_refuses_other_folders(
    tree: Path, tmp_path: Path, config: str, header: dict, body: bytes, says: str
) -> None:
    for name in ("Makefile", "generate.c"):
        shutil.copy(ROOT / name, tree)
    subprocess.run(["make", "-s", "generate"], cwd=tree, check=True)
    (tmp_path / "config.json").write_text(config)
    entry = {"bigram.weight": {**header, "data_offsets": [0, 16]}} if header else {}
    raw = json.dumps(entry).encode()
    (tmp_path / "model.safetensors").write_bytes(len(raw).to_bytes(8, "little") + raw + body)
    command = [tree / "build" / "generate", "--model", tmp_path]
    seen = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (seen.returncode, seen.stderr.count("\n")) == (1, 1)
    assert says in seen.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("eval", "--model", "nowhere", "--data", "text.txt"), "No such file"),
        (("generate", "--model", "nowhere"), "No such file"),
        (("train", "mlp", "--data", "text.txt", "--ckpt", "x"), "no .npz file"),
        (("train", "mlp", "--data", "flat.npz", "--ckpt", "x"), "are no digits"),
        (("eval", "--model", "list", "--data", "text.txt"), "neither bigram nor mlp"),
        (("eval", "--model", "sizes", "--data", "digits.npz"), "no perceptron that"),
        (("eval", "--model", "broken", "--data", "text.txt"), "config.json: no JSON"),
        (("generate", "--model", "x", "--tokens", "-1"), "--tokens of 0 or more"),
        (("train", "mlp", "--data", "wrong.npz", "--ckpt", "x"), "there is no x_test in it"),
        (
            ("train", "bigram", "--method", "counts", "--data", "one", "--out", "x"),
            "with T of 2 or more",
        ),
        (
            *[("train", "bigram", "--method", "counts", "--data", "text.txt", "--out", "x")],
            "a curve: counting has no steps",
        ),
    ],
)
def test_what_goes_wrong_is_one_line(tree: Path, words: tuple[str, ...], says: str) -> None:
    (tree / "one").write_bytes(b"a")
    np.savez(tree / "wrong.npz", x_train=np.zeros(3))
    flat = {f"{name}_{part}": np.zeros(3) for name in "xy" for part in ("train", "test")}
    np.savez(tree / "flat.npz", **flat)
    for name, config in (("list", "[]"), ("sizes", '{"tl_arch": "mlp"}'), ("broken", "{")):
        (tree / name).mkdir(exist_ok=True)
        (tree / name / "config.json").write_text(config)
        (tree / name / "model.safetensors").write_bytes(b"nothing")
    seen = llmc(tree, *words, *(("--plot", "c.png") if "curve" in says else ()))
    assert (seen.returncode, seen.stderr.count("\n")) == (1, 1), seen.stderr
    assert says in seen.stderr


def test_stubs_say_what_is_not_written(tree: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "llmc", tmp_path / "llmc")
    words = ("train", "bigram", "--method", "counts", "--out", "x", "--data")
    seen = llmc(tmp_path, *words, str(tree / "text.txt"))
    assert (seen.returncode, seen.stderr) == (1, "llmc: A2: pair_counts is not written yet\n")


# ---------------------------------------------------------------- milestones

LOADED = rubric.load("A2")


def step(**other: object) -> Step:
    (first, *_) = milestone.steps(LOADED)[1]
    return Step(**{**vars(first), **other})


def test_a_milestone_says_what_data_it_needs(tree: Path, tmp_path: Path) -> None:
    found = milestone.reach(LOADED, step(needs="none.txt"), tree, tmp_path, tree)
    assert (found.verdict, found.got) == ("skip", "run `make data`: there is no none.txt")


@pytest.mark.slow
def test_milestones_measure_what_was_left(tree: Path, tmp_path: Path) -> None:
    """A counted bigram passes for the one, and not for the other."""
    counted = step(needs="text.txt")
    found = milestone.reach(LOADED, counted, tree, tmp_path, tree)
    assert found.verdict == "ok"
    wanted = step(needs="text.txt", measure="floor", within=1e-3)
    assert milestone.reach(LOADED, wanted, tree, tmp_path, tree).verdict == "FAIL"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("", "it left no model.safetensors"),
        ("raise SystemExit(3)", "status 3"),
        ("import sys; sys.exit('a reason')", "a reason"),
        (
            "import sys, pathlib; p = pathlib.Path(sys.argv[sys.argv.index('--out') + 1]);"
            "p.mkdir(); (p / 'model.safetensors').write_bytes(b'no such file')",
            "it left no model.safetensors",
        ),
        (
            "import os, pathlib; p = pathlib.Path('model'); p.mkdir();"
            "os.mkfifo(p / 'model.safetensors')",
            "it left no model.safetensors",
        ),
        (
            "import os; os.mkdir('model'); os.symlink('/dev/zero', 'model/model.safetensors')",
            "it left no model.safetensors",
        ),
        (
            "import numpy as np; from safetensors.numpy import save_file; import os;"
            "os.mkdir('model');"
            "save_file({'bigram.weight': np.zeros((256, 256))}, 'model/model.safetensors')",
            "no float32 tensor bigram.weight",
        ),
        ("raise NotImplementedError('A2: f is not written yet')", "A2: f is not written yet"),
    ],
)
def test_a_program_that_leaves_nothing_is_told(
    tree: Path, tmp_path: Path, code: str, says: str
) -> None:
    (tmp_path / "llmc").mkdir()
    (tmp_path / "llmc" / "__main__.py").write_text(code)
    found = milestone.reach(LOADED, step(needs="text.txt"), tmp_path, tmp_path / "build", tree)
    assert found.verdict == ("todo" if "not written" in says else "FAIL")
    assert says in found.got
    assert list((tmp_path / "build" / "scratch").iterdir()) == []


def test_a_run_without_an_end_is_stopped(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "llmc").mkdir()
    (tmp_path / "llmc" / "__main__.py").write_text("while True: print('still here')")
    monkeypatch.setattr(milestone, "LIMITS", sandbox.Limits(cpu_seconds=1))
    found = milestone.reach(LOADED, step(needs="text.txt"), tmp_path, tmp_path / "build", tree)
    assert found.verdict == "FAIL"
    assert found.got in ("it ran out of time", "it ran out of output")


FLAT = np.zeros((256, 256), np.float32)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (None, "no float32 tensor"),
        (FLAT[:2, :2], "no float32 tensor"),
        (FLAT.astype(np.float64), "no float32 tensor"),
        (FLAT + np.nan, "not finite"),
    ],
)
def test_a_table_that_is_none_is_not_measured(table: np.ndarray | None, says: str) -> None:
    with pytest.raises(NotMeasured, match=says):
        milestone.table({} if table is None else {"bigram.weight": table})


def perceptron() -> dict[str, np.ndarray]:
    """One that says digit k where pixel k is the brightest."""
    eye = np.eye(64, dtype=np.float32)
    return {
        **{"mean": np.zeros(64, np.float32), "std": np.ones(64, np.float32)},
        **{"layers.0.weight": eye, "layers.0.bias": np.zeros(64, np.float32)},
        **{"layers.1.weight": eye[:10], "layers.1.bias": np.zeros(10, np.float32)},
    }


def test_digits_are_measured_by_their_logits() -> None:
    x = np.full((3, 64), -5.0)
    x[0, 4] = x[1, 7] = 2.0
    x[2, 1] = 3.0  # wrong: it is a 9
    file = io.BytesIO()
    np.savez(file, x_test=x, y_test=np.array([4, 7, 9]))
    loss, right = milestone.digits_loss(perceptron(), file.getvalue())
    others = [np.log(np.exp(2) + 9) - 2] * 2 + [np.log(np.exp(3) + 9)]
    assert loss == pytest.approx(np.mean(others))
    assert right == pytest.approx(2 / 3)
    found = milestone.digits(LOADED, step(id="digits"), perceptron(), file.getvalue())
    assert (found.least, found.got) == (0.0, loss)
    assert 0.2 < found.most < 0.5  # the bar


@pytest.mark.parametrize("name", list(perceptron()))
def test_a_perceptron_of_other_shapes_is_not_measured(name: str) -> None:
    tensors = perceptron()
    tensors[name] = tensors[name][:1]
    with pytest.raises(NotMeasured, match=name):
        milestone.digits_loss(tensors, b"")


def test_the_command_says_what_it_reached(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    assert cli.main(["milestone", "A0"]) == 2
    assert "A0 has no milestone" in capsys.readouterr().err
    (tmp_path / "llmc").mkdir()
    (tmp_path / "llmc" / "__main__.py").write_text(r"raise SystemExit('\033[2J a reason')")
    assert cli.main(["milestone", "A2", "--student", str(tmp_path)]) in (0, 1)
    said = capsys.readouterr().out
    assert "A2 milestone: models that you trained" in said and "\033[2J" not in said
    assert said.count("?[2J a reason") == 3 or "run `make data`" in said


def test_no_table_is_below_the_floor(tree: Path) -> None:
    """The floor is the loss of the shares themselves, and other tables are above it."""
    text = (tree / "text.txt").read_bytes()
    with np.errstate(divide="ignore"):
        logs = np.log(milestone.pairs(text)).astype(np.float32)
    logs[np.isinf(logs)] = -1e4
    floor = milestone.floor(LOADED, step(), {"bigram.weight": logs}, text)
    assert floor.got == pytest.approx(floor.least, abs=1e-6)
    assert milestone.add_one(LOADED, step(), {"bigram.weight": logs}, text).got < floor.most
    assert sys.float_info.epsilon < floor.least
