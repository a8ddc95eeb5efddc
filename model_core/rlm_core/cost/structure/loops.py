"""How often a loop runs, from its header and body as text."""

from __future__ import annotations

import re

from tree_sitter import Node

from .literals import SPACE, number, split_arguments
from .parts import Loop

HEADER = 300  # bytes of a header that are read
_BODY = 1_200  # bytes of a loop's body that are read for how its condition changes
_LONG_BODY = 50_000  # bytes of an unconditional loop that are read for a way out of it
_NUMBER = r"(\d[\d_]*(?:e\d+)?|0x[0-9a-f]+)"
_RANGE_ARGUMENTS = re.compile(r"\bx?range\((.*)\)", re.DOTALL)
_HALVES = re.compile(
    # Names start at a word's start, so that a long word is read once.
    r"\b(\w+)(?:/=|//=|>>=|\*=|<<=)|\b(\w+)=\(?\2(?:/|//|>>|\*|<<)[2-9(]|\b(\w+)&=\3?\(?\w*-1|\b(\w+)=math\.floor\(\4/|"
    r"\b(\w+)-=\5&|\b(\w+)\+=\6&-|\b(\w+)=~*\7/\d"
)
_MIDDLE = re.compile(
    r"\((\w+)\+(\w+)(?:\+1)?\)(?:/|>>)|(\w+)\+\(?\((\w+)-(\w+)(?:\+1)?\)(?:/|>>)|\(\w+-\w+\)/2|>>>?1|mid"
)
_SQRT = re.compile(r"(\w+)\*\1<|sqrt|\*\*0?\.5|<=?\w+/\w+\Z|isqrt")
_DRAIN = re.compile(
    r"!(\w+)\.(?:is_?)?empty\(\)|(\w+)\.(?:size|length|count|len)\b\(?\)?(?:>0|!=0|>=1)?\Z|len\((\w+)\)(?:>0|!=0)?\Z|"
    r"\A(?:not)?(\w+)\Z|whilelet",
    re.IGNORECASE,
)
_NAMES = re.compile(r"[A-Za-z_]\w*")
_WORDS = frozenset((
    "for", "while", "let", "mut", "var", "int", "long", "size_t", "auto", "const", "in", "of", "range", "and", "or",
    "not", "true", "false", "length", "size", "len", "count", "is_empty", "empty", "isempty", "unsigned", "double",
    "foreach",
))  # fmt: skip


def read_loop(node: Node, source: bytes, start: int, end: int, parent: Loop | None) -> Loop:
    """The loop of a node that reaches from byte ``start`` to ``end`` of the source, inside the loop ``parent``."""
    body = node.child_by_field_name("body")
    header_end = min(body.start_byte if body is not None else end, node.start_byte + HEADER)
    if node.type == "for_in_clause":
        header_end = min(node.end_byte, node.start_byte + HEADER)
    if node.type.startswith("do"):
        condition = node.child_by_field_name("condition")
        header = b"while " + (source[condition.start_byte : condition.end_byte][:HEADER] if condition else b"")
    else:
        header = source[node.start_byte : header_end]
    text = header.decode(errors="replace")
    inner = (
        source[header_end : min(end, header_end + _BODY)].decode(errors="replace")
        if node.type != "for_in_clause"
        else ""
    )
    loop = Loop("while", node.start_point.row, start, end, parent=parent, header=text)
    _classify(loop, text, inner, source[header_end : min(end, header_end + _LONG_BODY)])
    may_continue = loop.kind in ("while", "worklist", "search", "count") and "while" in text[:8]
    if may_continue and parent is not None and _kept(loop, parent, source):
        loop.kind = "amortised"
    return loop


_LEAVES = re.compile(rb"\b(?:break|return|throw|raise|panic|exit|yield|goto|abort|Fatal\w*)\b|\?[;.)]")


def _classify(loop: Loop, text: str, body: str, rest: bytes) -> None:
    """Set the kind, the bound and, where it is literal, the count of a loop from its header and its body."""
    words = text.strip().rstrip("{:").strip()
    if words.startswith(("async ", "'")):
        words = words.split(None, 1)[-1]
    if words in (
        "loop",
        "while True",
        "while 1",
        "for",
        "while (true)",
        "while(true)",
        "while true",
        "for (;;)",
        "for(;;)",
        "while (1)",
        "while(1)",
    ):
        compact = SPACE.sub("", body)
        loop.kind = "halving" if _HALVES.search(compact) else "while"
        if not _LEAVES.search(rest):
            loop.kind = "endless"
        return
    keyword, _, clause = (
        words.partition(" ")
        if not words.startswith(("for(", "while(", "foreach("))
        else (words.partition("(")[0], "", "(" + words.partition("(")[2])
    )
    clause = clause.strip()
    if clause.startswith("(") and clause.endswith(")"):
        clause = clause[1:-1]
    if keyword == "while" or (
        keyword == "for" and ";" not in clause and not re.search(r"\b(?:in|of|range)\b|:|\.\.", clause)
    ):
        _while(loop, clause, body)
    elif ";" in clause:
        _counted(loop, clause, body)
    else:
        _each(loop, clause)


