"""Work facts of units on the disk, for all processes of a user: a key -> the facts, and what they were made from.

Facts depend on the text of a unit and on the answers of its scope: imports, constants, classes and functions of its
file and package. An entry has all questions that the analysis has asked (:class:`Trace`), and holds where the answers
are still the same. Its key has a digest of the analysis's source, so that no other version reads it. Entries are
MessagePack in an :class:`EntryStore`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from rlm_core import cost, source, types
from rlm_core.cost.scope import Definition, ModuleScope
from rlm_core.types import WorkFacts

from .entry_store import EntryStore, digest_of, source_digest

FILE = "facts.sqlite3"
# About 5 KB each.
_MOST_ENTRIES = 20_000
_MOST_BYTES = 64 * 2**10  # of an entry

_T = TypeVar("_T")
Question = tuple[str, str, tuple[str, ...]]  # module, what is asked, and the arguments


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """Facts, the questions that their analysis asked, a digest of the answers, and the functions that it read.

    A function is its module and qualified name.
    """

    facts: WorkFacts | None
    questions: tuple[Question, ...] = ()
    answers: str = ""
    dependencies: tuple[tuple[str, str], ...] = ()


# JSON has no infinity, which a bound may be.
_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Entry)


@dataclass(slots=True)
class Trace:
    """The questions that an analysis asks about names, and the answers; ``check`` may raise to give it up."""

    check: Callable[[], None] = lambda: None
    answers: dict[Question, str] = field(default_factory=dict)
    scopes: dict[int, TracedScope] = field(default_factory=dict)

    def of(self, scope: ModuleScope) -> TracedScope:
        """The scope of a file, whose answers are noted."""
        return self.scopes.setdefault(id(scope.index), TracedScope(scope, self))

    def digest(self) -> str:
        """A digest of all answers."""
        return digest_of(*self.answers.values()).hex()


@dataclass(frozen=True, slots=True)
class TracedScope:
    """A :class:`rlm_core.cost.scope.Scope` that notes its answers."""

    scope: ModuleScope
    trace: Trace

    def home(self) -> object:
        """The index of the file."""
        return self.scope.home()

    def imported(self, name: str) -> str | None:
        """See :meth:`ModuleScope.imported`."""
        return self._noted("imported", (name,), self.scope.imported(name))

    def constant(self, name: str) -> str | None:
        """See :meth:`ModuleScope.constant`."""
        return self._noted("constant", (name,), self.scope.constant(name))

    def function(self, name: str, owner: str | None = None, caller: str = "") -> Definition | None:
        """See :meth:`ModuleScope.function`."""
        # The owner may be missing, which is not the same as an empty one.
        arguments = (name, caller) if owner is None else (name, caller, owner)
        definition = self._noted("function", arguments, self.scope.function(name, owner, caller))
        if definition is None:
            return None
        assert isinstance(definition.scope, ModuleScope), "a scope of a file leads to scopes of files"
        return Definition(definition.qualname, definition.text, self.trace.of(definition.scope), definition.is_method)

    def is_class(self, name: str) -> bool:
        """See :meth:`ModuleScope.is_class`."""
        return self._noted("is_class", (name,), self.scope.is_class(name))

    def class_text(self, name: str) -> str | None:
        """See :meth:`ModuleScope.class_text`."""
        return self._noted("class_text", (name,), self.scope.class_text(name))

    def _noted(self, question: str, arguments: tuple[str, ...], answer: _T) -> _T:
        self.trace.check()
        key = self.scope.index.dotted, question, arguments
        if key not in self.trace.answers:
            self.trace.answers[key] = _text(answer)
        return answer


def _text(answer: object) -> str:
    """An answer as text; of a function, the place and the text that it leads to."""
    if isinstance(answer, Definition):
        assert isinstance(answer.scope, ModuleScope), "a scope of a file leads to scopes of files"
        answer = answer.scope.index.dotted, answer.qualname, answer.is_method, answer.text
    return repr(answer)


def still_holds(entry: Entry, scope: ModuleScope) -> bool:
    """Return whether the questions of an entry, asked in ``scope`` and where it leads to, have the same answers."""
    scopes = {scope.index.dotted: scope}
    answers = []
    for dotted, question, arguments in entry.questions:
        home = scopes.get(dotted)
        if home is None:
            index = scope.graph.load(dotted)
            if index is None:
                return False
            home = scopes[dotted] = ModuleScope(index, scope.graph)
        if question == "function" and len(arguments) in (2, 3):
            name, caller, *owner = arguments
            answers.append(_text(home.function(name, owner[0] if owner else None, caller)))
        elif question in _QUESTIONS and len(arguments) == 1:
            answers.append(_text(_QUESTIONS[question](home, arguments[0])))
        else:
            return False
    return digest_of(*answers).hex() == entry.answers


_QUESTIONS: dict[str, Callable[[ModuleScope, str], object]] = {
    "imported": ModuleScope.imported,
    "constant": ModuleScope.constant,
    "is_class": ModuleScope.is_class,
    "class_text": ModuleScope.class_text,
}


def _version() -> str:
    """A digest of the source of the analysis, and of what else its answers depend on."""
    folders = [Path(folder) for package in (cost, source) for folder in package.__path__]
    return source_digest(*folders, Path(types.__file__), Path(__file__))


class FactsCache:
    """Entries on the disk by key. Not thread-safe; other objects and processes may use the same file.

    Nothing is raised: what cannot be read is a miss, and what cannot be written is left out.
    """

    def __init__(self, folder: Path | None) -> None:
        self._store = EntryStore(folder / FILE if folder is not None else None, _MOST_ENTRIES, _MOST_BYTES)

    def get(self, *parts: str) -> Entry | None:
        """The entry of a key; None where there is none."""
        key = self._key(parts)
        content = self._store.get(key) if key is not None else None
        if content is None:
            return None
        try:
            return _DECODER.decode(content)
        except (msgspec.MsgspecError, ValueError):
            return None

    def put(self, entry: Entry, *parts: str) -> None:
        """Keep an entry until :meth:`save`."""
        key = self._key(parts)
        if key is not None:
            with suppress(UnicodeError, OverflowError):  # half a surrogate pair, an integer of more than 64 bits
                self._store.put(key, _ENCODER.encode(entry))

    def save(self) -> None:
        """Write what is new to the disk."""
        self._store.save()

    def _key(self, parts: tuple[str, ...]) -> bytes | None:
        if not self._store.is_open:
            return None
        try:
            return digest_of(_version(), *parts)
        except OSError:  # the source is not in files
            return None
