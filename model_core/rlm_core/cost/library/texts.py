"""Rules for the methods of ``str``, ``bytes`` and ``bytearray``, and for ``string``, ``textwrap`` and ``re``."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..domain import object_sizes
from ..domain.folding import expanded, formatted, replaced
from ..domain.quantities import ONE, ZERO, Quantity, constant, exponential
from ..domain.values import NONE, REPEATED, UNKNOWN, Call, Value, number_of
from .patterns import pathological
from .rules import (
    BOOL,
    INT,
    SHORT,
    Attribute,
    Rule,
    applied,
    argument,
    arguments,
    bound,
    container,
    fixed,
    folded,
    lazy,
    literal,
    reading,
    receiver,
    text,
)
from .unit_costs import each, primitive, seconds

_SPECIAL = ("", *r"\.[(^$*+?{|")
_WORD = 6.0  # characters of a word with the space after it
_LINE = 40.0
_CHUNK_BYTES = 20.0  # of the words that a text is split into, for each character


def _kind(value: Value) -> str:
    return value.kind if value.kind in ("str", "bytes", "bytearray") else "str"


def _same_size(cost: str, function: Callable[..., Any] | None = None) -> Rule:
    """A method that returns a text of about the receiver's length."""

    def rule(call: Call) -> Value:
        value = receiver(call)
        size = call.length(value)
        call.spend(seconds(cost, size))
        known = folded(call, function, [value, *arguments(call)]) if function is not None else None
        return known or text(size, _kind(value))

    return rule


def _join(call: Call) -> Value:
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
    return text(characters, _kind(receiver(call)))


def _split(call: Call) -> Value:
    value, rest = receiver(call), arguments(call)
    size = call.length(value)
    known = folded(call, lambda *parts: tuple(parts[0].split(*parts[1:])), [value, *rest])
    if known is not None and known.size is not None:
        parts = known.size
        item = text(size * constant(1 / max(parts.exact or 1.0, 1.0)))
    elif len(rest) > 1:
        parts, item = constant(2.0), text(size.times(0.5))
    else:
        length = _LINE if rest and rest[0].constant == "\n" else _WORD
        parts, item = size.times(1 / length), text(constant(length - 1))
    call.spend(size.times(each("str.split")) + seconds("str.split.part", parts))
    return container("list", parts, item, grown=True, fresh=True)


def _splitlines(call: Call) -> Value:
    size = call.length(receiver(call))
    parts = size.times(1 / _LINE)
    call.spend(size.times(each("str.split")) + seconds("str.split.part", parts))
    return container("list", parts, text(constant(_LINE)), grown=True, fresh=True)


def _partition(call: Call) -> Value:
    value = receiver(call)
    size = call.length(value)
    call.spend(constant(primitive("str.partition")) + size.times(each("str.find")))
    return Value("tuple", size=constant(3.0), item=text(size.times(0.5)), bytes=size + constant(200.0))


def _ends(function: Callable[..., Any]) -> Rule:
    return fixed("str.startswith", BOOL, function)


def _format(call: Call) -> Value:
    value = receiver(call)
    parts = constant(float(len(arguments(call)) + len(call.keywords)))
    call.spend(seconds("str.format", parts))
    known = folded(call, formatted, [value, *arguments(call)])
    return known or text(call.length(value) + parts * constant(1.0, 20.0, 4.0))


def _encode(kind: str, cost: str) -> Rule:
    def rule(call: Call) -> Value:
        value = receiver(call)
        size = call.length(value)
        call.spend(seconds(cost, size))
        return replace(text(size, kind), payload=REPEATED if value.payload is REPEATED else None)

    return rule


def _padded(call: Call) -> Value:
    value, width = receiver(call), next(iter(arguments(call)), UNKNOWN)
    call.spend(primitive("str.ljust"))
    number = number_of(width)
    limits = number.constant if number is not None else None
    known = value.size.exact if value.size is not None else None
    size = constant(max(limits[1], known or 0.0)) if limits is not None else number or call.length(value)
    call.spend(seconds("concat.text", size))
    return text(size)


