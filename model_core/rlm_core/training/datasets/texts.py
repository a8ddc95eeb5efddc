"""Wheels in the source cache -> unlabelled texts for pretraining: every Python function of some packages.

Test packages are left out, and so are the modules of other labelled packages outside the train split: a model never
reads what it is judged on.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rlm_core.errors import DataError
from rlm_core.files import atomic_write
from rlm_core.source.canonical import canonical
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units

from .builder import Progress
from .cache import open_wheel, read_member
from .schema import open_parquet
from .splits import TEST_PACKAGES, split_of

FORMAT = "rlm-texts-1"
SCHEMA = pa.schema([("text", pa.string()), ("language", pa.string())], metadata={"format": FORMAT})
_LONGEST, _SHORTEST = 12_000, 60
_SKIPPED = ("/tests/", "/test/", "/_vendor/", "/vendored/")


def build_texts(
    wheels: Sequence[Path], out: Path, *, workers: int = 2, progress: Progress = lambda done, total: None
) -> int:
    """Write the distinct canonical functions of wheels to a Parquet file and count them.

    Raises:
        DataError: there is no wheel.
    """
    if not wheels:
        raise DataError("no wheel in the source cache; build the functions data set first or name --source-cache")
    distinct: dict[str, None] = {}
    with ProcessPoolExecutor(workers) as pool:
        for done, texts in enumerate(pool.map(_functions, wheels), 1):
            distinct.update(dict.fromkeys(texts))
            progress(done, len(wheels))
    out.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"text": list(distinct), "language": ["python"] * len(distinct)}, schema=SCHEMA)
    with atomic_write(out) as partial:
        pq.write_table(table, partial, compression="zstd")
    return len(distinct)


def read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """The (text, language) pairs of a file of texts.

    Raises:
        DataError: the file is missing or is not a file of texts.
    """
    table = open_parquet(path, FORMAT, "a file of texts", "build it with `rlm-lsp data build texts`").read()
    chosen = table.filter(pc.less(pc.utf8_length(table["text"]), _LONGEST))
    yield from zip(chosen["text"].to_pylist(), chosen["language"].to_pylist(), strict=True)


def _functions(wheel: Path) -> list[str]:
    found: list[str] = []
    with open_wheel(wheel) as archive:
        package = _name(archive)
        if package in TEST_PACKAGES:
            return []
        for name in archive.namelist():
            if not name.endswith(".py") or any(part in f"/{name}" for part in _SKIPPED):
                continue
            module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            if split_of(f"{package}/{module}") != "train":
                continue
            source = read_member(archive, name) or b""
            try:
                source.decode("utf-8")
            except UnicodeDecodeError:
                continue
            found += [
                canonical(unit.text, "python")
                for unit in find_units(ParsedSource(source, "python"))
                if unit.kind == "function" and _SHORTEST <= len(unit.text) <= _LONGEST
            ]
    return found


def _name(archive: zipfile.ZipFile) -> str:
    """The package's name as its metadata and the labels spell it."""
    metadata = next((name for name in archive.namelist() if name.endswith(".dist-info/METADATA")), None)
    lines = (read_member(archive, metadata) or b"").decode("utf-8", "replace").splitlines() if metadata else []
    return next((line[5:].strip() for line in lines if line.startswith("Name:")), "")
