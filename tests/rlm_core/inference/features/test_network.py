"""Features of networks: always a row of the promised length, and numbers that mean what their names say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.inference.features import network

TEXT = """in a 1x3x32x32
A a
\tb=·Relu·Conv3x3·BatchNormalization
\ta·AveragePool3x3·Add b
·Conv3x3 16·A x5·GlobalAveragePool"""


def named(text: str, workload: dict[str, str] | None = None, device: str | None = None) -> dict[str, float]:
    row = network.features(network.describe(text), workload or {}, device)
    return dict(zip(network.NAMES, row.tolist(), strict=True))


def test_names_are_distinct_and_a_row_has_one_value_for_each() -> None:
    assert len(set(network.NAMES)) == len(network.NAMES)
    row = network.features(network.describe(TEXT), {"dataset": "cifar10"}, "pixel-3")
    assert row.shape == (len(network.NAMES),)
    assert row.dtype == np.float32


def test_totals_are_logarithms_of_exact_counts() -> None:
    found = named(TEXT)
    assert found["all_macs"] == pytest.approx(math.log10(1 + (27 * 16 + 5 * 9 * 16 * 16) * 1024), abs=1e-4)
    assert found["all_macs_k3"] == found["all_macs"]
    assert found["all_count_k3"] == pytest.approx(math.log10(7), abs=1e-4)
    assert found["all_pools"] == pytest.approx(math.log10(6), abs=1e-4)


def test_paths_have_their_lengths() -> None:
    found = named(TEXT)
    assert (found["weighted_paths_shortest"], found["weighted_paths_longest"]) == (1.0, 6.0)
    assert found["weighted_paths_mean"] == pytest.approx(3.5)
    assert found["paths"] == pytest.approx(5 * math.log(2), abs=1e-4)
    assert found["shortcuts"] == pytest.approx(math.log10(6), abs=1e-4)


def test_dead_nodes_count_in_all_but_not_in_live() -> None:
    found = named("in a 1x8x4x4\na·Conv5x5\na·Conv3x3")
    assert found["all_macs"] > found["live_macs"]
    assert found["dead_share_macs"] == pytest.approx(25 / 34)
    assert found["live_count_k5"] == 0.0


def test_the_query_is_in_the_row() -> None:
    found = named(TEXT, {"dataset": "cifar100", "epochs": "200", "subset": "test", "batch": "64"}, "nvidia-v100")
    assert (found["dataset_cifar100"], found["dataset_cifar10"], found["validation"]) == (1.0, 0.0, 0.0)
    assert found["epochs"] == pytest.approx(math.log10(200), abs=1e-5)
    assert (found["device_gpu"], found["device_phone"]) == (1.0, 0.0)
    assert math.isfinite(found["roofline"])
    assert math.isnan(named(TEXT)["device_gpu"])


def test_the_same_device_has_the_same_features_under_any_name() -> None:
    assert named(TEXT, {}, "nvidia-v100") == pytest.approx(named(TEXT, {}, "Tesla V100-SXM2-16GB"), nan_ok=True)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60), st.dictionaries(st.sampled_from(["dataset", "epochs", "batch"]), st.text(max_size=5)))
def test_odd_texts_and_workloads_give_a_row_all_the_same(text: str, workload: dict[str, str]) -> None:
    row = network.features(network.describe("in a 1x3\n" + text), workload, "no such device")
    assert row.shape == (len(network.NAMES),)


def test_what_is_no_graph_is_marked_as_not_parsed() -> None:
    assert named("def f(): pass")["parsed"] == 0.0
    assert math.isnan(named("def f(): pass")["all_macs"])
