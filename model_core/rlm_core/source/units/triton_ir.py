"""Triton IR (``.ttir``): a file -> one unit for each ``tt.func public``, with the private functions that it calls."""

from __future__ import annotations

import re

from rlm_core.types import Span, Unit

_FUNCTION = re.compile(rb"tt\.func\s+(?:(public|private|nested)\s+)?@(\"[^\"\n]+\"|[\w.$-]+)")
_LOCATION = re.compile(r"[ \t]*\bloc\((?:[^()\"\n]|\"[^\"\n]*\"|\((?:[^()\"\n]|\"[^\"\n]*\")*\))*\)")
_CALL = re.compile(r"tt\.call\s+@(\"[^\"\n]+\"|[\w.$-]+)")
_STRING = re.compile(rb"\"(?:[^\"\\\n]|\\.)*\"|//[^\n]*")


def find_ttir(source: bytes) -> list[Unit]:
    """The public functions of a Triton IR text, in source order; ``text`` has no source locations."""
    found = []
    for match in _FUNCTION.finditer(source):
        end, header = _extent(source, match.end())
        text = _LOCATION.sub("", source[match.start() : end].decode("utf-8", errors="replace"))
        found.append((match, end, header, text))
    helpers = {_name(match): text for match, _, _, text in found if match[1] == b"private"}
    units = []
    for match, end, header, text in found:
        if match[1] == b"private":
            continue
        parts, queue = [text], [text]
        while queue:
            for name in _CALL.findall(queue.pop()):
                helper = helpers.get(name.strip('"'))
                if helper is not None and helper not in parts:
                    parts.append(helper)
                    queue.append(helper)
        units.append(
            Unit(
                "kernel",
                "ttir",
                _name(match),
                "\n".join(parts) + "\n",
                _span(source, match.start(), end),
                _span(source, match.start(2), match.end(2)),
                _span(source, match.start(), header),
            )
        )
    return units


def _name(match: re.Match[bytes]) -> str:
    return match[2].decode("utf-8", errors="replace").strip('"')


def _extent(source: bytes, start: int) -> tuple[int, int]:
    """Where the function behind ``start`` ends (after its last brace), and where its signature does."""
    line_end = source.find(b"\n", start)
    line_end = len(source) if line_end < 0 else line_end
    brace = source.rfind(b"{", start, line_end)
    if brace < 0:
        return line_end, line_end
    header = start + len(source[start:brace].rstrip())
    depth, at = 0, brace
    while at < len(source):
        if skipped := _STRING.match(source, at):
            at = skipped.end()
            continue
        depth += (source[at] == ord("{")) - (source[at] == ord("}"))
        at += 1
        if depth == 0:
            return at, header
    return len(source.rstrip()), header


def _span(source: bytes, start: int, end: int) -> Span:
    first, last = source.rfind(b"\n", 0, start) + 1, source.rfind(b"\n", 0, end) + 1
    start_line, end_line = source.count(b"\n", 0, start), source.count(b"\n", 0, end)
    return Span(start_line, start - first, end_line, end - last, start, end)
