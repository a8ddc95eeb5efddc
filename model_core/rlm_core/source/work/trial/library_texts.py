"""Texts of the library that a trial run may make: formats, JSON, CSV, files in memory; with what bounds them."""

from __future__ import annotations

import base64
import csv
import datetime
import io
import json
import re
import string
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from ..values import MOST_BITS
from .values import CONTAINERS, MOST_ITEMS, SCALARS, TEXTS, WIDEST, Budget, Own, Refused, made, metered, weigh

_MOST_WRAPPED = 20_000  # characters of a text whose lines are broken
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"[A-Za-z_]\w*|\d*")
_JSON_OPTIONS = frozenset({"indent", "sort_keys", "ensure_ascii", "separators"})
_CONVERSIONS: dict[str | None, Callable[[Any], Any]] = {None: lambda value: value, "r": repr, "s": str, "a": ascii}
_WRITER, _READER = type(csv.writer(io.StringIO())), type(csv.reader([]))


def checked_text(value: Any, budget: Budget) -> Any:
    """A value that is going to be written as text, paid for.

    Raises:
        Refused: it is neither a value of Python nor an object of the program.
    """
    if type(value) not in SCALARS | TEXTS | CONTAINERS and not isinstance(value, Own):
        raise Refused
    if type(value) is int and value.bit_length() > MOST_BITS:
        raise Refused
    weigh(value, budget)
    return value


def text_of(budget: Budget, value: Any = "") -> str:
    """A value as text."""
    text = str(checked_text(value, budget))
    return str(made(text, budget))


def formatted(budget: Budget, value: Any, spec: Any = "") -> str:
    """A value in a format, whose widths are small.

    Raises:
        Refused: a width is large.
    """
    if type(spec) is not str or any(int(number) > WIDEST for number in _NUMBER.findall(spec[: WIDEST + 1])):
        raise Refused
    if len(spec) > WIDEST:
        raise Refused
    value = checked_text(value, budget)
    return format(str(value) if isinstance(value, Own) else value, spec)


def fields_filled(template: str, args: list[Any], keywords: dict[str, Any], budget: Budget) -> str:
    """``template.format(*args, **keywords)`` for fields that name an argument.

    Raises:
        Refused: a field names a part of an argument, or another field.
    """
    parts, following = [], 0
    for text, name, spec, conversion in string.Formatter().parse(template):
        parts.append(text)
        if name is None:
            continue
        if _NAME.fullmatch(name) is None or (spec and "{" in spec):
            raise Refused
        if not name:
            name, following = str(following), following + 1
        value = args[int(name)] if name.isdigit() else keywords[name]
        checked_text(value, budget)
        parts.append(formatted(budget, _CONVERSIONS[conversion](value), spec))
    return "".join(parts)


def _text_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that breaks or indents a text."""

    def call(budget: Budget, text: Any, *args: Any, **keywords: Any) -> Any:
        if type(text) is not str or len(text) > _MOST_WRAPPED:
            raise Refused
        if any(type(arg) not in (str, int, bool) for arg in (*args, *keywords.values())):
            raise Refused
        if any(type(arg) is str and len(arg) > WIDEST for arg in (*args, *keywords.values())):
            raise Refused
        budget.spend(1 + len(text))
        return function(text, *args, **keywords)

    return call


def _dumped(budget: Budget, value: Any, **options: Any) -> str:
    indent = options.get("indent")
    if options.keys() - _JSON_OPTIONS or not (indent is None or (type(indent) is int and indent <= WIDEST)):
        raise Refused
    if any(type(part) is not str or len(part) > WIDEST for part in options.get("separators") or ()):
        raise Refused
    weigh(value, budget)
    return json.dumps(value, **options)


def _loaded(budget: Budget, text: Any) -> Any:
    if type(text) not in (str, bytes):
        raise Refused
    budget.spend(len(text) // 16)
    return json.loads(text)


def _coded(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of a text or bytes that gives about as many."""

    def call(budget: Budget, data: Any) -> Any:
        if type(data) not in (str, bytes, bytearray):
            raise Refused
        weigh(data, budget)
        return function(data)

    return call


