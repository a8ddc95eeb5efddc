"""What was measured of units: present and earlier texts, names that several units share, and other files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rlm_core.queries.measured_lookup import MeasuredLookup
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import CalledFunction, CodeText, FoundCost, KnownCost, MeasuredCost, MeasuredFunctions, Unit

COST = MeasuredCost("latency", 2e-6, 1e-6, 8e-6, 40, 8, "function", "cpu", "cpython-3.12", "2026-11-01")


class Measured:
    """One measured cost of every unit, of the text ``before``; None for the present one."""

    def __init__(self, before: str | None) -> None:
        self.found = (FoundCost(COST, before),)
        self.folders: list[Path] = []

    def prepare(self, qualnames: Iterable[str]) -> None:
        assert list(qualnames)

    def find(self, unit: Unit, path: Path | None, *, is_shared: bool = False) -> tuple[FoundCost, ...]:
        return () if is_shared else self.found

    def functions_in(self, folder: Path) -> dict[Path, list[CalledFunction]]:
        self.folders.append(folder)
        return {}


def units_of(text: str) -> list[Unit]:
    return find_units(ParsedSource(text.encode(), "python"))


def as_it_is(text: str, unit: Unit) -> CodeText:
    return CodeText(text, unit.language, unit.basis)


def test_the_present_text_is_not_read_again() -> None:
    def read(text: str, unit: Unit) -> CodeText:
        raise AssertionError("read")

    [unit] = units_of("def f():\n    return 1\n")
    lookup = MeasuredLookup(Measured(None))
    [anchor] = lookup.anchors(unit, None, read)
    assert (anchor.cost, anchor.before) == (COST, None)
    assert lookup.anchors(unit, None, read) is lookup.anchors(unit, None, read)
    assert lookup.known_costs(None, unit) == (KnownCost("latency", 2e-6, 1e-6, 8e-6),)


def test_an_earlier_text_is_read_and_is_no_known_cost() -> None:
    [unit] = units_of("def f():\n    return 1\n")
    lookup = MeasuredLookup(Measured("def f():\n    return 2\n"))
    [anchor] = lookup.anchors(unit, None, as_it_is)
    assert anchor.before is not None
    assert anchor.before.text == "def f():\n    return 2\n"
    assert lookup.known_costs(None, unit) == ()


def test_units_of_one_name_are_shared_but_not_a_property_and_its_setter() -> None:
    twice = units_of("def f():\n    return 1\n\n\ndef f():\n    return 2\n\n\ndef g():\n    return 3\n")
    lookup = MeasuredLookup(Measured(None))
    assert {name for name, _ in lookup.shared_names(twice)} == {"f"}
    accessors = units_of(
        "class A:\n"
        "    @property\n    def size(self):\n        return 1\n\n"
        "    @size.setter\n    def size(self, value):\n        self.n = value\n"
    )
    assert len(accessors) == 2
    assert lookup.shared_names(accessors) == set()
    assert MeasuredLookup(None).shared_names(twice) == set()


def test_a_folder_is_looked_up_once_until_refreshed(tmp_path: Path) -> None:
    measured = Measured(None)
    lookup = MeasuredLookup(measured)
    for name in ("a.py", "b.py", "a.py"):
        assert lookup.around(tmp_path / name) == MeasuredFunctions()
    assert measured.folders == [tmp_path]
    lookup.refresh()
    lookup.around(tmp_path / "a.py")
    assert measured.folders == [tmp_path, tmp_path]
