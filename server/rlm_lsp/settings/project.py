"""A project's own configuration: its budgets, each with its span, and its settings where no editor is involved.

Input: a file of the project. Output: the :class:`BudgetTable` of the nearest configuration above it, the budgets that
apply to it from all sources, and the settings that ``rlm-lsp check`` uses for it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePath

from rlm_core.types import Span

from rlm_lsp.budgets.comments import MalformedBudget
from rlm_lsp.budgets.rules import ActiveBudget, GlobBudgets
from rlm_lsp.budgets.syntax import parse
from rlm_lsp.sources import matches

from .files import FILE_NAMES, OWN_FILE, ConfigFile, folder_config, folder_source, user_file, user_source
from .model import Settings
from .resolve import SettingsProblem, environment, resolve

_KEY = re.compile(r"""("(?:[^"\\]|\\.)*+"|'[^']*+'|[^\s="']++)\s*+=""")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*+"|'[^']*+')""")


@dataclass(frozen=True, slots=True)
class BudgetTable:
    """The budgets of a configuration file, in its order, and its text that is not a valid budget."""

    path: Path
    source: bytes = b""
    budgets: tuple[GlobBudgets, ...] = ()
    malformed: tuple[MalformedBudget, ...] = ()

    def entries_of(self, file: Path) -> list[GlobBudgets]:
        """The entries that apply to a file (an absolute path) below the configuration's folder."""
        folder = self.path.parent
        if not file.is_relative_to(folder):
            return []
        return [entry for entry in self.budgets if matches(entry.glob, file.relative_to(folder).as_posix())]


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The settings of the files below a folder (None: of files without a configuration above them)."""

    folder: Path | None
    settings: Settings

    def relative(self, path: Path) -> PurePath:
        """A file's path below the folder, for globs; its name where there is no folder."""
        return path.relative_to(self.folder) if self.folder is not None else PurePath(path.name)

    def excludes(self, path: Path) -> bool:
        """Return whether a file, by its real path, gets no predictions."""
        return self.folder is not None and self.settings.excludes(self.relative(path))


class ProjectSettings:
    """The settings of files by the nearest configuration above each, with the environment and the user's file.

    ``problems`` has a line for each setting that is not valid.
    """

    def __init__(self, tables: BudgetTables, variables: Mapping[str, str] | None = None) -> None:
        self._tables = tables
        self._environment = environment(os.environ if variables is None else variables)
        self._user, problems = user_source()
        self._by_folder: dict[Path | None, FolderSettings] = {}
        self.problems = [str(problem) for problem in problems]

    def of(self, path: Path) -> FolderSettings:
        """The settings of a file, by its real path."""
        table = self._tables.above(path)
        folder = table.path.parent if table is not None else None
        if folder not in self._by_folder:
            sources = [self._environment, self._user]
            problems: list[SettingsProblem] = []
            if folder is not None:
                source, problems = folder_source(folder)
                sources.insert(1, source)
            settings, unresolved = resolve(sources)
            # A malformed budget is a finding.
            problems += [problem for problem in unresolved if "`budgets`" not in problem.text]
            self.problems += [str(problem) for problem in problems]
            self._by_folder[folder] = FolderSettings(folder, settings)
        return self._by_folder[folder]


class BudgetTables:
    """The configurations above files, each read once."""

    def __init__(self) -> None:
        self._by_folder: dict[Path, BudgetTable | None] = {}

    def above(self, file: Path) -> BudgetTable | None:
        """The table of the nearest configuration in the folders above an absolute path."""
        searched = []
        table: BudgetTable | None = None
        for folder in file.parents:
            if folder in self._by_folder:
                table = self._by_folder[folder]
                break
            searched.append(folder)
            table = read_budgets(folder)
            if table is not None:
                break
        self._by_folder.update(dict.fromkeys(searched, table))
        return table


def configured_budgets(
    path: Path | None, relative: PurePath, settings: Settings, table: BudgetTable | None
) -> list[ActiveBudget]:
    """The budgets that the configuration sets for a file, in order of precedence.

    The environment and the client take precedence over the project, the project over the user's own file. The project
    speaks through ``table``, the nearest configuration above the file, which may be below the workspace folder.

    Args:
        path: the file; None outside the file system, where no budget is configured.
        relative: its path below the workspace folder.
        settings: those of the workspace folder.
        table: the nearest configuration above the file.
    """
    if path is None:
        return []
    entries = [entry for entry in settings.budgets_of(relative) if Path(entry.source).name not in FILE_NAMES]
    user = str(user_file())
    first = [entry for entry in entries if entry.source != user]
    overridden = {entry.glob for entry in first}
    of_project = table.entries_of(path) if table is not None else []
    first += [entry for entry in of_project if entry.glob not in overridden]
    last = [entry for entry in entries if entry.source == user]
    return [active for entry in first + last for active in entry.budgets]


