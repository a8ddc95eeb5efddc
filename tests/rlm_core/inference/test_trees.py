"""Forests: every row goes the way of its features, and no file can send it in circles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import ModelError
from rlm_core.inference import trees
from rlm_core.inference.trees import Forest, fingerprint
from safetensors.numpy import load_file, save_file

NAMES = ("bytes", "operations", "blocks")
KEY = "kernel/triton/latency"
BASIS = "kernel"

# Two trees: `bytes <= 1 ? -1 : (operations <= 5 ? 2 : 3)`, unknown bytes left, unknown operations right; and 10.
SMALL = Forest(
    np.array([0, -1, 1, -1, -1, -1], np.int16),
    np.array([1, 0, 5, 0, 0, 0], np.float32),
    np.array([1, 0, 3, 0, 0, 0], np.int32),
    np.array([2, 0, 4, 0, 0, 0], np.int32),
    np.array([True, False, False, False, False, False]),
    np.array([0, -1, 0, 2, 3, 10], np.float32),
    np.array([0, 5], np.int32),
    np.array([0.5, -1, 0], np.float32),
)


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    """Some random trees over three features."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    nodes: list[tuple[int, float, int, int, bool, float]] = []

    def grow(depth: int) -> int:
        place = len(nodes)
        nodes.append((-1, 0.0, 0, 0, False, float(rng.normal())))
        if depth and rng.random() < 0.8:
            left, right = grow(depth - 1), grow(depth - 1)
            nodes[place] = (
                int(rng.integers(3)),
                float(rng.integers(-3, 4)),
                left,
                right,
                bool(rng.random() < 0.5),
                0.0,
            )
        return place

    roots = [grow(draw(st.integers(0, 5))) for _ in range(draw(st.integers(1, 5)))]
    feature, threshold, left, right, missing, value = zip(*nodes, strict=True)
    return Forest(
        np.array(feature, np.int16),
        np.array(threshold, np.float32),
        np.array(left, np.int32),
        np.array(right, np.int32),
        np.array(missing, np.bool_),
        np.array(value, np.float32),
        np.array(roots, np.int32),
        np.array(
            [draw(st.integers(-9, 9)), draw(st.integers(-1, 2)), draw(st.sampled_from([0, 0.25, 0.5]))], np.float32
        ),
    )


def walked(forest: Forest, row: npt.NDArray[np.float32]) -> float:
    """The prediction of one row, node by node."""
    total, column, factor = float(forest.offset[0]), int(forest.offset[1]), float(forest.offset[2])
    for root in forest.roots:
        node = int(root)
        while forest.feature[node] >= 0:
            value = row[forest.feature[node]]
            left = forest.missing_left[node] if np.isnan(value) else value <= forest.threshold[node]
            node = int(forest.left[node] if left else forest.right[node])
        total += float(forest.value[node])
    if column < 0:
        return total
    return total / (1 - factor) if np.isnan(row[column]) else total + factor * float(row[column])


cells = st.one_of(st.just(np.nan), st.integers(-4, 4).map(float), st.just(-1e30), st.just(1e30))


@given(forests(), st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=20))
def test_a_forest_is_the_sum_of_its_trees(forest: Forest, table: list[list[float]]) -> None:
    rows = np.array(table, np.float32)
    expected = [walked(forest, row) for row in rows]
    np.testing.assert_allclose(forest.predict(rows), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ((1, 0, 0), 9.5),
        ((2, 5, 0), 12.5),
        ((2, 6, 0), 13.5),
        ((np.nan, 6, 0), 9.5),
        ((2, np.nan, 0), 13.5),
    ],
)
def test_a_row_goes_the_way_of_its_features(row: tuple[float, ...], expected: float) -> None:
    assert SMALL.predict(np.array([row], np.float32)).tolist() == [expected]


def test_a_share_of_an_estimate_is_added_and_made_up_for_where_it_is_unknown() -> None:
    forest = replace(SMALL, offset=np.array([0, 2, 0.25], np.float32))
    assert forest.predict(np.array([[1, 0, 8], [1, 0, np.nan]], np.float32)).tolist() == [11, 12]


@given(forests())
def test_a_row_has_one_number_alone_and_among_others(forest: Forest) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    assert forest.predict(rows).tolist() == [float(forest.predict(row[None])[0]) for row in rows]


