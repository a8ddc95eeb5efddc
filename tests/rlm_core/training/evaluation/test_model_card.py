"""The model card: a page of summaries, with full tables and plots on pages next to it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from rlm_core import CodeText, DataError, Prediction, Query
from rlm_core.inference.calibration import Calibration, TaskCalibration, fit_scale
from rlm_core.inference.card import StudentCard, TaskCard, read_card
from rlm_core.inference.model_store import builtin
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.evaluation import card_text
from rlm_core.training.evaluation.card_model import count_sources, heading, source_of
from rlm_core.training.evaluation.card_text import SOURCES
from rlm_core.training.evaluation.model_card import read_entries, write_card

from .test_run import DEVICES, Counting, network_rows


class Stub(OnnxPredictor):
    """An exported model without its networks: card and files are real, answers are counted."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.card = read_card(directory)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        return Counting().predict(texts, queries)

    def distributions(
        self, texts: Sequence[CodeText], queries: Sequence[Query]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        outcomes = len(self.card.tasks[0].scale.edges)
        return np.full((len(texts), outcomes), 1 / outcomes), np.zeros(len(texts), np.int64)


def read_all(out: Path) -> tuple[str, dict[str, str]]:
    """The card and its pages by name."""
    folder = out.parent / "docs" / "model-card"
    return out.read_text(encoding="utf-8"), {
        path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")
    }


@pytest.fixture
def model(tmp_path: Path) -> Stub:
    """A stub whose card is about networks."""
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "encoder.onnx").write_bytes(b"x" * 1234567)
    scale = fit_scale(np.geomspace(1e-3, 1, 100), 0.0)
    StudentCard(
        name="tiny",
        sizes={"width": 4321},
        tasks=[TaskCard(f"network/onnx/{metric}", scale, 0.0, ()) for metric in ("accuracy", "latency")],
        calibration=Calibration(
            {"network": TaskCalibration("network", (0.1, 0.3, 0.5, 0.71, 0.82, 0.92, 0.96, 0.98), 41, 999)}
        ),
        defaults={"network/accuracy": {"device": None, "workload": {"dataset": "cifar10"}}},
        devices={"network": DEVICES},
        trained={"rows": 8765, "seconds": {"encoder": 90.0}},
    ).write(directory, ["encoder.onnx"])
    return Stub(directory)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data set of networks."""
    path = tmp_path / "networks.parquet"
    write_rows(network_rows(160), path)
    return path


def test_the_card_has_what_the_model_and_the_files_say(model: Stub, data: Path, tmp_path: Path) -> None:
    goals, ablations = tmp_path / "goals.json", tmp_path / "ablations.json"
    goal = {"task": "accuracy of networks", "which": "refit", "measured": 0.7254, "interval": [0.7, 0.75], "met": True}
    goals.write_text(json.dumps([{**goal, "baseline": ".67", "goal": ">= .72", "note": "a|b"}]))
    ablations.write_text(json.dumps([{"variant": "no trees", "Kendall": 0.61}, {"variant": "whole", "width": 256}]))
    out = tmp_path / "MODEL_CARD.md"
    write_card(model, [data], out, goals=goals, ablations=ablations)
    card, pages = read_all(out)
    assert len(card.splitlines()) <= 200
    assert "8,765" in card
    assert "NVIDIA Tesla T4" in card
    assert sorted(re.findall(r"\]\((docs/model-card/[^)]+\.md)\)", card)) == sorted(
        f"docs/model-card/{n}" for n in pages
    )
    assert set(pages) == {"networks.md", "bands.md", "protocol.md", "model.md", "goals.md"}
    for said, page in (
        ("1,234,567", "model.md"), ("4,321", "model.md"), ("41", "bands.md"),
        ("0.7254", "goals.md"), ("0.7–0.75", "goals.md"), ("a\\|b", "goals.md"), ("no trees", "model.md"),
        ("Basis `network`", "networks.md"), ("Abstentions", "bands.md"), ("Training time", "model.md"),
    ):  # fmt: skip
        assert said in pages[page], said
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", card)
    assert pictures == ["docs/model-card/calibration.png"]
    for page in pages.values():
        pictures += [f"docs/model-card/{name}" for name in re.findall(r"!\[[^]]+\]\(([^)]+)\)", page)]
    assert {Path(picture).stem for picture in pictures} == {"calibration", "measured-network", "reliability-network"}
    for picture in pictures:
        content = (tmp_path / picture).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) < 120_000


def test_tables_keep_their_columns(model: Stub, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "MODEL_CARD.md"
    write_card(model, [data], out, most=20)
    table: list[int] = []
    card, pages = read_all(out)
    for line in "\n\n".join([card, *pages.values()]).splitlines():
        bars = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not (bars and table) or table[-1] == bars, line
        table = [bars] if bars else []


def test_sections_without_content_are_left_out(model: Stub, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "MODEL_CARD.md"
    write_card(model, [data], out)
    card, pages = read_all(out)
    assert set(pages) == {"networks.md", "bands.md", "protocol.md", "model.md"}
    assert "What each part contributes" not in pages["model.md"]
    assert "more expensive" not in card


def test_hand_written_words_hold_no_figures() -> None:
    texts = [value for value in vars(card_text).values() if isinstance(value, str) and "\n" in value]
    texts += [*card_text.BASES.values(), card_text.NOT_USED]
    texts += [part for source in SOURCES.values() for part in (source.measured, source.left_out)]
    for text in texts:
        # A number by itself; one inside a name (int8, CIFAR-10, NAS-Bench-201) is no figure.
        assert not re.findall(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])", text), text


def test_the_heading_names_the_parts_of_another_training() -> None:
    card = read_card(builtin())
    plain = replace(card, trained={"rows": 1_000})
    assert "those of" not in heading(plain)
    kept = replace(card, trained={"rows": 1_000, "judges": {"from": "rlm-student-1", "slices": ["program/c@boj"]}})
    assert "The trees and n-gram ridges of `program/c@boj` are those of `rlm-student-1`" in heading(kept)


def test_every_source_of_the_builders_is_known() -> None:
    ids = {"functions/a:b/latency": "functions", "leethub/0a/memory": "leethub", "literal/x/1/base/latency": "literal"}
    ids |= {"counterfactual/x/1/base/latency": "counterfactual"}
    ids |= {"triton/liger/rms_norm/1": "triton/liger", "nas/ofa/12/v100_1": "nas/ofa"}
    for name, key in ids.items():
        assert source_of(name, "call") in SOURCES
        assert not key or source_of(name, "call") == key


def test_rows_are_counted_by_source_and_split(data: Path) -> None:
    [found] = count_sources([data])
    assert (found.key, found.basis, found.groups, found.texts) == ("nas/space", "network", 160, 160)
    assert found.rows == {"train": 320, "cal": 160, "test": 160}


@pytest.mark.parametrize("content", ["{", '{"a": 1}', "[1]"])
def test_files_of_another_form_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "goals.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"goals\.json: not"):
        read_entries(path)


def test_a_goal_without_its_figure_is_refused_before_anything_is_measured(
    model: Stub, data: Path, tmp_path: Path
) -> None:
    goals = tmp_path / "goals.json"
    goals.write_text('[{"task": "t", "goal": 1, "met": false}]')
    with pytest.raises(DataError, match="goal 't' has no measured"):
        write_card(model, [data], tmp_path / "c.md", goals=goals)
