"""The calls of units with the functions that they may run: a unit in its module -> what a predictor reads of them.

Resolving a call is far slower than looking it up, and an edit changes few units, so places are remembered until a
definition, an import or a class changes in the file, or in another file of the package (``structure``). The texts at
these places are looked up each time: an edit of a function changes what its callers read.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from pathlib import Path

from cachetools import LRUCache

from rlm_core.source.call_graph import CallGraph
from rlm_core.source.module_index import ModuleIndex
from rlm_core.types import CalledFunction, Calls, CallSite, KnownCost, MeasuredFunctions, Unit

# What was measured of a function in a file; the file is None where it is not known.
KnownCosts = Callable[[Path | None, Unit], Iterable[KnownCost]]
# The text of a function that was measured, where it has changed since.
MeasuredText = Callable[[Path | None, Unit], str | None]
_REMEMBERED = 2_048  # units: more than those of a file of 30,000 lines
# Measured functions of a file or class that are read: their mean says enough. Of a package the most similar ones count.
MAX_MEASURED, MAX_OF_PACKAGE = 100, 400
_NOTHING = MeasuredFunctions()
_Place = tuple[str, str]  # module and qualified name


@dataclass(frozen=True, slots=True)
class _Site:
    places: tuple[_Place, ...]
    loops: int
    branches: int
    times: float


@dataclass(frozen=True, slots=True)
class _Places:
    sites: tuple[_Site, ...]
    outside: int
    unresolved: int


class PackageView:
    """The modules of a package as they are during one analysis, each read once.

    ``load`` gives the index of a module, ``context`` a hash of everything but bodies in it, ``path`` its file. What was
    measured of functions with a text in ``unmeasured`` does not count.
    """

    def __init__(
        self,
        load: Callable[[str], ModuleIndex | None],
        context: Callable[[ModuleIndex], int],
        path: Callable[[str], Path | None],
        unmeasured: Container[str] = (),
    ) -> None:
        self._load, self._context, self.path, self.unmeasured = load, context, path, unmeasured
        self._modules: dict[str, ModuleIndex | None] = {}
        self._contexts: dict[str, int] = {}
        self.called: dict[_Place, CalledFunction] = {}

    def load(self, dotted: str) -> ModuleIndex | None:
        """The index of a module; None where it cannot be had."""
        if dotted not in self._modules:
            self._modules[dotted] = self._load(dotted)
        return self._modules[dotted]

    def context(self, index: ModuleIndex) -> int:
        """A hash of what the meaning of a module's names depends on."""
        known = self._contexts.get(index.dotted)
        if known is None:
            known = self._contexts[index.dotted] = self._context(index)
        return known


@dataclass(frozen=True, slots=True)
class FileMeasurements:
    """The measurements around units: in their file, by class, and in the other files of the package."""

    of_file: MeasuredFunctions = _NOTHING
    of_class: Mapping[str, MeasuredFunctions] = field(default_factory=dict)
    of_package: MeasuredFunctions = _NOTHING

    def around(self, unit: Unit) -> tuple[MeasuredFunctions, MeasuredFunctions, MeasuredFunctions]:
        """The measured functions of a unit's file, class and package."""
        return self.of_file, self.of_class.get(unit.qualname.rpartition(".")[0], _NOTHING), self.of_package


