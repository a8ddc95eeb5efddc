"""The boundary around units: what is caught, what passes, and what the log says."""

from __future__ import annotations

import ast
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from rlm_core import boundary
from rlm_core.boundary import STRICT, each, guarded, report
from rlm_core.errors import SourceError, StoppedError

CODE = "def secret(): pass"


def fail(error: BaseException) -> Any:
    raise error


def descend(depth: int) -> None:
    descend(depth + 1)


def test_in_tests_nothing_is_caught() -> None:
    with pytest.raises(KeyError):
        guarded("a unit", lambda: fail(KeyError(CODE)), lambda error: None)
    with pytest.raises(KeyError):
        each("a unit", [1, 2], lambda some: [fail(KeyError(CODE))], lambda item, error: None)


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("value", ["", "0", "false"])
def test_a_switch_that_is_off_catches(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(STRICT, value)
    assert guarded("a unit", lambda: fail(KeyError(CODE)), lambda error: type(error).__name__) == "KeyError"


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("error", [ValueError(CODE), RecursionError(CODE), MemoryError(CODE), AssertionError(CODE)])
def test_any_exception_is_caught_and_logged_without_its_text(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    assert guarded("a unit", lambda: fail(error), lambda caught: fail_if_other(caught, error)) is None
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith(f"a unit failed: {type(error).__name__} in ")
    assert "secret" not in caplog.text


def fail_if_other(caught: Exception, error: Exception) -> None:
    assert caught is error


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("error", [SourceError("a.py: is empty"), StoppedError(), KeyboardInterrupt(), SystemExit(1)])
def test_errors_of_the_user_and_the_end_of_work_pass(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(type(error)):
        guarded("a unit", lambda: fail(error), lambda error: None)
    with pytest.raises(type(error)):
        each("a unit", [1, 2], lambda some: [fail(error)], lambda item, error: None)
    assert caplog.records == []


@pytest.mark.usefixtures("lenient")
def test_a_batch_loses_only_the_items_that_fail() -> None:
    calls: list[list[int]] = []

    def work(some: Sequence[int]) -> list[float]:
        calls.append(list(some))
        return [1 / item for item in some]

    assert each("a number", [1, 2, 0, 4, 5, 0], work, lambda item, error: -1.0) == [1, 0.5, -1, 0.25, 0.2, -1]
    assert each("a number", [], work, lambda item, error: -1.0) == []
    calls.clear()
    each("a number", [1, 2, 4], work, lambda item, error: -1.0)
    assert calls == [[1, 2, 4]]  # one call where nothing fails


@pytest.mark.usefixtures("lenient")
def test_a_location_has_one_traceback_and_a_unit_one_line_per_location(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        for name in ("first", "second"):
            guarded(name, lambda: fail(ValueError(CODE)), lambda error: None)
    first, second = (record.getMessage().splitlines() for record in caplog.records)
    assert len(first) > 2
    assert all(line.startswith("  ") and " in " in line for line in first[1:])
    assert second == [first[0].replace("first", "second")]


@pytest.mark.usefixtures("lenient")
def test_a_recursion_is_one_location_at_any_depth_and_a_short_traceback(caplog: pytest.LogCaptureFixture) -> None:
    def deeper(levels: int) -> None:
        if levels:
            deeper(levels - 1)
        else:
            descend(0)

    for levels in (0, 5, 60):
        guarded("a unit", lambda levels=levels: deeper(levels), lambda error: None)  # type: ignore[misc]
    [record] = caplog.records
    assert "RecursionError in " in record.getMessage()
    assert "(descend)" in record.getMessage().splitlines()[0]
    assert len(record.getMessage()) < 2_000


@pytest.mark.usefixtures("lenient")
def test_causes_are_logged_without_their_texts(caplog: pytest.LogCaptureFixture) -> None:
    def parse() -> None:
        try:
            ast.parse("def secret(")
        except SyntaxError as error:
            raise ValueError(CODE) from error

    guarded("a unit", parse, lambda error: None)
    text = caplog.records[0].getMessage()
    assert "after SyntaxError in " in text
    assert "secret" not in text


@pytest.mark.usefixtures("lenient")
def test_the_log_of_a_process_ends(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary, "_MOST_FAILURES", 3)
    for number in range(10):
        report(f"unit {number}", ValueError())
    assert len(caplog.records) == 3


@pytest.mark.usefixtures("lenient")
def test_a_name_cannot_forge_lines_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    report("the analysis of a\nb\x1b[31m.py", ValueError())
    assert caplog.records[0].getMessage().splitlines() == ["the analysis of a\ufffdb\ufffd[31m.py failed: ValueError"]