@given(forests())
def test_a_saved_forest_is_read_back(tmp_path_factory: pytest.TempPathFactory, forest: Forest) -> None:
    path = tmp_path_factory.mktemp("forest") / "trees.safetensors"
    trees.save({KEY: forest, "module/pytorch/latency": SMALL}, {BASIS: NAMES, "module": NAMES}, path)
    found = trees.load(path, {BASIS: NAMES, "module": NAMES, "more": ()})
    assert found.keys() == {KEY, "module/pytorch/latency"}
    rows = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
    assert found[KEY].predict(rows).tolist() == forest.predict(rows).tolist()


def test_no_forest_is_a_file_too(tmp_path: Path) -> None:
    trees.save({}, {}, tmp_path / "trees.safetensors")
    assert trees.load(tmp_path / "trees.safetensors", {}) == {}


def test_other_features_than_those_of_training_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trees.safetensors"
    trees.save({KEY: SMALL}, {BASIS: NAMES}, path)
    for other in ({BASIS: NAMES[::-1]}, {BASIS: NAMES[:2]}, {BASIS: ()}, {}):
        with pytest.raises(ModelError, match=f"{KEY} was trained on other features; train the model again"):
            trees.load(path, other)


def test_the_fingerprint_follows_names_and_their_order() -> None:
    found = {fingerprint(names) for names in ((), ("a",), ("a", "b"), ("b", "a"), ("ab",))}
    assert len(found) == 5


LINK, REAL = np.int32, np.float32


@pytest.mark.parametrize(
    "damage",
    [
        {"left": np.array([0, 0, 3, 0, 0, 0], LINK)},  # a node that is its own child
        {"right": np.array([2, 0, 0, 0, 0, 0], LINK)},  # a child above its parent: a cycle
        {"right": np.array([2, 0, 6, 0, 0, 0], LINK)},
        {"left": np.array([-1, 0, 3, 0, 0, 0], LINK)},
        {"feature": np.array([3, -1, 1, -1, -1, -1], np.int16)},
        {"roots": np.array([0, 6], LINK)},
        {"roots": np.array([-1], LINK)},
        {"roots": np.array([0, 5], REAL)},
        {"left": SMALL.left[:3]},
        {"left": SMALL.left[:0]},
        {"value": SMALL.value[:5]},
        {"value": np.full(6, np.nan, REAL)},
        {"threshold": SMALL.threshold[None]},
        {"feature": np.zeros((6, 2), np.int16)},
        {"feature": SMALL.feature.astype(REAL)},
        {"missing_left": np.zeros(6, REAL)},
        {"offset": np.array([0, -1], REAL)},
        {"offset": np.array([0, 3, 0.5], REAL)},
        {"offset": np.array([0, -np.inf, 0.5], REAL)},
        {"offset": np.array([np.nan, -1, 0], REAL)},
        {"offset": np.array([0, 1, np.nan], REAL)},
        {"offset": np.array(0, REAL)},
    ],
    ids=str,
)
def test_a_forest_that_does_not_hold_together_is_refused(tmp_path: Path, damage: dict[str, Any]) -> None:
    path = tmp_path / "trees.safetensors"
    trees.save({KEY: SMALL}, {BASIS: NAMES}, path)
    assert trees.load(path, {BASIS: NAMES})
    tensors = load_file(path) | {f"{KEY}/{field}": array for field, array in damage.items()}
    save_file(tensors, path, metadata={KEY: str(fingerprint(NAMES))})
    with pytest.raises(ModelError, match=rf"trees\.safetensors: {KEY}: corrupt; reinstall the model"):
        trees.load(path, {BASIS: NAMES})


def test_a_forest_with_a_field_missing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trees.safetensors"
    save_file({f"{KEY}/feature": SMALL.feature}, path, metadata={KEY: str(fingerprint(NAMES))})
    with pytest.raises(ModelError, match=r"trees\.safetensors: missing or corrupt"):
        trees.load(path, {BASIS: NAMES})


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\x08\0\0\0\0\0\0\0{]      "])
def test_a_bad_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "trees.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=r"trees\.safetensors"):
        trees.load(path, {BASIS: NAMES})
