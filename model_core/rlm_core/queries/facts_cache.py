"""Work facts of units on the disk, for all processes of a user: a key -> the facts, and what they were made from.

Facts depend on the text of a unit and on the answers of its scope: imports, constants, classes and functions of its
file and package. An entry has all questions that the analysis has asked (:class:`Trace`), and holds where the answers
are still the same. Its key has a digest of the analysis's source, so that no other version reads it. The file is an
SQLite database of JSON with a checksum per entry: a damaged entry is a miss, and a broken file is begun again. The
environment variable ``RLM_LSP_FACTS_CACHE`` turns the cache off or names its folder.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from rlm_core import cost, source, types
from rlm_core.cost.scope import Definition, ModuleScope
from rlm_core.types import WorkFacts

VARIABLE = "RLM_LSP_FACTS_CACHE"
FILE = "facts.sqlite3"
_OFF = ("0", "false", "no", "off")
# About 5 KB each. What was not used for the longest time goes.
_MOST_ENTRIES = 20_000
_PRUNED_TO = 0.9
_MOST_BYTES = 64 * 2**10  # of an entry
_WAIT_SECONDS = 1.0  # for another process; then nothing is stored
_DAY = 86_400
_TABLE = (
    "CREATE TABLE IF NOT EXISTS facts (key BLOB PRIMARY KEY, used INTEGER, checksum BLOB, entry BLOB) WITHOUT ROWID"
)
_PRUNE = "DELETE FROM facts WHERE key IN (SELECT key FROM facts ORDER BY used, key LIMIT ?)"  # keys are in no order
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

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


_ENCODER, _DECODER = msgspec.json.Encoder(), msgspec.json.Decoder(Entry)


@dataclass(slots=True)
class Trace:
    """The questions that an analysis asks about names, and the answers."""

    answers: dict[Question, str] = field(default_factory=dict)
    scopes: dict[int, TracedScope] = field(default_factory=dict)

    def of(self, scope: ModuleScope) -> TracedScope:
        """The scope of a file, whose answers are noted."""
        return self.scopes.setdefault(id(scope.index), TracedScope(scope, self))

    def digest(self) -> str:
        """A digest of all answers."""
        return _hash(*self.answers.values()).hex()


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


def _hash(*parts: str) -> bytes:
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        # The length before each part keeps ("ab", "c") and ("a", "bc") apart.
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()


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
    return _hash(*answers).hex() == entry.answers


_QUESTIONS: dict[str, Callable[[ModuleScope, str], object]] = {
    "imported": ModuleScope.imported,
    "constant": ModuleScope.constant,
    "is_class": ModuleScope.is_class,
    "class_text": ModuleScope.class_text,
}


@cache
def _version() -> str:
    """A digest of the source of the analysis, and of what else its answers depend on."""
    digest = hashlib.blake2b(repr(sys.version_info[:2]).encode(), digest_size=16)
    folders = [Path(folder) for package in (cost, source) for folder in package.__path__]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix != ".pyc" and path.is_file()]
    for path in (*sorted(files), Path(types.__file__), Path(__file__)):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def default_folder() -> Path | None:
    """The folder of the cache; None where the environment turns it off."""
    named = os.environ.get(VARIABLE, "").strip()
    if named.lower() in _OFF:
        return None
    if named:
        return Path(named)
    from platformdirs import user_cache_path  # takes milliseconds, at the start of the server

    return user_cache_path("rlm-lsp")


class FactsCache:
    """Entries on the disk by key. Not thread-safe; other objects and processes may use the same file.

    Nothing is raised: what cannot be read is a miss, and what cannot be written is left out.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / FILE if folder is not None else None
        self._connection: sqlite3.Connection | None = None
        self._new: dict[bytes, bytes] = {}
        self._used: set[bytes] = set()

    def get(self, *parts: str) -> Entry | None:
        """The entry of a key; None where there is none."""
        key = self._key(parts)
        if key is None or (connection := self._opened()) is None:
            return None
        try:
            row = connection.execute("SELECT used, checksum, entry FROM facts WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            used, checksum, content = row
            if checksum != _checksum(key, content):
                return None
            entry = _DECODER.decode(content)
        except sqlite3.Error as error:
            self._fail(error)
            return None
        except (msgspec.MsgspecError, TypeError, ValueError):
            return None
        if used != _today():
            self._used.add(key)
        return entry

    def put(self, entry: Entry, *parts: str) -> None:
        """Keep an entry until :meth:`save`."""
        key = self._key(parts)
        if key is None:
            return
        with suppress(UnicodeError):  # half a surrogate pair is not JSON
            content = _ENCODER.encode(entry)
            if len(content) <= _MOST_BYTES:
                self._new[key] = content

    def save(self) -> None:
        """Write what is new to the disk."""
        new, used = self._new, self._used
        self._new, self._used = {}, set()
        if not (new or used) or (connection := self._opened()) is None:
            return
        today = _today()
        rows = [(key, today, _checksum(key, content), content) for key, content in new.items()]
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?)", rows)
                connection.executemany("UPDATE facts SET used = ? WHERE key = ?", [(today, key) for key in used])
                [count] = connection.execute("SELECT count(*) FROM facts").fetchone()
                if count > _MOST_ENTRIES:
                    surplus = count - int(_PRUNED_TO * _MOST_ENTRIES)
                    connection.execute(_PRUNE, (surplus,))
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            self._fail(error)

    def close(self) -> None:
        """Close the file; it is opened again when it is used."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        self.close()

    def _key(self, parts: tuple[str, ...]) -> bytes | None:
        if self._path is None:
            return None
        try:
            return _hash(_version(), *parts)
        except OSError:  # the source is not in files
            self._path = None
            return None

    def _opened(self) -> sqlite3.Connection | None:
        if self._connection is None and self._path is not None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._connection = _connect(self._path)
            except OSError:
                self._path = None
            except sqlite3.Error as error:
                self._fail(error)
        return self._connection

    def _fail(self, error: sqlite3.Error) -> None:
        """Begin a broken file again, with the next use; use no other file that fails any more, unless it is busy."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended part
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return
        with suppress(sqlite3.Error):
            self.close()
        path, self._path = self._path, None
        if code in _BROKEN and path is not None:
            with suppress(OSError):
                for suffix in ("", "-wal", "-shm"):
                    path.with_name(path.name + suffix).unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    # Names and expressions of the user's code are for the user alone.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    # An analyser may change its thread, but has one at a time.
    connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(_TABLE)
    except BaseException:
        connection.close()
        raise
    return connection


def _checksum(key: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(key + content, digest_size=8).digest()


def _today() -> int:
    return int(time.time() // _DAY)
