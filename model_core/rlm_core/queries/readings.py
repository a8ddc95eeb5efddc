"""What the model reads of the units of a version of a file, kept so that an edit reads only what has changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rlm_core.cost.scope import ModuleScope
from rlm_core.source.module_index import ModuleIndex
from rlm_core.types import Anchor, CodeText

from .called_functions import FileMeasurements
from .function_sizes import Given


@dataclass(frozen=True, slots=True)
class Reading:
    """The text that the model reads of a unit, its measurements, and the texts of the functions that it depends on.

    ``failure`` as in :class:`.analysis.AnalysedUnit`; ``given`` are the sizes that comments and settings give,
    ``in_calls`` those that calls fix, which are looked up where the cost ``has_sizes``.
    """

    code: CodeText
    measured: tuple[Anchor, ...] = ()
    depends_on: frozenset[str] = frozenset()
    failure: str = ""
    given: Given = field(default_factory=dict)
    has_sizes: bool = False
    in_calls: Given = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileReadings:
    """The texts that the model reads of the units of a version of a file, and what they depend on but functions.

    ``kept`` are the units whose readings are those of an earlier version, see :meth:`.analysis.Analyser.analyse`.
    """

    index: ModuleIndex
    context: int
    structure: int
    around: FileMeasurements
    loaded: dict[tuple[Path | None, str], ModuleIndex | None]
    units: dict[tuple[str, str, str], Reading]
    kept: frozenset[tuple[str, str, str]]

    def changed_since(
        self, scope: ModuleScope, context: int, structure: int, around: FileMeasurements
    ) -> set[str] | None:
        """The texts of these functions that have changed; None where more than texts has."""
        if self.index.units.keys() != scope.index.units.keys() or self.around != around:
            return None
        if (self.index.dotted, self.context, self.structure) != (scope.index.dotted, context, structure):
            return None
        if any(scope.graph.load(module) is not index for (_, module), index in self.loaded.items()):
            return None
        now, before = scope.index.units, self.index.units
        return {unit.text for name, unit in before.items() if unit is not now[name] and unit.text != now[name].text}
