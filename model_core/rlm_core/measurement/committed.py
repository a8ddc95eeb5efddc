"""Measurements that are committed with a project: ``.rlm/*.jsonl``, one line per unit, device, Python and workload.

Files are plain text that merges line by line: sorted, without absolute paths, the same whenever the same measurements
are written. Units of a file that share a name have a line each. Files come with a project, so they are read as data
that anyone may have written: regular files only, within limits, every line checked, and a line that cannot be used is
one message.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from cachetools import LRUCache

from rlm_core.errors import DataError
from rlm_core.files import atomic_write, read_regular
from rlm_core.source.units import accessor_of
from rlm_core.types import Unit

from .committed_units import CommittedUnit, committed_units, moment
from .types import Measurement

FOLDER, FILE = ".rlm", "measurements.jsonl"
# Of a project. A line holds the text of one unit: 50,000 functions have about 50 MB.
MOST_FILES, MOST_BYTES, MOST_LINES, MOST_LINE = 64, 64 * 2**20, 100_000, 2**20
_MOST_OF_FILE, _MOST_OF_TEXT, _SAMPLED = 3_000, 500, 2_000  # lines that one look-up decodes
_MOST_DECODED = 8 * 2**20  # bytes of them
_HASH = re.compile(rb'"hash":\s*"([0-9a-f]{32})"')
_ADVICE = "export fewer packages with `rlm-lsp measure export PACKAGE... --to`, or remove the file"
_SHOWN_PROBLEMS = 3
_KEPT_FILES, _KEPT_LINES = 64, 10_000


def read_committed(root: Path, note: Callable[[str], None]) -> list[Measurement]:
    """The measurements that are committed in a project folder; ``note`` receives a line for what cannot be used."""
    return [one for unit in read_units(root / FOLDER, note) for one in unit.measurements(root)]


def read_units(
    folder: Path, note: Callable[[str], None], left_out: Callable[[str], None] | None = None
) -> list[CommittedUnit]:
    """The lines of the files in a folder; none where there is no folder.

    ``left_out`` receives a line for what is not read, because of a limit or an error, ``note`` without one.
    """
    contents = _contents(folder, left_out or note)
    return [unit for path, data in contents for unit in _lines(path, data, note)]


def _contents(folder: Path, note: Callable[[str], None]) -> Iterator[tuple[Path, bytes]]:
    """The files in a folder with their bytes, within the limits; ``note`` receives a line for what is left out."""
    left, lines_left = MOST_BYTES, MOST_LINES
    for path in committed_files(folder):
        try:
            size = path.stat(follow_symlinks=False).st_size
            if size > left:
                room = f"{MOST_BYTES // 2**20} MiB are the limit of a project"
                note(f"{path}: not read: it has {size / 2**20:,.0f} MiB, and {room}; {_ADVICE}")
                continue
            left -= size
            data = read_regular(path, size)
        except OSError as error:
            note(f"{path}: cannot be read ({error.strerror})")
            continue
        lines = data.count(b"\n")
        if lines > lines_left:
            note(f"{path}: not read after line {lines_left:,} of {lines:,}: {MOST_LINES:,} are the limit; {_ADVICE}")
            data = data[: _end_of_line(data, lines_left)]
        lines_left = max(lines_left - lines, 0)
        yield path, data


def _end_of_line(data: bytes, number: int) -> int:
    """The offset after a line; the lines count from 1."""
    end = 0
    for _ in range(number):
        end = data.index(b"\n", end) + 1
    return end


class CommittedIndex:
    """The committed measurements of a project folder. Lines are decoded when a file or a text is looked up.

    The bytes are read at once and scanned once for hashes, which takes a tenth of the time of decoding every line.
    ``note`` receives a line for what cannot be used. Not thread-safe.
    """

    def __init__(self, root: Path, note: Callable[[str], None]) -> None:
        self.signature = signature_of(root / FOLDER)
        self._root, self._note = root, note
        self._contents = list(_contents(root / FOLDER, note))
        self._by_hash: dict[bytes, tuple[int, int]] = {}  # the first line: the index of its file and its offset
        self._more: dict[bytes, list[tuple[int, int]]] = {}
        self._problems: Counter[Path] = Counter()
        for number in range(len(self._contents)):
            self._scan(number)
        self._of_file: LRUCache[str, list[Measurement]] = LRUCache(_KEPT_FILES)
        self._decoded: LRUCache[tuple[int, int], tuple[Measurement, ...]] = LRUCache(_KEPT_LINES)

    def __bool__(self) -> bool:
        return bool(self._by_hash)

    def _scan(self, number: int) -> None:
        """Notice the hash of each line, and report lines without one, which no look-up finds."""
        path, data = self._contents[number]
        start = 0
        for line in range(1, data.count(b"\n") + 2):
            end = _line_end(data, start)
            match = _HASH.search(data, start, end)
            if match is not None:
                at = number, start
                if self._by_hash.setdefault(match[1], at) is not at:
                    self._more.setdefault(match[1], []).append(at)
            elif data[start : min(end, start + MOST_LINE)].strip():
                self._report(path, line, "it has no hash")
            start = end + 1
        if (more := self._problems[path] - _SHOWN_PROBLEMS) > 0:
            self._note(f"{path}: {more:,} more lines cannot be used")

    def of_text(self, qualname: str, digest: str) -> list[Measurement]:
        """Return the measurements of the units with a name and a text, in any file."""
        key = digest.encode()
        first = self._by_hash.get(key)
        if first is None:
            return []
        found = self._measurements([first, *self._more.get(key, ())[: _MOST_OF_TEXT - 1]])
        return [one for one in found if (one.qualname, one.source_hash) == (qualname, digest)]

    def of_file(self, unit: Unit, path: Path) -> list[Measurement]:
        """Return the measurements of a unit of a file, whatever its text was."""
        if not path.is_relative_to(self._root):
            return []
        name, of_unit = path.relative_to(self._root).as_posix(), (unit.qualname, accessor_of(unit.qualname, unit.text))
        known = self._of_file.get(name)
        if known is None:
            places = list(self._places(name, '"'))
            if len(places) > _MOST_OF_FILE:
                self._note(f"{name}: only the first {_MOST_OF_FILE:,} of its {len(places):,} committed lines are used")
            known = self._of_file[name] = [
                one for one in self._measurements(places[:_MOST_OF_FILE]) if one.path == str(path)
            ]
        return [one for one in known if (one.qualname, accessor_of(one.qualname, one.text)) == of_unit]

    def below(self, folder: Path) -> list[Measurement]:
        """Return the measurements in files below a folder; of very many, an evenly spaced part."""
        if folder != self._root and not folder.is_relative_to(self._root):
            return []
        name = folder.relative_to(self._root).as_posix()
        places = list(self._places("" if name == "." else f"{name}/"))
        step = -(-len(places) // _SAMPLED) or 1
        return [one for one in self._measurements(places[::step]) if Path(one.path).is_relative_to(folder)]

    def _places(self, start: str, end: str = "") -> Iterator[tuple[int, int]]:
        """Where lines name a file that starts with a text; some may be about another."""
        forms = sorted({json.dumps(start, ensure_ascii=plain)[1:-1] + end for plain in (False, True)})
        pattern = re.compile(b'"file":\\s*"(?:' + b"|".join(re.escape(form.encode()) for form in forms) + b")")
        for number, (_, data) in enumerate(self._contents):
            match = pattern.search(data)
            while match is not None:
                yield number, data.rfind(b"\n", 0, match.start()) + 1
                match = pattern.search(data, _line_end(data, match.end()))

    def _measurements(self, places: Iterable[tuple[int, int]]) -> list[Measurement]:
        """The measurements in lines, each given by the index of its file and its offset."""
        found: list[Measurement] = []
        left = _MOST_DECODED
        for place in places:
            number, start = place
            left -= _line_end(self._contents[number][1], start) - start
            if left < 0:
                self._note(
                    f"{self._contents[number][0]}: only {_MOST_DECODED // 2**20} MiB of lines about one file are used"
                )
                break
            known = self._decoded.get(place)
            if known is None:
                known = self._decoded[place] = self._decode(number, start)
            found += known
        return found

    def _decode(self, number: int, start: int) -> tuple[Measurement, ...]:
        path, data = self._contents[number]
        try:
            unit = _unit(data[start : min(_line_end(data, start), start + MOST_LINE + 1)])
        except _UNUSABLE as error:
            self._report(path, data.count(b"\n", 0, start) + 1, error)
            return ()
        return tuple(unit.measurements(self._root))

    def _report(self, path: Path, line: int, problem: object) -> None:
        """Report a line that cannot be used; of many lines of a file the first few."""
        self._problems[path] += 1
        if self._problems[path] <= _SHOWN_PROBLEMS:
            self._note(_unusable(path, line, problem))


def committed_files(folder: Path) -> list[Path]:
    """The regular files of committed measurements in a folder, by name."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return []
        with os.scandir(folder) as entries:
            files = (entry for entry in entries if entry.is_file(follow_symlinks=False))
            names = [entry.name for entry in files if entry.name.endswith(".jsonl")]
    except OSError:
        return []
    return [folder / name for name in sorted(names)[:MOST_FILES]]


