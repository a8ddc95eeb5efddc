"""Data that a generated function works on, by kind: as an expression in its text or as an argument from a maker.

An :class:`Argument` records how a value is made (kind, size, seed, domain), so that a measurement can be repeated; the
same kind as an expression carries its size as a literal that the model can read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from .vocabulary import DOMAINS, Domain, seeded

# Kind -> expressions; N is the size literal, A and M small literals, names in braces belong to the domain.
LITERALS: dict[str, tuple[str, ...]] = {
    "ints": ("[(i * A + 7) % M for i in range(N)]", "list(range(N))", "[i * i % M for i in range(N)]"),
    "floats": ("[(i % M) * 0.5 + 1.0 for i in range(N)]", "[i / A for i in range(N)]"),
    "words": (
        '[f"{v0}{i % M}" for i in range(N)]',
        '["{v0}", "{v1}", "{v2}"] * N',
        '[f"w{i * A % M}" for i in range(N)]',
    ),
    "text": ('"{v0} {v1} and the {v2}, " * N', '" ".join(str(i * A % M) for i in range(N))'),
    "records": (
        '[{"id": i, "{text}": f"{v0}{i % 7}", "{number}": i * A % M, "{other}": i % 5, "{flag}": i % 3 == 0}'
        " for i in range(N)]",
    ),
    "pairs": ('[(f"{v0}{i % 9}", i * A % M) for i in range(N)]', '[("{v1}", i) for i in range(N)]'),
    "matrix": (
        "[[(i * A + j) % M for j in range(N)] for i in range(N)]",
        "[[i + j for j in range(N)] for i in range(N)]",
    ),
    "graph": ("{i: [(i * 2 + 1) % N, (i + A) % N] for i in range(N)}",),
    "weighted": ("{i: {(i + 1) % N: i % 5 + 1, (i * A + 2) % N: 4} for i in range(N)}",),
    "mapping": ('{f"{v0}{i}": i * A % M for i in range(N)}', '{f"key{i}": i for i in range(N)}'),
    "number": ("N",),
    "intervals": ("[(i * A % M, i * A % M + 4) for i in range(N)]",),
    "dates": ('[f"2024-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(N)]',),
    "lines": ('"\\n".join(f"{v0}{i} = {i * A}" for i in range(N))', '"{text} = {v0}\\n{number} = 12\\n" * N'),
    "csv": ('"\\n".join(f"{i},{v0}{i % 5},{i * A % M}" for i in range(N))', '"1,{v0},20\\n2,{v1},5\\n" * N'),
    "points": ("[(i * A % M, i * 7 % 20) for i in range(N)]",),
    "grid": ('["#..#." * A for _ in range(N)]', '["..#" * 4 for _ in range(N)]'),
    "nested": ('[{"name": f"{v0}{i}", "parts": [i, {"deep": [i, i + A]}]} for i in range(N)]',),
    "paths": ('[f"src/{v0}{i % 5}/../file{i}.py" for i in range(N)]',),
    "expression": ('" + ".join(f"{i % M} * {i % A + 1}" for i in range(N))',),
}
_NAMES: dict[str, tuple[str, ...]] = {
    "ints": ("numbers", "values", "amounts", "ids", "samples"),
    "floats": ("weights", "prices", "measurements", "scores"),
    "words": ("words", "names", "labels", "tokens"),
    "text": ("text", "content", "source", "sentence"),
    "pairs": ("pairs", "entries", "items"),
    "matrix": ("matrix", "table_", "cells", "board"),
    "graph": ("graph", "edges", "adjacency", "links"),
    "weighted": ("network", "roads", "costs"),
    "mapping": ("mapping", "settings", "lookup_", "prices_by_name"),
    "number": ("n", "size", "amount_", "steps"),
    "intervals": ("intervals", "ranges", "bookings", "spans"),
    "dates": ("dates", "days_", "stamps"),
    "lines": ("config", "text", "document", "payload"),
    "csv": ("data", "csv_text", "dump"),
    "points": ("points", "coordinates", "positions"),
    "grid": ("grid", "maze", "rows"),
    "nested": ("tree", "config", "payload"),
    "paths": ("paths", "filenames", "sources"),
    "expression": ("expression", "formula", "source"),
}
HINTS: dict[str, str] = {
    "ints": "list[int]", "floats": "list[float]", "words": "list[str]", "text": "str", "records": "list[dict]",
    "pairs": "list[tuple[str, int]]", "matrix": "list[list[int]]", "graph": "dict[int, list[int]]",
    "weighted": "dict[int, dict[int, int]]", "mapping": "dict[str, int]", "number": "int", "csv": "str", "lines": "str",
    "intervals": "list[tuple[int, int]]", "dates": "list[str]", "points": "list[tuple[int, int]]",
    "grid": "list[str]", "nested": "list", "paths": "list[str]", "expression": "str",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Argument:
    """How an argument is made: :func:`make` gives the same value on every machine."""

    kind: str
    size: int
    seed: int
    domain: str


def names_of(kind: str, domain: Domain) -> tuple[str, ...]:
    """Names that a variable of ``kind`` may have."""
    return (domain.items, domain.items, "rows", "records") if kind == "records" else _NAMES[kind]


def literal(kind: str, size: str, domain: Domain, rng: Random) -> str:
    """An expression that builds a value of ``kind``; ``size`` is a literal or the name of a variable that holds it."""
    text = rng.choice(LITERALS[kind])
    chosen = rng.sample(domain.values, 3)
    for mark, word in (
        *((f"{{v{at}}}", word) for at, word in enumerate(chosen)),
        ("{text}", domain.text), ("{number}", domain.number), ("{other}", domain.other), ("{flag}", domain.flag),
    ):  # fmt: skip
        text = text.replace(mark, word)
    small, modulus = rng.choice((3, 5, 7, 11, 13, 17, 37)), rng.choice((10, 23, 50, 97, 101, 251, 1000))
    pieces = _split_marks(text)
    swap = {"N": size, "A": str(small), "M": str(modulus)}
    return "".join(swap.get(piece, piece) for piece in pieces)


def _split_marks(text: str) -> list[str]:
    pieces, word = [], ""
    for char in text:
        if char.isalnum() or char == "_":
            word += char
        else:
            pieces += [word, char]
            word = ""
    return [*pieces, word]


def make(argument: Argument) -> Any:
    """The value that ``argument`` stands for: lists, dicts, tuples, text and numbers alone.

    Raises:
        KeyError: the kind is unknown.
    """
    rng = seeded("argument", argument.kind, argument.seed)
    return _MAKERS[argument.kind](rng, argument.size, DOMAINS[argument.domain])


def _words(rng: Random, size: int, domain: Domain) -> list[str]:
    pool = (*domain.values, domain.item, domain.text, "level", "Ada", "noon", "Total", "x1")
    return [rng.choice(pool) + (str(rng.randrange(9)) if rng.random() < 0.3 else "") for _ in range(size)]


def _record(rng: Random, at: int, domain: Domain) -> dict[str, Any]:
    return {
        "id": at,
        domain.text: rng.choice(domain.values),
        domain.number: rng.randrange(1, 100),
        domain.other: rng.randrange(6),
        domain.flag: rng.random() < 0.6,
    }


def _interval(rng: Random) -> tuple[int, int]:
    start = rng.randrange(60)
    return start, start + rng.randrange(1, 12)


_MAKERS: dict[str, Callable[[Random, int, Domain], Any]] = {
    "ints": lambda rng, size, domain: [rng.randrange(100) for _ in range(size)],
    "floats": lambda rng, size, domain: [round(rng.random() * 50, 2) for _ in range(size)],
    "words": _words,
    "text": lambda rng, size, domain: " ".join(_words(rng, size, domain)),
    "records": lambda rng, size, domain: [_record(rng, at, domain) for at in range(size)],
    "pairs": lambda rng, size, domain: [(rng.choice(domain.values), rng.randrange(50)) for _ in range(size)],
    "matrix": lambda rng, size, domain: [[rng.randrange(10) for _ in range(size)] for _ in range(size)],
    "graph": lambda rng, size, domain: {at: [rng.randrange(size), (at + 1) % size] for at in range(size)},
    "weighted": lambda rng, size, domain: {
        at: {(at + 1) % size: 1 + at % 4, rng.randrange(size): 5} for at in range(size)
    },
    "mapping": lambda rng, size, domain: {f"{rng.choice(domain.values)}{at}": rng.randrange(60) for at in range(size)},
    "number": lambda rng, size, domain: size,
    "intervals": lambda rng, size, domain: [_interval(rng) for _ in range(size)],
    "dates": lambda rng, size, domain: [
        f"20{rng.randrange(10, 30)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}" for _ in range(size)
    ],
    "lines": lambda rng, size, domain: "\n".join(
        f"{domain.text}{at} = {rng.choice(domain.values)}" if rng.random() < 0.8 else "# note" for at in range(size)
    ),
    "csv": lambda rng, size, domain: "\n".join(
        f"{at},{rng.choice(domain.values)},{rng.randrange(90)}" for at in range(size)
    ),
    "points": lambda rng, size, domain: [(rng.randrange(30), rng.randrange(30)) for _ in range(size)],
    "grid": lambda rng, size, domain: ["".join(rng.choice("..#") for _ in range(size)) for _ in range(size)],
    "nested": lambda rng, size, domain: [
        {"name": rng.choice(domain.values), "parts": [at, {"deep": [at, at + 1]}]} for at in range(size)
    ],
    "paths": lambda rng, size, domain: [f"{rng.choice(domain.values)}/./lib/../{at}.txt" for at in range(size)],
    "expression": lambda rng, size, domain: " + ".join(f"{rng.randrange(9)} * {at % 4}" for at in range(size)),
}
