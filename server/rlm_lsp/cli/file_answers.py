"""Answers about whole files on the disk: what neither a file nor its package has changed need not be analysed again.

A key is a digest of all that the rows of a file depend on: its text and name, the Python files of its package, the
sizes in the settings, the queries, the model, the user's corrections, and the program. Where something was measured,
files are analysed each time and predictions come from :mod:`rlm_core.inference.stored_predictions`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import rlm_core
from rlm_core.files import read_regular
from rlm_core.folders import walk
from rlm_core.inference import stored_predictions
from rlm_core.inference.query_selection import QuerySelection
from rlm_core.loading import model_digest
from rlm_core.measurement.committed import FOLDER
from rlm_core.queries.entry_store import EntryStore, default_folder, digest_of, source_digest
from rlm_core.queries.package_files import package_of
from rlm_core.source.units import MAX_FILE_BYTES

from rlm_lsp.settings.project import BudgetTables, ProjectSettings
from rlm_lsp.settings.sizes import project_rules
from rlm_lsp.sources import SourceFile

from . import options
from .predict_batches import Runner
from .predict_files import FileAnswer

FILE = "files.sqlite3"
# About 3 KB per unit.
_MOST_ENTRIES = 4_000
_MOST_BYTES = 2**20  # of an entry
_WRITTEN_AT_ONCE = 50


class FileAnswers:
    """The stored answers of one run of ``rlm-lsp predict``, and where those that it makes are kept."""

    def __init__(self, runner: Runner, selected: QuerySelection, *, without_measured: bool) -> None:
        folder = default_folder()
        model = model_digest(runner.model) if folder is not None else None
        is_known = model is not None and runner.ray is None and (without_measured or not _is_anything_measured())
        self._run = _digest_of_run(model, selected) if is_known and model is not None else None
        path = folder / FILE if folder is not None and self._run is not None else None
        self._store = EntryStore(path, FileAnswer, _MOST_ENTRIES, _MOST_BYTES)
        self._settings = ProjectSettings(BudgetTables())
        self._packages: dict[tuple[Path, str], bytes | None] = {}
        self._unsaved = 0

    def key(self, source: SourceFile) -> bytes | None:
        """The key of a file; None where its answer cannot be kept."""
        if self._run is None or not self._store.is_open:
            return None
        path = source.path
        try:
            text = read_regular(path, MAX_FILE_BYTES, source.root)
            package = self._package(path) if path.suffix == ".py" else b""
        except OSError:
            return None
        if package is None:
            return None
        names = os.fsencode(path), os.fsencode(path.absolute()), os.fsencode(source.root or "")
        return digest_of(self._run, *names, text, package, repr(project_rules(self._settings, path)))

    def find(self, key: bytes | None) -> FileAnswer | None:
        """The answer about the file with a key, if it is known."""
        return self._store.get(key)

    def keep(self, key: bytes, answer: FileAnswer) -> None:
        """Keep the answer about a file, unless the next one may be better."""
        if answer.failed or answer.error is not None:
            return
        self._store.put(key, answer)
        self._unsaved += 1
        if self._unsaved >= _WRITTEN_AT_ONCE:
            self.save()

    def save(self) -> None:
        """Write what is new to the disk."""
        self._unsaved = 0
        self._store.save()

    def _package(self, path: Path) -> bytes | None:
        """A digest of the files that an analysis of a Python file may look at; None where links lead elsewhere."""
        root, dotted = package_of(path)
        key = root, dotted.partition(".")[0]
        if key not in self._packages:
            self._packages[key] = _digest_of_package(*key)
        return self._packages[key]


def _digest_of_run(model: bytes, selected: QuerySelection) -> bytes | None:
    from rlm_core.inference.adaptation import cpu_score
    from rlm_core.inference.adaptation.store import folder

    try:
        program = source_digest(Path(__file__).parent.parent, Path(rlm_core.__file__).parent / "boundary.py")
        adapters = [read_regular(path, MAX_FILE_BYTES) for path in sorted(folder().glob("*.json"))]
        version = stored_predictions.version()
    except OSError:
        return None
    return digest_of(
        version, program, model, repr(selected), repr(cpu_score.enabled()), repr(cpu_score.stored()), *adapters
    )


def _digest_of_package(root: Path, top: str) -> bytes | None:
    parts: list[bytes] = []
    complete = True

    def fail(error: OSError) -> None:
        nonlocal complete
        complete = False

    def add(path: Path) -> None:
        parts.extend((os.fsencode(path), read_regular(path, MAX_FILE_BYTES, root)))

    try:
        module = root / f"{top}.py"
        if module.exists():
            add(module)
        for parent, folders, files in walk(root / top, fail) if (root / top).is_dir() else ():
            if len(folders) + len(files) < len(os.listdir(parent)):  # noqa: PTH208 - the number alone
                return None  # a link to a folder, which may change without any file here
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in files:
                if name.endswith(".py"):
                    add(parent / name)
    except OSError:
        return None
    return digest_of(*parts) if complete else None


def _is_anything_measured() -> bool:
    folders: Sequence[Path] = options.project_folders()
    return options.open_store(None).path.exists() or any((folder / FOLDER).exists() for folder in folders)
