"""Rules for the methods of ``str``, ``bytes`` and ``bytearray``, and for ``string``, ``textwrap`` and ``re``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from rlm_core.types import Growth

from ..domain.folding import formatted
from ..domain.quantities import ONE, ZERO, Quantity, constant, exponential, of_size
from ..domain.values import UNKNOWN, Call, Value, number_of
from .patterns.worst_case import METHODS, WorstCase, worst_case
from .rules import (
    SHORT,
    Rule,
    applied,
    argument,
    arguments,
    bound,
    container,
    folded,
    lazy,
    receiver,
    text,
    text_kind,
)
from .unit_costs import each, primitive, seconds

_SPECIAL = ("", *r"\.[(^$*+?{|")
_WORD = 6.0  # characters of a word with the space after it
_LINE = 40.0


def join(call: Call) -> Value:
    value = next(iter(arguments(call)), UNKNOWN)
    count = call.consume(value)
    item = value.item.size if value.item is not None and value.item.kind in ("str", "bytes") else None
    separator = receiver(call).size or ZERO
    characters = count * ((item if item is not None else SHORT) + separator)
    if value.kind in ("iterator", "range", "view", "dict", "set"):
        call.spend(seconds("builtins.list", count))
        call.allocate(count.times(8.0))
        if value.item is not None:
            call.allocate(value.item.bytes * count)
    call.spend(seconds("str.join", count) + characters.times(each("concat.text")))
    return text(characters, text_kind(receiver(call)))


def split(call: Call) -> Value:
    value, rest = receiver(call), arguments(call)
    size = call.length(value)
    known = folded(call, lambda *parts: tuple(parts[0].split(*parts[1:])), [value, *rest])
    if known is not None and known.size is not None:
        parts = known.size
        item = text(size * constant(1 / max(parts.exact or 1.0, 1.0)))
    elif len(rest) > 1 or "maxsplit" in call.keywords:
        parts, item = constant(2.0), text(size.times(0.5))
    else:
        length = _LINE if rest and rest[0].constant == "\n" else _WORD
        parts, item = size.times(1 / length), text(constant(length - 1))
    call.spend(size.times(each("str.split")) + seconds("str.split.part", parts))
    return container("list", parts, item, grown=True, fresh=True)


def partition(call: Call) -> Value:
    value = receiver(call)
    size = call.length(value)
    call.spend(constant(primitive("str.partition")) + size.times(each("str.find")))
    return Value("tuple", size=constant(3.0), item=text(size.times(0.5)), bytes=size + constant(200.0))


def format_method(call: Call) -> Value:
    value = receiver(call)
    parts = constant(float(len(arguments(call)) + len(call.keywords)))
    call.spend(seconds("str.format", parts))
    known = folded(call, formatted, [value, *arguments(call)])
    return known or text(call.length(value) + parts * constant(1.0, 20.0, 4.0))


def encode(kind: str) -> Rule:
    def rule(call: Call) -> Value:
        value = receiver(call)
        size = call.length(value)
        call.spend(seconds("str.encode", size))
        return text(size, kind)

    return rule


def padded(call: Call) -> Value:
    value, width = receiver(call), next(iter(arguments(call)), UNKNOWN)
    call.spend(primitive("str.ljust"))
    number = number_of(width)
    limits = number.constant if number is not None else None
    known = value.size.exact if value.size is not None else None
    size = constant(max(limits[1], known or 0.0)) if limits is not None else number or call.length(value)
    call.spend(seconds("concat.text", size))
    return text(size, text_kind(value))


# re.


_MOST_PATTERN = 1_000
_PART = re.compile(r"\\.|\[[^\]]*\]|[.(]|[^\\\[\]().*+?{}|^$]+")
_USUAL_PARTS = 4


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The text of a pattern, and its flags as far as they are known."""

    text: str | bytes
    flags: int | None

    @property
    def characters(self) -> str:
        """The text as characters."""
        return self.text if isinstance(self.text, str) else self.text.decode("latin-1")


@lru_cache(maxsize=256)
def _worst_case(pattern: _Pattern, method: str) -> WorstCase | None:
    return worst_case(pattern.text, method, pattern.flags) if pattern.flags is not None else None


def _pattern(value: Value, flags: Value) -> _Pattern | None:
    if isinstance(value.payload, _Pattern):
        return value.payload
    if not value.known or not isinstance(value.constant, str | bytes):
        return None
    given = 0 if flags is UNKNOWN else flags.constant if flags.known else None
    return _Pattern(value.constant, given if isinstance(given, int) else None)