def _maketrans(call: Call) -> Value:
    call.spend(primitive("str.maketrans"))
    return Value("dict", size=SHORT)


def _hex(call: Call) -> Value:
    size = call.length(receiver(call)).times(2.0)
    call.spend(seconds("bytes.hex", size))
    return text(size)


def _place(size: Quantity) -> Value:
    """A place in a text or a number of places."""
    limits = size.constant
    is_shared = limits is not None and limits[2] <= object_sizes.MOST_SHARED
    return Value("int", bytes=ZERO if is_shared else INT.bytes)


_SCANNED: dict[str, tuple[str, Value | Callable[[Quantity], Value]]] = {
    **dict.fromkeys(("find", "rfind", "index", "rindex"), ("str.find", _place)),
    "count": ("str.count", _place), "isalpha": ("str.isalpha", BOOL), "isdigit": ("str.isalpha", BOOL),
    "isalnum": ("str.isalpha", BOOL), "isspace": ("str.isalpha", BOOL), "islower": ("str.isalpha", BOOL),
    "isupper": ("str.isalpha", BOOL), "isnumeric": ("str.isalpha", BOOL), "isdecimal": ("str.isalpha", BOOL),
    "istitle": ("str.isalpha", BOOL), "isascii": ("call.builtin", BOOL), "isidentifier": ("str.isalpha", BOOL),
    "isprintable": ("str.isalpha", BOOL),
}  # fmt: skip
_SAME_SIZE = {
    "upper": "str.upper", "lower": "str.upper", "title": "str.title", "capitalize": "str.upper",
    "casefold": "str.upper", "swapcase": "str.title", "strip": "str.strip", "lstrip": "str.strip",
    "rstrip": "str.strip", "replace": "str.replace", "expandtabs": "str.title",
    "removeprefix": "str.strip",
    "removesuffix": "str.strip",
}  # fmt: skip
_GROWING: dict[str, Callable[..., Any]] = {"replace": replaced, "expandtabs": expanded}
_TEXT: dict[str, Rule] = {
    **{name: reading(cost, result, getattr(str, name)) for name, (cost, result) in _SCANNED.items()},
    **{name: _same_size(cost, _GROWING.get(name) or getattr(str, name)) for name, cost in _SAME_SIZE.items()},
    "translate": _same_size("str.translate"),
    "join": _join,
    "split": _split,
    "rsplit": _split,
    "splitlines": _splitlines,
    "partition": _partition,
    "rpartition": _partition,
    "startswith": _ends(str.startswith),
    "endswith": _ends(str.endswith),
    "format": _format,
    "format_map": _format,
    "encode": _encode("bytes", "str.encode"),
    "decode": _encode("str", "str.encode"),
    "ljust": _padded,
    "rjust": _padded,
    "center": _padded,
    "zfill": _padded,
    "maketrans": _maketrans,
    "hex": _hex,
}


def _grow(call: Call) -> Value:
    call.spend(primitive("list.append.call"))
    return NONE


def _extend_bytes(call: Call) -> Value:
    value = next(iter(arguments(call)), UNKNOWN)
    call.spend(seconds("builtins.bytes.copy", call.length(value)))
    return NONE


# re.


_MOST_PATTERN = 1_000
_PART = re.compile(r"\\.|\[[^\]]*\]|[.(]|[^\\\[\]().*+?{}|^$]+")
_USUAL_PARTS = 4


@lru_cache(maxsize=256)
def _is_pathological(pattern: str) -> bool:
    return pathological(pattern)


def _pattern(value: Value) -> str | None:
    constant_text = value.constant if value.known else value.payload
    if isinstance(constant_text, bytes):
        constant_text = constant_text.decode("latin-1")
    return constant_text if isinstance(constant_text, str) else None


