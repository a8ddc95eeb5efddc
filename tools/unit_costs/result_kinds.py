"""Writes what typeshed says of the standard library: the kinds of what functions return and of attributes.

Input: the stubs that mypy bundles, as mypy reads them for the Python version that the costs are measured with. Output:
the text of ``rlm_core/cost/library/result_kinds.txt``, which :mod:`rlm_core.cost.library.result_kinds` describes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import mypy
from mypy.build import build
from mypy.modulefinder import BuildSource, load_stdlib_py_versions
from mypy.nodes import Decorator, FuncDef, MypyFile, OverloadedFuncDef, SymbolNode, TypeInfo, Var
from mypy.options import Options
from mypy.types import (
    CallableType,
    Instance,
    LiteralType,
    Overloaded,
    TupleType,
    Type,
    TypeVarType,
    UnionType,
    get_proper_type,
)
from mypy.version import __version__
from rlm_core.cost import library
from rlm_core.cost.library.result_kinds import NEW, SELF, UNSTATED

PYTHON = (3, 12)
_STUBS = Path(mypy.__file__).parent / "typeshed" / "stdlib"
_HEAD = f"""\
# The kinds of results and attributes of the standard library that no table lists, for Python {PYTHON[0]}.{PYTHON[1]}.
# Written by `python -m tools.unit_costs --kinds` from typeshed (Apache License 2.0), as in mypy {__version__}.
"""
_KINDS = {
    **{f"builtins.{kind}": kind for kind in (
        "int", "float", "bool", "complex", "str", "bytes", "bytearray", "memoryview", "list", "tuple", "set",
        "frozenset", "dict",
    )},
    **dict.fromkeys(("collections.OrderedDict", "collections.defaultdict", "collections.Counter"), "dict"),
    "collections.deque": "deque", "typing.Iterator": "iterator", "typing.Generator": "iterator",
}  # fmt: skip
"""Class -> the kind of its objects; those of other classes are objects with the name of their class."""
_ABSTRACT = frozenset({"typing", "_typeshed", "collections.abc", "abc", "types", "builtins"})
"""Modules whose classes are not the types of objects: one of ``typing.Sequence`` is a list or a tuple."""
_CODECS = "encodings"
"""The package of the codecs, which programs use by name: a fifth of all names."""
_NO_DECORATORS = frozenset(
    {"typing_extensions.deprecated", "warnings.deprecated", "typing.final", "typing.type_check_only"}
)

_LISTED = frozenset(
    {owner for owner, _ in library.ENTRIES.methods}
    | {part for name in library.ENTRIES.functions for part in (name, name.rpartition(".")[0])}
)

Members = dict[str, str]
"""Name -> kind; that of an attribute begins with a dot."""


def stub_modules() -> list[str]:
    """Return the public modules of the Python version that no later version has removed."""
    versions = load_stdlib_py_versions(None)
    names = []
    for path in sorted(_STUBS.rglob("*.pyi")):
        parts = path.relative_to(_STUBS).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        spans = (versions.get(".".join(parts[:count])) for count in range(len(parts), 0, -1))
        first, last = next(span for span in spans if span is not None)
        if all(map(_is_public, parts)) and parts[0] != _CODECS and first <= PYTHON and last is None:
            names.append(".".join(parts))
    return names


def result_kinds(modules: Iterable[str], owners: Container[str] | None = None) -> str:
    """Return the text of the file for these modules, with the lines of these owners or of all.

    Raises:
        CompileError: typeshed has no such module.
    """
    options = Options()
    options.python_version, options.platform = PYTHON, "linux"
    options.incremental, options.semantic_analysis_only = False, True
    listed = list(modules)
    files = build([BuildSource(None, name, None) for name in listed], options).files
    reader = _Reader([files[name] for name in listed])
    lines = [
        line for line in sorted(reader.lines()) if owners is None or line.partition(":")[0].partition("(")[0] in owners
    ]
    return _HEAD + "".join(f"{line}\n" for line in lines)


class _Reader:
    """Reads modules; a class has the members that its own text states."""

    def __init__(self, modules: list[MypyFile]) -> None:
        self._modules = modules
        self._names: dict[str, str] = {}  # by which each is listed, though other modules export it too
        for module in modules:
            for name, node in _public(module):
                names = [f"{module.fullname}.{name}", self._names.get(node.fullname)]
                self._names[node.fullname] = min(filter(None, names), key=_rank)
        self._members: dict[str, Members] = {}

    def lines(self) -> Iterator[str]:
        """The lines of the file: one per module and one per class."""
        classes: dict[str, TypeInfo] = {}
        for module in self._modules:
            members: Members = {}
            for name, node in _public(module):
                if self._names[node.fullname] != f"{module.fullname}.{name}":
                    continue
                if isinstance(node, TypeInfo):
                    members[name] = self._constructed(node)
                    classes |= {info.fullname: info for info in node.mro if self._has_line(info)}
                else:
                    members |= self._member(name, node, None)
            if module.fullname != "builtins":
                stated = {name: kind for name, kind in members.items() if kind != UNSTATED}
                yield from _line(f"module {module.fullname}", [], _unlisted(module.fullname, stated))
        for info in classes.values():
            owner = self._owner(info)
            bases = [base.type for base in info.bases if self._has_line(base.type)]
            stated = {
                name: kind
                for name, kind in self._visible(info).items()
                if kind != _first(name, [self._visible(base) for base in bases])
            }
            yield from _line(owner, [self._owner(base) for base in bases], _unlisted(owner, stated))

    def _has_line(self, info: TypeInfo) -> bool:
        if info.module_name in _ABSTRACT:
            return _KINDS.get(info.fullname) == info.name
        return (
            info.fullname not in _KINDS
            and not _is_error(info)
            and any(kind != UNSTATED for kind in self._visible(info).values())
        )

    def _owner(self, info: TypeInfo) -> str:
        return _KINDS.get(info.fullname) or self._names.get(info.fullname, info.fullname)

    def _visible(self, info: TypeInfo) -> Members:
        """The members of a class and of its bases."""
        return {
            name: kind
            for base in reversed(info.mro)
            if base.module_name not in _ABSTRACT or base.fullname in _KINDS
            for name, kind in self._members_of(base).items()
        }

    def _members_of(self, info: TypeInfo) -> Members:
        if info.fullname not in self._members:
            members: Members = {}
            for name, symbol in info.names.items():
                if _is_public(name) and symbol.node is not None:
                    members |= self._member(name, symbol.node, info)
            self._members[info.fullname] = members
        return self._members[info.fullname]

    def _member(self, name: str, node: SymbolNode, owner: TypeInfo | None) -> Members:
        """The entry of a function or an attribute; empty where the node is neither."""
        if isinstance(node, OverloadedFuncDef) and isinstance(node.items[0], Decorator) and node.is_property:
            node = node.items[0]
        if isinstance(node, Var):
            is_member = owner is not None and owner.is_enum  # found on the class
            return {f".{name}": UNSTATED if is_member else self._kind(node.type)}
        if isinstance(node, Decorator):
            if node.var.is_property:
                type_ = get_proper_type(node.func.type)
                return {f".{name}": self._kind(type_.ret_type) if isinstance(type_, CallableType) else UNSTATED}
            return {name: self._result(node.func) if _is_plain(node) else UNSTATED}
        if isinstance(node, FuncDef | OverloadedFuncDef):
            return {name: self._result(node)}
        return {}

    def _result(self, node: FuncDef | OverloadedFuncDef) -> str:
        type_ = get_proper_type(node.type)
        kinds = set()
        for item in type_.items if isinstance(type_, Overloaded) else [type_]:
            kinds.add(self._kind(item.ret_type) if isinstance(item, CallableType) else UNSTATED)
        return kinds.pop() if len(kinds) == 1 else UNSTATED

    def _constructed(self, info: TypeInfo) -> str:
        """The kind of what a call of a class makes."""
        made = info.get("__new__")
        if made is not None and isinstance(made.node, FuncDef | OverloadedFuncDef | Decorator):
            node = made.node.func if isinstance(made.node, Decorator) else made.node
            if node.info.module_name != "builtins" and self._result(node) not in (SELF, self._of_class(info)):
                return UNSTATED
        kind = self._of_class(info)
        return NEW if kind == self._names[info.fullname] else kind

    def _of_class(self, info: TypeInfo) -> str:
        if info.fullname in _KINDS:
            return _KINDS[info.fullname]
        name = self._names.get(info.fullname)
        is_abstract = info.is_protocol or info.typeddict_type is not None or info.module_name in _ABSTRACT
        return UNSTATED if name is None or is_abstract or _is_error(info) or self._gives_another(info) else name

    def _gives_another(self, info: TypeInfo) -> bool:
        """Return whether ``with`` or ``await`` makes another object of one of this class."""
        entered = info.get("__enter__")
        if entered is not None and isinstance(entered.node, FuncDef):
            type_ = get_proper_type(entered.node.type)
            result = get_proper_type(type_.ret_type) if isinstance(type_, CallableType) else None
            if not (_is_self(result) or (isinstance(result, Instance) and result.type is info)):
                return True
        return info.get("__await__") is not None or info.get("__aenter__") is not None

    def _kind(self, type_: Type | None) -> str:
        proper = get_proper_type(type_)
        match proper:
            case LiteralType():
                return self._kind(proper.fallback)
            case UnionType():  # None is one of the kinds that are not stated: nothing is done with it
                kinds = {self._kind(part) for part in proper.items}
                return kinds.pop() if len(kinds) == 1 else UNSTATED
            case TupleType():
                return self._kind(proper.partial_fallback)
            case TypeVarType() if _is_self(proper):
                return SELF
            case Instance():
                return self._of_class(proper.type)
        return UNSTATED


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _is_self(type_: Type | None) -> bool:
    return isinstance(type_, TypeVarType) and (type_.id.is_self() or type_.name == "Self")


def _is_error(info: TypeInfo) -> bool:
    return any(base.fullname == "builtins.BaseException" for base in info.mro)


def _public(module: MypyFile) -> Iterator[tuple[str, SymbolNode]]:
    for name, symbol in module.names.items():
        if symbol.node is not None and symbol.module_public and _is_public(name):
            yield name, symbol.node


def _rank(dotted: str) -> tuple[bool, int, str]:
    """The order of the names of something: one in a module that the tables list, a short one."""
    owner = dotted.rpartition(".")[0]
    return dotted not in _LISTED and owner not in _LISTED, dotted.count("."), dotted


def _unlisted(owner: str, members: Members) -> Members:
    """The members whose kinds no table states, nor functions of them, such as ``os.environ.get``."""
    entries, prefix = library.ENTRIES, f"{owner}."
    functions = {name[len(prefix) :]: entry for name, entry in entries.functions.items() if name.startswith(prefix)}
    methods = {name: entry for (kind, name), entry in entries.methods.items() if kind == owner}
    if "*" in methods:
        return {}
    listed = {name.partition(".")[0] for name, entry in functions.items() if "." in name or entry.states_result()}
    listed |= {name for name, entry in methods.items() if entry.states_result()}
    listed |= {name for kind, name in entries.attributes if kind == owner}
    return {name: kind for name, kind in members.items() if name.lstrip(".") not in listed}


def _is_plain(node: Decorator) -> bool:
    """Return whether no decorator changes what a function returns."""
    for decorator in node.decorators:
        called = getattr(decorator, "callee", decorator)
        if getattr(called, "fullname", "") not in _NO_DECORATORS:
            return False
    return True


def _first(name: str, bases: list[Members]) -> str:
    """The kind that bases state for a name, as the analysis looks it up."""
    return next((kind for members in bases if (kind := members.get(name, UNSTATED)) != UNSTATED), UNSTATED)


def _line(owner: str, bases: list[str], members: Members) -> Iterator[str]:
    """The line of an owner, unless it would be empty."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, kind in sorted(members.items()):
        groups[kind].append(name)
    if groups or bases:
        head = f"{owner}({', '.join(bases)})" if bases else owner
        stated = (f" {kind} {' '.join(names)}" for kind, names in sorted(groups.items()))
        yield f"{head}:{';'.join(stated)}"
