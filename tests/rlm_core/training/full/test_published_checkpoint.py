"""Models that are published as a checkpoint of regress-lm: their settings come from the table of known models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from rlm_core.errors import ModelError
from rlm_core.inference.model_store import ModelOrigin
from rlm_core.loading import load
from rlm_core.training.full import hub, published
from rlm_core.training.full.decoding import quantiles
from rlm_core.training.full.hub import CheckpointFormat, KnownModel
from rlm_core.training.full.numbers import NumberFormat
from rlm_core.training.full.regress_lm import ieee
from rlm_core.training.full.sequences import Slot
from rlm_core.training.full.spaces import spaces_of
from rlm_core.types import LEVELS, CodeText, Query

from .encoders import checkpoints

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("warm_children")]
DATA = Path(__file__).parent / "data"
MODULE = CodeText("class ModelNew(nn.Module):\n    def forward(self, x):\n        return x\n", "pytorch", "module")
DEVICE = "nvidia-h100-sxm"


def _with_nan(rows: torch.Tensor, numbers: NumberFormat, value: float) -> torch.Tensor:
    """A matrix or vector of number tokens with a row for NAN."""
    index = numbers.ids["<NAN>"]
    return torch.cat([rows[:index], torch.full_like(rows[:1], value), rows[index:]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``best.pt`` with one special token and an encoder of T5Gemma 2; ``base`` is the model it was trained from."""
    folder = tmp_path_factory.mktemp("published")
    numbers = ieee(special=(("NAN", "nan"),))
    state = safetensors.torch.load_file(DATA / "t5gemma.safetensors")
    state = {name: weight for name, weight in state.items() if not name.startswith("encoder_decoder.encoder.")}
    for name, value in (("tgt_tok_emb.weight", 0.0), ("generator.weight", 0.0), ("generator.bias", -30.0)):
        state[f"encoder_decoder.{name}"] = _with_nan(state[f"encoder_decoder.{name}"], numbers, value)
    encoder = checkpoints.second(seed=1).get_encoder().text_model.state_dict()
    state |= {f"encoder_decoder.encoder.encoder.text_model.{name}": weight for name, weight in encoder.items()}
    torch.save({"model_state": state}, folder / "best.pt")
    checkpoints.write(checkpoints.second(seed=2), folder / "base")
    return folder


@pytest.fixture
def known(folder: Path, monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    settings = CheckpointFormat(str(folder / "base"), 1, 4, ("NAN",), decoder_layers=2, max_tokens=128)
    model = KnownModel("Apache-2.0", ("best.pt",), checkpoint=settings)
    monkeypatch.setattr(published, "KNOWN", {"someone/demo": model})
    return model


def test_a_known_checkpoint_answers_for_its_space_on_the_users_device(
    folder: Path, known: KnownModel, tmp_path: Path
) -> None:
    spaces = spaces_of("Srizzle/triton-demo", "H100")
    published.install(folder, tmp_path / "model", "demo", ModelOrigin("someone/demo", "0c92", known.license), spaces)
    predictor = load(tmp_path / "model")
    assert predictor.default_queries("module", "pytorch") == (Query("latency", DEVICE, {"backend": "eager"}),)
    ((answer, other),) = predictor.predict([MODULE], [[Query("latency"), Query("latency", "nvidia-a100-pcie-40gb")]])
    assert answer.device == DEVICE
    assert answer.bands[0].source.uncalibrated
    assert other.abstained is not None
    # Milliseconds, and no prefix.
    assert known.checkpoint is not None
    model = published.read_known(folder / "best.pt", known.checkpoint)
    (raw,) = quantiles(model, model.encode([MODULE.text]), [[[Slot()]]], LEVELS, 1e-3, 0.01)[0]
    assert answer.quantiles is not None
    assert answer.quantiles[-1] == pytest.approx(raw.smooth[-1] * 1e-3, rel=1e-6)
    assert answer.quantiles[-1] > 0


def test_the_published_checkpoint_is_described_in_full() -> None:
    model = hub.KNOWN["Srizzle/triton-demo"]
    assert model.required == ("best_checkpoint.pt",)
    assert model.checkpoint == CheckpointFormat("google/t5gemma-2-270m-270m", 1, 5, ("NAN",), 12, 8192)


def test_what_does_not_fit_the_table_or_is_not_in_it_is_refused(
    folder: Path, known: KnownModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert known.checkpoint is not None
    origin = ModelOrigin("someone/demo")
    for changes, message in (
        ({"decoder_layers": 3}, r"best\.pt: its decoder has 2 layers, that of the published model 3"),
        ({"mantissa_digits": 5}, r"best\.pt: has 7 places for number tokens, the format takes 8"),
        ({"special": ()}, r"best\.pt: has 14 number tokens, the number format 13"),
        ({"encoder": str(tmp_path)}, "config.json is missing"),
    ):
        wrong = replace(known, checkpoint=replace(known.checkpoint, **changes))
        monkeypatch.setattr(published, "KNOWN", {"someone/demo": wrong})
        with pytest.raises(ModelError, match=message):
            published.install(folder, tmp_path / "out", "demo", origin)
    with pytest.raises(ModelError, match=r"best\.pt: a checkpoint of regress-lm .*; run rlm-lsp model convert"):
        published.install(folder, tmp_path / "out", "demo", ModelOrigin(str(folder)))
    assert not (tmp_path / "out").exists()
