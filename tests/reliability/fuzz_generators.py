"""Hostile inputs with structure: JSON, lines and protobuf messages that are nearly right.

Each generator takes a ``random.Random`` and starts from documents that are right; the same seed gives the same inputs.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

Json = Any
_NUMBERS = (0, -1, 1, 0.5, -0.0, 1e-320, 1e308, -1e308, 2**31, 2**63, 2**64, -(2**63) - 1, 10**40, 10**400)
_TEXTS = (
    "",
    " ",
    "x",
    "0",
    "\0",
    "../../etc/passwd",
    "/dev/zero",
    "NaN",
    "a\nb",
    "\ud800",
    "\u202e",
    "\x1b[2J",
    "\U0001f600",
    "call",
    "latency",
    "*" * 40,
    "y" * 2_000,
)
# Written in place of a number: what json.loads takes for one, or almost.
_RAW_NUMBERS = (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5_000, b"-", b"00", b"1E400", b"0x1", b"+1")
_RAW = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b":",
    b"\r",
    b"\n",
)


def value(rng: random.Random, depth: int = 0) -> Json:
    """Any JSON value."""
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return None
    if kind == 1:
        return rng.random() < 0.5
    if kind in (2, 3):
        return rng.choice(_NUMBERS) if rng.random() < 0.7 else rng.uniform(-1e3, 1e3)
    if kind in (4, 5):
        return rng.choice(_TEXTS)
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(_TEXTS): value(rng, depth + 1) for _ in range(rng.randrange(4))}


def json_bytes(rng: random.Random, seeds: Sequence[Json]) -> bytes:
    """A JSON document with a few changed values, or with broken bytes."""
    document = copy.deepcopy(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        document = changed(rng, document)
    return broken(rng, dumps(document), 0.15)


def dumps(document: Json) -> bytes:
    """JSON, with lone surrogates and numbers of any size as they are."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def changed(rng: random.Random, document: Json) -> Json:
    """The document with one value, at any depth, replaced, removed, repeated or put elsewhere."""
    path = _path(rng, document)
    if not path:
        return value(rng)
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    key = path[-1]
    action = rng.randrange(8)
    if action < 4:
        parent[key] = value(rng)
    elif action == 4:
        del parent[key]
    elif action == 5 and isinstance(parent, dict):
        parent[rng.choice(_TEXTS)] = parent[key]
    elif action == 5:
        parent[key:key] = [parent[key]] * rng.choice((1, 3, 100))
    elif action == 6:
        deep: Json = parent[key]
        for _ in range(rng.choice((1, 5, 300))):
            deep = [deep] if rng.random() < 0.5 else {"x": deep}
        parent[key] = deep
    else:
        other = _at(document, _path(rng, document))
        # Values that take no other place's shape stay small: a part put into itself would grow for ever.
        parent[key] = copy.deepcopy(other) if not isinstance(other, dict | list) or len(other) < 5 else len(other)
    return document


def _path(rng: random.Random, document: Json) -> list[Any]:
    path: list[Any] = []
    while isinstance(document, dict | list) and document and (not path or rng.random() < 0.8):
        key = rng.choice(list(document)) if isinstance(document, dict) else rng.randrange(len(document))
        path.append(key)
        document = document[key]
    return path


def _at(document: Json, path: Sequence[Any]) -> Json:
    for key in path:
        document = document[key]
    return document


def broken(rng: random.Random, data: bytes, probability: float) -> bytes:
    """The bytes, with ``probability`` cut, overwritten, repeated or with a number that is none."""
    if rng.random() >= probability:
        return data
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((0, 1, 1, 4, 50)))
    action = rng.randrange(5)
    if action == 0:
        return data[:at]
    if action == 1:
        return data[:at] + rng.choice(_RAW) + data[end:]
    if action == 2:
        return data[:at] + data[at:end] * rng.choice((2, 3, 100)) + data[end:]
    if action == 3:
        return data[:at] + rng.choice(_RAW_NUMBERS) + data[end:]
    return data[:at] + rng.randbytes(end - at) + data[end:]


def lines(rng: random.Random, words: Sequence[str], seeds: Sequence[str]) -> str:
    """A text of ``words``, or a right text with words inserted, removed and repeated."""
    text = rng.choice(seeds) if seeds and rng.random() < 0.7 else ""
    for _ in range(rng.choice((1, 2, 3, 8))):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((0, 0, 1, 3, 20)))
        inserted = rng.choice(words) * rng.choice((1, 1, 1, 1, 2, 200))
        text = text[:at] + inserted + text[end:]
    return text


def proto_bytes(rng: random.Random, seeds: Sequence[Any]) -> bytes:
    """A protobuf message with a few changed fields, or with broken bytes."""
    message = copy.deepcopy(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 4))):
        _change_field(rng, message)
    return broken(rng, message.SerializeToString(), 0.25)


def _change_field(rng: random.Random, message: Any) -> None:
    """Change a field of a message or of one inside it."""
    while True:
        present = message.ListFields()
        fields = list(message.DESCRIPTOR.fields) if rng.random() < 0.2 or not present else [f for f, _ in present]
        field = rng.choice(fields)
        content = getattr(message, field.name)
        repeated = hasattr(content, "append") or hasattr(content, "add")
        if field.message_type is None:
            break
        if repeated and content and rng.random() < 0.2:
            if rng.random() < 0.5:
                del content[rng.randrange(len(content))]
            else:
                content.add().CopyFrom(rng.choice(list(content)))
            return
        if repeated and not content:
            content.add()
        if not repeated and not message.HasField(field.name):
            content.SetInParent()
        message = rng.choice(list(content)) if repeated else content
    make: dict[int, Callable[[], Any]] = {
        field.CPPTYPE_INT64: lambda: rng.choice((0, 1, -1, 2, 3, 2**31, 2**62, 2**63 - 1, -(2**63))),
        field.CPPTYPE_INT32: lambda: rng.choice((0, 1, -1, 2, 7, 11, 99, 2**31 - 1)),
        field.CPPTYPE_UINT64: lambda: rng.choice((0, 1, 2**64 - 1)),
        field.CPPTYPE_FLOAT: lambda: rng.choice((0.0, -1.0, float("nan"), float("inf"), 3e38)),
        field.CPPTYPE_DOUBLE: lambda: rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e308)),
        field.CPPTYPE_ENUM: lambda: rng.choice(list(field.enum_type.values)).number,
    }
    text = field.type == field.TYPE_STRING
    new = make.get(
        field.cpp_type,
        lambda: rng.choice(_TEXTS).replace("\ud800", "\ufffd") if text else rng.randbytes(rng.choice((0, 1, 8, 100))),
    )()
    if not repeated:
        setattr(message, field.name, new)
    elif content and rng.random() < 0.7:
        content[rng.randrange(len(content))] = new
    else:
        content.extend([new] * rng.choice((1, 2, 500)))
