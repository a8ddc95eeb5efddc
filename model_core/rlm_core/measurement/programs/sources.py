"""Source files -> programs that can be measured: which unit of the model each is, and where it begins to run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tree_sitter import Node

from rlm_core.errors import DataError, SourceError
from rlm_core.folders import walk
from rlm_core.measurement.types import sha1_of, source_hash
from rlm_core.source import programs
from rlm_core.source.units import read_source

from .toolchains import TABLE

_NOT_OURS = frozenset({"node_modules", "venv", "__pycache__", "build", "dist", "target"})
_DECLARED = re.compile(
    r"(import|future_import|export|use|namespace|package).*|.*(function|class|method|interface|enum|type_alias).*"
    r"|decorated_definition|comment|module|php_tag|text|hash_bang_line"
)
_SCRIPTS = frozenset({"python", "javascript", "typescript", "ruby", "php"})
_LANGUAGE_OF = {suffix: one.language for one in TABLE for suffix in one.suffixes}


@dataclass(frozen=True, slots=True)
class Program:
    """A source file that is run as a whole; ``name`` is its path below ``folder``, lines are 1-based.

    ``text`` is what the model reads: the file's unit of kind ``program``, else the whole file. ``entry`` is the class
    with ``main`` where the language needs to know.
    """

    path: Path
    folder: Path
    name: str
    language: str
    qualname: str
    text: str
    hash: str
    sha1: str
    line: int
    last_line: int
    entry: str


def find_programs(place: Path, chosen: Sequence[str]) -> tuple[list[Program], list[str]]:
    """The programs in a file or folder, and a line for each file that is none, with the reason.

    Raises:
        DataError: the place does not exist.
    """
    if not place.exists():
        raise DataError(f"{place}: no such file or folder; name where the programs are")
    folder = place if place.is_dir() else place.parent
    found, problems = [], []
    for path in _files(place):
        language = _LANGUAGE_OF.get(path.suffix.lower())
        if language is None or (chosen and language not in chosen):
            continue
        try:
            found.append(_program(path, folder, language))
        except (SourceError, DataError) as error:
            problems.append(str(error))
    return found, problems


def source_of(path: Path) -> tuple[str, str] | None:
    """Text and SHA-1 of the program that a file is now; None if it is none."""
    language = _LANGUAGE_OF.get(path.suffix.lower())
    if language is None:
        return None
    try:
        program = _program(path, path.parent, language)
    except (SourceError, DataError):
        return None
    return program.text, program.sha1


def _files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    for folder, names, files in walk(place):
        names[:] = [name for name in names if name not in _NOT_OURS and name[0] != "."]
        if "pyvenv.cfg" in files:
            names.clear()
            continue
        yield from (folder / name for name in files)


def _program(path: Path, folder: Path, language: str) -> Program:
    parsed = read_source(path)
    root = parsed.root
    if language in _SCRIPTS and not _runs(root):
        raise DataError(
            f"{path}: only declares functions and classes; add the code that reads the input and calls them"
        )
    entry = _entry(root) if language in ("java", "scala") else ""
    if language in ("java", "scala") and not entry:
        raise DataError(f"{path}: has no class with a main method; add one to measure it")
    # The user has named the file as a program. All of a Python script is run, even without a class `Solution`.
    units = [unit for unit in programs.find_programs(parsed) if language != "python" or unit.qualname != "<file>"]
    source = parsed.source.decode()
    lines = source.splitlines(keepends=True)
    if len(units) == 1:
        [unit] = units
        qualname, text, first, last = unit.qualname, unit.text, unit.span.start_line, unit.span.end_line
    else:
        qualname, text, first, last = "<file>", source, 0, len(lines) - 1
    return Program(
        path,
        folder,
        path.relative_to(folder).as_posix(),
        language,
        qualname,
        text,
        source_hash(text, language),
        sha1_of("".join(lines[first : last + 1])),
        first + 1,
        last + 1,
        entry,
    )


def _runs(root: Node) -> bool:
    """Return whether starting a script runs any statement other than declarations and docstrings."""
    return any(not _is_declaration(node) for node in root.named_children)


def _is_declaration(node: Node) -> bool:
    if node.type == "expression_statement" and [one.type for one in node.named_children] == ["string"]:
        return True
    if node.type in ("lexical_declaration", "variable_declaration"):
        values = [one.child_by_field_name("value") for one in node.named_children]
        return all(value is None or "function" in value.type for value in values)
    return bool(_DECLARED.fullmatch(node.type))


def _entry(root: Node) -> str:
    """The qualified name of the first class or object with a ``main``, or that is an ``App``; empty if none."""
    package = next((one for one in root.named_children if one.type in ("package_declaration", "package_clause")), None)
    prefix = f"{_text(package.named_children[-1])}." if package is not None else ""
    for node in root.named_children:
        name = node.child_by_field_name("name")
        if name is None:
            continue
        body = node.child_by_field_name("body")
        methods = (one.child_by_field_name("name") for one in (body.named_children if body is not None else []))
        extends = node.child_by_field_name("extend")
        is_app = extends is not None and re.search(r"\bApp\b", _text(extends)) is not None
        if is_app or any(method is not None and _text(method) == "main" for method in methods):
            return prefix + _text(name)
    return ""


def _text(node: Node) -> str:
    return (node.text or b"").decode()
