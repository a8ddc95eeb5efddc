"""What the primitives and library functions of Python cost: a name and a count -> seconds on the reference machine.

The table in ``unit_costs.json`` is measured by ``python -m tools.unit_costs``. A cost is ``fixed + each * law(count)``
seconds with CPython 3.12: the geometric mean of a processor of AMD and one of Intel, at the scale of the former.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..domain.quantities import ONE, Quantity, constant

TABLE = Path(__file__).with_name("unit_costs.json")


@dataclass(frozen=True, slots=True)
class UnitCost:
    """Seconds of one primitive: a fixed part, and a part that grows as ``count ** degree * log2(count) ** logs``."""

    fixed: float
    each: float
    degree: float
    logs: int


def growth(law: str) -> tuple[float, int]:
    """The degree and the power of the logarithm of a law such as ``n``, ``n log n``, ``n^1.585`` or ``log n``.

    Raises:
        ValueError: the text is not a law.
    """
    degree, logs = 0.0, 0
    for part in law.split():
        if part == "log":
            logs += 1
        elif part == "n":
            degree += 0.0 if law == "log n" else 1.0
        elif part.startswith("n^"):
            degree += float(part[2:])
        else:
            raise ValueError(f"not a law: {law!r}")
    return (1.0, logs) if law == "n log n" else (degree, logs)


@cache
def table() -> dict[str, UnitCost]:
    """All unit costs by name."""
    costs = json.loads(TABLE.read_text(encoding="utf-8"))["costs"]
    return {name: UnitCost(cost["fixed"], cost["each"], *growth(cost["law"])) for name, cost in costs.items()}


def primitive(name: str) -> float:
    """The fixed seconds of a primitive.

    Raises:
        KeyError: the table has no such name.
    """
    return table()[name].fixed


def each(name: str) -> float:
    """The seconds per item of a primitive, without its fixed part.

    Raises:
        KeyError: the table has no such name.
    """
    return table()[name].each


def seconds(name: str, count: Quantity | None = None) -> Quantity:
    """The seconds of a primitive applied to ``count`` items; without a count, its fixed part.

    Raises:
        KeyError: the table has no such name.
    """
    cost = table()[name]
    fixed = constant(cost.fixed)
    if count is None or not cost.each:
        return fixed
    return fixed + law(count, cost.degree, cost.logs).times(cost.each)


def law(count: Quantity, degree: float, logs: int = 0) -> Quantity:
    """``count ** degree * log2(count) ** logs``."""
    result = count.power(degree) if degree else ONE
    return result * count.log().power(float(logs)) if logs else result
