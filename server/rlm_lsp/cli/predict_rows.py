"""``rlm-lsp predict --batch``: rows of texts and queries -> rows of predictions, in the same order.

Rows are JSON Lines or Parquet, from a path, a URI or stdin. A row that cannot be used is answered with its error and
makes the exit status 2.

    {"id", "text", "language", "basis", "queries": [{"metric", "device"?, "workload"?}], "callees"?}
    {"id", "predictions": [...]}  or  {"id", "line", "error"}
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TextIO

import msgspec
from rlm_core import DataError, RlmError, tables
from rlm_core.files import atomic_write
from rlm_core.source import languages
from rlm_core.types import Basis, Callee, CodeText, Metric, Query, SizeValue

from rlm_lsp.rendering import console
from rlm_lsp.rendering.json_rows import prediction_fields

from . import options
from .options import write_errors
from .predict_batches import BatchPredictor, Runner, TextBatch, chunks

_ROWS_ASKED = 64


class _CalleeRow(msgspec.Struct):
    text: str
    level: Annotated[int, msgspec.Meta(ge=1, le=127)] = 1


class _QueryRow(msgspec.Struct):
    metric: Metric
    device: str | None = None
    workload: dict[str, str] | None = None


class _Row(msgspec.Struct):
    id: str | int
    text: str
    language: str
    basis: Basis
    queries: Annotated[list[_QueryRow], msgspec.Meta(min_length=1)]
    callees: list[str | _CalleeRow] = []
    sizes: dict[str, float] = {}

    def code(self) -> CodeText:
        callees = (
            Callee(callee) if isinstance(callee, str) else Callee(callee.text, callee.level) for callee in self.callees
        )
        sizes = tuple(SizeValue(name, value, "query") for name, value in self.sizes.items())
        return CodeText(self.text, self.language, self.basis, tuple(callees), sizes=sizes)


class _RowId(msgspec.Struct):
    id: str | int | None = None


@dataclass(frozen=True, slots=True)
class _BadRow:
    line: int
    id: str | int | None
    error: str


_Answer = dict[str, Any]
# The columns of answers in Parquet, with the names of JSON. What rests on a measurement is left out, since a row is
# never measured, and so are the sizes, which are those of the row.
ANSWER_COLUMNS: dict[str, Any] = {
    "id": str,
    "line": int,
    "error": str,
    "predictions": [
        {
            "basis": str,
            "metric": str,
            "unit": str,
            "median": float,
            "low": float,
            "high": float,
            "coverage": float,
            "calibrated": bool,
            "device": str,
            "workload": dict,
            "model": str,
            "abstained": str,
            "truncated": bool,
            "growth": {"class": str, "probability": float, "sizes": [str], "in_worst_case": bool},
            "source": str,
            "holds_for": str,
            "evidence": str,
            "bound": {"least": float},
            "small_inputs": {"median": float, "low": float, "high": float},
        }
    ],
}


def predict_rows(source: str, out: str, runner: Runner) -> int:
    """Answer the rows of ``source`` into ``out`` (``-``: stdin, stdout); the exit status is 2 if any row is bad."""
    with ExitStack() as stack:
        asked = stack.enter_context(_opened_rows(source))
        predictor = stack.enter_context(BatchPredictor(runner))
        write = stack.enter_context(_answer_writer(out))
        good = bad = 0
        for rows, predictions in predictor.predict(_row_batches(asked)):
            answers = iter(predictions)
            answered: list[_Answer] = []
            for row in rows:
                if isinstance(row, _BadRow):
                    bad += 1
                    answered.append({"id": row.id, "line": row.line, "error": row.error})
                else:
                    good += 1
                    answered.append(
                        {"id": row.id, "predictions": [prediction_fields(entry) for entry in next(answers)]}
                    )
            write(answered)
    console.note(f"{good:,} rows answered, {bad:,} bad")
    return 2 if bad else 0


@contextmanager
def _opened_rows(source: str) -> Iterator[Iterator[_Row | _BadRow]]:
    """The rows of a file by path or URI, or of stdin.

    Raises:
        RlmError: it cannot be read.
    """
    if source == "-":
        yield _read_lines(sys.stdin.buffer)
    elif tables.is_parquet(source):
        options.require("parquet", "pyarrow")
        yield _read_table(tables.read_rows(source))
    elif tables.is_uri(source):
        options.require("parquet", "pyarrow")
        with tables.open_input(source) as lines:
            yield _read_lines(lines)
    else:
        with _open(source) as lines:
            yield _read_lines(lines)


@contextmanager
def _answer_writer(out: str) -> Iterator[Callable[[list[_Answer]], None]]:
    """A writer of answers to a file by path or URI, or to stdout. A local file replaces an earlier one at the end.

    Raises:
        RlmError: it cannot be written.
    """

    def append_lines(target: TextIO) -> Callable[[list[_Answer]], None]:
        def append(answers: list[_Answer]) -> None:
            target.writelines(json.dumps(answer) + "\n" for answer in answers)
            target.flush()

        return append

    if tables.is_parquet(out):
        options.require("parquet", "pyarrow")
        with tables.row_writer(out, ANSWER_COLUMNS) as append_rows:
            yield lambda answers: append_rows(
                {**answer, "id": None if answer["id"] is None else str(answer["id"])} for answer in answers
            )
    elif out == "-":
        yield append_lines(sys.stdout)
    elif tables.is_uri(out):
        options.require("parquet", "pyarrow")
        with tables.open_output(out) as stream, io.TextIOWrapper(stream, encoding="utf-8") as target:
            yield append_lines(target)
    else:
        with write_errors(out), atomic_write(Path(out)) as partial, partial.open("w", encoding="utf-8") as file:
            yield append_lines(file)


def _open(path: str) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise RlmError(f"{path}: cannot be read ({error.strerror}); check the path") from None


def _row_batches(asked: Iterable[_Row | _BadRow]) -> Iterator[tuple[list[_Row | _BadRow], TextBatch]]:
    for chunk in chunks(asked, _ROWS_ASKED):
        good = [row for row in chunk if isinstance(row, _Row)]
        queries = [[Query(entry.metric, entry.device, entry.workload or {}) for entry in row.queries] for row in good]
        yield chunk, TextBatch([row.code() for row in good], queries)


def _read_lines(lines: Iterable[bytes]) -> Iterator[_Row | _BadRow]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _valid(msgspec.json.decode(line, type=_Row))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, RlmError) as error:
            yield _BadRow(number, _id_of(line), str(error))


def _read_table(rows: Iterable[dict[str, Any]]) -> Iterator[_Row | _BadRow]:
    for number, row in enumerate(rows, 1):
        try:
            yield _valid(msgspec.convert(row, _Row))
        except (msgspec.MsgspecError, RlmError) as error:
            name = row.get("id")
            yield _BadRow(number, name if isinstance(name, str | int) else None, str(error))


def _valid(row: _Row) -> _Row:
    """The row, if it can be predicted.

    Raises:
        RlmError: its language is unknown, or its text blank.
    """
    languages.by_name(row.language)
    if not row.text.strip():
        raise DataError("`text` must not be blank")
    return row


def _id_of(line: bytes) -> str | int | None:
    """The id of a row that cannot be used, if it has one."""
    try:
        return msgspec.json.decode(line, type=_RowId).id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