def export_committed(measurements: Iterable[Measurement], folder: Path, root: Path, note: Callable[[str], None]) -> int:
    """Write measurements of the project in ``root`` into a folder, and return the number of lines.

    Of each unit, device, Python and workload the newest measurement counts. Lines of others stay, unless one of the
    same key is newer here.

    Raises:
        DataError: the file cannot be written or would be too large, or one that it replaces cannot be read.
    """
    units = _newest([*read_units(folder, note, _refuse), *committed_units(measurements, root.resolve())])
    if not units:
        return 0
    path = folder / FILE
    data = b"".join(msgspec.json.encode(unit) + b"\n" for unit in units)
    if len(data) > MOST_BYTES or len(units) > MOST_LINES:
        size = f"{len(units):,} lines and {len(data) / 2**20:,.0f} MiB"
        raise DataError(f"{path}: not written: {size} are more than is read; export fewer packages")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            raise DataError(f"{path}: is a link; remove it")
        if not path.is_file() or path.read_bytes() != data:
            with atomic_write(path) as partial:
                partial.write_bytes(data)
        # Lines of other files are in this one now.
        for other in committed_files(folder):
            if other != path:
                other.unlink()
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another --to") from None
    return len(units)


def _refuse(text: str) -> None:
    raise DataError(text)


