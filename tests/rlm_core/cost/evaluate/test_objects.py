"""Constructors are read once for all units of a file, and every unit has the facts that it has alone."""

from __future__ import annotations

import inspect
import smtplib
from collections.abc import Sequence
from pathlib import Path

import pytest
from rlm_core.cost.domain.context import Context
from rlm_core.cost.domain.frames import Frame
from rlm_core.cost.evaluate import objects
from rlm_core.cost.scope import ModuleScope
from rlm_core.queries.entry_store import VARIABLE
from rlm_core.queries.unit_facts import UnitFacts, UnitWork
from rlm_core.source.call_graph import CallGraph
from rlm_core.source.module_index import index_module
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units

_CLASSES = """
SIZE = {size}

def zeros(n):
    return (0,) * n

class Inner:
    def __init__(self):
        self.rows = (1,)

class Buffer:
    def __init__(self, limit=100):
        self.items = zeros(SIZE)
        self.table = {{"a": 1, "b": [2, 3]}}
        self.limit = limit
        self.pair = (1, "text")

    def first(self):
        return self.items[0] + self.limit

    def total(self):
        text = "total"
        return text, sum(self.items)

    def table_of(self):
        return [self.table[name] for name in self.pair]

class Holder:
    def __init__(self):
        self.inner = Inner()

    def fill(self):
        self.inner.rows = (0,) * 100_000

    def rows(self):
        return sum(self.inner.rows)

class Lines:
    def __init__(self):
        self.lines = tuple(line for line in fetched())

    def total(self):
        return sum(self.lines)

    def later(self):
        text = "later"
        return text, sum(self.lines)

class Reader:
    def __init__(self, buffer: Buffer):
        self.buffer = buffer
        self.kept = list(buffer.items)

    def again(self):
        for item in self.kept:
            self.buffer.total()
        return self.buffer.limit

    def deep(self):
        return self.again(), self.buffer.first()
"""
_WORK = "\n".join(f"        self.step{k}()" for k in range(40))
_STEPS = "\n".join(f"    def step{k}(self):\n" + "        x = [i * i for i in range(9)]\n" * 30 for k in range(40))
# Reading its constructor takes more than the budget.
_LARGE = f"class Large:\n    def __init__(self):\n        self.size = 3\n{_WORK}\n{_STEPS}\n"
_LARGE += "".join(f"    def use{k}(self):\n        print()\n        return self.size\n" for k in range(3))


def works(text: str, *, order: int = 1, alone: bool = False) -> list[UnitWork | None]:
    """What is known of the units of a file, analysed in their order or backwards, or each as the only one."""
    parsed = ParsedSource(text.encode(), "python")
    index, facts = index_module(parsed), UnitFacts()
    scope = ModuleScope(index, CallGraph())
    units = [unit for unit in find_units(parsed) if unit.kind == "function"]
    found = [(UnitFacts() if alone else facts).of_python(unit, scope, 0) for unit in units[::order]]
    facts.save()
    return found[::order]


def seen(found: Sequence[UnitWork | None]) -> list[object]:
    """What counts of facts: their numbers, and which functions they depend on."""
    return [work and (work.facts, set(work.dependencies)) for work in found]


@pytest.mark.parametrize(
    "text", [_CLASSES.format(size=1000), _LARGE, Path(inspect.getfile(smtplib)).read_text(encoding="utf-8")]
)
def test_a_unit_has_the_facts_that_it_has_alone(text: str) -> None:
    alone = seen(works(text, alone=True))
    assert seen(works(text)) == alone
    assert seen(works(text, order=-1)) == alone


def test_a_constructor_is_read_once_for_all_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    original = objects._read_apart

    def noted(context: Context, frame: Frame) -> None:
        read.append(frame.qualname)
        original(context, frame)

    monkeypatch.setattr(objects, "_read_apart", noted)
    works(
        "class A:\n    def __init__(self):\n        self.n = 3\n"
        + "".join(f"    def use{k}(self):\n        return self.n\n" for k in range(5))
    )
    assert read == ["A.__init__"]


def test_facts_from_the_disk_hold_only_while_the_constructor_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    small = works(_CLASSES.format(size=1000))
    large = works(_CLASSES.format(size=900_000))
    monkeypatch.setenv(VARIABLE, "off")
    assert seen(small) == seen(works(_CLASSES.format(size=1000)))
    assert seen(large) == seen(works(_CLASSES.format(size=900_000)))
    assert seen(small) != seen(large)