def _matched(call: Call, pattern: _Pattern | None, subject: Value, method: str) -> Quantity:
    """Spend what matching takes; the characters of the text."""
    size, cost = call.length(subject), _MATCHING[method][0]
    known = pattern.characters if pattern is not None else None
    worst = _worst_case(pattern, method if method in METHODS else "findall") if pattern is not None else None
    if worst is not None and known is not None and size.exact is None:
        attempts = exponential(2.0, size) if worst.is_exponential else math.prod([size] * int(worst.degree), start=ONE)
        growth = Growth("", base=2.0, degree=0.0) if worst.is_exponential else Growth("", worst.degree)
        call.note_worst_case(known, attempts.times(primitive("re.backtrack")), growth)
    seen = constant(0.0, 1.0, 1.0) if cost == "re.search" else ONE  # the first match ends a search
    if worst is not None and worst.is_exponential and size.exact is not None:
        # Each character of a text that is known doubles the ways to split it, unless it matches at once.
        attempts = exponential(2.0, size)
        call.spend(attempts * constant(0.0, primitive("re.backtrack"), primitive("re.backtrack")))
    elif cost == "re.match" or (known is not None and known.startswith(("^", "\\A"))):
        # A match reads what the pattern covers, a short part of a long text.
        limits = size.constant
        call.spend((_parts(known) if known is not None else _USUAL_PARTS) * primitive("re.match.part"))
        call.spend(seconds("re.match", fewest_characters(size) if limits is not None else constant(1.0, 60.0, 15.0)))
    elif known is not None and known[:1] not in _SPECIAL and known[1:2] not in ("*", "?", "{") and "|" not in known:
        # The text is searched for the first characters; each place where they are costs a match.
        call.spend(seconds("re.search.text", size) * seen)
        if cost != "re.search":
            call.spend(size.times(each("re.finditer") / _WORD))
    else:
        call.spend(seconds(cost, size) * seen)
    return size


@lru_cache(maxsize=256)
def _parts(pattern: str) -> int:
    """About how many parts of a regular expression are matched one after the other."""
    return len(_PART.findall(pattern[:_MOST_PATTERN]))


def fewest_characters(size: Quantity) -> Quantity:
    """The characters that a match at the start reads, of a text of known size."""
    limits = size.constant or (0.0, 0.0, 0.0)
    return constant(min(limits[0], 1.0), limits[2], min(limits[1], 30.0))


def matching(name: str) -> Rule:
    """A function of ``re`` or the method of that name of a pattern."""
    method = name.rpartition(".")[2]
    cost, result = _MATCHING[method]
    subject = 2 if cost == "re.sub" else 1
    flags = {"sub": 4, "subn": 4, "split": 3}.get(method, 2)

    def rule(call: Call) -> Value:
        pattern_object = bound(call)
        if pattern_object is not None:
            pattern, position = _pattern(pattern_object, UNKNOWN), subject - 1
        else:
            pattern, position = _pattern(argument(call, 0, "pattern"), argument(call, flags, "flags")), subject
            call.spend(primitive("re.cached"))
        size = _matched(call, pattern, argument(call, position, "string"), method)
        replacement = argument(call, subject - 2 if pattern_object is not None else subject - 1, "repl")
        if cost == "re.sub" and replacement.kind in ("user-function", "function"):
            applied(call, replacement, size.times(1 / _WORD), Value("object", name="re.Match"))
        return result(size)

    return rule


def compile_pattern(call: Call) -> Value:
    value = argument(call, 0, "pattern")
    # A pattern that was compiled before is found in a cache; in a loop that is every time but the first. An item of an
    # input, or one that is put together from parts, may be another each time.
    cached, fresh = primitive("re.cached"), primitive("re.compile")
    if value.kind == "str" and not value.known:
        call.spend(constant(cached, cached if _is_input(value) else fresh, fresh))
    else:
        call.spend(constant(cached))
    return Value("object", name="re.Pattern", payload=_pattern(value, argument(call, 1, "flags")))


def _is_input(value: Value) -> bool:
    """Return whether a text is an argument as it is."""
    names = value.size.names if value.size is not None else ()
    return len(names) == 1 and value.size == of_size(next(iter(names)))


def _match(size: Quantity) -> Value:
    return Value("object", name="re.Match", bytes=constant(0.0, 160.0, 160.0), optional=True)


def _words(size: Quantity) -> Value:
    return container("list", size.times(1 / _WORD), text(constant(_WORD - 1)), grown=True, fresh=True)


def _matches(size: Quantity) -> Value:
    return lazy(size.times(1 / _WORD), Value("object", name="re.Match"), each("re.finditer"))


_MATCHING: dict[str, tuple[str, Callable[[Quantity], Value]]] = {
    "match": ("re.match", _match),
    "fullmatch": ("re.search", _match),
    "search": ("re.search", _match),
    "findall": ("re.findall", _words),
    "finditer": ("re.findall", _matches),
    "split": ("re.findall", _words),
    "sub": ("re.sub", text),
    "subn": ("re.sub", lambda size: Value("tuple", size=constant(2.0), item=text(size))),
}
