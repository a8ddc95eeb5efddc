"""A JSON Lines file of measurements -> texts, queries and values, and a message with the line of each unusable row.

A row names a unit of a source file or gives its text: ``{"path", "qualname"?}`` (a path is relative to the file of
measurements; ``.onnx`` graphs too) or ``{"text", "language", "basis"}``; then ``"metric"`` (default latency),
``"workload"`` and the measured ``"value"`` in SI units, ``"latency_ms"`` or ``"latency_us"``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from rlm_core.errors import DataError, RlmError
from rlm_core.files import read_regular
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source import languages
from rlm_core.source.units import read_source
from rlm_core.types import Basis, CodeText, Query

from .store import METRICS

_UNITS = {"value": 1.0, "latency_ms": 1e-3, "latency_us": 1e-6}
_SHOWN_UNITS = 5
_MAX_BYTES = 2**28
_MOST_VALUE = 1e30
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured value in SI units (None in a list of candidates), on which line, of what, under which workload."""

    line: int
    code: CodeText
    query: Query
    value: float | None


class _BadRowError(Exception):
    """A row that cannot be used; the text says why."""


def read_measurements(path: Path, *, candidates: bool = False) -> tuple[list[Measurement], list[str]]:
    """The measurements of a file, and a line ``FILE:LINE: what is wrong`` for each row that cannot be used.

    With ``candidates``, rows without a value are accepted: they are yet to be measured.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        lines = read_regular(path, _MAX_BYTES).splitlines()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    reader = _Reader(path.parent)
    found: list[Measurement] = []
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise _BadRowError("a row must be a JSON object")
            metric, value = _value(row, candidates)
            code = reader.code(row)
            found.append(Measurement(number, code, Query(metric, None, _workload(row)), value))
        except UnicodeDecodeError:
            problems.append(f"{path}:{number}: not UTF-8")
        except json.JSONDecodeError as error:
            problems.append(f"{path}:{number}: not JSON ({error.msg})")
        except (ValueError, RecursionError):  # ValueError: an integer of more digits than Python converts
            problems.append(f"{path}:{number}: not JSON (nested too deeply, or a number is too long)")
        except (_BadRowError, RlmError) as error:
            problems.append(f"{path}:{number}: {error}")
    return found, problems


def _value(row: dict[str, Any], candidates: bool) -> tuple[Any, float | None]:
    metric = row.get("metric", "latency")
    if metric not in METRICS:
        raise _BadRowError(f"`metric` must be one of {', '.join(METRICS)}")
    given = [name for name in _UNITS if row.get(name) is not None]
    if not given and candidates:
        return metric, None
    if len(given) != 1:
        raise _BadRowError(f"give one of {', '.join(f'`{name}`' for name in _UNITS)}")
    [name] = given
    value = row[name]
    if name != "value" and metric != "latency":
        raise _BadRowError(f"`{name}` is not a {metric}; give `value` in bytes")
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < _MOST_VALUE:
        raise _BadRowError(f"`{name}` must be a number above 0 and below {_MOST_VALUE:g}")
    return metric, float(value) * _UNITS[name]


def _workload(row: dict[str, Any]) -> dict[str, str]:
    workload = row.get("workload") or {}
    if not isinstance(workload, dict) or not all(
        isinstance(item, str | int | float) and not isinstance(item, bool) for item in workload.values()
    ):
        raise _BadRowError("`workload` must map names to strings or numbers")
    return {name: str(item) for name, item in workload.items()}


class _Reader:
    """Reads what the model needs about the unit of a row; each file is analysed once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._analyser = Analyser()
        self._files: dict[Path, list[AnalysedUnit]] = {}
        self._graphs: dict[Path, CodeText] = {}

    def code(self, row: dict[str, Any]) -> CodeText:
        if (row.get("path") is None) == (row.get("text") is None):
            raise _BadRowError("give `path` or `text`, one of the two")
        return self._from_text(row) if row.get("path") is None else self._from_path(row)

    def _from_text(self, row: dict[str, Any]) -> CodeText:
        text, language, basis = row["text"], row.get("language"), row.get("basis")
        if not isinstance(text, str) or not text.strip():
            raise _BadRowError("`text` must be a non-empty string")
        if not isinstance(language, str):
            raise _BadRowError("`language` must be a string")
        languages.by_name(language)
        if basis not in get_args(Basis):
            raise _BadRowError(f"`basis` must be one of {', '.join(get_args(Basis))}")
        return CodeText(text, language, cast(Basis, basis))

    def _from_path(self, row: dict[str, Any]) -> CodeText:
        name, qualname = row["path"], row.get("qualname")
        if not isinstance(name, str) or not name or "\0" in name:
            raise _BadRowError("`path` must be a path")
        path = self._folder / name
        if path.suffix.lower() == ".onnx":
            return _known(self._graphs, path, _graph)
        units = _known(self._files, path, self._analyse)
        fitting = [unit for unit in units if qualname is None or unit.unit.qualname == qualname]
        if len(fitting) == 1:
            return fitting[0].code
        shown = ", ".join(unit.unit.qualname for unit in units[:_SHOWN_UNITS]) or "no unit"
        shown += ", ..." if len(units) > _SHOWN_UNITS else ""
        what = "`qualname` is missing" if qualname is None else f"{len(fitting)} units are called {qualname!r}"
        raise _BadRowError(f"{what}; {name} has {shown}")

    def _analyse(self, path: Path) -> list[AnalysedUnit]:
        return self._analyser.analyse(read_source(path), path)


def _graph(path: Path) -> CodeText:
    # Only graphs need this, and reading them needs the [onnx] extra.
    from rlm_core.source.onnx_graph.reader import read_onnx
    from rlm_core.source.onnx_graph.render import render

    return CodeText(render(read_onnx(path)), "onnx", "network")


def _known(kept: dict[Path, T], path: Path, make: Callable[[Path], T]) -> T:
    if path not in kept:
        kept[path] = make(path)
    return kept[path]
