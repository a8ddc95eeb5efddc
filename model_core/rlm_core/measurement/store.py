"""The user's measurements: one SQLite file in write-ahead mode, which several processes may use at once.

Each change is one short transaction. A file that is no longer a database is renamed and a new one
started. Pruned with each addition: of the text of a unit, device, workload and metric the newest
:data:`KEPT_RUNS` runs stay, of those older than :data:`KEPT_DAYS` days only the last run of a unit, and at most
:data:`MOST_ROWS` rows. A clock that was wrong loses nothing that counts: a date in the future counts as unknown,
and comes after all others.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from platformdirs import user_data_path

from rlm_core.errors import DataError

from .types import Measurement, SizedCalls, SizeSpread

KEPT_RUNS, KEPT_DAYS, MOST_ROWS = 3, 365, 500_000
FILE = "measurements.sqlite3"
_VERSION = 4
_APPLICATION = 0x726C6D31  # "rlm1"
# Before programs came all measurements were of Python functions.
_TO_VERSION_2 = (
    "ALTER TABLE measurement ADD COLUMN language TEXT NOT NULL DEFAULT 'python'",
    "PRAGMA user_version = 2",
)
# Before it no text was kept, and renaming a local variable changed the hash of a function.
_TEXTS = "CREATE TABLE text (source_hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"
_TO_VERSION_3 = (
    "ALTER TABLE measurement ADD COLUMN cpu_score REAL NOT NULL DEFAULT 0",
    _TEXTS,
    "PRAGMA user_version = 3",
)
# Before it a number did not say for which inputs it holds.
_TO_VERSION_4 = (
    "ALTER TABLE measurement ADD COLUMN sizes TEXT NOT NULL DEFAULT '{}'",
    "ALTER TABLE measurement ADD COLUMN sized TEXT NOT NULL DEFAULT '[]'",
    "ALTER TABLE measurement ADD COLUMN first REAL",
    "PRAGMA user_version = 4",
)
_UPGRADES = {
    1: (*_TO_VERSION_2, *_TO_VERSION_3, *_TO_VERSION_4),
    2: (*_TO_VERSION_3, *_TO_VERSION_4),
    3: _TO_VERSION_4,
}
_WAIT_SECONDS = 30.0
_RETRY_SECONDS = 0.01
_NAMES_AT_ONCE = 500
_TYPES = {"str": "TEXT", "float": "REAL", "int": "INTEGER", "bool": "INTEGER", "float | None": "REAL"}
# The texts have a separate table: the metrics and runs of a unit share one.
_COLUMNS = tuple(field.name for field in fields(Measurement) if field.name != "text")
_KEY = ("source_hash", "device", "workload", "metric", "module", "qualname", "line", "run")
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# A date after tomorrow, the parameter, is that of a wrong clock.
_NEWEST_FIRST = "CASE WHEN measured_at > ? THEN '' ELSE measured_at END DESC"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """The measurements of a package's version on a device under a workload, by metric."""

    package: str
    version: str
    device: str
    workload: str
    metric: str
    units: int
    runs: int
    last: str


def default_path() -> Path:
    """Return the path of this user's measurements."""
    return user_data_path("rlm-lsp") / FILE


