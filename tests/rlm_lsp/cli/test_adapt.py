"""``rlm-lsp adapt`` and the CPU score of ``rlm-lsp doctor``: what is printed, written and refused, and the hover."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import rlm_core
from click.testing import CliRunner, Result
from rlm_core import CodeText, Prediction, Query
from rlm_core.inference.adaptation import cpu_score, store
from rlm_core.inference.adaptation.store import read_adapters
from rlm_core.inference.calibration import bands
from rlm_core.inference.predictor import WithoutComparison
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import METRICS_OF_BASIS, Basis, CalibrationSource, CpuScale
from rlm_lsp.cli.app import app

from tests.fakes import quantiles
from tests.rlm_lsp.rendering.hovers import whole_hover

pytestmark = pytest.mark.timeout(60)
UNIT = Analyser().analyse(ParsedSource(b"def f(n):\n    return n\n", "python"))[0]


class FakePredictor(WithoutComparison):
    """Two known GPUs; a kernel's latency is its length in microseconds."""

    model_id = "fake-1"

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return ("gpu-a", "gpu-b") if basis == "kernel" else ()

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return tuple(Query(metric, "gpu-a") for metric in METRICS_OF_BASIS[basis])

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        return [[self._one(code, query) for query in line] for code, line in zip(texts, queries, strict=True)]

    def _one(self, code: CodeText, query: Query) -> Prediction:
        value = 1e-6 * len(code.text)
        found = quantiles(value)
        asked = (code.basis, query.metric, query.device, query.workload, self.model_id)
        return Prediction(
            *asked, value, bands(found, 50, 500, CalibrationSource("kernel")), 0.0, False, quantiles=found
        )


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rlm_core, "load", lambda model, threads=0: FakePredictor())
    monkeypatch.setattr(store, "folder", lambda: tmp_path / "devices")


def row(size: int, **changes: object) -> str:
    fields = {"text": "k" * size, "language": "python", "basis": "kernel", "latency_us": size * 3}
    return json.dumps({name: value for name, value in {**fields, **changes}.items() if value is not None})


@pytest.mark.usefixtures("fake")
def test_measurements_become_an_adapter_in_the_users_folder(tmp_path: Path) -> None:
    file = tmp_path / "m.jsonl"
    file.write_text("\n".join(row(size) for size in range(10, 120, 10)))
    result = run("adapt", "--device", "my-gpu", "--measurements", file)
    assert result.exit_code == 0, result.stderr
    assert "kernel latency: 11 measurements of 11 texts, 2 known devices" in result.stdout
    [adapter] = read_adapters(tmp_path / "devices" / "my-gpu.json", "fake-1")
    assert (adapter.device, adapter.basis, adapter.metric, adapter.fit.n) == ("my-gpu", "kernel", "latency", 11)


@pytest.mark.usefixtures("fake")
def test_bad_rows_are_reported_and_the_others_used(tmp_path: Path) -> None:
    file, out = tmp_path / "m.jsonl", tmp_path / "out.json"
    file.write_text("\n".join([row(10, latency_us=-1), *(row(size) for size in range(10, 70, 10))]))
    result = run("adapt", "--device", "my-gpu", "--measurements", file, "--out", out)
    assert result.exit_code == 0
    assert f"{file}:1: `latency_us` must be a number above 0" in result.stderr
    assert read_adapters(out)[0].fit.n == 6


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("rows", "device", "reason"),
    [
        ([row(size) for size in (10, 20, 30, 40)], "my-gpu", "4 usable measurements; at least 5"),
        ([], "my-gpu", "it has no rows"),
        (["{"], "my-gpu", "none of its 1 rows can be used"),
        ([row(size) for size in range(10, 70, 10)], "../my-gpu", "use letters"),
    ],
)
def test_what_cannot_be_adapted_ends_in_one_error(tmp_path: Path, rows: list[str], device: str, reason: str) -> None:
    file = tmp_path / "m.jsonl"
    file.write_text("\n".join(rows))
    result = run("adapt", "--device", device, "--measurements", file)
    assert result.exit_code == 2
    [error] = [line for line in result.stderr.splitlines() if line.startswith("rlm-lsp: error: ")]
    assert reason in error
    assert not (tmp_path / "devices").exists()


