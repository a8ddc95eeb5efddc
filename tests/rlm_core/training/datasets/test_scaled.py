"""Slopes of costs by input, from the points of functions that were called with larger inputs."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.training.datasets.scaled import ScaledBuilder, slopes_by_input

TEXT = "def total(items, scale):\n    t = 0\n    for item in items:\n        t += item * scale\n    return t\n"
FACTORS = (1, 3, 10, 30, 100)
Cost = Callable[[float, float], float]


def points(cost: Cost, *, names: tuple[str, ...] = ("a", "b")) -> list[dict[str, Any]]:
    """The points of a function of two inputs, together and then alone at a factor of 10."""

    def point(grown: tuple[str, ...], factor: int) -> dict[str, Any]:
        a, b = (float(factor if name in grown else 1) for name in ("a", "b"))
        seconds = cost(a, b)
        return {"factor": factor, "grown": list(grown), "sizes": {}, "seconds": seconds, "peak": int(seconds * 1e9)}

    alone = [point((name,), 10) for name in names] if len(names) > 1 else []
    return [*(point(names, factor) for factor in FACTORS), *alone]


@given(st.floats(0.8, 3), st.floats(1e-5, 1e-3))
def test_the_slope_of_a_single_input_is_that_of_its_power(power: float, unit: float) -> None:
    slopes = slopes_by_input(points(lambda a, b: unit * a**power, names=("a",)), "latency")
    assert slopes == {"a": pytest.approx(power)}


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (lambda a, b: 1e-4, {"a": 0.0, "b": 0.0}),
        (lambda a, b: 1e-6 * a, {"a": 1.0, "b": 0.0}),
        (lambda a, b: 1e-6 * (a + b), {"a": 1.0, "b": 1.0}),
        (lambda a, b: 1e-6 * a * b, {"a": 1.0, "b": 1.0}),
        (lambda a, b: 1e-6 * a * a + 1e-9 * b, {"a": 2.0, "b": 0.0}),
    ],
)
def test_growth_belongs_to_the_inputs_that_explain_it(cost: Cost, expected: dict[str, float]) -> None:
    assert slopes_by_input(points(cost), "latency") == {
        name: pytest.approx(s, abs=0.01) for name, s in expected.items()
    }


def test_the_slope_is_over_the_size_and_not_over_the_factor() -> None:
    rows = points(lambda a, b: 1e-6 * a, names=("a",))
    squares = [{**point, "sizes": {"a": 10 * point["factor"] ** 0.5}} for point in rows]
    assert slopes_by_input(squares, "latency") == {"a": pytest.approx(2.0)}


def test_a_slope_that_still_changes_is_not_one() -> None:
    assert slopes_by_input(points(lambda a, b: 1e-4 + 1e-6 * a, names=("a",)), "latency") == {}


def test_too_few_points_and_memory_that_was_not_traced_have_no_slope() -> None:
    few = points(lambda a, b: a * 1e-6, names=("a",))[:2]
    assert slopes_by_input(few, "latency") == {}
    untraced = [{**point, "peak": -1} for point in points(lambda a, b: a * 1e-6, names=("a",))]
    assert slopes_by_input(untraced, "memory") == {}


def test_rows_have_the_text_of_the_wheel_and_facts(tmp_path: Path) -> None:
    import hashlib

    (tmp_path / "wheels").mkdir()
    with zipfile.ZipFile(tmp_path / "wheels" / "shapes-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("shapes.py", TEXT)
    label: dict[str, Any] = {
        "package": "shapes", "version": "1.0", "module": "shapes", "qualname": "total", "file": "shapes.py",
        "firstlineno": 1, "source_sha1": hashlib.sha1(TEXT.encode()).hexdigest(),
        "points": points(lambda a, b: 1e-6 * a, names=("a",)),
    }  # fmt: skip
    other = {**label, "source_sha1": "0" * 40, "firstlineno": 2}
    flat = {**label, "points": label["points"][:1]}
    with gzip.open(tmp_path / "labels.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(one) + "\n" for one in (label, other, flat))
    builder = ScaledBuilder(tmp_path / "labels.jsonl.gz", tmp_path, "train", download=False)
    [row] = builder.rows()
    assert (row["text"], row["family"], row["split"]) == (TEXT, "shapes", "train")
    assert row["latency"] == {"a": pytest.approx(1.0)}
    assert '"items"' in row["work"]
    assert builder.report().left_out == {"no settled slope": 1, "source hash differs or file absent": 1}
