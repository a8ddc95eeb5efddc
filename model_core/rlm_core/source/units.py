"""Reading a source file and finding its units: functions, Triton kernels, PyTorch modules, programs, networks.

``read_source`` turns a file into a ``ParsedSource`` and ``find_units`` finds the units in it. A file with syntax errors
still has the units that parse.
"""

from __future__ import annotations

import codecs
import re
import tokenize
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from pathlib import Path, PurePath

from tree_sitter import Node, Query

from rlm_core.boundary import absorb
from rlm_core.errors import SourceError
from rlm_core.files import FileRefusedError, read_regular
from rlm_core.types import Span, Unit

from . import languages
from .parsed import ParsedSource, decorated, header_of, name_text, query_cursor, span_of, unit_text
from .programs import find_programs
from .solutions import is_solution
from .torch_modules import find_modules
from .triton_kernels import find_kernels, find_ttir

MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_UNIT_CHARACTERS = 256 * 1024  # of a function, kernel or module; what is read of it takes seconds then
# Definitions around a function. Each function keeps the text of those inside it; deeper ones are only part of it.
MAX_NESTED = 10
# `%timeit f()`, `!ls`, `?f` in a notebook; a line that continues with the operator `%` has a blank after it.
_ESCAPE = re.compile(rb"^([ \t]*)(?:%(?=%?[A-Za-z])|!|\?)", re.MULTILINE)
_CELL_MAGIC = re.compile(rb"\s*%%([A-Za-z]\w*)")
_PYTHON_MAGICS = (b"capture", b"prun", b"time", b"timeit")
_MODULE_METHODS = ("__init__", "forward")
# Possessive, like the docstring below: what it has matched is not tried in parts.
_BLANK = rb"(?:\s|#[^\n]*+(?:\n|\Z))*+"
_STUB = re.compile(
    _BLANK
    + rb"(?>[rRuU]?(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n]*\"|'[^'\n]*'))?+"
    + _BLANK
    + rb"(?:\.\.\.|raise NotImplementedError(?:\([^()]*\)|[^\n]*))?"
    + _BLANK
    + rb"\Z"
)
_STUB_ENDS = ("...", '"', "'", ")", "NotImplementedError")
_TEXT = re.compile(rb"[^\r\n]")
_SIGNATURE = re.compile(r"^[ \t]*(?:async[ \t]+)?def\b", re.MULTILINE)
_DECORATOR = re.compile(r"^[ \t]*@[ \t]*([\w.]+)", re.MULTILINE)
# Normalised names of character sets. Python's other codecs escape or transform text (some in quadratic time, some into
# lone surrogates), and packages may register codecs that run code.
_CHARACTER_SET = re.compile(
    r"utf-8(?:-sig)?|ascii|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|euc_\w+|shift_jis\w*|iso2022_\w+|gb\w+|big5\w*"
    r"|johab|tis-620|kz1048|ptcp154|hp-roman8"
)


def find_units(parsed: ParsedSource, path: PurePath | None = None) -> list[Unit]:
    """The units of a source text, in the order in which they start.

    Only what looks like a solution of a programming problem is a program; ``path`` helps to decide that, see
    :mod:`.solutions`.

    Raises:
        SourceError: the language is unknown.
    """
    if parsed.language in languages.TEXT_ONLY:
        return []
    if languages.by_name(parsed.language).grammar is None:
        return find_ttir(parsed.source) if parsed.language == "ttir" else [find_network(parsed.source)]
    if parsed.language == "python":
        return python_units(parsed, find_functions(parsed.source, parsed.root), path)
    return _in_order(find_programs(parsed)) if is_solution(parsed, path) else []


def python_units(parsed: ParsedSource, functions: list[Unit], path: PurePath | None = None) -> list[Unit]:
    """All units of a Python file that has these functions."""
    modules = find_modules(parsed)
    special = [*find_kernels(parsed), *modules]
    taken = {unit.span.start_byte for unit in special}
    # The prediction of a module speaks for these: as calls they are unlike the functions that the model knows.
    spoken_for = {f"{unit.qualname}.{name}" for unit in modules for name in _MODULE_METHODS}
    functions = [unit for unit in functions if unit.qualname not in spoken_for and not is_stub(unit)]
    units = (find_programs(parsed) if is_solution(parsed, path) else []) + special
    return _in_order([*units, *(unit for unit in functions if unit.span.start_byte not in taken)])


def is_stub(function: Unit) -> bool:
    """Return whether the body of a Python function is only a docstring, ``...`` or ``raise NotImplementedError``.

    Such are overloads, protocols and abstract methods, whose cost says nothing.
    """
    if not function.text.rstrip().endswith(_STUB_ENDS):
        return False
    length = function.span.end_byte - function.header.end_byte
    body = function.text.encode("utf-8", "replace")[-length:] if length > 0 else b"?"
    return _STUB.match(body) is not None


def accessor_of(qualname: str, text: str) -> str:
    """Return the accessor of a property that a function is, such as ``setter`` under ``@x.setter``; else empty.

    A property's getter, setter and deleter share a qualified name and differ in this.
    """
    signature = _SIGNATURE.search(text) if _DECORATOR.match(text) else None
    name = qualname.rpartition(".")[2]
    for decorator in _DECORATOR.findall(text, 0, signature.start()) if signature is not None else ():
        parts = decorator.split(".")
        if name in parts[:-1]:
            return str(parts[parts.index(name) + 1])
    return ""


