"""Where functions stand in their files now: text and hashes by qualified name and first line."""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rlm_core.measurement.types import sha1_of, source_hash
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES, find_units
from rlm_core.types import Unit


@dataclass(frozen=True)
class Source:
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


class SourceFile:
    """The functions of a Python file; empty if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._functions: dict[tuple[str, int], Source] = {}
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                return
            data = path.read_bytes()
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            text = data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
        except (OSError, SyntaxError, UnicodeDecodeError):
            return
        lines = text.splitlines(keepends=True)
        for unit in find_units(ParsedSource(text.encode("utf-8", errors="replace"), "python")):
            if unit.kind == "function":
                span = unit.span
                shown = "".join(lines[span.start_line : span.end_line + 1])
                self._functions[unit.qualname, span.start_line + 1] = Source(unit, shown)

    def function(self, qualname: str, line: int) -> Source | None:
        """The function that starts at a line, its first decorator if it has any."""
        return self._functions.get((qualname, line))
