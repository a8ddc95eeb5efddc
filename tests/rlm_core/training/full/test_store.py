"""A saved model is the same model; a damaged one is refused with the way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from rlm_core.errors import ModelError
from rlm_core.training.full import store
from rlm_core.training.full.decoding import quantiles
from rlm_core.training.full.sequences import Slot

from .tiny import LATENCY, TEXTS, tiny_model


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    store.save(tiny_model(), tmp_path / "model", "tiny", {"rows": 3})
    return tmp_path / "model"


def test_a_saved_model_gives_the_same_answers(saved: Path) -> None:
    model, card = store.load(saved)
    assert (card.name, card.trained) == ("tiny", {"rows": 3})
    assert card.model_id.startswith("tiny-")
    assert not model.training
    own = tiny_model()
    (before,), (after,) = (
        quantiles(one, one.encode(TEXTS[:1]), [[[Slot(LATENCY)]]], (0.1, 0.5, 0.9))[0] for one in (own, model)
    )
    assert (before.smooth == after.smooth).all()


def test_nothing_but_safetensors_json_and_the_tokenizer_is_written(saved: Path) -> None:
    assert {path.suffix for path in saved.rglob("*") if path.is_file()} == {".json", ".safetensors", ".model"}


def test_a_model_is_replaced(saved: Path) -> None:
    other = tiny_model(seed=5)
    store.save(other, saved, "other")
    model, card = store.load(saved)
    assert card.name == "other"
    assert torch.equal(model.decoder.embed.weight, other.decoder.embed.weight)


@pytest.mark.parametrize("name", ["card.json", "config.json", "decoder.safetensors", "encoder/encoder.json"])
def test_missing_and_damaged_files_are_reported_by_name(saved: Path, name: str) -> None:
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[:-3] + b"xyz")
    with pytest.raises(ModelError, match="corrupt"):
        store.load(saved)
    (saved / name).unlink()
    with pytest.raises(ModelError, match=Path(name).name.replace(".", r"\.") + ".*(missing|cannot be read).*; copy"):
        store.load(saved)


def test_a_card_of_another_format_or_reaching_outside_is_refused(saved: Path) -> None:
    path = saved / "card.json"
    card = json.loads(path.read_text())
    path.write_text(json.dumps({**card, "format": "rlm-full-9"}))
    with pytest.raises(ModelError, match="format 'rlm-full-9' is not rlm-student-4 or rlm-full-1"):
        store.load(saved)
    path.write_text(json.dumps({**card, "files": {"../other": "0" * 64}}))
    with pytest.raises(ModelError, match="outside its directory"):
        store.load(saved)


def test_weights_of_another_model_are_refused(saved: Path) -> None:
    other = saved.parent / "other"
    store.save(tiny_model(hidden=32), other, "other")
    (saved / "decoder.safetensors").write_bytes((other / "decoder.safetensors").read_bytes())
    card = json.loads((saved / "card.json").read_text())
    card["files"] = {}
    (saved / "card.json").write_text(json.dumps(card))
    with pytest.raises(ModelError, match="not the weights that config"):
        store.load(saved)
