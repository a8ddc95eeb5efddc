"""Row files by path or URI: bytes to read and write wherever pyarrow or fsspec reach, and Parquet row by row.

Input: a path, or a URI such as ``file:///data/rows.parquet`` or ``s3://bucket/rows.parquet``. Output: plain dicts.
Needs pyarrow, which is imported on first use; the meaning of rows is for the caller.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from .errors import DataError
from .files import atomic_write

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_BATCH_ROWS = 1024


def is_uri(name: str) -> bool:
    """Return whether a name is a URI and not a path."""
    return _URI.match(name) is not None


def is_parquet(name: str) -> bool:
    """Return whether a path or URI names a Parquet file."""
    return name.lower().endswith((".parquet", ".pq"))


@contextmanager
def open_input(name: str) -> Iterator[BinaryIO]:
    """A file to read, by path or URI; it can be iterated by line.

    Raises:
        DataError: it cannot be read, or nothing that reads its scheme is installed.
    """
    with _opened(name) as stream, io.BufferedReader(stream) as lines:
        yield cast(BinaryIO, lines)


@contextmanager
def _opened(name: str) -> Iterator[Any]:
    """A file of pyarrow, which has no lines."""
    system, path = _file_system(name)
    try:
        stream = system.open_input_file(path)
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({_reason(error)}); check the path") from None
    with stream:
        yield stream


@contextmanager
def open_output(name: str) -> Iterator[BinaryIO]:
    """A file to write, by URI.

    Raises:
        DataError: it cannot be written, or nothing that writes its scheme is installed.
    """
    system, path = _file_system(name)
    try:
        with system.open_output_stream(path) as stream:
            yield cast(BinaryIO, stream)
    except OSError as error:
        raise DataError(f"{name}: cannot be written ({_reason(error)}); check the path and the disk") from None


def read_rows(name: str) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file, without their null fields; a map is a dict.

    Raises:
        DataError: it cannot be read, or is not Parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _opened(name) as stream:
        try:
            for batch in pq.ParquetFile(stream).iter_batches(_BATCH_ROWS):
                yield from map(_given, batch.to_pylist())
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{name}: is not a readable Parquet file ({_reason(error)})") from None


@contextmanager
def row_writer(name: str, columns: Mapping[str, Any]) -> Iterator[Any]:
    """A function that appends rows to a new Parquet file. A local file replaces an earlier one when the block ends.

    ``columns`` are names and types: ``str``, ``int``, ``float``, ``bool``, a dict for a struct, a list with one type,
    and ``dict`` itself for a map of strings.

    Raises:
        DataError: it cannot be written, or nothing that writes its scheme is installed.
    """
    import pyarrow as pa
    import pyarrow.fs
    import pyarrow.parquet as pq

    schema = pa.schema([(column, _type(kind)) for column, kind in columns.items()])
    system, path = _file_system(name)

    @contextmanager
    def opened(path: str) -> Iterator[Any]:
        with system.open_output_stream(path) as stream, pq.ParquetWriter(stream, schema) as writer:

            def append(rows: Iterable[Mapping[str, Any]]) -> None:
                writer.write_table(pa.Table.from_pylist(list(rows), schema=schema))

            yield append

    try:
        if isinstance(system, pyarrow.fs.LocalFileSystem):
            with atomic_write(Path(path)) as partial, opened(str(partial)) as append:
                yield append
        else:
            with opened(path) as append:
                yield append
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name}: cannot be written ({_reason(error)}); check the path and the disk") from None


def _file_system(name: str) -> tuple[Any, str]:
    """The file system of a path or URI, and the path in it.

    Raises:
        DataError: nothing that reads its scheme is installed.
    """
    import pyarrow as pa
    import pyarrow.fs

    scheme = _URI.match(name)
    if scheme is None:
        return pyarrow.fs.LocalFileSystem(), str(Path(name).absolute())
    try:
        return cast(tuple[Any, str], pyarrow.fs.FileSystem.from_uri(name))
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = _reason(error)
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(name)
    except ImportError as error:
        raise DataError(f"{name}: no driver for {scheme[1]}:// is installed ({_reason(error)})") from None
    except ValueError:
        raise DataError(f"{name}: no driver reads {scheme[1]}:// ({reason}); name a path or another URI") from None
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(system)), path


def _type(kind: Any) -> Any:
    import pyarrow as pa

    simple = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    if kind is dict:
        return pa.map_(pa.string(), pa.string())
    if isinstance(kind, dict):
        return pa.struct([(name, _type(inner)) for name, inner in kind.items()])
    return pa.list_(_type(kind[0])) if isinstance(kind, list) else simple[kind]


def _given(value: Any) -> Any:
    """A value without null fields; pyarrow gives a map as a list of pairs."""
    if isinstance(value, dict):
        return {name: _given(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        if value and all(isinstance(entry, tuple) for entry in value):
            return {name: inner for name, inner in value if inner is not None}
        return [_given(entry) for entry in value]
    return value


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return (" ".join(text.split()) or type(error).__name__)[:200]
