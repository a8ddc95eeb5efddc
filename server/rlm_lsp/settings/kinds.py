"""The kinds of value that a setting may have: how each is read from JSON, TOML or a variable, and its JSON schema.

A reader passes each problem, as the end of a sentence about the setting, to ``report`` and returns the usable part of
the value, None when there is none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value.

    ``words`` describe it to people; ``table`` marks values that are joined with those of other sources by entry.
    """

    words: str
    schema: Mapping[str, Any]
    read: Callable[[Any, Report], Any]
    parse: Callable[[str], Any]
    table: bool = False


def switch() -> Kind:
    """True or false."""

    def parse(text: str) -> Any:
        return {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}.get(text.lower(), text)

    return _simple("`true` or `false`", {"type": "boolean"}, lambda value: isinstance(value, bool), parse)


def integer(low: int, high: int) -> Kind:
    """A whole number."""
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return _simple(
        f"an integer from {low} to {high}",
        schema,
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
        _number,
    )


def number(low: float, high: float) -> Kind:
    """A number."""
    return _simple(
        f"a number from {low:g} to {high:g}",
        {"type": "number", "minimum": low, "maximum": high},
        lambda value: _is_number(value) and low <= value <= high,
        _number,
    )


def text() -> Kind:
    """Any text."""
    schema = {"type": "string", "minLength": 1}
    return _simple("a non-empty string", schema, lambda value: isinstance(value, str) and bool(value), str)


def checked_text(words: str, read_text: Callable[[Any], Any]) -> Kind:
    """A text that ``read_text`` turns into the value; it raises ValueError with the end of a sentence for others."""

    def read(value: Any, report: Report) -> Any:
        try:
            return read_text(value)
        except ValueError as error:
            report(str(error))
            return None

    return Kind(words, {"type": "string", "minLength": 1}, read, str)


def choice(*known: str) -> Kind:
    """One of a few words."""
    words = f"one of {', '.join(known)}"
    return _simple(words, {"type": "string", "enum": list(known)}, lambda value: value in known, str)


def names(known: Sequence[str]) -> Kind:
    """A list of known names."""
    items = {"type": "string", "enum": list(known)}
    return _listed(f"a list of {', '.join(known)}", items, lambda item: item in known)


def texts() -> Kind:
    """A list of any names."""
    items = {"type": "string", "minLength": 1}
    return _listed("a list of names", items, lambda item: isinstance(item, str) and bool(item))


def checked_texts(what: str, check: Callable[[str], Any]) -> Kind:
    """A list of texts that ``check`` accepts; it raises ValueError with the end of a sentence for others."""
    words, schema = f"a list of {what}", {"type": "array", "items": {"type": "string", "minLength": 1}}

    def read(value: Any, report: Report) -> Any:
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
            report(f"must be {words}")
            return None
        kept = []
        for item in dict.fromkeys(value):
            try:
                check(item)
            except ValueError as error:
                report(f"holds `{item}`, which {error}")
            else:
                kept.append(item)
        return tuple(kept) if kept or not value else None

    return Kind(words, schema, read, _list)


def table(what: str, known: Sequence[str], values: Mapping[str, Any], read_entry: Callable[[str, Any], Any]) -> Kind:
    """A table with one entry per name (``known``: only these names); ``values`` is the schema of an entry.

    ``read_entry`` takes name and value and raises ValueError with the end of a sentence about the entry.
    """
    schema: dict[str, Any] = {"type": "object"}
    if known:
        schema |= {"properties": {name: dict(values) for name in known}, "additionalProperties": False}
    else:
        schema |= {"additionalProperties": dict(values)}

    def read(value: Any, report: Report) -> Any:
        if not isinstance(value, Mapping):
            report(f"must be {what}")
            return None
        kept = {}
        for name, entry in value.items():
            if entry is None:
                continue
            if known and name not in known:
                report(f"has no entry `{name}`; its entries are {', '.join(known)}")
                continue
            try:
                kept[str(name)] = read_entry(str(name), entry)
            except ValueError as error:
                report(f"entry `{name}` {error}")
        return kept

    def parse(text: str) -> Any:
        if text.lstrip().startswith("{"):
            return _json(text)
        entries = [entry.partition("=") for entry in text.split(";") if entry.strip()]
        return {name.strip(): _number(value.strip()) for name, _, value in entries}

    return Kind(what, schema, read, parse, table=True)


def _simple(words: str, schema: Mapping[str, Any], admits: Callable[[Any], bool], parse: Callable[[str], Any]) -> Kind:
    def read(value: Any, report: Report) -> Any:
        if admits(value):
            return value
        report(f"must be {words}")
        return None

    return Kind(words, schema, read, parse)


def _listed(words: str, items: Mapping[str, Any], admits: Callable[[Any], bool]) -> Kind:
    def read(value: Any, report: Report) -> Any:
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) and admits(item) for item in value):
            report(f"must be {words}")
            return None
        return tuple(dict.fromkeys(value))

    return Kind(words, {"type": "array", "items": dict(items)}, read, _list)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _list(text: str) -> Any:
    if text.lstrip().startswith("["):
        return _json(text)
    return [item.strip() for item in text.split(",") if item.strip()]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