class CallReader:
    """Reads the calls of units and remembers where they lead. Not thread-safe."""

    def __init__(self, known_costs: KnownCosts | None = None, measured_text: MeasuredText | None = None) -> None:
        self._known_costs: KnownCosts = known_costs or (lambda path, unit: ())
        self._measured_text: MeasuredText = measured_text or (lambda path, unit: None)
        self._places: LRUCache[Hashable, _Places] = LRUCache(_REMEMBERED)
        # Equal calls are one object, so that comparing units of two versions of a file is fast.
        self._calls: LRUCache[Calls, Calls] = LRUCache(_REMEMBERED)

    def measurements(
        self, path: Path | None, units: Iterable[Unit], of_package: MeasuredFunctions = _NOTHING
    ) -> FileMeasurements:
        """Return the measurements of the functions of a file; ``of_package`` in other files of its package."""
        by_class: dict[str, list[CalledFunction]] = {}
        for unit in units:
            known = tuple(self._known_costs(path, unit)) if unit.kind == "function" else ()
            if known:
                by_class.setdefault(unit.qualname.rpartition(".")[0], []).append(CalledFunction(unit.text, known=known))
        if not by_class:
            return FileMeasurements(of_package=of_package)
        everything = [function for functions in by_class.values() for function in functions]
        by_name = {name: _some(functions) for name, functions in by_class.items()}
        return FileMeasurements(_some(everything), by_name, of_package)

    def calls(
        self,
        graph: CallGraph,
        module: ModuleIndex,
        unit: Unit,
        view: PackageView,
        structure: int,
        measured: FileMeasurements,
    ) -> Calls:
        """The calls of a unit of ``module``; ``structure`` is a number that changes with the rest of the package."""
        around = measured.around(unit)
        key = unit.text, unit.qualname, module.dotted, view.context(module), structure
        places = self._places.get(key)
        calls = self._read(places, module, view, around) if places is not None else None
        if calls is None:
            resolved = graph.call_sites(module, unit)
            places = self._places[key] = _Places(
                tuple(
                    _Site(
                        tuple((home.dotted, callee.qualname) for home, callee in site.candidates),
                        site.loops,
                        site.branches,
                        site.times,
                    )
                    for site in resolved.sites
                ),
                resolved.outside,
                resolved.unresolved,
            )
            calls = self._read(places, module, view, around)
            assert calls is not None, "a resolved call leads to a function of the same view"
        return self._calls.setdefault(calls, calls)

    def _read(
        self,
        places: _Places,
        module: ModuleIndex,
        view: PackageView,
        around: tuple[MeasuredFunctions, MeasuredFunctions, MeasuredFunctions],
    ) -> Calls | None:
        """The functions at the places as they are now; None where one is gone."""
        sites = []
        for site in places.sites:
            candidates = []
            for place in site.places:
                called = view.called.get(place) or self._called(place, module, view)
                if called is None:
                    return None
                candidates.append(called)
            # The order of files and definitions must not count.
            candidates.sort(key=lambda called: called.text)
            sites.append(CallSite(tuple(candidates), site.loops, site.branches, site.times))
        return Calls(tuple(sites), places.outside, places.unresolved, *around)

    def _called(self, place: _Place, module: ModuleIndex, view: PackageView) -> CalledFunction | None:
        dotted, qualname = place
        home = module if dotted == module.dotted else view.load(dotted)
        unit = home.units.get(qualname) if home is not None else None
        if unit is None:
            return None
        path = view.path(dotted)
        known = self._known_costs(path, unit) if unit.text not in view.unmeasured else ()
        is_changed = self._measured_text(path, unit) is not None
        called = view.called[place] = CalledFunction(unit.text, known=tuple(known), is_changed=is_changed)
        return called


def sample_of_package(functions: Iterable[CalledFunction]) -> MeasuredFunctions:
    """At most ``MAX_OF_PACKAGE`` functions, chosen by a hash of their text, so that files and names count alike."""
    return MeasuredFunctions(
        tuple(nsmallest(MAX_OF_PACKAGE, set(functions), key=lambda function: random_order(function.text)))
    )


def random_order(text: str) -> tuple[int, str]:
    """A key that puts texts into an order that nothing about them explains."""
    return zlib.crc32(text.encode("utf-8", "replace")), text


def _some(functions: list[CalledFunction]) -> MeasuredFunctions:
    """At most ``MAX_MEASURED`` functions, whatever order they are defined in."""
    return MeasuredFunctions(tuple(sorted(functions, key=lambda function: function.text)[:MAX_MEASURED]))