def _newest(units: Iterable[CommittedUnit]) -> list[CommittedUnit]:
    """The newest lines of each key, sorted. Several of one date and different texts are units that share a name."""
    newest: dict[tuple[str, ...], dict[str, CommittedUnit]] = {}
    for unit in units:
        of_key = newest.setdefault(unit.key, {})
        known = next(iter(of_key.values()), unit)
        if moment(known.date) > moment(unit.date):
            continue
        if moment(known.date) < moment(unit.date):
            of_key.clear()
        of_key[unit.hash] = unit
    return [of_key[digest] for _, of_key in sorted(newest.items()) for digest in sorted(of_key)]


_UNUSABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, DataError)


def _unit(line: bytes) -> CommittedUnit:
    if len(line) > MOST_LINE:
        raise DataError("the line is too long")
    return msgspec.json.decode(line, type=CommittedUnit)


def _unusable(path: Path, number: int, error: object) -> str:
    return f"{path}:{number}: not a line of `rlm-lsp measure export --to` ({error}); fix or remove it"


def _lines(path: Path, data: bytes, note: Callable[[str], None]) -> Iterator[CommittedUnit]:
    problems = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            unit = _unit(line)
        except _UNUSABLE as error:
            problems += 1
            if problems <= _SHOWN_PROBLEMS:
                note(_unusable(path, number, error))
            continue
        yield unit
    if problems > _SHOWN_PROBLEMS:
        note(f"{path}: {problems - _SHOWN_PROBLEMS:,} more lines cannot be used")


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return end if end >= 0 else len(data)


def signature_of(folder: Path) -> Sequence[object]:
    """Return a signature that changes when the committed measurements of a folder do."""
    found: list[object] = []
    for path in committed_files(folder):
        try:
            state = path.stat(follow_symlinks=False)
        except OSError:
            continue
        found.append((path.name, state.st_mtime_ns, state.st_size, state.st_ino))
    return found