@pytest.mark.usefixtures("fake")
def test_candidates_are_printed_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "m.jsonl"
    rows = [row(size, latency_us=None) for size in (10, 11, 12, 400)]
    file.write_text("\n".join(rows))
    result = run("adapt", "--device", "my-gpu", "--measurements", file, "--choose", "2")
    assert result.exit_code == 0
    printed = result.stdout.splitlines()
    assert len(printed) == 2
    assert rows[3] in printed
    assert set(printed) <= set(rows)


@pytest.mark.usefixtures("fake")
def test_rows_are_printed_without_what_controls_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "m.jsonl"
    hostile = row(10, latency_us=None)[:-1] + ', "note": "\x9b2J\u202e\u2028"}'
    file.write_text(f"{hostile}\n{row(400, latency_us=None)}\n")
    result = run("adapt", "--device", "my-gpu", "--measurements", file, "--choose", "2")
    assert result.exit_code == 0
    printed = result.stdout.splitlines()
    assert all(line.isascii() and line.isprintable() for line in printed)
    assert json.loads(hostile) in map(json.loads, printed)


@pytest.mark.usefixtures("fake")
def test_doctor_scores_the_cpu_on_request_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scores = [0.5, 0.8]
    first = cpu_score.score(cpu_score.reference(), cpu_score.reference())
    monkeypatch.setattr(cpu_score, "default_path", lambda: tmp_path / "score.json")
    monkeypatch.setattr(cpu_score, "measure", lambda: replace(first, overall=scores.pop(0)))

    def last_line(*options: str) -> str:
        result = run("doctor", *options)
        assert result.exit_code == 0, result.stderr
        return result.stdout.splitlines()[-1].strip()

    assert "doctor --score-cpu" in last_line()
    assert not (tmp_path / "score.json").exists()
    assert last_line("--score-cpu") == "latencies of functions are multiplied by 2; before: 1"
    assert last_line() == "latencies of functions are multiplied by 2"
    assert last_line("--score-cpu") == "latencies of functions are multiplied by 1.2; before: 2"
    monkeypatch.setenv(cpu_score.SWITCH, "0")
    assert last_line() == "latencies of functions would be (RLM_LSP_CPU_SCALE is off) multiplied by 1.2"


@pytest.mark.usefixtures("fake")
def test_doctor_does_not_score_a_busy_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cpu_score, "default_path", lambda: tmp_path / "score.json")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (1.5, 0.0, 0.0))
    result = run("doctor", "--score-cpu")
    assert result.exit_code == 2
    assert "the machine is busy (load 1.5 on 2 cores); score its CPU when it is idle" in result.stderr
    assert not (tmp_path / "score.json").exists()
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 0.0, 0.0))
    monkeypatch.setattr(cpu_score, "measure_rates", lambda: replace(cpu_score.reference(), spread=0.1))
    result = run("doctor", "--score-cpu")
    assert result.exit_code == 2
    assert "repeats differ by a factor of 1.26" in result.stderr
    assert not (tmp_path / "score.json").exists()


def test_scaling_is_switched_off_by_an_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(cpu_score.SWITCH, "1")
    assert cpu_score.enabled()
    run("predict", "--no-cpu-scale", tmp_path / "nothing.py")
    assert not cpu_score.enabled()


def _with_source(prediction: Prediction, source: CalibrationSource) -> Prediction:
    return replace(prediction, bands=tuple(replace(band, source=source) for band in prediction.bands))


def test_the_hover_says_that_latencies_were_scaled(make_prediction: Callable[..., Prediction]) -> None:
    source = CalibrationSource("call/latency", cpu_scale=CpuScale(0.8, "2026-11-20"))
    text = whole_hover(UNIT, [_with_source(make_prediction(), source)], markdown=True)
    assert "- latency: bands checked on 120 packages that the model had not seen" in text
    assert "- latency: scaled by 0.8 to this CPU (score of 2026-11-20)" in text
    assert "scaled" not in whole_hover(UNIT, [make_prediction()], markdown=True)


def test_the_hover_says_that_a_device_was_adapted(make_prediction: Callable[..., Prediction]) -> None:
    source = CalibrationSource(adapted_device="my-gpu")
    text = whole_hover(UNIT, [_with_source(make_prediction(), source)], markdown=True)
    assert "- latency: bands from 4,500 measurements of 120 texts on my-gpu, each left out in turn" in text
    assert "packages" not in text