def read_budgets(folder: Path) -> BudgetTable | None:
    """The budgets of a folder's own configuration file; None where there is no such file.

    A file that cannot be used is a table with one mistake.
    """
    config = folder_config(folder)
    if config is None:
        return None
    text = config.source.decode("utf-8", errors="replace")
    if config.error is not None:
        line = _SourceLines(text, "").line(config.error_line)
        mistake = MalformedBudget(f"{config.error}; its budgets are not checked", line, "")
        return BudgetTable(config.path, config.source, (), (mistake,))
    return _table(config, text)


def _table(config: ConfigFile, text: str) -> BudgetTable:
    section = "budgets" if config.path.name == OWN_FILE else "tool.rlm-lsp.budgets"
    lines = _SourceLines(text, section)
    values = config.table.get("budgets", {}) if isinstance(config.table, Mapping) else {}
    if not isinstance(values, Mapping):
        mistake = MalformedBudget(f"{section} must be a table of glob = budgets", lines.of("budgets"), "")
        return BudgetTable(config.path, config.source, (), (mistake,))
    entries: list[GlobBudgets] = []
    malformed: list[MalformedBudget] = []
    for glob, value in values.items():
        line = lines.of(glob)
        if not isinstance(value, str):
            message = f'the budgets of {glob!r} must be a string; write "latency < 1 ms, memory < 10 MiB"'
            malformed.append(MalformedBudget(message, line, str(value)))
            continue
        written, mistakes = parse(value)
        budgets = (
            ActiveBudget(entry.budget, lines.inside(line, value, entry.start, entry.end), config.path)
            for entry in written
        )
        entries.append(GlobBudgets(glob, tuple(budgets), str(config.path)))
        malformed += [
            MalformedBudget(mistake.message, lines.inside(line, value, mistake.start, mistake.end), value)
            for mistake in mistakes
        ]
    return BudgetTable(config.path, config.source, tuple(entries), tuple(malformed))


class _SourceLines:
    """The positions of a section's keys in a configuration file: TOML parsers do not report them."""

    def __init__(self, text: str, section: str) -> None:
        self._lines = text.split("\n")
        self._starts = [0, *accumulate(len(line.encode()) + 1 for line in self._lines)]
        self._inside: dict[str, int] = {}  # keys as they are written -> the line of their value in the section
        self._elsewhere: dict[str, int] = {}  # likewise outside it, and in inline tables and dotted keys
        self._header = 0
        inside = False
        for number, line in enumerate(map(str.strip, self._lines)):
            key = _KEY.match(line)
            if line.startswith("["):
                inside = re.sub(r"[\s\"']", "", line.partition("]")[0]) == f"[{section}"
                self._header = number if inside else self._header
            elif key is not None and inside:
                self._inside.setdefault(key[1], number)
            elif "=" in line:
                self._elsewhere |= dict.fromkeys(
                    [*_QUOTED.findall(line), *([key[1]] if key is not None else [])], number
                )

    def of(self, key: str) -> Span:
        """The line that gives ``key`` its value in the section; else the line of the section, else the first line."""
        names = (key, json.dumps(key, ensure_ascii=False), f"'{key}'")
        inside = [self._inside[name] for name in names if name in self._inside]
        return self.line(
            min(inside) if inside else max([self._header, *(self._elsewhere.get(name, 0) for name in names)])
        )

    def line(self, number: int) -> Span:
        """A line without the blanks around it; the last one for a number beyond it."""
        number = min(number, len(self._lines) - 1)
        start, line = self._starts[number], self._lines[number].rstrip()
        indent, end = len(line) - len(line.lstrip()), len(line.encode())
        return Span(number, indent, number, end, start + indent, start + end)

    def inside(self, line_span: Span, value: str, start: int, end: int) -> Span:
        """The span of the characters ``[start, end)`` of a value that is on one line, or else the whole line."""
        line = self._lines[line_span.start_line]
        index = line.find(value, line.find("=") + 1) if value else -1
        if index < 0:
            return line_span
        line_start = line_span.start_byte - line_span.start_column
        first, last = (len(line[: index + offset].encode()) for offset in (start, end))
        return Span(line_span.start_line, first, line_span.start_line, last, line_start + first, line_start + last)