def _matched(call: Call, pattern: Value, subject: Value, cost: str) -> Quantity:
    """Spend what matching takes; the characters of the text."""
    size = call.length(subject)
    known = _pattern(pattern)
    if known is not None and _is_pathological(known):
        # Each character doubles the ways to split the text; a text that matches at once costs little.
        attempts = exponential(2.0, size)
        call.spend(attempts * constant(0.0, primitive("re.backtrack"), primitive("re.backtrack")))
    elif cost == "re.match":
        # A match reads what the pattern covers, a short part of a long text.
        limits = size.constant
        call.spend((_parts(known) if known is not None else _USUAL_PARTS) * primitive("re.match.part"))
        call.spend(seconds(cost, fewest_characters(size) if limits is not None else constant(1.0, 60.0, 15.0)))
    elif known is not None and known[:1] not in _SPECIAL and known[1:2] not in ("*", "?", "{") and "|" not in known:
        # The text is searched for the first characters; each place where they are costs a match.
        call.spend(seconds("re.search.text", size))
        if cost != "re.search":
            call.spend(size.times(each("re.finditer") / _WORD))
    else:
        call.spend(seconds(cost, size))
    return size


@lru_cache(maxsize=256)
def _parts(pattern: str) -> int:
    """About how many parts of a regular expression are matched one after the other."""
    return len(_PART.findall(pattern[:_MOST_PATTERN]))


def fewest_characters(size: Quantity) -> Quantity:
    """The characters that a match at the start reads, of a text of known size."""
    limits = size.constant or (0.0, 0.0, 0.0)
    return constant(min(limits[0], 1.0), limits[2], min(limits[1], 30.0))


def _matching(cost: str, result: Callable[[Quantity], Value], *, subject: int = 1, compiles: bool = True) -> Rule:
    def rule(call: Call) -> Value:
        pattern_object = bound(call)
        if pattern_object is not None:
            pattern, position = pattern_object, subject - 1
        else:
            pattern, position = argument(call, 0, "pattern"), subject
            if compiles:
                call.spend(primitive("re.cached"))
        size = _matched(call, pattern, argument(call, position, "string"), cost)
        replacement = argument(call, subject - 2 if pattern_object is not None else subject - 1, "repl")
        if cost == "re.sub" and replacement.kind in ("user-function", "function"):
            applied(call, replacement, size.times(1 / _WORD), Value("object", name="re.Match"))
        return result(size)

    return rule


def _compile(call: Call) -> Value:
    value = argument(call, 0, "pattern")
    # A pattern that was compiled before is found in a cache; in a loop that is every time but the first. One that is
    # put together from parts may be another each time.
    cached, fresh = primitive("re.cached"), primitive("re.compile")
    call.spend(constant(cached, fresh, fresh) if value.kind == "str" and not value.known else constant(cached))
    return Value("object", name="re.Pattern", payload=_pattern(value))


def _match(size: Quantity) -> Value:
    return Value("object", name="re.Match", bytes=constant(0.0, 160.0, 160.0))


def _words(size: Quantity) -> Value:
    return container("list", size.times(1 / _WORD), text(constant(_WORD - 1)), grown=True, fresh=True)


def _matches(size: Quantity) -> Value:
    return lazy(size.times(1 / _WORD), Value("object", name="re.Match"), each("re.finditer"))


_RE: dict[str, Rule] = {
    "match": _matching("re.match", _match),
    "fullmatch": _matching("re.search", _match),
    "search": _matching("re.search", _match),
    "findall": _matching("re.findall", _words),
    "finditer": _matching("re.findall", _matches),
    "split": _matching("re.findall", _words),
    "sub": _matching("re.sub", text, subject=2),
    "subn": _matching("re.sub", lambda size: Value("tuple", size=constant(2.0), item=text(size)), subject=2),
}