class Store:
    """The measurements in a file, which is made when there is something to write.

    ``note`` receives one line when a broken file was renamed. Every method raises :class:`DataError` where the file
    cannot be used: no permission, disk full, locked for too long, or made by a newer version.
    """

    def __init__(self, path: Path | None = None, note: Callable[[str], None] = lambda text: None) -> None:
        self.path = path or default_path()
        self._note = note

    def add(self, measurements: Iterable[Measurement]) -> int:
        """Take in measurements, those of the same run and unit in place of what is there; how many rows changed."""
        measurements = list(measurements)
        rows = [_row(one) for one in measurements]
        texts = {one.source_hash: one.text for one in measurements if one.text}
        marks = ", ".join("?" * len(_COLUMNS))

        def write(connection: sqlite3.Connection) -> int:
            with _transaction(connection):
                connection.executemany(
                    f"INSERT OR REPLACE INTO measurement ({', '.join(_COLUMNS)}) VALUES ({marks})",  # noqa: S608
                    rows,
                )
                connection.executemany("INSERT OR REPLACE INTO text VALUES (?, ?)", texts.items())
                _prune(connection)
            return len(rows)

        return self._use(write) if rows else 0

    def of_names(self, qualnames: Iterable[str]) -> list[Measurement]:
        """All measurements of units with these qualified names, newest first."""
        names = list(dict.fromkeys(qualnames))
        found: list[Measurement] = []
        for start in range(0, len(names), _NAMES_AT_ONCE):
            step = names[start : start + _NAMES_AT_ONCE]
            found += self._read(f"qualname IN ({', '.join('?' * len(step))})", step)
        return found

    def in_folder(self, folder: Path) -> list[Measurement]:
        """All measurements of units in files below a folder, newest first."""
        prefix = f"{folder}{os.sep}"
        # Text is compared by code points: the separator's successor ends the range.
        return self._read("path >= ? AND path < ?", (prefix, f"{folder}{chr(ord(os.sep) + 1)}"))

    def all(self, packages: Sequence[str] = ()) -> list[Measurement]:
        """All measurements, or those of packages by the name of their distribution or their first module."""
        wanted = set(packages)
        return [
            one
            for one in self._read("1 = 1", ())
            if not wanted or wanted & {one.package, one.module, one.module.partition(".")[0]}
        ]

    def summaries(self) -> list[StoreSummary]:
        """Summarise the stored measurements by package, version, device, workload and metric."""
        query = (
            "SELECT package, version, device, workload, metric, count(DISTINCT module || ':' || qualname),"
            " count(DISTINCT run), max(measured_at) FROM measurement GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5"
        )
        if not self.path.exists():
            return []
        return self._use(lambda connection: [StoreSummary(*row) for row in connection.execute(query)])

    def _read(self, condition: str, values: Sequence[object]) -> list[Measurement]:
        if not self.path.exists():
            return []
        query = (
            f"SELECT {', '.join(_COLUMNS)}, coalesce(text, '') FROM measurement LEFT JOIN text USING (source_hash)"  # noqa: S608
            f" WHERE {condition} ORDER BY {_NEWEST_FIRST}, id DESC"
        )
        found = (*values, _tomorrow())
        return self._use(lambda connection: [_measurement(row) for row in connection.execute(query, found)])

    def _use(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run one transaction, again where the file is broken (then a new one is begun) or another process was first.

        SQLite reports a file as locked at once, without waiting, while another process is the first to open it or the
        last to close it: those change the file's mode or remove the log.
        """
        deadline = time.monotonic() + _WAIT_SECONDS
        was_broken = False
        while True:
            try:
                with closing(self._open()) as connection:
                    return work(connection)
            except sqlite3.DatabaseError as error:
                code = _code(error)
                if code in _BROKEN and not was_broken:
                    was_broken = True
                    self._set_aside()
                elif code == sqlite3.SQLITE_BUSY and time.monotonic() < deadline:
                    time.sleep(_RETRY_SECONDS)
                else:
                    raise DataError(f"{self.path}: {_reason(error)}") from None

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be made ({error.strerror}); name another file with --store") from None
        connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the table, or see that it is ours."""
        [version] = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            with _transaction(connection):
                # Another process may have been first.
                tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
                if not tables:
                    for statement in _schema():
                        connection.execute(statement)
                elif "measurement" not in tables:
                    raise DataError(f"{self.path}: is a database of something else; name another file with --store")
        elif version in _UPGRADES:
            with _transaction(connection):
                # Another process may have been first.
                [version] = connection.execute("PRAGMA user_version").fetchone()
                for statement in _UPGRADES.get(version, ()):
                    connection.execute(statement)
        elif version > _VERSION:
            raise DataError(f"{self.path}: was written by a newer rlm-lsp; update rlm-lsp or name another --store")

    def _set_aside(self) -> None:
        """Rename a file that is still broken when no other process is doing the same."""
        lock = self.path.with_name(f"{self.path.name}.lock")
        with closing(sqlite3.connect(lock, timeout=_WAIT_SECONDS, isolation_level=None)) as guard:
            guard.execute("BEGIN EXCLUSIVE")
            if not _is_broken(self.path):
                return
            stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
            aside = self.path.with_name(f"{self.path.name}.broken-{stamp}")
            try:
                self.path.replace(aside)
                for end in ("-wal", "-shm"):
                    self.path.with_name(self.path.name + end).unlink(missing_ok=True)
            except OSError as error:
                raise DataError(f"{self.path}: is broken and cannot be renamed ({error.strerror})") from None
        self._note(f"{self.path}: is broken; it was set aside as {aside.name} and a new one begun")


def _tomorrow() -> str:
    """A date after those of any time zone and of clocks that are a little fast."""
    return (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")


def _schema() -> Iterator[str]:
    types = {field.name: _TYPES.get(str(field.type), "TEXT") for field in fields(Measurement)}
    columns = [f"{name} {types[name]}{' NOT NULL' * (name != 'first')}" for name in _COLUMNS]
    yield f"CREATE TABLE measurement (id INTEGER PRIMARY KEY, {', '.join(columns)}, UNIQUE ({', '.join(_KEY)}))"
    yield _TEXTS
    yield "CREATE INDEX measurement_qualname ON measurement (qualname)"
    yield f"PRAGMA application_id = {_APPLICATION}"
    yield f"PRAGMA user_version = {_VERSION}"


def _prune(connection: sqlite3.Connection) -> None:
    oldest = datetime.now(UTC) - timedelta(days=KEPT_DAYS)
    same = ", ".join(column for column in _KEY if column not in ("run", "line"))
    unit = ", ".join(column for column in _KEY if column not in ("run", "line", "source_hash"))
    ranked = (
        "DELETE FROM measurement WHERE id IN (SELECT id FROM (SELECT id, measured_at, dense_rank() OVER ("  # noqa: S608
        "PARTITION BY {} ORDER BY " + _NEWEST_FIRST + ", run DESC) AS age FROM measurement) WHERE {})"
    )
    limit = oldest.isoformat(timespec="seconds")
    # Ranking a full store takes a second.
    if connection.execute("SELECT 1 FROM measurement WHERE measured_at < ? LIMIT 1", (limit,)).fetchone():
        connection.execute(ranked.format(unit, "age > 1 AND measured_at < ?"), (_tomorrow(), limit))
    connection.execute(ranked.format(same, "age > ?"), (_tomorrow(), KEPT_RUNS))
    connection.execute(
        f"DELETE FROM measurement WHERE id IN (SELECT id FROM measurement ORDER BY {_NEWEST_FIRST}, id DESC"  # noqa: S608
        " LIMIT -1 OFFSET ?)",
        (_tomorrow(), MOST_ROWS),
    )
    connection.execute("DELETE FROM text WHERE source_hash NOT IN (SELECT source_hash FROM measurement)")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _row(one: Measurement) -> tuple[object, ...]:
    written = {
        "workload": json.dumps(dict(sorted(one.workload.items()))),
        "sizes": json.dumps({name: astuple(spread) for name, spread in sorted(one.sizes.items())}),
        "sized": json.dumps([[dict(row.sizes), row.median, row.calls, row.scaled] for row in one.sized]),
    }
    return tuple(written[name] if name in written else getattr(one, name) for name in _COLUMNS)


def _measurement(row: Sequence[Any]) -> Measurement:
    values = dict(zip((*_COLUMNS, "text"), row, strict=True))
    values["workload"] = json.loads(values["workload"])
    values["sizes"] = {name: SizeSpread(*spread) for name, spread in json.loads(values["sizes"]).items()}
    values["sized"] = tuple(SizedCalls(*row) for row in json.loads(values["sized"]))
    values |= {name: bool(values[name]) for name in ("recursive", "threads", "ok")}
    return Measurement(**values)


def _is_broken(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT_SECONDS)) as connection:
            [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
            return bool(found != "ok")
    except sqlite3.DatabaseError as error:
        return _code(error) in _BROKEN


def _code(error: sqlite3.DatabaseError) -> int:
    """SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _reason(error: sqlite3.DatabaseError) -> str:
    code = _code(error)
    advice = {
        sqlite3.SQLITE_FULL: "free some space",
        sqlite3.SQLITE_IOERR: "free some space or check the disk",
        sqlite3.SQLITE_BUSY: "another program holds it; try again",
        sqlite3.SQLITE_READONLY: "check its permissions",
        sqlite3.SQLITE_CANTOPEN: "check the path and its permissions",
    }.get(code, "name another file with --store")
    return f"the measurements cannot be kept or read ({error}); {advice}"
