"""Scopes: the meaning of names outside a unit, from the imports, constants and functions of its file and package.

Input: the index of the unit's module and the call graph over its package. The analysis looks names up here that the
unit does not bind; a :class:`Trace` notes the answers, on which its facts depend.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

from rlm_core.source.call_graph import CallGraph
from rlm_core.source.module_index import Call, ModuleIndex

_MOST_HOPS = 4
_WORDS = re.compile(r"[^\W_]+")
_T = TypeVar("_T")
Question = tuple[str, str, tuple[str, ...]]  # module, what is asked, and the arguments


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

    def imports_any(self, words: str) -> bool:
        """Return whether an import of the file has one of some words in a name: ``app.models`` has ``models``.

        ``words`` are separated by spaces.
        """


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

    def imports_any(self, words: str) -> bool:
        """Nothing is known of imports: any may be there."""
        return True


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

    def imports_any(self, words: str) -> bool:
        """Return whether an import of the file has one of the words in a name."""
        names = (f"{module}.{original or ''}" for module, original in self.index.imports.values())
        return not {word for name in names for word in _WORDS.findall(name)}.isdisjoint(words.split())


@dataclass(slots=True)
class Trace:
    """The questions that the analysis of a unit asks about names, and the answers.

    Units of one version of a file share it, one after another: a question has one answer for all of them.
    """

    check: Callable[[], None] = lambda: None
    answers: dict[Question, str] = field(default_factory=dict)
    _scopes: dict[int, TracedScope] = field(default_factory=dict)
    _known: dict[Question, tuple[object, str]] = field(default_factory=dict)

    def start(self, check: Callable[[], None] = lambda: None) -> None:
        """Begin with a unit; ``check`` is called before each question, and may raise to give the analysis up."""
        self.check, self.answers = check, {}

    def of(self, scope: ModuleScope) -> TracedScope:
        """Return the scope of a file, whose answers are noted."""
        return self._scopes.setdefault(id(scope.index), TracedScope(scope, self))

    def noted(self, question: Question, ask: Callable[[], _T]) -> _T:
        """Return the answer to a question, which is asked once, and note it."""
        self.check()
        known = self._known.get(question)
        if known is None:
            answer = ask()
            known = self._known[question] = answer, text_of(answer)
        self.answers[question] = known[1]
        return cast(_T, known[0])


@dataclass(frozen=True, slots=True)
class TracedScope:
    """A scope that notes its answers."""

    scope: ModuleScope
    trace: Trace

    def home(self) -> object:
        """The index of the file."""
        return self.scope.home()

    def imported(self, name: str) -> str | None:
        """See :meth:`ModuleScope.imported`."""
        return self.trace.noted(self._question("imported", name), lambda: self.scope.imported(name))

    def constant(self, name: str) -> str | None:
        """See :meth:`ModuleScope.constant`."""
        return self.trace.noted(self._question("constant", name), lambda: self.scope.constant(name))

    def function(self, name: str, owner: str | None = None, caller: str = "") -> Definition | None:
        """See :meth:`ModuleScope.function`."""
        # The owner may be missing, which is not the same as an empty one.
        arguments = (name, caller) if owner is None else (name, caller, owner)
        return self.trace.noted(
            self._question("function", *arguments), lambda: self._traced(self.scope.function(name, owner, caller))
        )

    def is_class(self, name: str) -> bool:
        """See :meth:`ModuleScope.is_class`."""
        return self.trace.noted(self._question("is_class", name), lambda: self.scope.is_class(name))

    def class_text(self, name: str) -> str | None:
        """See :meth:`ModuleScope.class_text`."""
        return self.trace.noted(self._question("class_text", name), lambda: self.scope.class_text(name))

    def imports_any(self, words: str) -> bool:
        """See :meth:`ModuleScope.imports_any`."""
        return self.trace.noted(self._question("imports_any", words), lambda: self.scope.imports_any(words))

    def _question(self, kind: str, *arguments: str) -> Question:
        return self.scope.index.dotted, kind, arguments

    def _traced(self, definition: Definition | None) -> Definition | None:
        if definition is None:
            return None
        scope = definition.scope
        assert isinstance(scope, ModuleScope), "a scope of a file leads to scopes of files"
        return Definition(definition.qualname, definition.text, self.trace.of(scope), definition.is_method)


def text_of(answer: object) -> str:
    """Return an answer as text; of a function, the place and the text that it leads to."""
    if isinstance(answer, Definition):
        scope = answer.scope.scope if isinstance(answer.scope, TracedScope) else answer.scope
        assert isinstance(scope, ModuleScope), "a scope of a file leads to scopes of files"
        answer = scope.index.dotted, answer.qualname, answer.is_method, answer.text
    return repr(answer)
