"""The model card: generated whole, with plots beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from rlm_core import CodeText, DataError, Prediction, Query
from rlm_core.inference.bins import fit_scale
from rlm_core.inference.calibration import Calibration, Level
from rlm_core.inference.card import Card, SliceCard, read_card
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.evaluation import card_report, card_text
from rlm_core.training.evaluation.card_report import read_entries, write_card
from rlm_core.training.evaluation.origins import NOT_USED, ORIGINS, count_origins, origin_of

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
        outcomes = len(self.card.slices[0].scale.edges)
        return np.full((len(texts), outcomes), 1 / outcomes), np.zeros(len(texts), np.int64)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set, and ``load`` gives a stub whose card is about it."""
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "encoder.onnx").write_bytes(b"x" * 1234567)
    scale = fit_scale(np.geomspace(1e-3, 1, 100), 0.0)
    Card(
        name="tiny",
        sizes={"width": 4321},
        slices=[SliceCard(f"network/onnx/{metric}", scale, 0.0, ()) for metric in ("accuracy", "latency")],
        calibration=Calibration({"network": Level("network", (0.1, 0.3, 0.5, 0.71, 0.82, 0.92, 0.96, 0.98), 41, 999)}),
        defaults={"network/accuracy": {"device": None, "workload": {"dataset": "cifar10"}}},
        devices={"network": DEVICES},
        trained={"rows": 8765, "seconds": {"encoder": 90.0}, "deep_weights": {"network/onnx/latency": 0.37}},
    ).write(directory, ["encoder.onnx"])
    monkeypatch.setattr(card_report, "load", lambda model: Stub(directory))
    path = tmp_path / "networks.parquet"
    write_rows(network_rows(160), path)
    return path


def test_card_tells_what_the_model_and_the_files_say(data: Path, tmp_path: Path) -> None:
    goals, ablations = tmp_path / "goals.json", tmp_path / "ablations.json"
    goal = {"task": "accuracy of networks", "which": "refit", "measured": 0.7254, "interval": [0.7, 0.75], "met": True}
    goals.write_text(json.dumps([{**goal, "baseline": ".67", "goal": ">= .72", "note": "a|b"}]))
    ablations.write_text(json.dumps([{"variant": "no trees", "Kendall": 0.61}, {"variant": "whole", "width": 256}]))
    out = tmp_path / "MODEL_CARD.md"
    write_card("builtin", [data], out, goals=goals, ablations=ablations)
    text = out.read_text(encoding="utf-8")
    for told in ("1,234,567", "4,321", "8,765", "41", "0.37", "NVIDIA Tesla T4", "0.7254", "0.7–0.75", "no trees"):
        assert told in text, told
    assert "a\\|b" in text
    assert "### Basis `network`" in text
    assert "Where it abstained" in text
    assert "Training time" in text
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert sorted(pictures) == [
        f"docs/model-card/{name}.png" for name in ("calibration", "measured-network", "reliability-network")
    ]
    for picture in pictures:
        content = (tmp_path / picture).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) < 120_000


def test_tables_keep_their_columns(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "MODEL_CARD.md"
    write_card("builtin", [data], out, most=20)
    table: list[int] = []
    for line in out.read_text(encoding="utf-8").splitlines():
        bars = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not (bars and table) or table[-1] == bars, line
        table = [bars] if bars else []


def test_sections_without_content_are_left_out(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "MODEL_CARD.md"
    write_card("builtin", [data], out)
    text = out.read_text(encoding="utf-8")
    assert "## Goals" not in text
    assert "What each part brings" not in text
    assert "costlier" not in text


def test_hand_written_words_hold_no_figures() -> None:
    texts = [value for value in vars(card_text).values() if isinstance(value, str) and "\n" in value]
    texts += [*card_text.BASES.values(), NOT_USED]
    texts += [part for origin in ORIGINS.values() for part in (origin.measured, origin.left_out)]
    for text in texts:
        # A number by itself; one inside a name (int8, CIFAR-10, NAS-Bench-201) is no figure.
        assert not re.findall(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])", text), text


def test_every_origin_of_the_builders_is_known() -> None:
    ids = {"functions/a:b/latency": "functions", "leethub/0a/memory": "leethub", "counterfactual/x/1/base/latency": ""}
    ids |= {"triton/liger/rms_norm/1": "triton/liger", "nas/ofa/12/v100_1": "nas/ofa"}
    for name, key in ids.items():
        assert origin_of(name, "call") in ORIGINS
        assert not key or origin_of(name, "call") == key


def test_rows_are_counted_by_origin_and_split(data: Path) -> None:
    [found] = count_origins([data])
    assert (found.key, found.basis, found.groups, found.texts) == ("nas/space", "network", 160, 160)
    assert found.rows == {"train": 320, "cal": 160, "test": 160}


@pytest.mark.parametrize("content", ["{", '{"a": 1}', "[1]"])
def test_files_of_another_form_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "goals.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"goals\.json: not"):
        read_entries(path)


def test_a_goal_without_its_figure_is_refused_before_anything_is_measured(data: Path, tmp_path: Path) -> None:
    goals = tmp_path / "goals.json"
    goals.write_text('[{"task": "t", "goal": 1, "met": false}]')
    with pytest.raises(DataError, match="goal 't' lacks measured"):
        write_card("builtin", [data], tmp_path / "c.md", goals=goals)
