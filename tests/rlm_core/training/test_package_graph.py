"""Call graphs of packages from data sets, and what a predictor reads of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rlm_core.training.package_graph import GraphReader, PackageGraph, is_graph

pytestmark = pytest.mark.extras


def test_calls_refer_to_functions_and_classes_are_distinguished(graph: PackageGraph) -> None:
    assert [[site[0] for site in sites] for sites in graph.sites] == [[[1], [2]], [], [], []]
    assert len(set(graph.module.tolist())) == 1
    assert graph.owner[1] == graph.owner[2] != graph.owner[0]
    assert np.isnan(graph.values["latency"][2])


def test_only_data_sets_of_calls_are_graphs(graph: PackageGraph, tmp_path: Path) -> None:
    assert is_graph(tmp_path / "calls.parquet")
    (tmp_path / "other.parquet").write_bytes(b"other")
    assert not is_graph(tmp_path / "other.parquet")
    assert not is_graph(tmp_path / "none.parquet")


def test_a_predictor_reads_what_was_measured_around_a_function_but_not_its_own_cost(graph: PackageGraph) -> None:
    reader = GraphReader(graph, np.ones(len(graph), bool))
    calls = reader.code(1).calls
    assert calls is not None
    assert [function.text for function in calls.of_file.functions] == ["def f(): pass", "def i(): pass"]
    assert [function.text for function in calls.of_class.functions] == ["def i(): pass"]
    assert calls.of_package.functions == ()
    elsewhere = GraphReader(replace(graph, module=np.array([0, 1, 0, 0])), np.ones(len(graph), bool)).code(1).calls
    assert elsewhere is not None
    assert {function.text for function in elsewhere.of_package.functions} == {"def f(): pass", "def i(): pass"}
    caller = reader.code(0).calls
    assert caller is not None
    assert [len(function.known) for function in caller.functions()] == [1, 0]
