"""Few-shot devices: what adapt makes of measurements, how it is kept, and the predictor that uses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rlm_core import CodeText, DataError, ModelError, Query
from rlm_core.inference.adaptation.build import RefusedRow, adapt
from rlm_core.inference.adaptation.fit import DeviceFit, fit_device
from rlm_core.inference.adaptation.measurements import Measurement
from rlm_core.inference.adaptation.predictor import (
    AdaptedPredictor,
    text_column_names,
    text_columns,
    with_corrections,
)
from rlm_core.inference.adaptation.store import read_adapters, write_adapters
from rlm_core.inference.anchoring import AnchoredPredictor
from rlm_core.inference.guarded import GuardedPredictor
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.sized_predictor import SizedPredictor
from rlm_core.source.onnx_graph.graph import Constant, Edge, Graph, Node, Value, ordered
from rlm_core.source.onnx_graph.render import render
from rlm_core.types import AbstentionCode, Basis, CalibrationSource

from tests.fakes import NO_NUMBER

from .adapting import DEVICES, FakePredictor, kernel, measured, synthetic


class ByWords(FakePredictor):
    """Knows two real GPUs, and a third by its data sheet."""

    factors: Mapping[str, float] = {"nvidia-h100-sxm": 1.0, "nvidia-a100-sxm4-80gb": 2.0, "nvidia-h200": 7.0}

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return tuple(self.factors)[:2] if basis == "kernel" else ()


def test_a_measured_text_is_known_whatever_its_comments() -> None:
    """Five kernels, one three times as slow as the model thinks: its comments change, its own factor stays."""
    base = FakePredictor()

    def code(name: str, comment: str = "") -> CodeText:
        return CodeText(f"def {name}(x):{comment}\n    tl.store(x, 1)\n", "triton", "kernel")

    names = [letter * size for letter, size in zip("abcde", (1, 9, 5, 7, 3), strict=True)]
    slow = names[2]
    rows = [
        Measurement(line, code(name), Query("latency", None, {"n": str(line)}), (3 if name == slow else 1) * 1e-5)
        for line in range(1, 9)
        for name in names
    ]
    adapters = adapt(base, "new", rows).adapters
    assert len(adapters[0].texts) == 5
    asked = [code(slow), code(slow, "  #"), code("f" * 5)]
    found = AdaptedPredictor(base, adapters).predict(asked, [[Query("latency", "new")]] * 3)
    first, second, other = (answer.median or 0.0 for [answer] in found)
    assert first == pytest.approx(3e-5, rel=0.1)
    assert second > 2.5e-5  # the fake predictor reads comments
    assert 1e-5 < other < 1.6e-5


def test_an_adapted_gpu_of_the_table_has_many_spellings() -> None:
    base = ByWords()
    [adapter] = adapt(base, "NVIDIA-H200", measured(range(10, 130, 10), factor=14.0)).adapters
    assert adapter.known == base.devices("kernel")
    predictor = AdaptedPredictor(base, [adapter])
    [found] = predictor.predict([kernel(75)], [[Query("latency", name) for name in ("nvidia-h200", "H200")]])
    assert found[0].median == found[1].median == pytest.approx(1e-6 * 75 * 14, rel=0.05)
    assert found[0].device == "NVIDIA-H200"


def test_measurements_of_one_text_say_so() -> None:
    rows = [Measurement(i, kernel(40), Query("latency", None, {"n": str(i)}), 1e-3 * i) for i in range(1, 8)]
    found = adapt(FakePredictor(), "new", rows)
    assert found.problems == ("latency of basis kernel: all measurements are of one text; others may lie far outside",)


def test_an_adapted_device_is_answered_and_others_pass_through() -> None:
    base = FakePredictor()
    found = adapt(base, "new", measured(range(10, 130, 10)))
    assert found.problems == ()
    predictor = AdaptedPredictor(base, found.adapters)
    queries = [Query("latency", "gpu-b"), Query("latency", "new"), Query("latency", "nothing")]
    [[known, new, unknown]] = predictor.predict([kernel(75)], [queries])
    assert known == base.predict([kernel(75)], [queries])[0][0]
    assert new.median == pytest.approx(1e-6 * 75 * 20, rel=0.02)
    assert (new.device, new.model, new.abstained) == ("new", "fake-1", None)
    assert [band.coverage for band in new.bands] == [0.8, 0.9]
    assert new.band is not None
    assert (new.band.source, new.band.rows) == (CalibrationSource(adapted_device="new"), 12)
    assert new.median is not None
    assert new.band.low <= new.median <= new.band.high
    assert unknown.abstained == NO_NUMBER
    assert predictor.devices("kernel") == (*DEVICES, "new")
    assert predictor.default_queries("kernel", "triton") == base.default_queries("kernel", "triton")


def test_a_text_that_a_known_device_abstains_from_is_abstained_from() -> None:
    base = FakePredictor()
    predictor = AdaptedPredictor(base, adapt(base, "new", measured(range(10, 60, 10))).adapters)
    [[answer]] = predictor.predict([CodeText("odd", "triton", "kernel")], [[Query("latency", "new")]])
    assert answer.median is None
    assert answer.device == "new"
    assert answer.abstained is not None
    assert answer.abstained == replace(NO_NUMBER, known_device="gpu-a")


def test_bad_measurements_are_reported_and_the_others_used() -> None:
    odd = Measurement(99, CodeText("odd one", "triton", "kernel"), Query("latency"), 1.0)
    other = Measurement(7, CodeText("def f(): pass", "python", "call"), Query("latency"), 1.0)
    found = adapt(FakePredictor(), "new", [*measured(range(10, 60, 10)), odd, other])
    assert [adapter.fit.n for adapter in found.adapters] == [5]
    assert found.problems[0] == RefusedRow(99, NO_NUMBER)
    assert "latency of basis call: 0 usable measurements; at least 5" in str(found.problems[-1])


def test_fewer_than_five_distinct_measurements_are_one_error() -> None:
    repeats = [*measured([10, 20, 30, 40]), *measured([10, 20, 30, 40])]
    with pytest.raises(DataError, match="4 usable measurements; at least 5"):
        adapt(FakePredictor(), "new", repeats)
    with pytest.raises(DataError, match="nothing to adapt from"):
        adapt(FakePredictor(), "new", [])


@pytest.mark.parametrize("name", ["", "../x", "a b", ".hidden", "x" * 99])
def test_a_device_name_that_is_no_file_name_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="use letters"):
        adapt(FakePredictor(), name, measured(range(10, 60, 10)))


def test_an_adapter_survives_its_file(tmp_path: Path) -> None:
    base = FakePredictor()
    adapters = adapt(base, "new", measured(range(10, 130, 10))).adapters
    write_adapters(adapters, tmp_path / "deep" / "new.json")
    back = read_adapters(tmp_path / "deep" / "new.json", base.model_id)
    [[first]] = AdaptedPredictor(base, adapters).predict([kernel(33)], [[Query("latency", "new")]])
    [[second]] = AdaptedPredictor(base, back).predict([kernel(33)], [[Query("latency", "new")]])
    assert first.median is not None
    assert second.median == pytest.approx(first.median, rel=1e-4)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["new.json"]


def test_an_adapter_of_other_weights_says_to_adapt_again(tmp_path: Path) -> None:
    base = FakePredictor()
    write_adapters(adapt(base, "new", measured(range(10, 60, 10))).adapters, tmp_path / "new.json")
    with pytest.raises(ModelError, match=r"rests on the model fake-1, but other-2 is in use; run rlm-lsp adapt again"):
        read_adapters(tmp_path / "new.json", "other-2")


def _set(key: str, value: object) -> Callable[[dict[str, object]], None]:
    return lambda data: data.update({key: value})


@pytest.mark.parametrize(
    "damage",
    [
        _set("format", "rlm-adapter-0"),
        _set("fits", 3),
        _set("device", "../x"),
        lambda data: data["fits"][0].update(weights=[1.0]),
        lambda data: data["fits"][0]["without_text"].update(residuals=[float("nan")] * 5),
        lambda data: data["fits"][0].update(metric="accuracy"),
        lambda data: data["fits"][0].update(text_of_row=[0, 1, 3, 4, 5]),
        lambda data: data["fits"][0].update(text_of_row=[]),
        lambda data: data["fits"][0].pop("intercept"),
        lambda data: data.pop("model"),
    ],
)
def test_a_damaged_adapter_is_one_clear_error(tmp_path: Path, damage: Callable[[dict[str, object]], None]) -> None:
    path = tmp_path / "new.json"
    write_adapters(adapt(FakePredictor(), "new", measured(range(10, 60, 10))).adapters, path)
    data = json.loads(path.read_text())
    damage(data)
    path.write_text(json.dumps(data))
    with pytest.raises(ModelError, match=r"new\.json: .*run rlm-lsp adapt again"):
        read_adapters(path)


def test_adapters_in_the_folder_are_used_and_a_stale_one_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_LSP_CPU_SCALE", "0")
    base = FakePredictor()
    adapters = adapt(base, "new", measured(range(10, 60, 10))).adapters
    write_adapters(adapters, tmp_path / "new.json")
    write_adapters([replace(entry, device="old", model="fake-0") for entry in adapters], tmp_path / "old.json")
    [[new, old]] = with_corrections(base, tmp_path).predict(
        [kernel(30)], [[Query("latency", "new"), Query("latency", "old")]]
    )
    assert new.median is not None
    assert old.abstained is not None
    assert old.abstained.code is AbstentionCode.ADAPTER_UNUSABLE
    assert "run rlm-lsp adapt again" in old.abstained.details["problem"]
    without = with_corrections(base, tmp_path / "none")
    assert isinstance(without, GuardedPredictor)
    sized: Predictor = without.base
    assert isinstance(sized, SizedPredictor)
    anchored: Predictor = sized.base
    assert isinstance(anchored, AnchoredPredictor)
    assert anchored.base is base


def test_a_networks_operators_are_counted_by_kind() -> None:
    weight = Constant((4, 3, 3, 3))
    nodes = (
        Node("Conv", (Edge(-1), weight), (("kernel_shape", (3, 3)),), ((1, 4, 8, 8),)),
        Node("Relu", (Edge(0),), (), ((1, 4, 8, 8),)),
        Node("Add", (Edge(0), Edge(1)), (), ((1, 4, 8, 8),)),
    )
    text = render(ordered(Graph((Value((1, 3, 10, 10)),), nodes, (Edge(2),))))
    names = text_column_names("network")
    found = dict(zip(names, text_columns(CodeText(text, "onnx", "network"), names), strict=True))
    assert {name for name, value in found.items() if value > 0} == {"spatial", "other", "merge"}
    assert np.isnan(text_columns(CodeText("no graph", "onnx", "network"), names)).all()
    assert text_column_names("kernel") == ()


def test_a_fit_is_small_on_disk(tmp_path: Path) -> None:
    known, target = synthetic(np.random.default_rng(0), 100, devices=26)
    fit: DeviceFit = fit_device(known, target)
    [adapter] = adapt(FakePredictor(), "new", measured(range(10, 60, 10))).adapters
    whole = replace(adapter, known=tuple(f"d{i}" for i in range(26)), fit=fit)
    write_adapters([whole], tmp_path / "new.json")
    assert (tmp_path / "new.json").stat().st_size < 64 * 1024
