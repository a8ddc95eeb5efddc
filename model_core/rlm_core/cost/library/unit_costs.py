"""Maps the name of a primitive or library function of Python and a count to seconds on the reference machine.

The statements ``cost`` of the tables say them, and ``python -m tools.unit_costs`` measures them. A cost is ``fixed +
each * law(count)`` seconds with CPython 3.12: the geometric mean of a processor of AMD and one of Intel, at the scale
of the former.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from ..domain.quantities import ONE, Quantity, constant
from .statements import Statement, read_tables

# What calls of these libraries cost, as multiples of what was measured with the cheapest types of columns and features:
# the least, the most and the likely. Those of functions that were not used to measure the costs are between them.
_SPREAD = (1.0, 5.0, 1.6)
_SPREAD_LIBRARIES = frozenset(
    {
        "pandas",
        "sklearn",
        "scipy",
        "matplotlib",
        "seaborn",
        "bs4",
        "lxml",
        "PIL",
        "jinja2",
        "django",
        "sqlalchemy",
        "flask",
    }
)
_COST = re.compile(r"cost (\S+) = (\S+)(?: \+ (\S+) \* ([^|]+?))?(?: \||$)")


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


def stated(statement: Statement) -> tuple[str, float, float, str]:
    """The name, the fixed part, the part per item, and the law (``1`` for a fixed cost) that a statement says.

    Raises:
        TableError: it is not a cost.
    """
    found = _COST.match(statement.text)
    if found is None:
        raise statement.error("not a cost")
    name, fixed, each_, law_ = found.groups()
    try:
        return name, float(fixed), float(each_ or 0.0), law_ or "1"
    except ValueError:
        raise statement.error("a cost is not a number") from None


@cache
def table() -> dict[str, UnitCost]:
    """All unit costs by name.

    Raises:
        TableError: a statement is not a cost, or a name has two.
    """
    costs: dict[str, UnitCost] = {}
    for statement in read_tables()["cost"]:
        name, fixed, each_, law_ = stated(statement)
        if name in costs:
            raise statement.error(f"{name} has a cost already")
        costs[name] = UnitCost(fixed, each_, *growth(law_ if law_ != "1" else "n"))
    return costs


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
    total = constant(cost.fixed)
    if count is not None and cost.each:
        total = total + law(count, cost.degree, cost.logs).times(cost.each)
    return total * constant(*_SPREAD) if name.partition(".")[0] in _SPREAD_LIBRARIES else total


def law(count: Quantity, degree: float, logs: int = 0) -> Quantity:
    """``count ** degree * log2(count) ** logs``."""
    result = count.power(degree) if degree else ONE
    return result * count.log().power(float(logs)) if logs else result
