"""The kinds of results and attributes of the standard library that no table lists, from the annotations of typeshed.

The file ``result_kinds.txt`` next to this module has a line per module and class:

    module tarfile: bool is_tarfile; new TarInfo; str .ENCODING
    zipfile.ZipFile: bytes .comment read; list infolist namelist; zipfile.ZipInfo getinfo
    zipfile.PyZipFile(zipfile.ZipFile):

A kind is that of a value, the class of an object, ``new`` (an object of the class
that the name means), ``self`` (an object of the class that was asked) or ``unknown``, which hides what a base states;
the names of attributes begin with a dot. Functions that return None are left out, since
programs do nothing with it. What such a call costs is not known.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from ..domain.records import replace
from ..domain.values import UNKNOWN, Value

FILE = Path(__file__).with_suffix(".txt")
NEW, SELF, UNSTATED = "new", "self", "unknown"


def function_result(name: str) -> Value:
    """Return what is known of the result of a function, a class, or a method that is called through its class."""
    owner, _, called = name.rpartition(".")
    kind = _members(f"module {owner}").get(called) or _inherited(owner, called)
    return _value(kind, name if kind == NEW else owner)


def method_result(receiver: Value, name: str) -> Value:
    """Return what is known of the result of a method of a value, or of a class."""
    if receiver.kind in ("function", "module"):
        return function_result(f"{receiver.name.removeprefix('builtins.')}.{name}")
    owner = receiver.name if receiver.kind == "object" else receiver.kind
    return _value(_inherited(owner, name), owner)


def attribute(base: Value, name: str) -> Value | None:
    """Return what is known of an attribute of a module or of a value, None if nothing is."""
    if base.kind == "module":
        value = _value(_members(f"module {base.name}").get(f".{name}", UNSTATED), base.name)
        if value.kind != "object":  # rules recognise a constant, such as ``os.WNOHANG``, by its name
            value = replace(value, name=f"{base.name}.{name}")
    else:
        owner = base.name if base.kind == "object" else base.kind
        value = _value(_inherited(owner, f".{name}"), owner)
    return value if value.kind != "unknown" else None


def is_class(name: str) -> bool:
    """Return whether this is the dotted name of a class of the standard library."""
    return name in _lines()


def _value(kind: str, owner: str) -> Value:
    """A value of a kind; its memory is not known, and that of an attribute is held by something else."""
    if kind in (NEW, SELF):
        kind = owner
    if "." in kind:
        return Value("object", name=kind)
    return Value(kind) if kind != UNSTATED else UNKNOWN


def _inherited(owner: str, name: str) -> str:
    """The kind of a member of a class or of the first base that has one."""
    kind = _members(owner).get(name)
    if kind is not None:
        return kind
    bases, _ = _lines().get(owner, ("", ""))
    kinds = (_inherited(base, name) for base in bases.split(", ") if base)
    return next((kind for kind in kinds if kind != UNSTATED), UNSTATED)


@lru_cache(maxsize=256)
def _members(owner: str) -> dict[str, str]:
    _, groups = _lines().get(owner, ("", ""))
    return {name: kind for kind, *names in map(str.split, filter(None, groups.split(";"))) for name in names}


@cache
def _lines() -> dict[str, tuple[str, str]]:
    """Owner -> its bases and its members, as they are written."""
    lines = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line[0] != "#":
            head, _, groups = line.partition(":")
            owner, _, bases = head.partition("(")
            lines[owner] = (bases.removesuffix(")"), groups)
    return lines
