"""Budgets of a project: ``[tool.rlm-lsp.budgets]`` in ``pyproject.toml`` or ``[budgets]`` in ``rlm-lsp.toml``.

Each line is a glob and what holds for the units of the files that it names. ``rlm-lsp.toml`` takes the place of a
``pyproject.toml`` beside it; the nearest folder above a file that has one of them counts.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_core.types import Span

from .comments import LocatedBudget, Malformed
from .globs import matches
from .rules import Held
from .syntax import Mistake, parse

CONFIG_FILES = ("rlm-lsp.toml", "pyproject.toml")
_MAX_BYTES = 1024 * 1024
_AT = re.compile(r"\s*\(at line (\d+), column (\d+)\)\Z")


@dataclass(frozen=True, slots=True)
class GlobBudget:
    """A glob and one budget of the units in the files that it names."""

    glob: str
    placed: LocatedBudget


@dataclass(frozen=True, slots=True)
class BudgetTable:
    """The budgets of a configuration file at ``path``, in its order, and what cannot be read of them."""

    path: Path
    source: bytes = b""
    budgets: tuple[GlobBudget, ...] = ()
    malformed: tuple[Malformed, ...] = ()

    def held_of(self, file: Path) -> tuple[Held, ...]:
        """The budgets of a file (an absolute path) below the configuration's folder, those that count more first."""
        try:
            name = file.relative_to(self.path.parent).as_posix()
        except ValueError:
            return ()
        return tuple(
            Held(entry.placed.budget, entry.placed.span, self.path)
            for entry in self.budgets
            if matches(entry.glob, name)
        )


def read_budgets(folder: Path) -> BudgetTable | None:
    """The budgets that a folder's own configuration file tells; None where there is no such file.

    A ``pyproject.toml`` without ``[tool.rlm-lsp]`` is none. A file that is no TOML is a table with one mistake.
    """
    for name in CONFIG_FILES:
        path = folder / name
        try:
            # Reading a pipe or a device would block.
            if not path.is_file() or path.stat().st_size > _MAX_BYTES:
                continue
            source = path.read_bytes()
        except OSError:
            continue
        own = name == CONFIG_FILES[0]
        # Most files of this name have nothing to do with us: their mistakes are others' to tell.
        if own or b"rlm-lsp" in source:
            table = _read(path, source, ("budgets",) if own else ("tool", "rlm-lsp", "budgets"))
            if table is not None:
                return table
    return None


class BudgetTables:
    """The configurations above files, each read once."""

    def __init__(self) -> None:
        self._known: dict[Path, BudgetTable | None] = {}

    def above(self, file: Path) -> BudgetTable | None:
        """The table of the nearest configuration in the folders above an absolute path."""
        passed = []
        found: BudgetTable | None = None
        for folder in file.parents:
            if folder in self._known:
                found = self._known[folder]
                break
            passed.append(folder)
            found = read_budgets(folder)
            if found is not None:
                break
        self._known.update(dict.fromkeys(passed, found))
        return found


def _read(path: Path, source: bytes, keys: tuple[str, ...]) -> BudgetTable | None:
    text = source.decode("utf-8", errors="replace")
    try:
        table: Any = tomllib.loads(source.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return BudgetTable(path, source, (), (Malformed("is not valid UTF-8; save it as UTF-8", _line(text, 0), ""),))
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        message = f"is not TOML ({_AT.sub('', str(error))}); correct its syntax"
        return BudgetTable(path, source, (), (Malformed(message, _line(text, int(at[1]) - 1 if at else 0), ""),))
    except RecursionError:
        return BudgetTable(path, source, (), (Malformed("is nested too deeply", _line(text, 0), ""),))
    for key in keys:
        if key == "budgets" and isinstance(table, Mapping) and key not in table:
            return BudgetTable(path, source)
        table = table.get(key) if isinstance(table, Mapping) else None
        if table is None:
            return None
    section = ".".join(keys)
    if not isinstance(table, Mapping):
        place = _find(text, section, "budgets")
        return BudgetTable(path, source, (), (Malformed(f"{section} must be a table of glob = budgets", place, ""),))
    budgets: list[GlobBudget] = []
    malformed: list[Malformed] = []
    for glob, value in table.items():
        place = _find(text, section, glob)
        if not isinstance(value, str):
            message = f'the budgets of {glob!r} must be a string; write "latency < 1 ms, memory < 10 MiB"'
            malformed.append(Malformed(message, place, str(value)))
            continue
        written, mistakes = parse(value)
        budgets += [
            GlobBudget(glob, LocatedBudget(entry.budget, _inside(text, place, value, entry.start, entry.end)))
            for entry in written
        ]
        malformed += [_malformed(text, place, value, mistake) for mistake in mistakes]
    return BudgetTable(path, source, tuple(budgets), tuple(malformed))


def _malformed(text: str, place: Span, value: str, mistake: Mistake) -> Malformed:
    return Malformed(mistake.message, _inside(text, place, value, mistake.start, mistake.end), value)


def _find(text: str, section: str, key: str) -> Span:
    """The line that gives ``key`` its value in a section; the section's own line or the first where it is not seen.

    ``tomllib`` tells no places.
    """
    names = {key, json.dumps(key, ensure_ascii=False), f"'{key}'"}
    lines = text.split("\n")
    inside, best = False, 0
    for number, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith("["):
            inside = re.sub(r"[\s\"']", "", stripped.partition("]")[0]) == f"[{section}"
            best = number if inside else best
        elif any(stripped.startswith(name) and stripped[len(name) :].lstrip().startswith("=") for name in names):
            if inside:
                return _line(text, number)
            best = number
        elif "=" in stripped and any(name in stripped for name in names - {key}):
            # An inline table or dotted keys.
            best = number
    return _line(text, best)


def _line(text: str, number: int) -> Span:
    lines = text.split("\n")
    number = min(number, len(lines) - 1)
    start = len("\n".join(lines[:number]).encode()) + (number > 0)
    line = lines[number].rstrip()
    indent = len(line) - len(line.lstrip())
    return Span(number, indent, number, len(line.encode()), start + indent, start + len(line.encode()))


def _inside(text: str, place: Span, value: str, start: int, end: int) -> Span:
    """The span of characters of a string that stands as it is on one line, or else the whole line."""
    line = text.split("\n")[place.start_line]
    at = line.find(value, line.find("=") + 1) if value else -1
    if at < 0:
        return place
    line_start = place.start_byte - place.start_column
    first, last = (len(line[: at + offset].encode()) for offset in (start, end))
    return Span(place.start_line, first, place.start_line, last, line_start + first, line_start + last)
