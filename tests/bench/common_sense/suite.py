"""Reads the suite: the cases of ``functions/`` with ``cases.toml``, the edits of ``edits/``, the texts of ``growth/``.

A case is one function with the call that measures it and what its prediction is judged on. An edit has a case before
and a case after. The formats are described in ``cases.toml`` and in ``edits/FORMAT.md``.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ENDLESS = "endless"
NEUTRAL, LITERAL = "neutral", "literal"
_EDIT_KINDS = frozenset({NEUTRAL, LITERAL, "structure", "wait", "memory"})
_OPTIONS = frozenset({"call", "unit", "setup", "seconds", "scale", "metric"})
_GROWTH_LABEL = re.compile(r"# growth: (?P<growth_class>.+)")


@dataclass(frozen=True, slots=True)
class Scale:
    """A cheaper variant of a program: replace ``old`` with ``new`` in its text; it costs ``1 / factor`` as much."""

    old: str
    new: str
    factor: float


@dataclass(frozen=True, slots=True)
class Case:
    """A function of the suite.

    ``judged`` are the lines of the report that count it: latency, memory or glue. ``waits`` are the kinds of which its
    label must show one, ``seconds`` the wait by statement. ``call`` is an expression that runs in the module's
    namespace after the statements of ``setup``.
    """

    name: str
    unit: str
    source: str
    path: Path
    call: str
    setup: str = ""
    judged: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    seconds: float | None = None
    scale: Scale | None = None

    @property
    def by_statement(self) -> bool:
        """Whether the truth is stated: the function waits or does not end, so it is not run."""
        return self.seconds is not None or bool(self.waits)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one function; ``metric`` is what its ratio is about."""

    name: str
    kind: str
    metric: str
    before: Case
    after: Case


@dataclass(frozen=True, slots=True)
class GrowthCase:
    """A function with the class of its time; ``text`` has no label."""

    name: str
    text: str
    growth_class: str


def functions() -> list[Case]:
    """All cases of ``functions/``, module by module.

    Raises:
        ValueError: a name in cases.toml is not a function of its module, or a public function has no case.
    """
    tables = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))
    modules = {path.stem: path for path in sorted((FOLDER / "functions").glob("*.py"))}
    if tables.keys() != modules.keys():
        raise ValueError(f"cases.toml and functions/ differ in {sorted(tables.keys() ^ modules.keys())}")
    return [case for name, path in modules.items() for case in _module_cases(path, tables[name])]


def _module_cases(path: Path, table: Mapping[str, Any]) -> Iterator[Case]:
    source = path.read_text(encoding="utf-8")
    definitions = dict(_definitions(ast.parse(source)))
    given, helpers, memory = table.get("cases", {}), set(table.get("helpers", ())), set(table.get("memory", ()))
    unknown = (given.keys() | helpers | memory) - definitions.keys()
    if unknown:
        raise ValueError(f"cases.toml: {path.stem} has no {sorted(unknown)}")
    for unit, needs_arguments in definitions.items():
        if unit in helpers:
            continue
        options = given.get(unit, {})
        if needs_arguments and "call" not in options:
            raise ValueError(f"cases.toml: {path.stem}.{unit} takes arguments; give its call, or list it in helpers")
        seconds = options.get("seconds")
        judged = tuple(options.get("judge", table["judge"])) + (("memory",) if unit in memory else ())
        yield Case(
            f"{path.stem}.{unit}",
            unit,
            source,
            path,
            options.get("call", f"{unit}()"),
            options.get("setup", ""),
            ("latency",) if seconds is not None else judged,
            tuple(options.get("wait", table.get("wait", ()))),
            seconds,
            Scale(*options["scale"]) if "scale" in options else None,
        )


def _definitions(module: ast.Module) -> Iterator[tuple[str, bool]]:
    """Qualified names of functions and methods, each with whether a call needs arguments."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            required = len(arguments.posonlyargs + arguments.args) - len(arguments.defaults)
            yield node.name, required > 0 or None in arguments.kw_defaults
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}.{method.name}", True


def edits() -> list[Edit]:
    """All edits of ``edits/``.

    Raises:
        ValueError: a file does not follow ``FORMAT.md``.
    """
    return [edit for path in sorted((FOLDER / "edits").glob("*.txt")) for edit in _file_edits(path)]


def _file_edits(path: Path) -> Iterator[Edit]:
    for block in re.split(r"^=== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, rest = block.partition("\n")
        first, *changes = re.split(r"^--- ", rest, flags=re.MULTILINE)
        options, source = _options(first)
        before, metric = _edit_case(path, title.strip(), options, source), options.get("metric", "latency")
        for change in changes:
            heading, _, body = change.partition("\n")
            kind, _, label = heading.strip().partition(" ")
            name = f"{path.stem}.{title.strip()}.{label.replace(' ', '_')}"
            if kind not in _EDIT_KINDS:
                raise ValueError(f"{path}: {name} has the kind {kind!r}")
            changed, body = _options(body)
            changed = {key: value for key, value in options.items() if key in ("call", "unit", "setup")} | changed
            after = _edit_case(path, title.strip(), changed, _edited(source, body, name))
            yield Edit(
                name,
                kind,
                changed.get("metric", metric),
                replace(before, name=f"{name}.before"),
                replace(after, name=f"{name}.after"),
            )


def _edit_case(path: Path, title: str, options: Mapping[str, str], source: str) -> Case:
    call = options.get("call", f"{options.get('unit', title)}()")
    scale = options["scale"].split(" => ") if "scale" in options else None
    return Case(
        title,
        options.get("unit", title),
        source,
        path,
        call,
        options.get("setup", ""),
        seconds=float(options["seconds"]) if "seconds" in options else None,
        scale=Scale(scale[0], scale[1], float(scale[2])) if scale is not None else None,
    )


def _options(section: str) -> tuple[dict[str, str], str]:
    """The leading ``%name value`` lines of a section, and the rest."""
    options = {}
    while section.startswith("%"):
        line, _, section = section.partition("\n")
        key, _, value = line[1:].partition(" ")
        if key not in _OPTIONS:
            raise ValueError(f"unknown option {line!r}")
        options[key] = value.strip()
    return options, section.strip("\n") + "\n"


def _edited(source: str, body: str, name: str) -> str:
    """The text after an edit: lines ``OLD => NEW`` replace every occurrence; anything else is the whole text."""
    lines = body.splitlines()
    if not all(" => " in line for line in lines):
        return body
    for line in lines:
        old, _, new = line.replace("\\n", "\n").partition(" => ")
        if old not in source:
            raise ValueError(f"{name}: the text does not contain {old!r}")
        source = source.replace(old, new)
    return source


def growth() -> list[GrowthCase]:
    """The functions of ``growth/``: a line ``# growth: CLASS`` begins each."""
    cases = []
    for path in sorted((FOLDER / "growth").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        starts = list(_GROWTH_LABEL.finditer(text))
        for number, start in enumerate(starts):
            end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
            body = text[start.end() : end].strip("\n") + "\n"
            label = start["growth_class"].strip()
            cases.append(GrowthCase(f"{path.stem}.{number:02d}", body, label))
    return cases
