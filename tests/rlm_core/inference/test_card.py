"""The model card: what it says survives writing, and what does not fit it is refused with the file's name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rlm_core.errors import ModelError
from rlm_core.inference.calibration import Calibration, Scale, TaskCalibration
from rlm_core.inference.card import (
    CARD,
    FULL_FORMAT,
    SERVING,
    StudentCard,
    TaskCard,
    model_id,
    read_card,
    read_model_card,
)
from rlm_core.inference.cost_ratio import RatioModel
from rlm_core.inference.ngram_ridge import CALENDAR_NODES
from rlm_core.inference.residuals import Residuals
from rlm_core.types import LEVELS

RESIDUALS = {"network/onnx/latency@pixel-3/1": Residuals(tuple(float(level) for level in LEVELS), 40, 80)}
CHANGES = {"changes/call/latency": RatioModel((0.9, 0.0, 0.0), (0.01, 0.2), 2.0, *RESIDUALS.values())}
CALENDAR = (0.0, 0.1) * (CALENDAR_NODES // 2)
FILES = ("encoder.onnx", "head.onnx")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A model directory with a card and two files."""
    for name in FILES:
        (tmp_path / name).write_bytes(name.encode())
    make_card().write(tmp_path, FILES)
    return tmp_path


def make_card(name: str = "test") -> StudentCard:
    level = TaskCalibration("call", (0.1, 0.3, 0.5, 0.7, 0.85, 0.92, 0.96, 0.98), 40, 400)
    return StudentCard(
        name,
        {"context": 512},
        [TaskCard("call/python/latency", Scale(5e-8, np.linspace(-7, 1, 65)), -4.5, CALENDAR)],
        Calibration({"call": level}),
        {"call": {"device": "x86-64", "workload": {}}},
        {"call": ["x86-64"], "kernel": ["nvidia-a100-sxm4-80gb", "nvidia-l40s"]},
        RESIDUALS,
        CHANGES,
        {"rows": 7},
    )


def test_what_is_written_is_read(directory: Path) -> None:
    card = read_card(directory)
    assert (card.name, card.sizes, card.trained) == ("test", {"context": 512}, {"rows": 7})
    assert card.devices == {"call": ["x86-64"], "kernel": ["nvidia-a100-sxm4-80gb", "nvidia-l40s"]}
    assert (card.residuals, card.changes) == (RESIDUALS, CHANGES)
    [entry] = card.tasks
    assert (entry.name, entry.intercept, entry.calendar) == ("call/python/latency", -4.5, CALENDAR)
    np.testing.assert_allclose(entry.scale.edges, np.linspace(-7, 1, 65), atol=1e-6)
    assert card.calibration.to_json() == make_card().calibration.to_json()
    assert sorted(card.files) == sorted(FILES)


def test_the_encoder_reads_the_texts_of_tasks_that_need_it(directory: Path) -> None:
    card = read_card(directory)
    assert card.encoded == {"call/python"}
    [entry] = card.tasks
    memory = replace(entry, name="call/python/memory", deep_weight=0.0)
    assert replace(card, tasks=[replace(entry, deep_weight=0.0), memory]).encoded == frozenset()
    assert replace(card, tasks=[entry, memory]).encoded == {"call/python"}
    replace(card, tasks=[replace(entry, deep_weight=0.25)], files={}).write(directory, FILES)
    assert read_card(directory).tasks[0].deep_weight == 0.25


def test_the_card_is_plain_json(directory: Path) -> None:
    assert json.loads((directory / CARD).read_text())["format"] == "rlm-student-4"


def test_the_model_id_follows_the_weights(directory: Path) -> None:
    before = read_card(directory).model_id
    assert before.startswith("test-")
    (directory / FILES[0]).write_bytes(b"other weights")
    make_card().write(directory, FILES)
    assert read_card(directory).model_id != before


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(ModelError, match=rf"{name}: missing"):
        read_card(directory)


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_named(directory: Path, name: str) -> None:
    (directory / name).write_bytes(b"changed")
    with pytest.raises(ModelError, match=rf"{name}: corrupt"):
        read_card(directory)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nowhere.card\.json: cannot be read"):
        read_card(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"format": "rlm-student-4"}', "\ud800"])
