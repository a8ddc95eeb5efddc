"""Measured energies of cells -> rows: units, runtimes, cells without a path, and samples."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from rlm_core.errors import DataError
from rlm_core.source.onnx_graph.parse import parse

from tools.nas.nasbench201 import key
from tools.networks.energy import ENERGY, EnergyBuilder

CELL = "|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|none~1|avg_pool_3x3~2|"
DEAD = "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"


def labelled(folder: Path, *lines: str) -> Path:
    head = "arch_str,energy_mj_pi5_onnx_cifar100,energy_mj_pi5_litert_cifar100"
    with gzip.open(folder / ENERGY, "wt", encoding="utf-8") as file:
        file.write("\n".join([head, *lines]))
    return folder


def test_a_cell_has_a_row_for_each_runtime_in_joules(tmp_path: Path) -> None:
    builder = EnergyBuilder(labelled(tmp_path, f"{CELL},12.5,8", f"{DEAD},0.002,0.003"))
    rows = list(builder.rows())
    assert [(row["workload"]["backend"], row["value"]) for row in rows] == [
        ("onnxruntime", pytest.approx(0.0125)),
        ("litert", pytest.approx(0.008)),
    ]
    assert {(row["metric"], row["device"], row["family"]) for row in rows} == {("energy", "raspberry-pi-5", key(CELL))}
    assert parse(rows[0]["text"]).inputs[0].shape == (1, 3, 32, 32)
    report = builder.report()
    assert (report.rows, report.units) == (2, 1)
    assert report.left_out == {"cell without a path from its input": 1}


def test_an_energy_below_what_was_resolved_has_no_row(tmp_path: Path) -> None:
    builder = EnergyBuilder(labelled(tmp_path, f"{CELL},12.5,0.004"))
    assert [row["workload"]["backend"] for row in builder.rows()] == ["onnxruntime"]


def test_the_first_cells_are_a_sample_in_an_order_by_hash(tmp_path: Path) -> None:
    others = [CELL.replace("skip_connect~0", f"{name}~0") for name in ("nor_conv_1x1", "nor_conv_3x3", "none")]
    lines = [f"{arch},10,10" for arch in (CELL, *others)]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    found = [
        [row["id"] for row in EnergyBuilder(labelled(tmp_path / name, *order), 2).rows()]
        for name, order in (("a", lines), ("b", lines[::-1]))
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 4


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="energies"):
        EnergyBuilder(tmp_path)
    with gzip.open(tmp_path / ENERGY, "wt", encoding="utf-8") as file:
        file.write("arch_str\n|none~0|")
    with pytest.raises(DataError, match="energies"):
        EnergyBuilder(tmp_path)