def _in_order(units: list[Unit]) -> list[Unit]:
    return sorted(units, key=lambda unit: (unit.span.start_byte, -unit.span.end_byte))


def find_network(source: bytes) -> Unit:
    """The compact text of an ONNX graph as a unit; its name is the first line, which lists the inputs."""
    lines = source.split(b"\n")
    whole = Span(0, 0, len(lines) - 1, len(lines[-1]), 0, len(source))
    first = Span(0, 0, 0, len(lines[0]), 0, len(lines[0]))
    return Unit("network", "onnx", "network", source.decode("utf-8", errors="replace"), whole, first, first)


@cache
def _definitions() -> Query:
    return Query(languages.grammar("python"), "[(function_definition) (class_definition)] @definition")


def find_functions(source: bytes, root: Node) -> list[Unit]:
    """The functions and methods in a Python file or statement, in source order, named as in ``__qualname__``.

    Those inside more than ``MAX_NESTED`` definitions are left out.
    """
    nodes = query_cursor(_definitions()).captures(root).get("definition", [])
    units: list[Unit] = []
    enclosing: list[tuple[int, str]] = []
    for node in sorted(nodes, key=lambda node: node.start_byte):
        while enclosing and enclosing[-1][0] <= node.start_byte:
            enclosing.pop()
        if len(enclosing) > MAX_NESTED:
            continue
        prefix = enclosing[-1][1] if enclosing else ""
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name_node is None or body is None or name_node.is_missing:
            continue
        name = name_text(name_node)
        is_class = node.type == "class_definition"
        enclosing.append((node.end_byte, f"{prefix}{name}." if is_class else f"{prefix}{name}.<locals>."))
        if is_class:
            continue
        span, header = span_of(decorated(node), node), header_of(node, name_node)
        text = unit_text(source, span)
        units.append(Unit("function", "python", prefix + name, text, span, span_of(name_node), header))
    return units


def read_source(path: Path, root: Path | None = None, sizes: Mapping[str, int] | None = None) -> ParsedSource:
    """The text of a source file, not yet parsed.

    ``root``: the folder in which the file was found, unless the user named it; links out of it are not followed.
    ``sizes``: of the inputs of a network, where its file leaves them open (``image``, ``tokens``, ``samples``).

    Python files may declare another encoding (PEP 263), from which they are decoded. The text of a network (``.onnx``)
    is the compact text of its graph.

    Raises:
        SourceError: the file is missing, not a regular file, outside ``root``, too large, empty, binary, not UTF-8, or
            in an unknown language.
    """
    language = languages.by_path(path)
    try:
        if path.is_dir():
            raise SourceError(f"{path}: is a directory with no supported source file; name a file or another directory")
        if language is None:
            path.stat()
            known = " ".join(suffix for entry in languages.LANGUAGES.values() for suffix in entry.suffixes)
            suffix = path.suffix or "missing"
            raise SourceError(f"{path}: unknown language (suffix {suffix!r}); supported suffixes: {known}")
        if language.name == "onnx":
            return ParsedSource(_network_text(path, root, sizes or {}).encode(), language.name)
        source = read_regular(path, MAX_FILE_BYTES, root)
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file; check the path") from None
    except FileRefusedError as error:
        raise SourceError(f"{path}: {error.strerror}; skip it or name another file") from None
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    return ParsedSource(decode(source, language.name, str(path)), language.name, may_leave_out=True)


def _network_text(path: Path, root: Path | None, sizes: Mapping[str, int]) -> str:
    # Imported for the first network: most sessions see only functions.
    from .onnx_graph.reader import read_onnx
    from .onnx_graph.render import render

    try:
        return render(read_onnx(path, root, sizes))
    except OSError:
        raise  # read_source explains it
    except Exception as error:
        absorb(f"the analysis of {path}", error)
        raise SourceError(f"{path}: the analysis failed ({type(error).__name__}); see the log") from None


def decode(source: bytes, language: str, path: str) -> bytes:
    """The UTF-8 form of a file's bytes, without a byte-order mark. ``path`` is for messages.

    Raises:
        SourceError: empty, binary, or not in UTF-8 (nor in the encoding that a Python file declares).
    """
    if not source.strip():
        raise SourceError(f"{path}: is empty; nothing to predict")
    if b"\0" in source[:8192]:
        raise SourceError(f"{path}: is a binary file; name source files only")
    encoding = "utf-8-sig"
    try:
        if language == "python":
            encoding = tokenize.detect_encoding(BytesIO(source).readline)[0]
        if not _CHARACTER_SET.fullmatch(codecs.lookup(encoding).name):
            raise LookupError(encoding)
        return source.decode(encoding).encode()
    except (UnicodeError, SyntaxError, LookupError):
        raise SourceError(f"{path}: is not valid UTF-8; save it as UTF-8") from None


def cell_source(cell: bytes) -> ParsedSource:
    """A notebook cell as Python in which every offset is the same.

    Lines for IPython become comments, a cell in another language becomes blank.
    """
    magic = _CELL_MAGIC.match(cell)
    is_python = magic is None or magic[1] in _PYTHON_MAGICS
    text = _ESCAPE.sub(rb"\1#", cell) if is_python else _TEXT.sub(b" ", cell)
    return ParsedSource(text, "python", may_leave_out=True)