def _while(loop: Loop, condition: str, body: str) -> None:
    compact = SPACE.sub("", condition)
    inner = SPACE.sub("", body)
    loop.bound = compact
    loop.variables = tuple(dict.fromkeys(name for name in _NAMES.findall(condition) if name.lower() not in _WORDS))
    changed = {name for groups in _HALVES.findall(inner) for name in groups if name}
    if changed & set(loop.variables):
        loop.kind = "halving"
    elif _SQRT.search(compact) and "*" in compact:
        loop.kind = "sqrt"
    elif re.search(r"<|>|!=", compact) and len(loop.variables) <= 3 and _MIDDLE.search(inner[:200]):
        loop.kind = "search"
    elif _DRAIN.search(compact):
        loop.kind = "worklist"


_CONDITION = re.compile(r"(.+?)(<=|>=|<|>|!=)(.+)")


def _counted(loop: Loop, rest: str, body: str) -> None:
    parts = rest.split(";")
    first, condition, update = [*parts, "", ""][:3]
    compact, step = SPACE.sub("", condition), SPACE.sub("", update)
    names = _NAMES.findall(first)
    loop.variables = tuple(name for name in names if name.lower() not in _WORDS)[:3]
    loop.bound, loop.kind = compact, "count"
    match = _CONDITION.match(compact)
    start = re.search(r"=\s*" + _NUMBER, first)
    if _HALVES.search(step):
        loop.kind = "halving"
    elif _SQRT.search(compact):
        loop.kind = "sqrt"
    elif match:
        loop.bound = match[3]
        end = number(match[3])
        if end is None and match[2] in (">", ">="):
            loop.bound = SPACE.sub("", first.partition("=")[2])
        begin = number(start[1]) if start else None
        if end is not None and begin is not None and match[2] in ("<", "<=", "!="):
            amount = re.search(r"\+=(\d+)\Z", step)
            loop.count = max(
                (end - begin + (match[2] == "<=")) / (float(amount[1]) if amount and float(amount[1]) else 1.0), 0.0
            )
            loop.kind = "literal"
        elif end is not None and begin is not None:
            loop.count, loop.kind = max(begin - end + (match[2] == ">="), 0.0), "literal"
        elif end is not None and match[2] in ("<", "<=", "!="):
            loop.bound = first


def _each(loop: Loop, rest: str) -> None:
    loop.kind = "each"
    separator = re.search(r"\bin\b|\bof\b|:?=\s*range\b|\brange\b|(?<!:):(?!:)|\bas\b", rest)
    target, container = (rest[: separator.start()], rest[separator.end() :]) if separator else ("", rest)
    loop.variables = tuple(name for name in _NAMES.findall(target) if name.lower() not in _WORDS)
    compact = SPACE.sub("", container)
    loop.bound = compact
    range_call = _RANGE_ARGUMENTS.match(compact)
    arguments = split_arguments(range_call[1]) if range_call else []
    dots = re.match(r"\(?(.*?)\.\.=?(.*?)\)?(?:\.rev\(\)|\.step_by\((\d+)\))?\Z", compact)
    if arguments:
        values = [number(argument) for argument in arguments]
        loop.kind = "count"
        loop.bound = arguments[1] if len(arguments) > 1 else arguments[0]
        if len(arguments) > 1 and number(arguments[1]) is not None:
            loop.bound = arguments[0]
        if all(value is not None for value in values):
            span = [value for value in values if value is not None]
            low, high, step = (
                (0.0, span[0], 1.0) if len(span) == 1 else (span[0], span[1], span[2] if len(span) > 2 else 1.0)
            )
            loop.count, loop.kind = max((high - low) / (step or 1.0), 0.0), "literal"
    elif dots:
        first, last = number(dots[1] or "0"), number(dots[2])
        loop.kind, loop.bound = "count", dots[2] if last is None else dots[1]
        if first is not None and last is not None:
            every = float(dots[3] or 1) or 1.0
            loop.count, loop.kind = max(last - first + ("..=" in compact), 0.0) / every, "literal"
    elif (value := number(compact)) is not None:
        loop.count, loop.kind = max(value, 0.0), "literal"  # Go: for i := range 10
    elif compact[:1] in "([{" and compact[-1:] in ")]}" and len(compact) < HEADER - 20:
        items = split_arguments(compact[1:-1])
        if len(items) > 1 or re.match(r"[\[(]", compact[1:2]):
            loop.count, loop.kind = float(len(items)), "literal"
    if loop.kind == "count" and _SQRT.search(loop.bound):
        loop.kind = "sqrt"


def _kept(loop: Loop, parent: Loop, source: bytes) -> bool:
    """Return whether a `while` continues where it stopped in the outer loop's last round, never from a new value.

    Then all its rounds together are bounded by the outer bound, as in a sliding window or a monotone stack.
    """
    before = source[max(parent.start, loop.start - _BODY) : loop.start].decode(errors="replace")
    names = [name for name in loop.variables if name not in parent.variables][:6]
    if not names:
        return False
    restarted = [
        name
        for name in names
        if re.search(
            rf"(?<![\w.]){re.escape(name)}\b\s*(?::[^=\n]{{0,30}})?:?=(?!=)|[,(]\s*{re.escape(name)}\b[^=\n;]{{0,30}}=(?!=)",
            before,
        )
    ]
    return not restarted
