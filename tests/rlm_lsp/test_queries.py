"""What is asked about a unit: the model's defaults, with chosen devices and sizes where they mean something."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rlm_core import CodeText, Prediction, Query
from rlm_core.types import METRICS_OF_BASIS, Basis
from rlm_lsp.cli.predict import asked_for
from rlm_lsp.queries import DEFAULTS, Asked, queries_for

pytestmark = pytest.mark.timeout(30)

DEVICES = {"call": ("x86-64",), "kernel": ("nvidia-a100-sxm4-80gb", "nvidia-l40s"), "network": ("pixel-3",)}


class KnownPredictor:
    """Has a default device and workload for every basis."""

    model_id = "known-1"

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        device = DEVICES.get(basis, (None,))[0]
        return tuple(
            Query(metric, None if metric == "accuracy" else device, {"default": "1"})
            for metric in METRICS_OF_BASIS[basis]
        )

    def devices(self, basis: Basis) -> tuple[str, ...]:
        return DEVICES.get(basis, ())

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        raise NotImplementedError


def asked(basis: Basis, what: Asked) -> list[tuple[str, str | None, dict[str, str]]]:
    found = queries_for(KnownPredictor(), CodeText("x", "python", basis), what)
    return [(query.metric, query.device, dict(query.workload)) for query in found]


@pytest.mark.parametrize("basis", ["call", "program", "kernel", "module", "network"])
def test_nothing_asked_is_the_defaults(basis: Basis) -> None:
    code = CodeText("x", "python", basis)
    assert queries_for(KnownPredictor(), code) == KnownPredictor().default_queries(basis, "python")
    assert queries_for(KnownPredictor(), code, Asked()) == queries_for(KnownPredictor(), code, DEFAULTS)


def test_only_the_wanted_metrics_are_asked() -> None:
    assert [metric for metric, *_ in asked("call", Asked(("memory",)))] == ["memory"]
    assert asked("call", Asked(())) == []
    assert asked("call", Asked(("accuracy",))) == []


def test_a_kernel_is_asked_for_every_chosen_device() -> None:
    found = asked("kernel", Asked(("latency",), ("l40s", "a device to be refused"), {"M": "64"}))
    assert found == [
        ("latency", "l40s", {"default": "1", "M": "64"}),
        ("latency", "a device to be refused", {"default": "1", "M": "64"}),
    ]


def test_what_is_asked_takes_the_place_of_a_default() -> None:
    [(_, _, workload)] = asked("kernel", Asked(("latency",), workload={"default": "2"}))
    assert workload == {"default": "2"}


@pytest.mark.parametrize("basis", ["call", "program"])
def test_a_function_or_program_keeps_its_device_and_workload(basis: Basis) -> None:
    assert asked(basis, Asked(devices=("a100",), workload={"M": "64"})) == asked(basis, DEFAULTS)


def test_a_function_takes_a_device_that_is_known_for_functions() -> None:
    assert {device for _, device, _ in asked("call", Asked(devices=("a100", "x86-64")))} == {"x86-64"}


def test_an_accuracy_is_asked_once_whatever_the_devices() -> None:
    found = asked("network", Asked(devices=("pixel-3", "raspberry-pi-4")))
    assert [device for metric, device, _ in found if metric == "accuracy"] == [None]
    assert [device for metric, device, _ in found if metric == "latency"] == ["pixel-3", "raspberry-pi-4"]


def test_options_become_what_is_asked() -> None:
    assert asked_for((), ()) is DEFAULTS
    found = asked_for(["a100"], ["M=4096", "shape=64x128", "note=a=b"])
    assert (found.metrics, found.devices) == (None, ("a100",))
    assert found.workload == {"M": "4096", "shape": "64x128", "note": "a=b"}
