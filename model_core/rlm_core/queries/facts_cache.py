"""Work facts of units on the disk, for all processes of a user: a key -> the facts, and what they were made from.

Facts depend on the text of a unit and on the answers of its scope: imports, constants, classes and functions of its
file and package. An entry has all questions that the analysis has asked (:class:`rlm_core.cost.scope.Trace`), and holds
where the answers are still the same. Its key has a digest of the analysis's source, so that no other version reads it.
Entries are MessagePack in an :class:`EntryStore`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from rlm_core import cost, source, types
from rlm_core.cost.scope import ModuleScope, Question, text_of
from rlm_core.types import WorkFacts

from .entry_store import EntryStore, digest_of, source_digest

FILE = "facts.sqlite3"
# About 5 KB each.
_MOST_ENTRIES = 20_000
_MOST_BYTES = 64 * 2**10  # of an entry


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """Facts, the questions that their analysis asked, a digest of the answers, and the functions that it read.

    A function is its module and qualified name.
    """

    facts: WorkFacts | None
    questions: tuple[Question, ...] = ()
    answers: str = ""
    dependencies: tuple[tuple[str, str], ...] = ()


def digest(answers: Iterable[str]) -> str:
    """Return a digest of all answers."""
    return digest_of(*answers).hex()


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
            answers.append(text_of(home.function(name, owner[0] if owner else None, caller)))
        elif question in _QUESTIONS and len(arguments) == 1:
            answers.append(text_of(_QUESTIONS[question](home, arguments[0])))
        else:
            return False
    return digest(answers) == entry.answers


_QUESTIONS: dict[str, Callable[[ModuleScope, str], object]] = {
    "imported": ModuleScope.imported,
    "constant": ModuleScope.constant,
    "is_class": ModuleScope.is_class,
    "class_text": ModuleScope.class_text,
    "imports_any": ModuleScope.imports_any,
}


def _version() -> str:
    """A digest of the source of the analysis, and of what else its answers depend on."""
    folders = [Path(folder) for package in (cost, source) for folder in package.__path__]
    return source_digest(*folders, *map(Path, types.__path__), Path(__file__))


class FactsCache:
    """Entries on the disk by key. Not thread-safe; other objects and processes may use the same file.

    Nothing is raised: what cannot be read is a miss, and what cannot be written is left out.
    """

    def __init__(self, folder: Path | None) -> None:
        self._store = EntryStore(folder / FILE if folder is not None else None, Entry, _MOST_ENTRIES, _MOST_BYTES)

    def get(self, *parts: str) -> Entry | None:
        """The entry of a key; None where there is none."""
        return self._store.get(self._key(parts))

    def put(self, entry: Entry, *parts: str) -> None:
        """Keep an entry until :meth:`save`."""
        self._store.put(self._key(parts), entry)

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
