"""``rlm-lsp predict --batch``: rows of text and queries in JSON Lines in, rows of predictions out.

In:  ``{"id", "text", "callees"?, "language", "basis", "queries": [{"metric", "device"?, "workload"?}]}``
Out: ``{"id", "predictions": [...]}`` in the same order, or ``{"id", "line", "error"}`` for a row that cannot be used.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast, get_args

from rlm_core import RlmError
from rlm_core.source import languages
from rlm_core.types import Basis, Callee, CodeText, Metric, Prediction, Query

from rlm_lsp.rendering import console
from rlm_lsp.rendering.json_rows import prediction_fields

from .predict_on import Answering, Questions, chunks

_BATCH_ROWS = 64
_MAX_LEVEL = 127
_BASES, _METRICS = get_args(Basis), get_args(Metric)


class _BadRowError(Exception):
    """A row that cannot be used; the text says why in one line."""


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    id: str | int | None
    question: tuple[CodeText, tuple[Query, ...]] | None
    error: str = ""


def predict_batch(source: str, out: str, model: str, threads: int, ray: str | None = None) -> int:
    """Answer the rows of ``source`` into ``out`` (``-``: stdin, stdout) and return the exit status.

    ``ray`` is the address of a cluster whose nodes are asked.

    Raises:
        RlmError: the input or output cannot be opened, the model cannot be loaded, or the cluster not be used.
    """
    with ExitStack() as stack:
        lines = cast(Iterable[bytes], sys.stdin.buffer if source == "-" else stack.enter_context(_open_input(source)))
        answering = stack.enter_context(Answering(model, threads, ray))
        target = sys.stdout if out == "-" else stack.enter_context(_open_output(out))
        good = bad = 0
        for replies in _replies(answering, _read(lines)):
            for reply in replies:
                good, bad = (good, bad + 1) if "error" in reply else (good + 1, bad)
                target.write(json.dumps(reply) + "\n")
            target.flush()
    console.note(f"{good:,} rows answered, {bad:,} bad")
    return 2 if bad else 0


def _open_input(path: str) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise RlmError(f"{path}: cannot be read ({error.strerror}); check the path") from None


def _open_output(path: str) -> TextIO:
    try:
        return Path(path).open("w", encoding="utf-8")
    except OSError as error:
        raise RlmError(f"{path}: cannot be written ({error.strerror}); check the path") from None


def _replies(answering: Answering, rows: Iterable[_Row]) -> Iterator[Iterator[dict[str, Any]]]:
    sent: deque[list[_Row]] = deque()

    def questions() -> Iterator[Questions]:
        for chunk in chunks(rows, _BATCH_ROWS):
            sent.append(chunk)
            good = [row.question for row in chunk if row.question is not None]
            yield Questions([code for code, _ in good], [queries for _, queries in good])

    for answers in answering.answers(questions()):
        yield _reply(sent.popleft(), answers)


def _reply(rows: list[_Row], answers: Iterable[list[Prediction]]) -> Iterator[dict[str, Any]]:
    found = iter(answers)
    for row in rows:
        if row.question is None:
            yield {"id": row.id, "line": row.line, "error": row.error}
        else:
            predictions = [{**prediction_fields(one), "workload": dict(one.workload)} for one in next(found)]
            yield {"id": row.id, "predictions": predictions}


def _read(lines: Iterable[bytes]) -> Iterator[_Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        found: Any = None
        try:
            found = json.loads(line)
            yield _Row(number, _id(found), _question(found))
        except UnicodeDecodeError:
            yield _Row(number, None, None, "not UTF-8")
        except (json.JSONDecodeError, RecursionError) as error:
            yield _Row(number, None, None, f"not JSON ({getattr(error, 'msg', 'nested too deeply')})")
        except (_BadRowError, RlmError) as error:
            known = found.get("id") if isinstance(found, dict) else None
            yield _Row(number, known if isinstance(known, str | int) else None, None, str(error))


def _id(row: Any) -> str | int:
    if not isinstance(row, dict):
        raise _BadRowError("a row must be a JSON object")
    value = row.get("id")
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise _BadRowError("`id` must be a string or an integer")
    return value


def _question(row: dict[str, Any]) -> tuple[CodeText, tuple[Query, ...]]:
    text, language, basis = row.get("text"), row.get("language"), row.get("basis")
    if not isinstance(text, str) or not text.strip():
        raise _BadRowError("`text` must be a non-empty string")
    if not isinstance(language, str):
        raise _BadRowError("`language` must be a string")
    languages.by_name(language)
    if basis not in _BASES:
        raise _BadRowError(f"`basis` must be one of {', '.join(_BASES)}")
    callees, queries = row.get("callees", []), row.get("queries")
    if not isinstance(callees, list):
        raise _BadRowError("`callees` must be a list")
    if not isinstance(queries, list) or not queries:
        raise _BadRowError("`queries` must be a non-empty list")
    code = CodeText(text, language, cast(Basis, basis), tuple(_callee(callee) for callee in callees))
    return code, tuple(_query(query) for query in queries)


def _callee(value: Any) -> Callee:
    if isinstance(value, str):
        return Callee(value)
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise _BadRowError('a callee must be a string or {"text", "level"}')
    level = value.get("level", 1)
    if not isinstance(level, int) or isinstance(level, bool) or not 1 <= level <= _MAX_LEVEL:
        raise _BadRowError("a callee's `level` must be a positive integer")
    return Callee(value["text"], level)


def _query(value: Any) -> Query:
    if not isinstance(value, dict) or value.get("metric") not in _METRICS:
        raise _BadRowError(
            f'a query must be {{"metric", "device"?, "workload"?}} with a metric of {", ".join(_METRICS)}'
        )
    device, workload = value.get("device"), value.get("workload") or {}
    if device is not None and not isinstance(device, str):
        raise _BadRowError("a query's `device` must be a string")
    if not isinstance(workload, dict) or not all(isinstance(item, str) for item in workload.values()):
        raise _BadRowError("a query's `workload` must map strings to strings")
    return Query(value["metric"], device, workload)
