"""Makes texts longer so that they stay what they are: JSON, markup, paths, numbers, lines, lists, identifiers.

Which of its forms matters is not visible in a text, so there are several ways to grow it; the caller tries them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

Way = Callable[[int], Any]
"""From a factor to a value that is about so many times as large, and shares nothing with the original."""

_MARKUP = re.compile(r"(\s*(?:<[?!][^>]*>\s*)*<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>)(.+)(</\2>\s*)\Z", re.DOTALL)
_NUMBER = re.compile(r"\s*[+-]?\d+\s*\Z")
_FRACTION = re.compile(r"\s*[+-]?\d*\.\d+\s*\Z")
_DATE = re.compile(r"\d{2,4}[-/.:]\d\d?(?:[-/.:T ]\d\d?)*")
_PATH = re.compile(r"((?:[A-Za-z][\w+.-]*:)?/{0,3})([^\s?#]*/[^\s?#]*)(.*)\Z", re.DOTALL)
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"), ('"', '"'), ("'", "'"))
_SEPARATORS = ("\n", ", ", ",", "; ", ";", " | ", "|", "\t", " ", " + ", "+", "&", ".", "/", ":", "-", "_")


def text_ways(text: str, value_ways: Callable[[Any], Iterator[Way]]) -> Iterator[Way]:
    """The ways to grow a text, the one that keeps most of its form first; ``value_ways`` grows what JSON holds."""
    if not text or _DATE.fullmatch(text):
        return
    yield from _json_ways(text, value_ways)
    if markup := _MARKUP.match(text):
        before, _, inner, after = markup.groups()
        yield partial(_repeated_inside, before, inner, after, "")
    if _NUMBER.match(text) or _FRACTION.match(text):
        yield partial(_more_digits, text)
        return
    if "\n" in text:
        yield partial(_more_lines, text)
    elif path := _PATH.match(text):
        yield partial(_longer_path, path[1], path[2], path[3])
    yield from _bracket_ways(text)
    if "\n" not in text:
        for separator in _SEPARATORS:
            if separator in text.strip():
                yield partial(_repeated_inside, "", text, "", separator)
                break
    yield partial(_repeated_inside, "", text, "", "")


def bytes_ways(data: bytes | bytearray, value_ways: Callable[[Any], Iterator[Way]]) -> Iterator[Way]:
    """The ways to grow bytes: those of their text if they are text, then as they are."""
    make = type(data)
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        text = ""
    if text and all(letter.isprintable() or letter in "\n\r\t" for letter in text):
        for way in text_ways(text, value_ways):
            yield partial(_grown_bytes, make, way)
    elif data:
        yield lambda factor: make(data * factor)


def _grown_bytes(make: type[bytes | bytearray], way: Way, factor: int) -> bytes | bytearray:
    return make(way(factor).encode("ascii"))


def _repeated_inside(before: str, inner: str, after: str, separator: str, factor: int) -> str:
    return before + separator.join([inner] * factor) + after


def distinct_texts(texts: list[str], count: int) -> list[str]:
    """Texts like the given ones, all distinct if those are, in order if those are; the first are the given ones."""
    number = len(texts)
    if len(set(texts)) < number or not number:
        return [texts[index % number] for index in range(count)]
    if number > 1 and all(len(text) == 1 for text in texts):
        return _letters(texts, count)
    known = set(texts)
    grown = list(texts)
    for index in range(number, count):
        copy, base = divmod(index, number)
        text = _with_number(texts[base], copy)
        while text in known:
            copy += count
            text = _with_number(texts[base], copy)
        known.add(text)
        grown.append(text)
    if number > 1 and texts == sorted(texts):
        grown.sort()
    return grown


def _letters(texts: list[str], count: int) -> list[str]:
    """More single characters, first those that follow in the alphabet."""
    grown, known = list(texts), set(texts)
    code = ord(max(texts))
    while len(grown) < count:
        code += 1
        if chr(code).isalnum() == texts[0].isalnum() and chr(code) not in known and chr(code).isprintable():
            grown.append(chr(code))
        if code > 0x1FFFF:
            raise ValueError("no further letters")
    return grown


def _with_number(text: str, number: int) -> str:
    """A variant of a text: its last number larger, or a number after its last word."""
    runs = list(re.finditer(r"\d+", text))
    if runs:
        start, end = runs[-1].span()
        digits = text[start:end]
        return f"{text[:start]}{int(digits) + number * 10 ** min(len(digits), 3):0{len(digits)}d}{text[end:]}"
    words = list(re.finditer(r"\w+", text))
    if not words:
        return f"{text}{number}"
    # The name of a file, not its suffix.
    word = words[-2] if len(words) > 1 and text[words[-1].start() - 1] == "." and len(words[-1][0]) < 5 else words[-1]
    return f"{text[: word.end()]}{number}{text[word.end() :]}"


def _json_ways(text: str, value_ways: Callable[[Any], Iterator[Way]]) -> Iterator[Way]:
    if text.strip()[:1] not in ("{", "["):
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    indent = re.search(r"[\[{]\n( +)\S", text)
    options: dict[str, Any] = {"indent": len(indent[1])} if indent else {}
    if not indent and re.search(r'[,:]["\d\[{]', text) and not re.search(r'[,:] ["\d\[{]', text):
        options["separators"] = (",", ":")
    for way in value_ways(value):
        yield partial(_grown_json, way, options, text.isascii())


def _grown_json(way: Way, options: dict[str, Any], ascii_only: bool, factor: int) -> str:
    return json.dumps(way(factor), ensure_ascii=ascii_only, **options)


def _more_digits(text: str, factor: int) -> str:
    digits = re.search(r"\d+\s*\Z", text)
    assert digits is not None
    run = digits[0].rstrip()
    return text[: digits.start()] + run * factor + digits[0][len(run) :]


def _more_lines(text: str, factor: int) -> str:
    gap = "" if text.endswith("\n") else "\n"
    whole = (text + gap) * factor
    return whole[: len(whole) - len(gap)]


def _longer_path(root: str, path: str, rest: str, factor: int) -> str:
    folders, _, name = path.rpartition("/")
    return f"{root}{'/'.join([folders] * factor)}/{name}{rest}" if folders else root + "/".join([path] * factor) + rest


def _bracket_ways(text: str) -> Iterator[Way]:
    """Repeat what is between a pair of brackets or quotes that encloses the text, or is the first in it."""
    for left, right in _BRACKETS:
        start, end = text.find(left), text.rfind(right)
        inner = text[start + 1 : end]
        if start < 0 or end <= start or not inner.strip():
            continue
        if start == 0 or (end == len(text) - 1 and text[:start].isidentifier()):
            joint = next(
                (separator for separator in _SEPARATORS[1:5] if separator in inner), " " if " " in inner else ""
            )
            yield partial(_repeated_inside, text[: start + 1], inner, text[end:], joint)
            return