def _memory_file(budget: Budget, text: Any = "", newline: Any = None) -> io.StringIO:
    if type(text) is not str or newline not in (None, "", "\n"):
        raise Refused
    weigh(text, budget)
    return io.StringIO(text, newline)


def _on_lines(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reader of lines, or a writer of them to a file in memory."""

    def call(budget: Budget, file: Any, *args: Any, **keywords: Any) -> Any:
        for arg in (*args, *keywords.values()):
            if type(arg) not in (str, list, tuple, bool, type(None)):
                raise Refused
            weigh(arg, budget)
        if type(file) is not io.StringIO:
            file = metered(file, budget)
        return function(file, *args, **keywords)

    return call


def _parsed_time(budget: Budget, text: Any, spec: Any) -> datetime.datetime:
    if type(text) is not str or type(spec) is not str or max(len(text), len(spec)) > WIDEST:
        raise Refused
    budget.spend(10)
    return datetime.datetime.strptime(text, spec)


def _from_text(kind: Any) -> Callable[..., Any]:
    def call(budget: Budget, text: Any) -> Any:
        if type(text) is not str or len(text) > WIDEST:
            raise Refused
        return kind.fromisoformat(text)

    return call


def _translation(budget: Budget, *args: Any) -> dict[int, Any]:
    for arg in args:
        weigh(arg, budget)
    return str.maketrans(*args)


def written(receiver: Any, name: str, args: list[Any], budget: Budget) -> Any:
    """The result of a method of a file in memory, a writer or a reader, on arguments that are values.

    Raises:
        Refused: an argument is something else, or much is written at once.
    """
    args = [list(metered(arg, budget)) if isinstance(arg, Iterator) else arg for arg in args]
    for arg in args:
        if isinstance(arg, Own) or type(arg) not in SCALARS | TEXTS | CONTAINERS:
            raise Refused
        weigh(arg, budget)
        budget.spend(len(arg) if hasattr(arg, "__len__") else 1)
    if (
        type(receiver) is io.StringIO
        and max([receiver.tell(), *(arg for arg in args if type(arg) is int)]) > MOST_ITEMS
    ):
        raise Refused
    return made(getattr(receiver, name)(*args), budget)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "builtins.str": text_of,
    "builtins.format": formatted,
    "builtins.repr": lambda budget, value: repr(checked_text(value, budget)),
    "builtins.str.maketrans": _translation,
    "builtins.bytes.fromhex": _coded(bytes.fromhex),
    "csv.DictReader": _on_lines(csv.DictReader),
    "csv.DictWriter": _on_lines(csv.DictWriter),
    "csv.reader": _on_lines(csv.reader),
    "csv.writer": _on_lines(csv.writer),
    "datetime.date.fromisoformat": _from_text(datetime.date),
    "datetime.datetime.fromisoformat": _from_text(datetime.datetime),
    "datetime.datetime.strptime": _parsed_time,
    "io.StringIO": _memory_file,
    "json.dumps": _dumped,
    "json.loads": _loaded,
    "string.capwords": _text_function(string.capwords),
    **{f"textwrap.{name}": _text_function(getattr(textwrap, name)) for name in ("dedent", "fill", "indent", "wrap")},
    **{
        f"base64.{name}": _coded(getattr(base64, name))
        for name in ("b16encode", "b32encode", "b64decode", "b64encode", "urlsafe_b64decode", "urlsafe_b64encode")
    },
}
FILE_TYPES: frozenset[type] = frozenset({io.StringIO, csv.DictReader, csv.DictWriter, _WRITER, _READER})
METHODS: dict[type, str] = {
    io.StringIO: "write writelines getvalue read readline readlines seek tell truncate close",
    csv.DictWriter: "writeheader writerow writerows",
    _WRITER: "writerow writerows",
}
FIELDS: dict[type, str] = {csv.DictReader: "fieldnames"}
