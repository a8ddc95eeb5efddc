"""Checkpoints of regress-lm, against values recorded with it (``tools/experiments/regress_lm_reference.py record``).

Models and values under ``data`` were made there with seeded random weights.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from click.testing import CliRunner, Result
from rlm_core.errors import ModelError
from rlm_core.training.full import store
from rlm_core.training.full.decoding import log_prob, quantiles
from rlm_core.training.full.model import FullModel
from rlm_core.training.full.numbers import NumberFormat
from rlm_core.training.full.regress_lm import convert, ieee, p10
from rlm_core.training.full.sequences import Slot
from rlm_lsp.cli.app import app

DATA = Path(__file__).parent / "data"
CASES: dict[str, Any] = json.loads((DATA / "regress_lm.json").read_text(encoding="utf-8"))
VANILLA = [name for name in CASES if name != "t5gemma"]


def checkpoint(name: str, folder: Path) -> Path:
    """The recorded weights as regress-lm's trainer saves them."""
    state = safetensors.torch.load_file(DATA / f"{name}.safetensors")
    torch.save({"model_state": state, "optimizer_state": {"lr": 0.1}, "global_step": 1}, folder / "model.pt")
    return folder / "model.pt"


def value_of(text: str) -> float | str:
    return text if text == "INVALID" else float(text)


def check(model: FullModel, name: str) -> None:
    """Every recorded log-probability."""
    for example in CASES[name]["examples"]:
        slots = [Slot(value=value_of(text)) for text in example["values"]]
        (found,) = log_prob(model, model.encode([example["text"]]), [[slots]], constrained=False)[0]
        assert float(found.sum()) == pytest.approx(example["log_prob"], abs=1e-4)


@pytest.mark.parametrize("name", VANILLA)
def test_log_probabilities_are_those_of_regress_lm(name: str, tmp_path: Path) -> None:
    numbers = NumberFormat.from_json(CASES[name]["numbers"])
    model = convert(checkpoint(name, tmp_path), numbers, DATA / "tokenizer.model")
    check(model, name)
    store.save(model, tmp_path / "ours", name)
    check(store.load(tmp_path / "ours")[0], name)


def test_log_probabilities_with_a_t5gemma_encoder_are_those_of_regress_lm(tmp_path: Path) -> None:
    from rlm_core.training.full.encoders.pretrained import T5GemmaSettings
    from rlm_core.training.full.encoders.t5gemma import T5GemmaEncoder

    from .encoders import checkpoints as encoders_checkpoints

    # Another base than the recorded one: all its weights come from the checkpoint.
    base = encoders_checkpoints.write(encoders_checkpoints.first(seed=3), tmp_path / "base")
    encoder = T5GemmaEncoder(T5GemmaSettings(str(base), mode="full", max_tokens=128, precision="float32"))
    check(convert(checkpoint("t5gemma", tmp_path), ieee(), encoder=encoder), "t5gemma")


@pytest.mark.parametrize("name", CASES)
def test_number_tokens_are_those_of_regress_lm(name: str) -> None:
    numbers = NumberFormat.from_json(CASES[name]["numbers"])
    for text, tokens in CASES[name]["tokens"].items():
        assert list(numbers.encode(value_of(text))) == tokens


def test_objectives_and_quantiles_work_on_a_converted_model(tmp_path: Path) -> None:
    numbers = NumberFormat.from_json(CASES["p10_special"]["numbers"])
    model = convert(checkpoint("p10_special", tmp_path), numbers, DATA / "tokenizer.model")
    assert model.config.max_numbers == 3
    (answer,) = quantiles(model, model.encode(["x = 1"]), [[[Slot(value=0.5), Slot()]]], (0.1, 0.5, 0.9))[0]
    assert answer.values[0] <= answer.values[1] <= answer.values[2]


