"""Reading a source file and finding the units in it."""

from __future__ import annotations

import stat
import tokenize
from io import BytesIO
from pathlib import Path

from tree_sitter import Node

from rlm_core.errors import SourceError
from rlm_core.source import languages
from rlm_core.source.onnx_graph import read_onnx, render
from rlm_core.types import Unit

from .kernels import find_kernels
from .modules import find_modules
from .networks import find_network
from .programs import find_programs
from .python import find_python
from .triton_ir import find_ttir

MAX_FILE_BYTES = 2 * 1024 * 1024


def find_units(source: bytes, language: str) -> list[Unit]:
    """The units of a UTF-8 source text, in the order in which they start.

    Raises:
        SourceError: the language is unknown.
    """
    if languages.by_name(language).grammar is None:
        return find_ttir(source) if language == "ttir" else [find_network(source)]
    root = languages.parse(language, source).root_node
    if language == "python":
        return with_special(source, root, find_python(source, root))
    return _in_order(find_programs(source, root, language))


def with_special(source: bytes, root: Node, functions: list[Unit]) -> list[Unit]:
    """All units of a parsed Python file with these functions."""
    special = [*find_kernels(source, root), *find_modules(source, root)]
    taken = {unit.span.start_byte for unit in special}
    units = find_programs(source, root, "python") + special
    return _in_order([*units, *(unit for unit in functions if unit.span.start_byte not in taken)])


def _in_order(units: list[Unit]) -> list[Unit]:
    return sorted(units, key=lambda unit: (unit.span.start_byte, -unit.span.end_byte))


def read_source(path: Path) -> tuple[bytes, str]:
    """The UTF-8 text of a source file and its language.

    Python files may declare another encoding (PEP 263); they are decoded by it and given back as UTF-8. Of a network
    (``.onnx``) it is the compact text of its graph.

    Raises:
        SourceError: missing, not a file, too large, empty, binary, not UTF-8, or not a language that we read.
    """
    language = languages.by_path(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise SourceError(
                f"{path}: is a directory with no source file that we read; name a file or another directory"
            )
        if language is None:
            known = " ".join(suffix for entry in languages.LANGUAGES.values() for suffix in entry.suffixes)
            raise SourceError(f"{path}: unknown language (suffix {path.suffix or 'missing'!r}); we read {known}")
        if not stat.S_ISREG(status.st_mode):
            # Reading a pipe or a device would block.
            raise SourceError(f"{path}: is not a regular file; name a source file")
        if language.name == "onnx":
            return render(read_onnx(path)).encode(), language.name
        size = status.st_size
        if size > MAX_FILE_BYTES:
            raise SourceError(
                f"{path}: {size / 2**20:.1f} MiB is over the limit of {MAX_FILE_BYTES // 2**20} MiB; split or skip it"
            )
        source = path.read_bytes()
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    return decode(source, language.name, str(path)), language.name


def decode(source: bytes, language: str, where: str) -> bytes:
    """The UTF-8 form of a file's bytes, without a byte-order mark.

    Raises:
        SourceError: empty, binary, or not in UTF-8 (nor in the encoding that a Python file declares).
    """
    if not source.strip():
        raise SourceError(f"{where}: is empty; nothing to predict")
    if b"\0" in source[:8192]:
        raise SourceError(f"{where}: is a binary file; name source files only")
    encoding = "utf-8-sig"
    try:
        if language == "python":
            encoding = tokenize.detect_encoding(BytesIO(source).readline)[0]
        return source.decode(encoding).encode()
    except (UnicodeDecodeError, SyntaxError, LookupError):
        raise SourceError(f"{where}: is not valid UTF-8; save it as UTF-8") from None
