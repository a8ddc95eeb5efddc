"""``rlm-lsp model convert``: a checkpoint of regress-lm becomes a model that can be asked, or one line says why not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rlm_core.inference.card import read_model_card
from rlm_core.training.full import store
from rlm_lsp.cli.app import app

from tests.paths import EXAMPLES
from tests.rlm_core.training.full import test_regress_lm as recorded
from tests.warm_server import warm_training

pytestmark = pytest.mark.extras
TOKENIZER = recorded.DATA / "tokenizer.model"
OWN = ("--basis", "call", "--metric", "memory", "--language", "python", "--unit", 1024)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def convert(*arguments: object) -> Result:
    return run("model", "convert", *arguments)


@pytest.fixture(scope="module", autouse=True)
def _warm() -> Iterator[None]:
    """Let checkpoints be read in forks of a process that has imported PyTorch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", warm_training())
        yield


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny vanilla model with IEEE numbers."""
    return recorded.checkpoint("ieee", tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="module")
def converted(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "converted"
    result = convert(checkpoint, "--out", out, "--tokenizer", TOKENIZER, *OWN, "--prefix", "{language} ")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == f"next: rlm-lsp predict FILE --model {out}"
    return out


def test_predict_with_a_converted_model_prints_numbers_marked_as_uncalibrated(converted: Path) -> None:
    result = run("predict", EXAMPLES, "--model", converted, "--format", "json")
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    answered = [row for row in rows if row["median"] is not None]
    assert answered
    assert {(row["basis"], row["metric"], row["unit"], row["calibrated"]) for row in answered} == {
        ("call", "memory", "B", False)
    }
    assert {Path(row["file"]).suffix for row in answered} == {".py"}


def test_the_card_has_the_queries_that_the_model_answers(converted: Path, checkpoint: Path) -> None:
    trained = read_model_card(converted).trained
    [space] = trained["spaces"]
    assert (space["name"], space["unit"], space["prefix"], space["max_tokens"]) == ("model", 1024, "{language} ", 2048)
    assert trained["origin"]["source"] == str(checkpoint)
    assert run("model", "verify", converted).exit_code == 0
    recorded.check(store.load(converted)[0], "ieee")


def test_spaces_special_values_and_lengths_are_chosen_by_option(tmp_path: Path) -> None:
    path, out = recorded.checkpoint("p10_special", tmp_path), tmp_path / "ours"
    form = ("--numbers", "p10", "--mantissa-digits", 2, "--exponent-range", 3)
    special = [word for name in ("nan", "INF", "NINF", "INVALID") for word in ("--special", name)]
    spaces = ("--space", "apps", "--space", "KBSS", "--max-tokens", 64)
    result = convert(path, "--out", out, "--tokenizer", TOKENIZER, *form, *special, *spaces)
    assert result.exit_code == 0, result.output
    model = store.load(out)[0]
    recorded.check(model, "p10_special")
    assert model.encoder.max_tokens == 64
    spaces = read_model_card(out).trained["spaces"]
    assert [(space["name"], space["max_tokens"]) for space in spaces] == [("APPS", 64), ("KBSS", 64)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "nothing says what the model may be asked; give --space with one of APPS, CDSS, KBSS"),
        (("--basis", "call"), "--metric is missing: --basis, --metric, --language and --unit describe a data set"),
        (("--device", "H100"), "--basis is missing"),
        (("--space", "Atari"), "--space Atari: unknown; give one of APPS"),
        (("--space", "APPS", "--unit", 3), "--unit does not apply to --space"),
        (("--space", "APPS", "--device", "H100"), "--device H100: does not apply to --space APPS"),
        (("--space", "triton-gpu-latency"), "--space triton-gpu-latency: no public source names the GPU"),
        ((*OWN, "--unit", "nan"), "--unit nan: not a positive number"),
        ((*OWN, "--metric", "latency"), "--metric latency: needs --device"),
        ((*OWN, "--special", "ZERO"), "--special ZERO: unknown; give NAN, INF, NINF, INVALID"),
        ((*OWN, "--numbers", "p10", "--base", 10), "--base does not apply to --numbers p10"),
        ((*OWN, "--mantissa-digits", 9, "--tokenizer", TOKENIZER), "places for number tokens"),
        ((*OWN, "--special", "NAN", "--tokenizer", TOKENIZER), "number tokens"),
        (OWN, "does not hold its tokenizer"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    checkpoint: Path, tmp_path: Path, options: tuple[object, ...], words: str
) -> None:
    result = convert(checkpoint, "--out", tmp_path / "ours", *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_that_cannot_be_read_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "bad.pt"
    path.write_bytes(b"nonsense")
    result = convert(path, "--out", tmp_path / "ours", "--tokenizer", TOKENIZER, *OWN)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "bad.pt: not a PyTorch file, or damaged" in result.stderr
    assert list(tmp_path.iterdir()) == [path]


def test_a_directory_with_files_is_never_replaced(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    result = convert(checkpoint, "--out", tmp_path, "--tokenizer", TOKENIZER, *OWN)
    assert result.exit_code == 2
    assert "already exists; name a new directory with --out, or remove it" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