def test_long_texts_keep_their_start(tmp_path: Path) -> None:
    model = convert(checkpoint("ieee", tmp_path), ieee(), DATA / "tokenizer.model", max_tokens=8)
    whole = convert(tmp_path / "model.pt", ieee(), DATA / "tokenizer.model")
    text = "def add(a, b):\n    return a + b\n"
    (short,), (long,) = model.encoder.tokenize([text]).ids, whole.encoder.tokenize([text]).ids
    assert list(short) == list(long[:8])
    assert model.encode([text])[0].cropped == len(long) - 8


def test_bfloat16_stays_near(tmp_path: Path) -> None:
    path = checkpoint("ieee", tmp_path)
    exact = convert(path, ieee(), DATA / "tokenizer.model")
    fast = convert(path, ieee(), DATA / "tokenizer.model", precision="bfloat16")
    slots = [[[Slot(value=12.5)]]]
    one, other = (float(log_prob(model, model.encode(["hello"]), slots)[0][0][0]) for model in (exact, fast))
    assert one != other
    assert one == pytest.approx(other, abs=0.1)


def test_settings_that_do_not_fit_are_reported(tmp_path: Path) -> None:
    path = checkpoint("ieee", tmp_path)
    with pytest.raises(ModelError, match=r"model\.pt: has 13 number tokens, the number format 34; give the order"):
        convert(path, p10(), DATA / "tokenizer.model")
    with pytest.raises(ModelError, match="does not hold its tokenizer"):
        convert(path, ieee())
    with pytest.raises(ModelError, match="cannot be read"):
        convert(path, ieee(), tmp_path / "none.model")
    (tmp_path / "bad.model").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match="not a SentencePiece model"):
        convert(path, ieee(), tmp_path / "bad.model")
    with pytest.raises(ModelError, match="not an even multiple"):
        convert(path, ieee(), DATA / "tokenizer.model", heads=5)


def test_files_that_are_no_checkpoints_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with pytest.raises(ModelError, match="cannot be read"):
        convert(path, ieee(), DATA / "tokenizer.model")
    path.write_bytes(b"nonsense")
    with pytest.raises(ModelError, match=r"model\.pt: "):
        convert(path, ieee(), DATA / "tokenizer.model")
    torch.save({"model_state": {"weight": torch.ones(2)}}, path)
    with pytest.raises(ModelError, match="no weights of an EncoderDecoder"):
        convert(path, ieee(), DATA / "tokenizer.model")


class Trap:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("run",)


def test_a_checkpoint_cannot_run_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"model_state": {}, "extra": Trap()}, tmp_path / "model.pt")
    with pytest.raises(ModelError, match="holds more than weights"):
        convert(tmp_path / "model.pt", ieee(), DATA / "tokenizer.model")
    assert "run" not in capsys.readouterr().out


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["model", "convert", *map(str, arguments)])


@pytest.mark.parametrize(("name", "numbers"), [("ieee", "ieee"), ("p10", "p10")])
def test_the_command_writes_a_model_of_the_same_log_probabilities(name: str, numbers: str, tmp_path: Path) -> None:
    form = NumberFormat.from_json(CASES[name]["numbers"])
    options = ["--numbers", numbers, "--mantissa-digits", form.mantissa_digits, "--tokenizer", DATA / "tokenizer.model"]
    result = run(checkpoint(name, tmp_path), "--out", tmp_path / "ours", *options)
    assert result.exit_code == 0, result.output
    assert "parameters" in result.stdout
    check(store.load(tmp_path / "ours")[0], name)


def test_the_command_refuses_what_does_not_fit_in_one_line(tmp_path: Path) -> None:
    path = checkpoint("ieee", tmp_path)
    for options, words in (
        (["--numbers", "p10", "--base", 10], "does not apply to --numbers p10"),
        (["--mantissa-digits", 9, "--tokenizer", DATA / "tokenizer.model"], "number tokens"),
        ([], "does not hold its tokenizer"),
    ):
        result = run(path, "--out", tmp_path / "ours", *options)
        assert result.exit_code == 2
        assert words in result.stderr
        assert len(result.stderr.splitlines()) == 1
