"""A fixed sample of the mutation fuzzing of the cost analysis, and tests that the fuzzer sees failures."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

import pytest
from rlm_core.boundary import STRICT

from . import fuzz_analysis

pytestmark = [
    pytest.mark.timeout(1_200),
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and limits of processes"),
]
_INPUTS, _BLOCK = 400, 100  # about 20 ms each, and a block is from eight files
_SEED = 31


def _blocks(inputs: int, first: int = 0) -> Iterator[Sequence[int]]:
    numbers = range(first, first + inputs)
    return (numbers[place : place + _BLOCK] for place in range(0, inputs, _BLOCK))


def test_no_mutated_function_ends_or_delays_the_analysis_or_takes_much_memory() -> None:
    report = fuzz_analysis.run(_SEED, _blocks(_INPUTS), workers=2)
    assert report.failures == []
    assert report.inputs == _INPUTS
    # Most inputs are functions that the analysis reads.
    assert report.units > _INPUTS


def test_an_input_depends_on_the_seed_and_its_number_alone() -> None:
    texts = [fuzz_analysis.make(1, number) for number in range(6)]
    assert texts == [fuzz_analysis.make(1, number) for number in range(6)]
    assert len(set(texts)) == 6
    assert fuzz_analysis.make(2, 3) != texts[3]


def _raise(text: str) -> int:
    raise RuntimeError("of the analysis")


def _wait(text: str) -> int:
    begun = time.process_time()
    while time.process_time() < begun + fuzz_analysis.SLOW_SECONDS + 0.05:
        pass
    return 1


def _wait_in_c(text: str) -> int:
    return sum(range(10**15))  # holds the interpreter lock


def _take(text: str) -> int:
    return len(b"\1" * int(fuzz_analysis.MOST_BYTES + 50e6))


@pytest.mark.parametrize(
    ("read", "kind"),
    [(_raise, "RuntimeError"), (_wait, "slow"), (_wait_in_c, "slow"), (_take, "memory")],
)
def test_a_failure_is_seen_and_the_inputs_after_it_are_read(
    monkeypatch: pytest.MonkeyPatch, read: object, kind: str
) -> None:
    monkeypatch.setattr(fuzz_analysis, "read", read)
    monkeypatch.setattr(fuzz_analysis, "SLOW_SECONDS", 1.0)
    assert fuzz_analysis.outcome("x = 1").split(" ")[0] == kind


def test_the_inputs_after_one_that_ends_a_worker_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_analysis, "make", lambda seed, number: str(number))
    monkeypatch.setattr(fuzz_analysis, "KILLED_SECONDS", 0.2)
    monkeypatch.setattr(fuzz_analysis, "read", lambda text: _wait_in_c(text) if text == "3" else 1)
    report = fuzz_analysis.run(1, iter([range(8)]), workers=1)
    assert (report.inputs, report.units) == (8, 7)
    assert [(failure.number, failure.kind) for failure in report.failures] == [(3, "killed")]


def test_a_failing_text_is_reduced_to_the_lines_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(text: str) -> int:
        assert "bad" not in text
        return 1

    monkeypatch.setattr(fuzz_analysis, "read", read)
    text = "\n".join([*(f"x{k} = {k}" for k in range(9)), "bad = 1", "y = 2"])
    kind = fuzz_analysis.outcome(text)
    assert kind.startswith("AssertionError")
    assert fuzz_analysis.minimised(text, kind, 30.0) == "bad = 1"


def test_an_error_that_costs_the_product_one_unit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise RuntimeError

    monkeypatch.setenv(STRICT, "")
    monkeypatch.setattr("rlm_core.queries.unit_facts.analyse", fail)
    assert fuzz_analysis.outcome("def f(n):\n    return n + 1\n").startswith("RuntimeError")
