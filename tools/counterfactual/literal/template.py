"""Text of templates -> templates with their variants, each with a rough prediction of its cost at a size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

_FUNCTIONS = {"log": math.log, "exp": math.exp, "sqrt": math.sqrt, "lgamma": math.lgamma, "__builtins__": {}}
_RANGE = (3, 10**9)


@dataclass(frozen=True, slots=True)
class Cost:
    """An expression in the size ``n``."""

    code: CodeType

    def __call__(self, size: int) -> float:
        """The expression at ``size``, infinite where it is too large for a float."""
        try:
            return float(eval(self.code, {**_FUNCTIONS, "n": size}))  # noqa: S307 - our own templates
        except OverflowError:
            return math.inf


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to write a template: seconds and bytes by size, definitions, statements and the expression returned."""

    name: str
    seconds: Cost
    memory: Cost
    definitions: str
    statements: tuple[str, ...]
    result: str


@dataclass(frozen=True, slots=True)
class Template:
    """Variants that compute the same or look alike, and the least and largest size."""

    name: str
    low: int
    high: int
    variants: tuple[Variant, ...]


def parse_templates(text: str) -> Iterator[Template]:
    """The templates of a text in the notation of :mod:`.templates`."""
    for block in text.strip().removeprefix("== ").split("\n== "):
        head, *others = block.split("\n~~ ")
        name, *costs = head.split("\n", 1)[0].split(" | ")
        low, high = _RANGE
        if len(costs) > 2:
            low, high = (_integer(bound) for bound in costs[2].split("-"))
        yield Template(name, low, high, tuple(_variant(code) for code in (head, *others)))


def _integer(text: str) -> int:
    base, _, exponent = text.partition("**")
    power: int = int(base) ** int(exponent or 1)
    return power


def _variant(text: str) -> Variant:
    header, code = text.split("\n", 1)
    name, seconds, memory = header.split(" | ")[:3]
    definitions, _, body = code.strip("\n").rpartition("---\n")
    statements, _, result = f"\n{body}".rpartition("\n=> ")
    lines = tuple(line for line in statements.strip("\n").split("\n") if line)
    return Variant(name, _cost(f"({seconds})*1e-9"), _cost(memory), definitions.strip("\n"), lines, result.strip())


def _cost(expression: str) -> Cost:
    return Cost(compile(expression.strip(), "<cost>", "eval"))
