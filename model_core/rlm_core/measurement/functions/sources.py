"""The functions of a project's files: text and hashes by qualified name and first line, and the packages to measure."""

from __future__ import annotations

import io
import os
import tokenize
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rlm_core.files import read_regular
from rlm_core.folders import walk
from rlm_core.measurement.types import measured_text, sha1_of, source_hash
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES, find_units
from rlm_core.types import Unit


@dataclass(frozen=True)
class FunctionSource:
    """One function's text as its file has it, from its first decorator on; lines are 1-based."""

    unit: Unit
    text: str

    @property
    def last_line(self) -> int:
        """The function's last line."""
        return self.unit.span.end_line + 1

    @cached_property
    def sha1(self) -> str:
        """The hash of the text with its indentation and comments."""
        return sha1_of(self.text)

    @cached_property
    def hash(self) -> str:
        """The hash of what the model reads."""
        return source_hash(self.unit.text)

    @cached_property
    def measured_text(self) -> str:
        """The text that is kept with measurements."""
        return measured_text(self.unit.text)


class FunctionFile:
    """The functions of a Python file; empty if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._functions: dict[tuple[str, int], FunctionSource] = {}
        try:
            data = read_regular(path, MAX_FILE_BYTES)
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            text = data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
        except (OSError, SyntaxError, UnicodeError, LookupError):
            return
        lines = text.splitlines(keepends=True)
        for unit in find_units(ParsedSource(text.encode("utf-8", errors="replace"), "python")):
            if unit.kind == "function":
                span = unit.span
                shown = "".join(lines[span.start_line : span.end_line + 1])
                self._functions[unit.qualname, span.start_line + 1] = FunctionSource(unit, shown)

    def function(self, qualname: str, line: int) -> FunctionSource | None:
        """The function that starts at a line, its first decorator if it has any."""
        return self._functions.get((qualname, line))

    def named(self, name: str, line: int = 0) -> FunctionSource | None:
        """The function of that name that starts at a line; without a line the only one of that qualified name."""
        found = [
            function
            for (qualname, start), function in self._functions.items()
            if (qualname == name if not line else start == line and qualname.rpartition(".")[2] == name)
        ]
        return found[0] if len(found) == 1 else None


_DEPTH = 4
_NOT_OURS = frozenset(
    {"bench", "benchmark", "benchmarks", "build", "dist", "doc", "docs", "example", "examples", "node_modules"}
    | {"script", "scripts", "site-packages", "test", "testing", "tests", "tools", "venv", "__pycache__"}
)
_NOT_MODULES = frozenset(
    {"setup", "conftest", "noxfile", "tasks", "fabfile", "manage", "versioneer", "rlm_bench", "__init__"}
)


def packages_under(folder: Path) -> list[str]:
    """The top-level packages up to four folders below a project's, and single modules next to its configuration.

    Tests, documentation, examples, environments and hidden folders are passed over.
    """
    found: dict[str, None] = {}
    for here, folders, files in walk(folder):
        depth = len(here.relative_to(folder).parts)
        if "__init__.py" in files and depth and here.name.isidentifier():
            found[here.name] = None
            folders.clear()
            continue
        if "pyvenv.cfg" in files or depth >= _DEPTH:
            folders.clear()
            continue
        folders[:] = [name for name in folders if name not in _NOT_OURS and name[0] != "."]
        if here in (folder, folder / "src"):
            for name in files:
                stem, suffix = os.path.splitext(name)  # noqa: PTH122 - of a bare name
                if suffix == ".py" and stem.isidentifier() and stem not in _NOT_MODULES and not _is_test(stem):
                    found[stem] = None
    return list(found)


def _is_test(stem: str) -> bool:
    return stem.startswith("test_") or stem.endswith("_test")
