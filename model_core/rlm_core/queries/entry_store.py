"""Entries on the disk, for all processes of a user: a key -> an object as MessagePack.

A store is an SQLite database in the user's cache folder, with a checksum per entry: a damaged entry is a miss, and a
broken file is begun again. What was not used for the longest time goes. A key is a digest of all that an entry depends
on, the program included, so that no other version reads it. The environment variable ``RLM_LSP_FACTS_CACHE`` turns all
stores off or names their folder.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

VARIABLE = "RLM_LSP_FACTS_CACHE"
_OFF = ("0", "false", "no", "off")
_PRUNED_TO = 0.9
_COUNTED_SHARE = 10
_WAIT_SECONDS = 1.0  # for another process; then nothing is stored
_DAY = 86_400
_TABLE = (
    "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, used INTEGER, checksum BLOB, entry BLOB) WITHOUT ROWID"
)
# Keys are in no order.
_PRUNE = "DELETE FROM entries WHERE key IN (SELECT key FROM entries ORDER BY used, key LIMIT ?)"
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
T = TypeVar("T")
# JSON has no infinity, which a bound may be.
_ENCODER = msgspec.msgpack.Encoder()


def default_folder() -> Path | None:
    """The folder of all stores; None where the environment turns them off."""
    named = os.environ.get(VARIABLE, "").strip()
    if named.lower() in _OFF:
        return None
    if named:
        return Path(named)
    from platformdirs import user_cache_path  # takes milliseconds, at the start of the server

    return user_cache_path("rlm-lsp")


def digest_of(*parts: str | bytes) -> bytes:
    """A digest of parts, whose limits count too."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        # The length before each part keeps ("ab", "c") and ("a", "bc") apart.
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()


@cache
def source_digest(*paths: Path) -> str:
    """A digest of a program: the files of these packages, or these files, the versions of Python and of libraries.

    Raises:
        OSError: the source is not in files.
    """
    parts: list[str | bytes] = [repr(sys.version_info[:3]), *_installed()]
    for path in paths:
        below = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in below:
            if file.suffix != ".pyc" and file.is_file():
                parts += [file.name, file.read_bytes()]
    return digest_of(*parts).hex()


def _installed() -> list[str]:
    """The names and versions of what is installed, grammars and numerical libraries among it."""
    found: set[str] = set()
    for folder in filter(None, sys.path):
        with suppress(OSError):
            found.update(name for name in os.listdir(folder) if name.endswith(".dist-info"))  # noqa: PTH208 - names alone
    return sorted(found)


class EntryStore(Generic[T]):
    """Entries on the disk by key. Not thread-safe; other objects and processes may use the same file.

    Nothing is raised: what cannot be read is a miss, and what cannot be written is left out.

    Args:
        path: the database; None for a store that keeps nothing.
        entry_type: the type of an entry.
        most_entries: more are pruned.
        most_bytes: a larger entry is not kept.
    """

    def __init__(self, path: Path | None, entry_type: type[T], most_entries: int, most_bytes: int) -> None:
        self._path, self._most_entries, self._most_bytes = path, most_entries, most_bytes
        self._decoder = msgspec.msgpack.Decoder(entry_type)
        self._connection: sqlite3.Connection | None = None
        self._room = 0  # counting takes tens of milliseconds, so it is not done each time
        self._new: dict[bytes, bytes] = {}
        self._used: set[bytes] = set()

    @property
    def is_open(self) -> bool:
        """False where nothing is kept: no key need be made."""
        return self._path is not None

    def get(self, key: bytes | None) -> T | None:
        """The entry of a key; None where there is none."""
        if key is None or (connection := self._opened()) is None:
            return None
        try:
            row = connection.execute("SELECT used, checksum, entry FROM entries WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            self._fail(error)
            return None
        if row is None:
            return None
        used, checksum, content = row
        if not isinstance(content, bytes) or checksum != _checksum(key, content):
            return None
        try:
            entry = self._decoder.decode(content)
        except (msgspec.MsgspecError, ValueError):
            return None
        if used != _today():
            self._used.add(key)
        return entry

    def put(self, key: bytes | None, entry: T) -> None:
        """Keep an entry until :meth:`save`."""
        if key is None or self._path is None:
            return
        with suppress(UnicodeError, OverflowError):  # half a surrogate pair, an integer of more than 64 bits
            content = _ENCODER.encode(entry)
            if len(content) <= self._most_bytes:
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
                connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", rows)
                connection.executemany("UPDATE entries SET used = ? WHERE key = ?", [(today, key) for key in used])
                self._room -= len(rows)
                if self._room < 0:
                    self._room = self._prune(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            self._fail(error)

    def _prune(self, connection: sqlite3.Connection) -> int:
        """Remove what is too much; the number of entries that may be added until they are counted again."""
        count: int = connection.execute("SELECT count(*) FROM entries").fetchone()[0]
        if count > self._most_entries:
            kept = int(_PRUNED_TO * self._most_entries)
            connection.execute(_PRUNE, (count - kept,))
            count = kept
        # Other processes add entries too.
        return min(self._most_entries - count, self._most_entries // _COUNTED_SHARE)

    def close(self) -> None:
        """Close the file; it is opened again when it is used."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        self.close()

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
    # The owner of a store may change its thread, but has one at a time.
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
