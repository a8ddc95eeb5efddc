"""Fits costs of kernels to latencies that follow them, and leaves families out."""

from __future__ import annotations

from pathlib import Path
from shutil import copy
from typing import Any

import numpy as np
import pytest
from rlm_core.inference.card import read_card
from rlm_core.inference.model_store import builtin
from rlm_core.inference.network_settings import COLUMNS, NETWORK_COSTS, load
from rlm_core.inference.network_work import work_of
from rlm_core.training import network_cost_fit
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.network_cost_fit import baseline, cost_of_setting, figures, fit, left_out, settings_of
from rlm_core.types import MEDIAN

FAMILIES, SIZES = 24, (32, 48, 64, 96)
TRUE = {"conv.macs": 2e-5, "pointwise.macs": 1e-5, "elementwise.moved": 4e-6, "product.macs": 3e-5}
FACTORS = np.array([TRUE.get(name, 0.0) for name in COLUMNS])


def text_of(family: int, size: int) -> str:
    """A network whose mix of kernels depends on its family."""
    blocks = "·Conv3x3 {w}·Relu" * (1 + family % 5) + "·Conv1x1 {w}·Relu·Sigmoid" * (1 + family % 7)
    return f"in a 1x3x{size}x{size}\n" + blocks.format(w=8 + 4 * family) + "·GlobalAveragePool·Flatten·Gemm 10"


def rows_of(noise: float) -> list[dict[str, Any]]:
    random = np.random.default_rng(0)
    rows = []
    for device, slower in (("nvidia-rtx-3090", 3.0), ("nvidia-rtx-4090", 1.0)):
        for family in range(FAMILIES):
            for size in SIZES:
                text = text_of(family, size)
                seconds = slower * (work_of(text).at(64).sum(axis=0) @ FACTORS) * np.exp(random.normal(0, noise))
                workload = {"batch": "64", "mode": "infer", "dtype": "fp32", "layout": "nchw", "backend": "eager"}
                rows.append(
                    {
                        "id": f"{device}/{family}/{size}",
                        "text": text,
                        "callees": [],
                        "language": "onnx",
                        "basis": "network",
                        "metric": "latency",
                        "device": device,
                        "workload": {**workload, "runtime": "pytorch-2.4.0"},
                        "value": seconds,
                        "group": f"family{family}",
                        "family": f"family{family}",
                        "held_out": "architecture",
                        "split": "train",
                        "source": "made",
                    }
                )
    return rows


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("networks") / "rows.parquet"
    write_rows(rows_of(0.05), path)
    return path


def test_latencies_that_are_sums_over_kernels_are_predicted_for_families_that_were_left_out(data: Path) -> None:
    settings = settings_of([data], ("train",))
    assert [setting.device for setting in settings] == ["nvidia-rtx-3090", "nvidia-rtx-4090"]
    for setting, errors in zip(settings, left_out(settings), strict=True):
        assert np.median(np.abs(errors)) < 0.06
        assert np.median(np.abs(errors)) < np.median(np.abs(baseline(setting)))


def test_a_setting_with_few_networks_is_drawn_towards_the_others(data: Path) -> None:
    large, small = settings_of([data], ("train",))
    few = np.zeros(len(small.values), bool)
    few[:4] = True
    _, together = fit([large, small.part(few)])
    [alone] = fit([small.part(few)])
    rest = small.part(~few)
    errors = [np.median(np.abs(np.log(rest.values / (rest.amounts @ factors)))) for factors in (together, alone)]
    assert errors[0] < 0.1
    assert errors[0] <= errors[1]


def test_the_band_of_a_setting_covers_as_many_errors_as_it_says(data: Path) -> None:
    settings = settings_of([data], ("train",))
    errors = left_out(settings)[0]
    cost = cost_of_setting(settings[0], fit(settings)[0], errors)
    low, high = cost.errors[4], cost.errors[-5]
    assert 0.8 <= np.mean((errors >= low) & (errors <= high)) <= 0.85
    assert cost.errors[MEDIAN] == 0
    assert cost.batches == (64, 64, 64)
    assert {"conv", "pointwise", "elementwise"} <= set(cost.known)
    assert "recurrent" not in cost.known


def test_the_command_prints_figures_and_writes_the_model(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in builtin().iterdir():
        copy(file, tmp_path)
    network_cost_fit.main(["--data", str(data), "--model", str(tmp_path)])
    assert "baseline" in capsys.readouterr().out
    latencies = [setting for setting in load(tmp_path / NETWORK_COSTS) if setting.metric == "latency"]
    assert [setting.device for setting in latencies] == ["nvidia-rtx-3090", "nvidia-rtx-4090"]
    assert NETWORK_COSTS in read_card(tmp_path).files
    settings = settings_of([data], ("train",))
    assert figures(settings, left_out(settings)).count("\n") == 2


def test_an_energy_is_written_next_to_the_latencies_with_the_work_that_it_holds_for(tmp_path: Path) -> None:
    for file in builtin().iterdir():
        copy(file, tmp_path)
    before = load(tmp_path / NETWORK_COSTS)
    board = {"device": "raspberry-pi-5", "metric": "energy"}
    workload = {"batch": "1", "backend": "onnxruntime", "mode": "infer"}
    rows = [{**row, **board, "workload": workload} for row in rows_of(0.05) if row["device"] == "nvidia-rtx-4090"]
    write_rows(rows, tmp_path / "energy.parquet")
    network_cost_fit.main(["--data", str(tmp_path / "energy.parquet"), "--model", str(tmp_path), "--metric", "energy"])
    *latencies, energy = load(tmp_path / NETWORK_COSTS)
    assert latencies == [setting for setting in before if setting.metric == "latency"]
    assert (energy.device, energy.metric, energy.groups) == ("raspberry-pi-5", "energy", FAMILIES)
    amounts = np.array([work_of(str(row["text"])).at(1).sum(axis=0) for row in rows])
    assert energy.most == pytest.approx(amounts.max(axis=0), rel=1e-5)
    assert energy.least == pytest.approx(min(float(row["value"]) for row in rows), rel=1e-5)
    assert energy.largest == max(
        kernel.read + kernel.written for row in rows for kernel in work_of(str(row["text"])).kernels
    )
    alike = amounts.min(axis=0) == amounts.max(axis=0)
    assert not np.array(energy.costs)[alike].any()
