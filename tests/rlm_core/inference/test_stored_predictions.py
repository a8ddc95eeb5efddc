"""Predictions on the disk: equal to those of the model, whatever a text, its facts and its queries are."""

from __future__ import annotations

import dataclasses
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import rlm_core
from rlm_core import CodeText, Query
from rlm_core.inference import stored_predictions
from rlm_core.inference.predictor import Predictor, PredictorWrapper
from rlm_core.inference.stored_predictions import FILE, StoredPredictor, what_is_read
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.entry_store import VARIABLE, EntryStore
from rlm_core.queries.file_units import file_units
from rlm_core.types import CalledFunction, Callee, Calls, CallSite, CostFacts, MeasuredFunctions, Prediction, WorkFacts

from tests.paths import REPOSITORY

TEXT = CodeText(
    "def f(xs):\n    return g(xs)\n",
    "python",
    "call",
    (Callee("def g(xs):\n    return sorted(xs)\n"),),
    work=WorkFacts(nodes=7),
    calls=Calls((CallSite((CalledFunction("def g(xs):\n    return sorted(xs)\n"),)),)),
)
LATENCY = [Query("latency")]
STDLIB = [Path(module.__file__ or "") for module in (dataclasses, subprocess)]


class CountingPredictor(PredictorWrapper):
    """Another predictor, which counts the texts that it answers about."""

    def __init__(self, base: Predictor) -> None:
        super().__init__(base)
        self.count = 0

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        self.count += len(texts)
        return self.base.predict(texts, queries)


@pytest.fixture(scope="module")
def model() -> Predictor:
    return rlm_core.load(threads=1)


@pytest.fixture
def counted(model: Predictor) -> CountingPredictor:
    return CountingPredictor(model)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path / FILE


def sources() -> list[Path]:
    return [path for path in sorted((REPOSITORY / "examples").iterdir()) if path.suffix in (".py", ".ipynb")] + STDLIB


def test_what_is_read_equals_what_was_predicted_for_examples_and_the_standard_library(
    model: Predictor, counted: CountingPredictor
) -> None:
    analyser = Analyser()
    codes = [unit.code for path in sources() for text in file_units(analyser, path) for unit in text.units]
    queries = [model.default_queries(code.basis, code.language) for code in codes]
    expected = model.predict(codes, queries)
    assert StoredPredictor(counted, b"model").predict(codes, queries) == expected
    made = counted.count
    # Another process has other objects; equal bytes cannot come from rounding.
    again = StoredPredictor(counted, b"model").predict(codes, queries)
    assert counted.count == made > 100
    assert list(map(repr, again)) == list(map(repr, expected))


@pytest.mark.parametrize(
    "change",
    [
        lambda code: replace(code, text=code.text + "    # a comment\n"),
        lambda code: replace(code, callees=()),
        lambda code: replace(code, callees=(Callee(code.callees[0].text, 2),)),
        lambda code: replace(code, work=None),
        lambda code: replace(code, work=WorkFacts(latency=CostFacts(typical=1.0), nodes=7)),
        lambda code: replace(code, calls=None),
        lambda code: replace(code, calls=replace(code.calls, outside=1)),
        lambda code: replace(
            code, calls=replace(code.calls, of_package=MeasuredFunctions((CalledFunction("def h(): pass"),)))
        ),
    ],
)
def test_whatever_the_model_reads_is_part_of_the_question(
    counted: CountingPredictor, change: Callable[[CodeText], CodeText]
) -> None:
    stored = StoredPredictor(counted, b"model")
    stored.predict([TEXT], [LATENCY])
    stored.predict([change(TEXT)], [LATENCY])
    assert counted.count == 2


def test_queries_the_model_and_the_version_of_the_program_are_part_of_the_question(
    counted: CountingPredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = StoredPredictor(counted, b"model")
    for queries in (LATENCY, [Query("memory")], [Query("latency", "other")], [Query("latency", None, {"a": "1"})]):
        stored.predict([TEXT], [queries])
    assert counted.count == 4
    StoredPredictor(counted, b"other").predict([TEXT], [LATENCY])
    monkeypatch.setattr(stored_predictions, "version", lambda: "other")
    stored.predict([TEXT], [LATENCY])
    assert counted.count == 6


def test_every_field_of_a_text_is_read_or_said_not_to_be() -> None:
    """A field that is added later must be part of the question if a model reads it."""
    not_read = {"workloads", "measured", "judge", "sizes"}
    assert len(what_is_read(TEXT)) + len(not_read) == len(dataclasses.fields(CodeText))
    assert {"sites", "outside", "unresolved", "of_file", "of_class", "of_package", "_hash"} == {
        entry.name for entry in dataclasses.fields(Calls)
    }


def test_keys_are_the_same_in_another_process() -> None:
    program = (
        "import sys, msgspec; from tests.rlm_core.inference.test_stored_predictions import TEXT, what_is_read;"
        "sys.stdout.buffer.write(msgspec.msgpack.encode(what_is_read(TEXT)))"
    )
    command = [sys.executable, "-c", program]
    keys = {subprocess.run(command, check=True, capture_output=True, cwd=REPOSITORY).stdout for _ in range(2)}
    assert keys == {msgspec.msgpack.encode(what_is_read(TEXT))}


@pytest.mark.parametrize("damage", ["UPDATE entries SET entry = substr(entry, 2)", "UPDATE entries SET entry = 1"])
def test_a_damaged_entry_is_predicted_again(counted: CountingPredictor, store: Path, damage: str) -> None:
    first = StoredPredictor(counted, b"model").predict([TEXT], [LATENCY])
    with sqlite3.connect(store) as connection:
        assert connection.execute(damage).rowcount == 1
    assert StoredPredictor(counted, b"model").predict([TEXT], [LATENCY]) == first
    assert counted.count == 2


def test_an_entry_of_another_shape_is_predicted_again(counted: CountingPredictor, store: Path) -> None:
    stored = StoredPredictor(counted, b"model")
    first = stored.predict([TEXT], [LATENCY])
    others = EntryStore(store, list[dict[str, str]], 10, 1000)
    others.put(stored._key(TEXT, LATENCY), [{"median": "text"}])
    others.save()
    assert stored.predict([TEXT], [LATENCY]) == first
    assert counted.count == 2


@pytest.mark.parametrize("text", ["def f():\n    return '\ud800'\n"])
def test_what_cannot_be_written_is_predicted_each_time(counted: CountingPredictor, text: str) -> None:
    stored, code = StoredPredictor(counted, b"model"), CodeText(text, "python", "call")
    assert stored.predict([code], [LATENCY]) == stored.predict([code], [LATENCY])
    assert counted.count == 2


def test_it_can_be_turned_off(counted: CountingPredictor, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    stored = StoredPredictor(counted, b"model")
    assert stored.predict([TEXT], [LATENCY]) == stored.predict([TEXT], [LATENCY])
    assert (counted.count, store.exists()) == (2, False)
