"""The queries about a unit: the model's defaults, with the chosen devices and sizes where they apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from rlm_core import CodeText, Prediction, Query
from rlm_core.inference.predictor import WithoutComparison
from rlm_core.inference.query_selection import DEFAULT_SELECTION, QuerySelection, queries_for
from rlm_core.types import METRICS_OF_BASIS, Basis, JudgeChoice

pytestmark = pytest.mark.timeout(30)

DEVICES = {"call": ("x86-64",), "kernel": ("nvidia-a100-sxm4-80gb", "nvidia-l40s"), "network": ("pixel-3",)}


class KnownPredictor(WithoutComparison):
    """Has a default device and workload for every basis."""

    model_id = "known-1"

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        device = DEVICES.get(basis, (None,))[0]
        return tuple(
            Query(metric, None if metric == "accuracy" else device, {"default": "1"})
            for metric in METRICS_OF_BASIS[basis]
        )

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return DEVICES.get(basis, ())

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        raise NotImplementedError


def selected(basis: Basis, selection: QuerySelection) -> list[tuple[str, str | None, dict[str, str]]]:
    queries = queries_for(KnownPredictor(), CodeText("x", "python", basis), selection)
    return [(query.metric, query.device, dict(query.workload)) for query in queries]


class JudgePredictor(KnownPredictor):
    """Knows some judges, the first by default."""

    def __init__(self, *judges: str) -> None:
        self._judges = judges

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return tuple(Query(metric, self._judges[0], {"judge": self._judges[0]}) for metric in METRICS_OF_BASIS[basis])

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return self._judges


def judged(predictor: JudgePredictor, choice: JudgeChoice | None, **selection: Any) -> set[tuple[str | None, str]]:
    """The devices and runtimes of the queries about a program."""
    code = CodeText("x", "python", "program", judge=choice)
    queries = queries_for(predictor, code, QuerySelection(**selection))
    assert [query.metric for query in queries] == ["latency", "memory"]
    return {(query.device, query.workload.get("runtime", "")) for query in queries}


def test_a_program_is_queried_for_the_judge_that_it_looks_like() -> None:
    both = JudgePredictor("leetcode", "boj")
    assert judged(both, JudgeChoice("boj")) == {("boj", "")}
    assert judged(both, None) == {("leetcode", "")}


def test_a_judge_that_a_file_only_looks_like_must_be_known() -> None:
    assert judged(JudgePredictor("leetcode"), JudgeChoice("boj")) == {("leetcode", "")}


def test_a_stated_judge_is_queried_whether_it_is_known_or_not() -> None:
    assert judged(JudgePredictor("leetcode"), JudgeChoice("atcoder", True, "pypy")) == {("atcoder", "pypy")}
    assert judged(JudgePredictor("leetcode"), JudgeChoice("codeforces", True)) == {("codeforces", "")}


def test_a_chosen_judge_replaces_what_the_file_looks_like_but_not_what_it_states() -> None:
    both = JudgePredictor("leetcode", "boj")
    assert judged(both, JudgeChoice("boj"), judge="leetcode") == {("leetcode", "")}
    assert judged(both, JudgeChoice("boj"), judge="AtCoder") == {("atcoder", "")}
    assert judged(both, JudgeChoice("boj", True), judge="leetcode") == {("boj", "")}


def test_a_chosen_device_replaces_the_judge_that_a_file_looks_like() -> None:
    own = JudgePredictor("leetcode", "boj", "measured-x86-64")
    assert judged(own, JudgeChoice("boj"), devices=("measured-x86-64",)) == {("measured-x86-64", "")}


def test_a_judge_is_no_matter_of_functions() -> None:
    assert selected("call", QuerySelection(judge="boj")) == selected("call", QuerySelection())


@pytest.mark.parametrize("basis", ["call", "program", "kernel", "module", "network"])
def test_an_empty_selection_gives_the_defaults(basis: Basis) -> None:
    code = CodeText("x", "python", basis)
    assert queries_for(KnownPredictor(), code) == KnownPredictor().default_queries(basis, "python")
    assert queries_for(KnownPredictor(), code, QuerySelection()) == queries_for(
        KnownPredictor(), code, DEFAULT_SELECTION
    )


def test_only_the_wanted_metrics_are_selected() -> None:
    assert [metric for metric, *_ in selected("call", QuerySelection(("memory",)))] == ["memory"]
    assert selected("call", QuerySelection(())) == []
    assert selected("call", QuerySelection(("accuracy",))) == []


def test_a_kernel_has_a_query_for_every_chosen_device() -> None:
    found = selected("kernel", QuerySelection(("latency",), ("l40s", "a device to be refused"), {"M": "64"}))
    assert found == [
        ("latency", "l40s", {"default": "1", "M": "64"}),
        ("latency", "a device to be refused", {"default": "1", "M": "64"}),
    ]


def test_a_chosen_workload_replaces_the_default() -> None:
    [(_, _, workload)] = selected("kernel", QuerySelection(("latency",), workload={"default": "2"}))
    assert workload == {"default": "2"}


@pytest.mark.parametrize("basis", ["call", "program"])
def test_a_function_or_program_keeps_its_device_and_workload(basis: Basis) -> None:
    assert selected(basis, QuerySelection(devices=("a100",), workload={"M": "64"})) == selected(
        basis, DEFAULT_SELECTION
    )


def test_a_function_takes_a_device_that_is_known_for_functions() -> None:
    assert {device for _, device, _ in selected("call", QuerySelection(devices=("a100", "x86-64")))} == {"x86-64"}


def test_an_accuracy_has_one_query_whatever_the_devices() -> None:
    found = selected("network", QuerySelection(devices=("pixel-3", "raspberry-pi-4")))
    assert [device for metric, device, _ in found if metric == "accuracy"] == [None]
    assert [device for metric, device, _ in found if metric == "latency"] == ["pixel-3", "raspberry-pi-4"]


def test_chosen_devices_select_among_those_with_an_energy() -> None:
    for devices, expected in (
        ((), ["pixel-3"]),
        (("raspberry-pi-4",), []),
        (("raspberry-pi-4", "Pixel 3"), ["pixel-3"]),
        ((None, "raspberry-pi-4"), ["pixel-3"]),
    ):
        found = selected("network", QuerySelection(devices=devices))
        assert [device for metric, device, _ in found if metric == "energy"] == expected


KERNEL = CodeText("def k(): pass", "triton", "kernel", (), ((("M", "64"), ("N", "1")), (("M", "128"), ("N", "1"))))


def test_a_kernel_has_a_query_for_each_of_its_sizes_on_each_device() -> None:
    queries = queries_for(KnownPredictor(), KERNEL, QuerySelection(("latency",), (None, "l40s")))
    assert [(query.device, query.workload["M"], query.workload["default"]) for query in queries] == [
        (DEVICES["kernel"][0], "64", "1"),
        ("l40s", "64", "1"),
        (DEVICES["kernel"][0], "128", "1"),
        ("l40s", "128", "1"),
    ]


def test_chosen_sizes_replace_those_of_the_file_and_other_values_are_added() -> None:
    [sized] = queries_for(KnownPredictor(), KERNEL, QuerySelection(("latency",), workload={"arg0": "7x7"}))
    assert sized.workload == {"default": "1", "arg0": "7x7"}
    typed = queries_for(KnownPredictor(), KERNEL, QuerySelection(("latency",), workload={"dtype": "bf16"}))
    assert [(query.workload["M"], query.workload["dtype"]) for query in typed] == [("64", "bf16"), ("128", "bf16")]


def test_sizes_do_not_apply_to_a_function() -> None:
    call = CodeText("def f(): pass", "python", "call", (), ((("M", "64"),),))
    assert queries_for(KnownPredictor(), call) == KnownPredictor().default_queries("call", "python")
