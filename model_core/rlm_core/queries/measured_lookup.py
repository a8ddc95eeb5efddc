"""The measurements of units, and of the functions around them, as the model reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Protocol

from cachetools import LRUCache

from rlm_core.source.units import accessor_of
from rlm_core.types import Anchor, CalledFunction, CodeText, FoundCost, KnownCost, MeasuredFunctions, Unit

from .called_functions import sample_of_package
from .package_files import package_of

# What was found of units, and what follows from it, see :meth:`MeasuredLookup._unchanged`.
_Unchanged = tuple[tuple[FoundCost, ...], tuple[Anchor, ...], tuple[KnownCost, ...]]
_MEASURED_FILES = 512  # around which measurements are remembered
_MEASURED_FOLDERS = 16
_FOUND_UNITS = 8_192  # remembered: each edit of a file looks up all of its units


class MeasuredUnits(Protocol):
    """The measurements of units, see :class:`rlm_core.measurement.known.KnownMeasurements`."""

    def prepare(self, qualnames: Iterable[str]) -> None:
        """Units with these names will be looked up."""
        ...

    def find(self, unit: Unit, path: Path | None, *, is_shared: bool = False) -> tuple[FoundCost, ...]:
        """Return the measurements of a unit of a file: the best match for each metric.

        ``is_shared``: another unit of the file has the same name and accessor, so that only the same text is a match.
        """
        ...

    def functions_in(self, folder: Path) -> Mapping[Path, Sequence[CalledFunction]]:
        """The measured functions below a folder by file, as they were when they were measured."""
        ...


class MeasuredLookup:
    """Looks measurements up and remembers them; without ``measured`` nothing was measured. Not thread-safe."""

    def __init__(self, measured: MeasuredUnits | None) -> None:
        self._measured = measured
        self._of_found: dict[int, _Unchanged] = {}
        self._of_package: LRUCache[Path, MeasuredFunctions] = LRUCache(_MEASURED_FILES)  # by file
        self._in_folder: LRUCache[Path, Mapping[Path, Sequence[CalledFunction]]] = LRUCache(_MEASURED_FOLDERS)

    def refresh(self) -> None:
        """Look at measurements again."""
        self._of_package.clear()
        self._in_folder.clear()

    def prepare(self, qualnames: Iterable[str]) -> None:
        """Units with these names will be looked up."""
        if self._measured is not None:
            self._measured.prepare(qualnames)

    def known_costs(self, path: Path | None, unit: Unit) -> tuple[KnownCost, ...]:
        """Return the measurements of the present text of a function."""
        return self._unchanged(self._measured.find(unit, path))[1] if self._measured is not None else ()

    def earlier_text(self, path: Path | None, unit: Unit) -> str | None:
        """The text of a function that was measured, if it has changed since and is known."""
        found = self._measured.find(unit, path) if self._measured is not None and unit.kind == "function" else ()
        return next((before for _, before in found if before), None)

    def around(self, path: Path) -> MeasuredFunctions:
        """Return the measurements in the other files of a file's package, or else of its folder."""
        if self._measured is None:
            return MeasuredFunctions()
        known = self._of_package.get(path)
        if known is None:
            root, dotted = package_of(path)
            package = root / dotted.partition(".")[0]
            is_package = (package / "__init__.py").is_file()
            folder = package if is_package else root
            if folder not in self._in_folder:
                self._in_folder[folder] = self._measured.functions_in(folder)
            others = (
                functions
                for file, functions in self._in_folder[folder].items()
                if file != path.resolve() and (is_package or file.parent == folder)
            )
            known = self._of_package[path] = sample_of_package(chain.from_iterable(others))
        return known

    def shared_names(self, units: Sequence[Unit]) -> set[tuple[str, str]]:
        """The qualified names and texts of units whose name (and accessor) another unit of the file has too."""
        if self._measured is None:
            return set()
        names = Counter((unit.kind, unit.qualname) for unit in units)
        same_name = [unit for unit in units if names[unit.kind, unit.qualname] > 1]
        accessors = [(unit.kind, unit.qualname, accessor_of(unit.qualname, unit.text)) for unit in same_name]
        counts = Counter(accessors)
        return {(unit.qualname, unit.text) for unit, key in zip(same_name, accessors, strict=True) if counts[key] > 1}

    def anchors(
        self,
        unit: Unit,
        path: Path | None,
        read_earlier: Callable[[str, Unit], CodeText],
        *,
        is_shared: bool = False,
    ) -> tuple[Anchor, ...]:
        """Return the measurements of a unit. Where it has changed, the earlier text is read in the present context."""
        found = self._measured.find(unit, path, is_shared=is_shared) if self._measured is not None else ()
        if not found:
            return ()
        if all(before is None for _, before in found):
            return self._unchanged(found)[0]
        texts: dict[str, CodeText] = {}
        for _, before in found:
            if before is not None and before not in texts:
                # A text that is not known stands for itself.
                texts[before] = read_earlier(before, unit) if before else CodeText("", unit.language, unit.basis)
        return tuple([Anchor(cost, texts[before] if before is not None else None) for cost, before in found])

    def _unchanged(self, found: tuple[FoundCost, ...]) -> tuple[tuple[Anchor, ...], tuple[KnownCost, ...]]:
        """Return the measurements of present texts, of a unit itself and of a function that is called.

        Remembered by the identity of what was found, since all units of a file are looked up after each edit.
        """
        known = self._of_found.get(id(found))
        if known is None or known[0] is not found:
            costs = [cost for cost, before in found if before is None]
            calls = [cost for cost in costs if cost.kind == "function"]
            if len(self._of_found) >= _FOUND_UNITS:
                self._of_found.clear()
            known = self._of_found[id(found)] = (
                found,
                tuple([Anchor(cost) for cost in costs]),
                tuple([KnownCost(cost.metric, cost.median, cost.low, cost.high) for cost in calls]),
            )
        return known[1], known[2]