def test_a_corrupt_card_is_named(directory: Path, text: str) -> None:
    (directory / CARD).write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ModelError, match=r"card\.json: corrupt"):
        read_card(directory)


def test_a_card_that_is_not_a_small_regular_file_is_not_read(directory: Path) -> None:
    with (directory / CARD).open("ab") as file:
        file.truncate(2**40)
    with pytest.raises(ModelError, match=r"card\.json: cannot be read \(1024 GiB is over the limit of 16 MiB\)"):
        read_card(directory)
    (directory / CARD).unlink()
    (directory / CARD).symlink_to("/dev/zero")
    with pytest.raises(ModelError, match=r"card\.json: cannot be read \(not a regular file\)"):
        read_card(directory)


def test_another_format_is_refused(directory: Path) -> None:
    data = json.loads((directory / CARD).read_text())
    (directory / CARD).write_text(json.dumps({**data, "format": "rlm-student-9"}))
    with pytest.raises(ModelError, match="format 'rlm-student-9' is not rlm-student-4"):
        read_card(directory)


@pytest.mark.parametrize("key", ["sizes", "slices", "calibration", "defaults", "devices", "files"])
def test_a_card_without_a_part_is_corrupt(directory: Path, key: str) -> None:
    data = json.loads((directory / CARD).read_text())
    del data[key]
    (directory / CARD).write_text(json.dumps(data))
    with pytest.raises(ModelError, match=rf"card\.json: corrupt .*{key}"):
        read_card(directory)


@pytest.mark.parametrize("name", ["../encoder.onnx", "/etc/hostname", "sub/encoder.onnx"])
def test_a_file_outside_the_directory_is_refused_unread(directory: Path, name: str) -> None:
    data = json.loads((directory / CARD).read_text())
    (directory / CARD).write_text(json.dumps({**data, "files": {name: "0" * 64}}))
    with pytest.raises(ModelError, match="names a file outside its directory"):
        read_card(directory)


def test_every_message_is_one_line_with_a_way_out(directory: Path) -> None:
    (directory / FILES[0]).unlink()
    with pytest.raises(ModelError) as caught:
        read_card(directory)
    assert "\n" not in str(caught.value)
    assert "reinstall rlm-lsp or export the model again" in str(caught.value)


def test_a_field_of_another_type_is_named_with_its_path(directory: Path) -> None:
    data = json.loads((directory / CARD).read_text())
    data["slices"][0]["floor"] = "small"
    (directory / CARD).write_text(json.dumps(data))
    with pytest.raises(ModelError, match=r"corrupt \(Expected `float`, got `str` - at `\$\.slices\[0\]\.floor`"):
        read_card(directory)


def test_residuals_that_do_not_rise_are_named_with_their_path(directory: Path) -> None:
    data = json.loads((directory / CARD).read_text())
    [entry] = data["residuals"].values()
    entry["quantiles"] = entry["quantiles"][::-1]
    (directory / CARD).write_text(json.dumps(data))
    with pytest.raises(ModelError, match=r"corrupt \(residuals need 17 rising quantiles - at `\$\.residuals"):
        read_card(directory)


def test_the_card_of_a_full_model_is_not_read_as_a_students(directory: Path) -> None:
    data = json.loads((directory / CARD).read_text())
    (directory / CARD).write_text(json.dumps({**data, "format": FULL_FORMAT, "trained": {SERVING: "1" * 64}}))
    with pytest.raises(ModelError, match="format 'rlm-full-1' is not rlm-student-4"):
        read_card(directory)
    card = read_model_card(directory)
    assert card.is_full
    assert card.served_files == {**data["files"], SERVING: "1" * 64}
    assert card.model_id != model_id(card.name, card.files)
