"""A predictor inside functions that other tools send to their workers: Ray, Dask, and cloudpickle, which Spark uses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import cloudpickle
import dask.bag
import pytest
import rlm_core
from rlm_core import CodeText, Query
from rlm_core.serving.ray_cluster import connected

pytestmark = [pytest.mark.extras, pytest.mark.timeout(240)]

TEXTS = [f"def f(items):\n    return [x for x in items if x > {number}]\n" for number in range(8)]
QUERIES = [Query("latency"), Query("memory")]


def median_of() -> Callable[[str], list[float | None]]:
    """A function with a predictor in it."""
    predictor = rlm_core.load(threads=1)

    def medians(text: str) -> list[float | None]:
        [answers] = predictor.predict([CodeText(text, "python", "call")], [QUERIES])
        return [answer.median for answer in answers]

    return medians


def test_ray_tasks_give_the_same_numbers(address: str) -> None:
    medians = median_of()
    with connected(address) as ray:
        task = ray.remote(medians)
        assert ray.get([task.remote(text) for text in TEXTS]) == list(map(medians, TEXTS))


def test_dask_processes_give_the_same_numbers() -> None:
    medians = median_of()
    found = dask.bag.from_sequence(TEXTS, npartitions=2).map(medians).compute(scheduler="processes", num_workers=2)
    assert found == list(map(medians, TEXTS))


def test_a_function_for_spark_gives_the_same_numbers_in_another_process(tmp_path: Path) -> None:
    medians = median_of()
    sent = tmp_path / "function"
    # Spark sends a function and the rows of a partition like this.
    sent.write_bytes(cloudpickle.dumps((lambda rows: [medians(row) for row in rows], TEXTS)))
    program = f"import pickle; function, rows = pickle.load(open({str(sent)!r}, 'rb')); print(function(rows))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(list(map(medians, TEXTS)))