def _group(call: Call) -> Value:
    call.spend(primitive("re.group"))
    return text(constant(0.0, 40.0, 6.0))


def _wrap(kind: str) -> Rule:
    def rule(call: Call) -> Value:
        size = call.length(argument(call, 0, "text"))
        call.spend(seconds("textwrap.wrap", size))
        call.allocate(size.times(_CHUNK_BYTES))
        return text(size) if kind == "str" else container("list", size.times(1 / 70), text(constant(70.0)), fresh=True)

    return rule


def _lines(cost: str) -> Rule:
    def rule(call: Call) -> Value:
        size = call.length(argument(call, 0, "text"))
        call.spend(seconds(cost, size))
        return text(size)

    return rule


def _normalized(call: Call) -> Value:
    size = call.length(argument(call, 1))
    call.spend(seconds("unicodedata.normalize", size))
    return text(size)


def _sequence_matcher(call: Call) -> Value:
    left, right = call.length(argument(call, 1, "a")), call.length(argument(call, 2, "b"))
    call.spend(seconds("builtins.set", right).times(4.0))
    return Value("object", name="difflib.SequenceMatcher", size=left * right)


def _fixed_text(content: str) -> Attribute:
    return lambda value: literal(content)


FUNCTIONS: dict[str, Rule] = {
    **{f"builtins.str.{name}": rule for name, rule in _TEXT.items() if name not in ("hex", "decode")},
    **{f"re.{name}": rule for name, rule in _RE.items()},
    "re.compile": _compile,
    "re.escape": _lines("re.escape"),
    "re.purge": fixed("call.builtin", NONE),
    "textwrap.wrap": _wrap("list"),
    "textwrap.fill": _wrap("str"),
    "textwrap.dedent": _lines("textwrap.dedent"),
    "textwrap.indent": _lines("textwrap.indent"),
    "textwrap.shorten": _wrap("str"),
    "string.Template": fixed("object.init", Value("object", name="string.Template")),
    "string.capwords": _lines("str.title"),
    "html.escape": _lines("html.escape"),
    "html.unescape": _lines("html.escape"),
    "unicodedata.normalize": _normalized,
    "difflib.SequenceMatcher": _sequence_matcher,
}


def _ratio(call: Call) -> Value:
    value = receiver(call)
    call.spend(seconds("difflib.ratio", value.size or ONE))
    return Value("float")


METHODS: dict[tuple[str, str], Rule] = {
    **{("str", name): rule for name, rule in _TEXT.items() if name not in ("hex", "decode")},
    **{("bytes", name): rule for name, rule in _TEXT.items() if name not in ("format", "format_map", "encode")},
    **{("bytearray", name): _TEXT[name]
       for name in ("find", "index", "count", "replace", "split", "strip", "decode", "hex", "startswith", "endswith",
                    "join", "lower", "upper")},
    ("bytearray", "append"): _grow,
    ("bytearray", "extend"): _extend_bytes,
    ("bytearray", "pop"): fixed("list.pop", Value("int")),
    ("bytearray", "clear"): fixed("call.builtin", NONE),
    **{("re.Pattern", name): rule for name, rule in _RE.items()},
    **{("re.Match", name): _group for name in ("group", "groups", "groupdict", "expand")},
    **{("re.Match", name): fixed("re.group", INT) for name in ("start", "end", "span")},
    ("string.Template", "substitute"): fixed("string.Template", Value("str", size=SHORT)),
    ("string.Template", "safe_substitute"): fixed("string.Template", Value("str", size=SHORT)),
    ("difflib.SequenceMatcher", "ratio"): _ratio,
}  # fmt: skip
_CONSTANTS = ("ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "hexdigits", "punctuation", "printable",
              "whitespace", "octdigits")  # fmt: skip
ATTRIBUTES: dict[tuple[str, str], Attribute] = {
    ("string", name): _fixed_text(getattr(string, name)) for name in _CONSTANTS
}
