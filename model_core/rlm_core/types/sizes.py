"""Sizes of inputs, and the calls that fix them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# Where the size of a function's input comes from; the first that is known counts.
# ``query`` is a size that a budget or a table asks about, ``calls`` the largest that a call in the project fixes.
SizeSource = Literal["query", "comment", "settings", "recorded", "calls"]


@dataclass(frozen=True, slots=True)
class FixedCalls:
    """Calls of a function in its project: how many fix a size, of how many, and the range of its values."""

    fixed: int
    all: int
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class SizeValue:
    """A size of a function's input: the number of items, or a number itself, and where the value comes from.

    ``name`` is as the analysis names it (``items``, ``rows[]``, ``self.queue``). ``rule`` is the key of the settings
    that gives it, or where else it is written. ``calls`` are those that fix it, of the largest of which the value is.
    """

    name: str
    value: float
    source: SizeSource = "query"
    rule: str = ""
    calls: FixedCalls | None = None


@dataclass(frozen=True, slots=True)
class SizeSpread:
    """The least, median and largest value of a size over the recorded calls of a unit."""

    least: float
    median: float
    most: float


@dataclass(frozen=True, slots=True)
class SizedCalls:
    """Calls of a unit with inputs of about the same sizes.

    ``sizes`` are their medians by name, ``median`` is of the metric in SI units over ``calls``. ``scaled`` are calls
    that were made again with larger inputs, not calls of the tests.
    """

    sizes: Mapping[str, float]
    median: float
    calls: int
    scaled: bool = False
