"""Where models live: what is found by name or path, what a card says in short, and checksums of every byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rlm_core import DataError, ModelError, load
from rlm_core.inference import model_store
from rlm_core.inference.card import CARD, checksum


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's empty folder of models."""
    monkeypatch.setattr(model_store, "folder", lambda: tmp_path / "models")
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def make(directory: Path, form: str = "rlm-student-4", **more: object) -> Path:
    """A model directory as far as these functions look."""
    directory.mkdir(parents=True)
    (directory / "encoder").mkdir()
    for name in ("head.onnx", "encoder/weights.safetensors"):
        (directory / name).write_bytes(name.encode())
    files = {name: checksum(directory / name) for name in ("head.onnx", "encoder/weights.safetensors")}
    data = {"format": form, "name": "ours", "trained": {}, "files": files, **more}
    (directory / CARD).write_text(json.dumps(data))
    return directory


def test_the_summary_of_the_shipped_model_is_the_predictors() -> None:
    found, predictor = model_store.summary(model_store.find("builtin")), load()
    assert found.model_id == predictor.model_id
    assert found.devices["call"] == predictor.devices("call")
    assert found.kind == "student"
    assert found.tuned_from is None
    assert found.size > 2**20
    assert {one.state for one in model_store.verify(found)} == {"ok"}


def test_models_are_found_by_name_and_by_path(own: Path, tmp_path: Path) -> None:
    named, elsewhere = make(own / "shop"), make(tmp_path / "elsewhere", "rlm-full-1")
    assert model_store.find("shop") == named
    assert model_store.find(str(elsewhere)) == elsewhere
    assert model_store.summary(elsewhere).kind == "full"
    assert model_store.installed() == [model_store.builtin(), named]


def test_a_half_written_model_is_not_listed(own: Path) -> None:
    make(own / ".shop.123.partial")
    assert model_store.installed() == [model_store.builtin()]


def test_what_a_model_was_tuned_from_is_the_last_of_its_tunings(own: Path) -> None:
    history = {"tuned": [{"from": "rlm-student-1"}, {"from": "shop-2"}]}
    assert model_store.summary(make(own / "shop", trained=history)).tuned_from == "shop-2"


def test_changed_missing_and_foreign_files_are_distinguished(own: Path) -> None:
    directory = make(own / "shop")
    card = json.loads((directory / CARD).read_text())
    card["files"]["../shop-2"] = card["files"]["missing.onnx"] = "0" * 64
    (directory / CARD).write_text(json.dumps(card))
    (directory / "head.onnx").write_bytes(b"other")
    states = {one.name: one.state for one in model_store.verify(model_store.summary(directory))}
    assert states == {
        "head.onnx": "changed",
        "encoder/weights.safetensors": "ok",
        "missing.onnx": "missing",
        "../shop-2": "outside",
    }


@pytest.mark.parametrize("name", ["nothing", "no/where", "."])
def test_what_is_no_model_is_refused_in_one_line(own: Path, name: str) -> None:
    with pytest.raises(ModelError, match=r"rlm-lsp model list|has no card\.json"):
        model_store.find(name)


@pytest.mark.parametrize("card", ["", "[]", "{}", '{"format": "rlm-student-4"}', '{"format": "other", "files": {}}'])
def test_a_damaged_card_is_refused_with_its_path(own: Path, card: str) -> None:
    directory = make(own / "shop")
    (directory / CARD).write_text(card)
    with pytest.raises(ModelError, match=r"shop/card\.json: (corrupt|format)"):
        model_store.summary(directory)


@pytest.mark.parametrize("name", ["", "builtin", "../up", "a/b", ".hidden", "x" * 81])
def test_names_that_are_no_directory_names_are_refused(name: str) -> None:
    with pytest.raises(DataError, match="use letters"):
        model_store.new_directory(name)
