"""Scopes: the meaning of names outside a unit, from the imports, constants and functions of its file and package.

Input: the index of the unit's module and the call graph over its package. The analysis looks names up here that the
unit does not bind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from rlm_core.source.call_graph import CallGraph
from rlm_core.source.module_index import Call, ModuleIndex

_MOST_HOPS = 4


@dataclass(frozen=True, slots=True)
class Definition:
    """A function of the program: its text, its name, and the scope that its names are looked up in."""

    qualname: str
    text: str
    scope: Scope
    is_method: bool = False


class Scope(Protocol):
    """Where names of a unit are looked up."""

    def home(self) -> object:
        """Return what is one object for all scopes of a file."""

    def imported(self, name: str) -> str | None:
        """The dotted name that an import binds to ``name``."""

    def constant(self, name: str) -> str | None:
        """The source text of the expression assigned to a name of the module, or to ``Class.name``.

        None for a name that functions bind again: its value when they are called is not known.
        """

    def function(self, name: str, owner: str | None = None, caller: str = "") -> Definition | None:
        """The function that a call of ``name`` runs; ``owner`` is the text of the object that it is looked up on.

        ``caller`` is the qualified name of the calling unit: ``self`` is an instance of its class.
        """

    def is_class(self, name: str) -> bool:
        """Return whether a name of the module is a class."""

    def class_text(self, name: str) -> str | None:
        """The text of a class of the module without its methods; None where it is not known."""


@dataclass(slots=True)
class Texts:
    """A scope made of bare functions: what is known when a unit comes without its file."""

    functions: dict[str, str] = field(default_factory=dict)

    def home(self) -> object:
        """The scope itself."""
        return self

    def imported(self, name: str) -> str | None:
        """Nothing is known of imports."""
        return None

    def constant(self, name: str) -> str | None:
        """Nothing is known of constants."""
        return None

    def function(self, name: str, owner: str | None = None, caller: str = "") -> Definition | None:
        """A function of that name; on ``self`` too."""
        if owner not in (None, "self", "cls"):
            return None
        text = self.functions.get(name)
        return None if text is None else Definition(name, text, self, owner is not None)

    def is_class(self, name: str) -> bool:
        """Classes are not known."""
        return False

    def class_text(self, name: str) -> str | None:
        """Classes are not known."""
        return None


@dataclass(frozen=True, slots=True)
class ModuleScope:
    """The scope of the units of a file, from its index and the call graph over its package."""

    index: ModuleIndex
    graph: CallGraph

    def home(self) -> object:
        """The index of the file."""
        return self.index

    def imported(self, name: str) -> str | None:
        """The dotted name that an import of the file binds to ``name``."""
        entry = self.index.imports.get(name)
        if entry is None:
            return None
        module, original = entry
        return module if original is None else f"{module}.{original}"

    def constant(self, name: str) -> str | None:
        """The text that a name of the module, or ``Class.name``, is assigned; imports of the package are followed."""
        index, local = self.index, name
        for _ in range(_MOST_HOPS):
            text = index.constants.get(local)
            if local in index.state:
                return None
            if text is not None:
                return text
            entry = index.imports.get(local)
            if entry is None or entry[1] is None:
                return None
            home = self.graph.load(entry[0])
            if home is None:
                return None
            index, local = home, entry[1]
        return None

    def function(self, name: str, owner: str | None = None, caller: str = "") -> Definition | None:
        """The function of the file or package that a call runs."""
        resolved = self.graph.resolve(self.index, caller, Call(name, owner))
        if resolved is None:
            return None
        home, unit = resolved
        scope = self if home is self.index else ModuleScope(home, self.graph)
        return Definition(unit.qualname, unit.text, scope, "." in unit.qualname)

    def is_class(self, name: str) -> bool:
        """Return whether a name of the file is a class."""
        return name in self.index.bases

    def class_text(self, name: str) -> str | None:
        """The text of a class of the file without its methods."""
        return self.index.classes.get(name)
