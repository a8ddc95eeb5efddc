"""An evaluation from data sets to its report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from rlm_core import Band, CodeText, DataError, Prediction, Query
from rlm_core.inference.predictor import WithoutComparison
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.evaluation import run
from rlm_core.training.evaluation.rows import select
from rlm_core.training.evaluation.run import evaluate, examine
from rlm_core.types import Abstention, AbstentionCode, CalibrationSource
from rlm_lsp.cli.eval import command

DEVICES = ("nvidia-t4", "pixel-3")


class Counting(WithoutComparison):
    """A predictor that reads the number in a text, abstains from some, and counts what it encodes."""

    model_id = "counting-1"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def devices(self, basis: str, language: str | None = None) -> tuple[str, ...]:
        return DEVICES

    def default_queries(self, basis: str, language: str) -> tuple[Query, ...]:
        return ()

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        self.texts += [code.text for code in texts]
        return [[self._answer(code, q) for q in asked] for code, asked in zip(texts, queries, strict=True)]

    def _answer(self, code: CodeText, query: Query) -> Prediction:
        number = int(code.text.rsplit(" ", 1)[1])
        fixed = (code.basis, query.metric, query.device, query.workload, self.model_id)
        if number % 50 == 7:
            details = {"distance": f"{number}.5", "limit": "3"}
            return Prediction.missing(
                code, query, self.model_id, Abstention(AbstentionCode.UNLIKE_TRAINING_DATA, details)
            )
        value = 1e-3 * (1 + number % 40)
        bands = (
            Band(value / 2, value * 2, 0.8, 40, 400, CalibrationSource("network")),
            Band(value / 3, value * 3, 0.9, 40, 400, CalibrationSource("network")),
        )
        return Prediction(*fixed, value, bands, 0.0, False)


def network_rows(count: int) -> list[dict[str, Any]]:
    """Networks on two devices, one of them twice as slow, with accuracies on two data sets."""
    rng = np.random.default_rng(0)
    found: list[dict[str, Any]] = []
    for n in range(count):
        name, split = f"space/{n}", ("train", "train", "cal", "test")[n % 4]
        common = {"text": f"Conv Relu {n}", "callees": [], "language": "onnx", "basis": "network", "group": name}
        common |= {"family": name, "held_out": "architecture", "split": split, "source": "space x"}
        size = (1 + n % 40) * 10 ** rng.normal(0, 0.05)
        for place, device in enumerate(DEVICES):
            query = {"metric": "latency", "device": device, "workload": {"batch": "1"}}
            found.append({"id": f"nas/{name}/{device}", "value": 1e-3 * size * (1 + place), **query, **common})
        for data in ("cifar10", "cifar100"):
            known = {"metric": "accuracy", "device": None, "workload": {"dataset": data}}
            found.append({"id": f"nas/{name}/{data}", "value": min(0.9, 0.01 * size), **known, **common})
    return found


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 400 networks."""
    path = tmp_path_factory.mktemp("networks") / "networks.parquet"
    write_rows(network_rows(400), path)
    return path


def test_a_text_is_queried_once_for_all_its_devices(networks: Path) -> None:
    predictor = Counting()
    examine(predictor, [networks], baselines=False)
    assert len(predictor.texts) == len(set(predictor.texts)) == 100


def test_networks_are_reported_by_device_and_data_set_next_to_boosting(networks: Path) -> None:
    report = examine(Counting(), [networks]).report
    whole = {entry.metric: entry for entry in report.whole("network")}
    assert set(whole) == {"accuracy", "latency"}
    assert set(whole["latency"].figures) == {"model", "mean", "boosting"}
    latency = whole["latency"].figures["model"]
    # Pooled, the model does not know which device is slow; device by device it ranks nearly perfectly.
    assert latency["by_setting"].value > 0.95 > latency["spearman"].value
    assert whole["accuracy"].figures["model"]["kendall"].interval is not None
    settings = [entry.setting for entry in report.slices if entry.setting]
    assert settings == ["space, cifar10", "space, cifar100", "space, nvidia-t4, batch 1", "space, pixel-3, batch 1"]


def test_abstentions_count_by_reason_without_their_numbers_and_are_left_out(networks: Path) -> None:
    report = examine(Counting(), [networks], baselines=False).report
    assert report.abstained == {"network": {"unlike-training-data": 16}}
    assert {entry.n + entry.abstained for entry in report.whole("network")} == {200}


def test_bands_are_summed_up_by_basis(networks: Path) -> None:
    report = examine(Counting(), [networks]).report
    [found] = report.coverage
    assert (found.basis, found.reported, found.compared) == ("network", 6, 2)
    assert 0 <= found.holding == found.reported - len(found.outside)
    assert "network" in report.coverage_table()


def test_a_sample_takes_the_same_architectures_for_every_device_and_says_so(networks: Path) -> None:
    rows = select([networks], ("test",), 10).rows
    by_device = {device: {row.group for row in rows if row.query.device == device} for device in DEVICES}
    assert len(by_device["pixel-3"]) == 10
    assert by_device["pixel-3"] == by_device["nvidia-t4"]
    assert rows == select([networks], ("test",), 10).rows
    report = examine(Counting(), [networks], baselines=False, most=10).report
    assert "a seeded sample of at most 10 rows per task and device" in str(report)
    assert "onnx/latency of unseen architecture (20 of 200 rows)" in str(report)


def test_report_is_json_and_tables(networks: Path) -> None:
    report = examine(Counting(), [networks]).report
    assert json.loads(json.dumps(asdict(report)))["model"] == "counting-1"
    text = str(report)
    assert text.startswith("model counting-1, split test")
    assert "| boosting" in text
    assert "80 % covers" in text


def test_predictions_are_kept_with_those_of_the_baselines(networks: Path, tmp_path: Path) -> None:
    evaluate(Counting(), [networks], baselines=True, predictions=tmp_path / "p.parquet")
    table = pq.read_table(tmp_path / "p.parquet")
    assert len(table) == 400
    assert table["median"].null_count == 16
    assert {"median_boosting", "low80", "floor", "device"} <= set(table.column_names)


def test_the_command_line_samples_as_the_library_does() -> None:
    [option] = [option for option in command.params if option.name == "most"]
    assert option.default == run.MOST_ROWS


def test_what_cannot_be_evaluated_is_one_clear_line(networks: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="split 'dev' is not one of"):
        examine(Counting(), [networks], "dev")
    only_test = tmp_path / "t.parquet"
    write_rows([{**row, "split": "test"} for row in network_rows(8)], only_test)
    with pytest.raises(DataError, match="no training rows; baselines need"):
        examine(Counting(), [only_test])
    with pytest.raises(DataError, match="no rows of split 'val'"):
        examine(Counting(), [only_test], "val")
