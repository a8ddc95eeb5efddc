"""The costs of functions as readable text: seconds, peak bytes, unknown calls and waits, as polynomials in sizes.

A coefficient is its likely value, followed by its range where the text does not fix it. The texts are our own: the
functions with arguments of the growth suite, the examples and an author who did not know the analysis, and the first of
each file of the common-sense suite.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rlm_core.cost.analysis import BUDGET, cost_of
from rlm_core.cost.domain.context import Context
from rlm_core.cost.domain.frames import Frame
from rlm_core.cost.domain.meter import Meter, PendingWait
from rlm_core.cost.domain.quantities import LINEAR, Monomial, Quantity, Range, degree
from rlm_core.cost.scope import ModuleScope
from rlm_core.source.call_graph import CallGraph
from rlm_core.source.module_index import index_module
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Unit

REPOSITORY = Path(__file__).parents[4]
FOLDER = Path(__file__).parent
_FIRST_OF_SUITE = 2
_WHOLE = (
    "examples/functions.py",
    "examples/orders.py",
    "tests/bench/common_sense/growth/python_functions.py",
    "tests/bench/common_sense/functions/independent.py",
)
_SUITE = "tests/bench/common_sense/functions"


def golden_files() -> dict[Path, str]:
    """The text that each golden file should have."""
    files = {path.replace("/", "."): _with_arguments(REPOSITORY / path) for path in _WHOLE}
    suite = sorted((REPOSITORY / _SUITE).glob("*.py"))
    files[_SUITE.replace("/", ".")] = "\n".join(
        text for path in suite for text in _costs(path, f"{path.stem}.", _FIRST_OF_SUITE)
    )
    return {FOLDER / f"{name.removesuffix('.py')}.txt": text for name, text in files.items()}


def _with_arguments(path: Path) -> str:
    return "\n".join(_costs(path, "", None))


def _costs(path: Path, prefix: str, first: int | None) -> Iterator[str]:
    """The costs of the functions of a file that have arguments; with ``first`` of that many, whatever they take."""
    index, graph = index_module(ParsedSource(path.read_bytes(), "python")), CallGraph()
    functions = [unit for unit in index.units.values() if unit.kind == "function" and "<locals>" not in unit.qualname]
    chosen = functions[:first] if first is not None else [unit for unit in functions if "()" not in _header(unit)]
    for unit in chosen:
        context = Context(Frame(ModuleScope(index, graph)), BUDGET)
        meter = cost_of(context, unit.text, unit.qualname)
        assert meter is not None, unit.qualname
        yield f"{prefix}{unit.qualname}\n" + "".join(f"  {line}\n" for line in lines_of(meter))


def _header(unit: Unit) -> str:
    return next(line for line in unit.text.splitlines() if line.lstrip().startswith(("def ", "async def ")))


def lines_of(meter: Meter) -> Iterator[str]:
    """The lines that describe a cost."""
    yield f"seconds: {polynomial(meter.total)}"
    yield f"peak bytes: {polynomial(meter.peak)}"
    for name, times in sorted(meter.unknown.items()):
        yield f"unknown: {name}, {polynomial(times)} times"
    for wait in meter.waits:
        yield f"wait: {_wait(wait)}"
    if meter.endless is not None:
        yield f"may not end: line {meter.endless[0] + 1}, in {_number(meter.endless[1])} of the runs"


def polynomial(quantity: Quantity) -> str:
    """A quantity as a sum, the term that grows most first."""
    by_name = sorted(quantity.terms.items(), key=lambda term: _product(term[0]))
    terms = sorted(by_name, key=lambda term: degree(term[0]), reverse=True)
    return " + ".join(" ".join(filter(None, (_range(value), _product(key)))) for key, value in terms) or "0"


def _product(monomial: Monomial) -> str:
    return " ".join(_factor(name, form) + (f"^{power:.4g}" if power != 1 else "") for (name, form), power in monomial)


def _factor(name: str, form: str) -> str:
    if form == LINEAR:
        return name
    return f"{form} {name}" if form.isalpha() else f"{float(form):.4g}^{name}"


def _range(value: Range) -> str:
    low, likely, high = map(_number, value)
    return likely if low == likely == high else f"{likely} ({low} to {high})"


def _number(value: float) -> str:
    return f"{value + 0.0:.4g}"


def _wait(wait: PendingWait) -> str:
    amount = polynomial(wait.seconds) + " s" if wait.seconds is not None else "unknown time"
    marks = "".join(f", {mark}" for mark in ("background", "on_error") if getattr(wait, mark)).replace("_", " ")
    return f"{wait.kind.value}, {wait.call}, {amount}, in {_range(wait.share)} of the runs{marks}"
