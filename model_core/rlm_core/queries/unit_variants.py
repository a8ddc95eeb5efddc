"""A unit with another text, analysed in its file: what the model would read of it.

Input: a source text, one of its units, and another text for that unit. Output: the unit's :class:`CodeText` then; None
where the text is not the same unit any more. Explanations read a unit without each of its statements here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

from rlm_core.errors import AnalysisError
from rlm_core.source.canonical import dedent
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CodeText

from .analysis import AnalysedUnit, Analyser
from .package_files import Overlay


def variant_reader(
    parsed: ParsedSource,
    path: Path | None,
    analysed: AnalysedUnit,
    check: Callable[[], None] = lambda: None,
    overlay: Overlay | None = None,
) -> Callable[[str], CodeText | None] | None:
    """Return the texts that the model reads of variants of a unit; None where its text is not a piece of the source.

    Args:
        parsed: the source text.
        path: its file, in whose package callees are looked up.
        analysed: a unit of it.
        check: is called before each variant, and may raise to stop.
        overlay: texts that take precedence over the disk, see :class:`Analyser`.
    """
    source, unit, code = parsed.source, analysed.unit, analysed.code
    start = start_of_text(source, analysed)
    if source[start : unit.span.end_byte] != code.text.encode("utf-8", errors="replace"):
        return None
    analyser, language = Analyser(overlay), parsed.language
    indentation = code.text[: len(code.text) - len(code.text.lstrip(" \t"))]

    def read(text: str) -> CodeText | None:
        check()
        variant = textwrap.indent(dedent(text), indentation).encode("utf-8", errors="replace")
        changed = source[:start] + variant + source[unit.span.end_byte :]
        try:
            units = analyser.analyse(ParsedSource(changed, language), path, "explained")
        except AnalysisError:
            return None
        same = (
            entry.code
            for entry in units
            if entry.unit.span.start_byte == unit.span.start_byte and entry.unit.qualname == unit.qualname
        )
        return next(same, None)

    return read


def start_of_text(source: bytes, analysed: AnalysedUnit) -> int:
    """The offset in a source of a unit's text.

    It starts with the indentation of its first line, unless there is other text before the unit on that line.
    """
    start, text = analysed.unit.span.start_byte, analysed.code.text
    line_start = start - len(text) + len(text.lstrip(" \t"))
    return line_start if source[line_start:start].strip() == b"" else start
