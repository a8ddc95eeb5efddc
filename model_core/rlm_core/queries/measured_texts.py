"""The functions of a package in the texts that were measured: what a function called before it was changed.

A measured cost is carried over to a changed text by comparing both texts. What the measured text called may have
changed too, so it is read with the texts that were measured of those functions. Functions that were not measured, and
all else in a file, are read as they are now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from cachetools import LRUCache

from rlm_core.cost.scope import ModuleScope
from rlm_core.source.call_graph import CallGraph
from rlm_core.source.module_index import Call, ModuleIndex, index_module
from rlm_core.source.parsed import ParsedSource

from .called_functions import MeasuredText, PackageView
from .package_files import context_of

_REMEMBERED = 64  # modules
_REMEMBERED_TEXTS = 2_048


class MeasuredTexts:
    """Indices of modules with the functions as they were measured; some are remembered. Not thread-safe."""

    def __init__(self, measured_text: MeasuredText) -> None:
        self._measured_text = measured_text
        self._known: LRUCache[str, tuple[ModuleIndex, ModuleIndex]] = LRUCache(_REMEMBERED)
        self._bodies: LRUCache[str, tuple[tuple[Call, ...], dict[str, str]]] = LRUCache(_REMEMBERED_TEXTS)

    def refresh(self) -> None:
        """Look at measurements again."""
        self._known.clear()

    def package(
        self,
        index: ModuleIndex,
        load: Callable[[str], ModuleIndex | None],
        named: Callable[[str], Sequence[ModuleIndex] | None],
        file_of: Callable[[str], Path | None],
    ) -> tuple[ModuleScope, PackageView]:
        """The scope of a module, and the view of its package, with the functions as they were measured.

        Args:
            index: of the module.
            load: the present index of a module of the package.
            named: the present indices of the modules with methods of a name.
            file_of: the file of a module.
        """
        changed: set[str] = set()

        def earlier(now: ModuleIndex) -> ModuleIndex:
            measured = self.of(now, file_of(now.dotted))
            if measured is not now:
                changed.update(unit.text for name, unit in measured.units.items() if unit is not now.units[name])
            return measured

        def load_earlier(module: str) -> ModuleIndex | None:
            now = load(module)
            return earlier(now) if now is not None else None

        def named_earlier(name: str) -> list[ModuleIndex] | None:
            homes = named(name)
            return list(map(earlier, homes)) if homes is not None else None

        scope = ModuleScope(earlier(index), CallGraph(load_earlier, named_earlier))
        return scope, PackageView(load_earlier, context_of, file_of, changed)

    def of(self, index: ModuleIndex, path: Path | None) -> ModuleIndex:
        """The index of a module of a file; the same object where no measured function has changed."""
        known = self._known.get(index.dotted)
        if known is None or known[0] is not index:
            known = self._known[index.dotted] = index, self._measured(index, path)
        return known[1]

    def _measured(self, index: ModuleIndex, path: Path | None) -> ModuleIndex:
        texts = {unit.qualname: self._measured_text(path, unit) for unit in index.units.values()}
        changed = {name: text for name, text in texts.items() if text}
        if not changed:
            return index
        units = {name: replace(index.units[name], text=text) for name, text in changed.items()}
        earlier = replace(index, units=index.units | units, calls=dict(index.calls), types=dict(index.types))
        for text in changed.values():
            self.add(earlier, text)
        return earlier

    def add(self, index: ModuleIndex, text: str) -> None:
        """Add the calls and types in the text of a function to the index of its file."""
        bodies = self._bodies.get(text)
        if bodies is None:
            own = index_module(ParsedSource(text.encode("utf-8", errors="replace"), "python"))
            function = next(iter(own.units.values()), None)
            calls = own.calls.get(function.text, ()) if function is not None else ()
            types = own.types.get(function.text, {}) if function is not None else {}
            bodies = self._bodies[text] = calls, types
        index.calls[text], index.types[text] = bodies
