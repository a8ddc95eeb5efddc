"""The outline of a text in any language with a grammar: its functions, loops and calls, and how they nest.

Grammars differ in names only, so nodes are selected by the categories of ``syntax_counts``, and the headers of loops
are read as text. One query finds the nodes, which takes time linear in the text; a long text is outlined by its start.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from tree_sitter import Node, Query, QueryCursor

from rlm_core.source import languages
from rlm_core.source.node_categories import node_category
from rlm_core.source.parsed import ParsedSource

MAX_BYTES = 200_000
_MAX_NODES = 3_000
_MAX_DEPTH = 60
_HEADER = 300  # bytes of a header that are read
_BODY = 1_200  # bytes of a loop's body that are read for how its condition changes
_LONG_BODY = 50_000  # bytes of an unconditional loop that are read for a way out of it

LoopKind = Literal["literal", "count", "each", "halving", "search", "sqrt", "worklist", "amortised", "while", "endless"]


@dataclass(slots=True)
class Loop:
    """A loop: what bounds it, how often it runs where that is a literal, and what it contains.

    ``bound`` is the bound's or container's text without white space; ``line`` is 0-based.
    """

    kind: LoopKind
    line: int
    start: int
    end: int
    bound: str = ""
    count: float | None = None
    variables: tuple[str, ...] = ()
    parent: Loop | None = None
    header: str = ""

    @property
    def depth(self) -> int:
        """The number of loops around this one in its function, itself included."""
        depth = 0
        loop: Loop | None = self
        while loop is not None and depth < _MAX_DEPTH:
            depth, loop = depth + 1, loop.parent
        return depth


@dataclass(slots=True)
class CallSite:
    """A call: the last part of the called name, the loop and the function around it, and its arguments as written."""

    name: str
    line: int
    start: int
    loop: Loop | None
    function: Routine
    arguments: str
    receiver: str = ""


@dataclass(slots=True)
class Routine:
    """A function, method or named lambda; the text outside of all functions is one without a name."""

    name: str
    start: int
    end: int
    parameters: int = 0
    memoised: bool = False
    signature: str = ""
    line: int = 0
    loops: list[Loop] = field(default_factory=list)
    calls: list[CallSite] = field(default_factory=list)
    parent: Routine | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """All routines of a text, the top level first, in source order; ``source`` is what was outlined."""

    routines: tuple[Routine, ...]
    source: bytes
    language: str

    def loops(self) -> Iterator[Loop]:
        """All loops."""
        for routine in self.routines:
            yield from routine.loops

    def calls(self) -> Iterator[CallSite]:
        """All calls."""
        for routine in self.routines:
            yield from routine.calls


@cache
def _query(language: str) -> Query:
    grammar = languages.grammar(language)
    kinds: dict[str, set[str]] = {"loops": set(), "calls": set(), "functions": set()}
    for number in range(grammar.node_kind_count):
        kind = grammar.node_kind_for_id(number)
        if kind is None or not grammar.node_kind_is_named(number) or not grammar.node_kind_is_visible(number):
            continue
        category = "functions" if kind == "arrow_function" else node_category(kind)
        if category in kinds and kind not in ("function_declarator", "preproc_call", "function_signature_item"):
            kinds[category].add(kind)
    patterns = [
        f"[{' '.join(f'({kind})' for kind in sorted(names))}] @{name}" for name, names in kinds.items() if names
    ]
    return Query(grammar, "\n".join(patterns))


def outline(parsed: ParsedSource) -> Outline:
    """The outline of a text.

    Raises:
        SourceError: the language is unknown or is read without a grammar.
    """
    source = parsed.source[:MAX_BYTES]
    cursor = QueryCursor(_query(parsed.language))
    cursor.set_byte_range(0, MAX_BYTES)
    captures = cursor.captures(parsed.root)
    nodes: list[tuple[int, int, str, Node]] = []
    for category in ("functions", "loops", "calls"):
        # Captures come in no particular order.
        for node in sorted(captures.get(category, []), key=lambda node: node.start_byte)[:_MAX_NODES]:
            scope = node
            if node.type == "for_in_clause" and node.parent is not None:
                scope = node.parent  # a comprehension's element is before its clauses
            nodes.append((scope.start_byte, -scope.end_byte, category, node))
    nodes.sort(key=lambda entry: entry[:2])
    top = Routine("", 0, len(source))
    routines = [top]
    around: list[Routine | Loop] = []
    for start, negative_end, category, node in nodes[:_MAX_NODES]:
        end = -negative_end
        while around and around[-1].end <= start:
            around.pop()
        function: Routine = top
        loop: Loop | None = None
        for outer in reversed(around):
            if isinstance(outer, Routine):
                function = outer
                break
            loop = loop or outer
        if category == "calls":
            function.calls.append(_call(node, source, loop, function))
        elif len(around) >= _MAX_DEPTH:
            continue
        elif category == "functions":
            routine = _routine(node, source, start, end)
            if routine is None:
                continue
            routine.parent = function
            routines.append(routine)
            around.append(routine)
        else:
            entry = _loop(node, source, start, end, loop)
            function.loops.append(entry)
            around.append(entry)
    return Outline(tuple(routines), source, parsed.language)


_ASSIGNED_TO = re.compile(rb"(\w+)\s*(?::[^=;{}\n]{0,80})?:?=\s*(?:async\s*|move\s*)?\Z")
_DECLARED = re.compile(rb"([\w~]+)\s*\(")
_MEMO = re.compile(rb"@(?:functools\.)?(?:lru_)?cache")


def _routine(node: Node, source: bytes, start: int, end: int) -> Routine | None:
    """A function; None for a lambda without a name, whose body runs where it is written."""
    body = node.child_by_field_name("body")
    header = source[start : min(body.start_byte if body is not None else end, start + _HEADER)]
    name_node = node.child_by_field_name("name")
    if name_node is not None:
        name = name_node.text or b""
    elif node.child_by_field_name("declarator") is not None and "lambda" not in node.type:
        declared = _DECLARED.search(header)
        name = declared[1] if declared else b"?"
    else:
        assigned = _ASSIGNED_TO.search(source[max(start - 160, 0) : start])
        if assigned is None:
            return None
        name = assigned[1]
    opened = header.find(b"(", header.find(name) + 1 if name_node is not None else 0)
    inside = header[opened + 1 : header.rfind(b")")] if opened >= 0 else b""
    before = source[max(start - 80, 0) : start]
    memoised = bool(_MEMO.search(before.rpartition(b"\n\n")[2]))
    return Routine(
        name.decode(errors="replace"),
        start,
        end,
        inside.count(b",") + 1 if inside.strip() else 0,
        memoised,
        inside.decode(errors="replace"),
        node.start_point.row,
    )


_LAST_NAME = re.compile(rb"(\w+)\W*\Z")


def _call(node: Node, source: bytes, loop: Loop | None, function: Routine) -> CallSite:
    called = (
        node.child_by_field_name("function")
        or node.child_by_field_name("name")
        or node.child_by_field_name("type")
        or node.child_by_field_name("macro")
        or next(iter(node.named_children), None)
    )
    if called is None:
        return CallSite("", node.start_point.row, node.start_byte, loop, function, "")
    head = source[max(called.end_byte - 60, called.start_byte) : called.end_byte]
    if head.endswith(b">"):
        head = head.partition(b"<")[0]
    match = _LAST_NAME.search(head)
    name = match[1] if match else b""
    arguments = source[called.end_byte : min(node.end_byte, called.end_byte + 120)]
    receiver = source[node.start_byte : min(called.start_byte + 40, called.end_byte)]
    return CallSite(
        name.decode(errors="replace"),
        node.start_point.row,
        node.start_byte,
        loop,
        function,
        arguments.decode(errors="replace"),
        receiver.decode(errors="replace"),
    )


_SPACE = re.compile(r"\s+")
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


def _loop(node: Node, source: bytes, start: int, end: int, parent: Loop | None) -> Loop:
    body = node.child_by_field_name("body")
    header_end = min(body.start_byte if body is not None else end, node.start_byte + _HEADER)
    if node.type == "for_in_clause":
        header_end = min(node.end_byte, node.start_byte + _HEADER)
    if node.type.startswith("do"):
        condition = node.child_by_field_name("condition")
        header = b"while " + (source[condition.start_byte : condition.end_byte][:_HEADER] if condition else b"")
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
        compact = _SPACE.sub("", body)
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
    compact = _SPACE.sub("", condition)
    inner = _SPACE.sub("", body)
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
    compact, step = _SPACE.sub("", condition), _SPACE.sub("", update)
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
            loop.bound = _SPACE.sub("", first.partition("=")[2])
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
    compact = _SPACE.sub("", container)
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
        loop.count, loop.kind = value, "literal"  # Go: for i := range 10
    elif compact[:1] in "([{" and compact[-1:] in ")]}" and len(compact) < _HEADER - 20:
        items = split_arguments(compact[1:-1])
        if len(items) > 1 or re.match(r"[\[(]", compact[1:2]):
            loop.count, loop.kind = float(len(items)), "literal"
    if loop.kind == "count" and _SQRT.search(loop.bound):
        loop.kind = "sqrt"


def split_arguments(text: str) -> list[str]:
    """The parts of a text between commas outside of brackets."""
    parts, depth, last = [], 0, 0
    for place, sign in enumerate(text):
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(text[last:place])
            last = place + 1
    return [part for part in (*parts, text[last:]) if part]


_LITERAL = re.compile(
    r"-?(?:0x[0-9a-f]+|\d[\d_']*(?:\.\d+)?(?:e\d{1,3})?)(?:[ul]{1,3}|n|usize|isize|[iu](?:8|16|32|64|128))?\Z"
)
_OPERATIONS = re.compile(r"(\*\*|\*|\+|(?<=.)-|<<)")
_CAST = re.compile(r"\((?:int|long|size_t|u?int64_t|longlong)\)|\b(?:int|long)(?=\()")
# From the one that binds most.
_PRECEDENCE = (("**",), ("*",), ("+", "-"), ("<<",))


def number(text: str) -> float | None:
    """The value of a literal or of a sum, product, power or shift of literals; None for anything else."""
    text = _SPACE.sub("", text)
    if not text or len(text) > 40 or not (text[0].isdigit() or text[0] in "(-il"):
        return None
    text = _CAST.sub("", text.lower())
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    parts = _OPERATIONS.split(text)
    if not all(_LITERAL.fullmatch(part) for part in parts[::2]):
        return None
    try:
        values, operations = [_value(part) for part in parts[::2]], parts[1::2]
        for level in _PRECEDENCE:
            at = 0
            while at < len(operations):
                if operations[at] in level:
                    values[at : at + 2] = [_applied(values[at], operations.pop(at), values[at + 1])]
                else:
                    at += 1
    except (ValueError, OverflowError, TypeError):
        return None
    return values[0]


def _value(literal: str) -> float:
    if literal.startswith("0x"):
        return float(int(literal.rstrip("ul"), 16))
    digits = re.match(r"-?[\d_']+(?:\.\d+)?(?:e\d+)?", literal)
    return float(re.sub(r"[_']", "", digits[0])) if digits else 0.0


def _applied(left: float, operation: str, right: float) -> float:
    if operation == "**":
        return float(left**right)
    if operation == "<<":
        return float(left * 2.0**right)
    return left * right if operation == "*" else left - right if operation == "-" else left + right


def _kept(loop: Loop, parent: Loop, source: bytes) -> bool:
    """Whether a `while` continues where it stopped in the outer loop's last round: it never starts from a new value.

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


def routine_at(routines: tuple[Routine, ...], offset: int) -> Routine:
    """The innermost routine around a byte offset."""
    at = bisect_right([routine.start for routine in routines], offset) - 1
    routine: Routine | None = routines[max(at, 0)]
    while routine is not None and routine.end <= offset:
        routine = routine.parent
    return routine or routines[0]
