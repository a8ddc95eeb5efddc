"""The functions that a Python function calls, in the same file or package.

``CallGraph`` resolves calls by name over the modules that a loader gives it, indexed by
:mod:`rlm_core.source.module_index`. Names are resolved as in Python (module globals, imports, ``self`` and base
classes).

A unit's calls are read in two ways. ``callees`` are texts for the encoder, at most two levels deep; a method called on
an unknown object counts only if its name is defined once in the file. ``call_sites`` are places, for the costs that
propagate from callees to callers: types that an assignment or annotation shows are followed, overridden stubs are
replaced by what overrides them, and a method of an unknown object may be any of the few that have its name.
"""

from __future__ import annotations

import builtins
import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import TextIOWrapper

from rlm_core.types import Callee, Unit

from .module_index import Call, ModuleIndex
from .units import is_stub

MAX_LEVEL = 2
MAX_CALLEES = 12  # per level; the first in the order of the calls
# A name that more functions have says too little about which of them is called.
MAX_CANDIDATES = 6
MAX_SITES = 24  # call sites of a unit that are looked up, in source order
_MOST_HOPS = 4  # re-exports of a name that are followed
_MOST_CLASSES = 64  # base classes that are searched for a name, each once

_OPTIONAL = re.compile(r"(?:typing\.)?(?:Optional|Type|type|ClassVar|Final)\[(.*)\]", re.DOTALL)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_CONSTRUCTED = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\(.*\)", re.DOTALL)
_PROPERTY = re.compile(r"\s*@[^\n]*property\b")


Loader = Callable[[str], "ModuleIndex | None"]
Resolved = tuple[ModuleIndex, Unit]
# The modules that may define a function of a name; None where they are too many to say anything.
NameLookup = Callable[[str], "Sequence[ModuleIndex] | None"]


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A place of a unit that calls one of ``candidates``, with what is around it as in :class:`Call`."""

    candidates: tuple[Resolved, ...]
    loops: int = 0
    branches: int = 0
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class ResolvedCalls:
    """The calls of a unit: those to functions of the workspace, and how many others there are.

    ``outside`` counts calls of builtins, of containers and of other packages, ``unresolved`` calls of unknown objects.
    """

    sites: tuple[ResolvedCall, ...] = ()
    outside: int = 0
    unresolved: int = 0


_BUILTINS = frozenset(dir(builtins))
# On an unknown object these are more likely a built-in container's than the file's own.
_CONTAINER_METHODS = frozenset(
    name
    for kind in (list, dict, set, str, bytes, deque, Counter, re.Pattern, re.Match, TextIOWrapper)
    for name in dir(kind)
    if not name.startswith("_")
)


class CallGraph:
    """Callees of functions over the modules that ``load`` can give (dotted name -> index or None)."""

    def __init__(self, load: Loader | None = None, named: NameLookup | None = None) -> None:
        self._load: Loader = load or (lambda dotted: None)
        self._named: NameLookup = named or (lambda name: ())

    def callees(self, module: ModuleIndex, unit: Unit) -> tuple[Callee, ...]:
        """The functions of the same file or package that ``unit`` calls, nearest first, each once."""
        seen = {(module.dotted, unit.qualname)}
        frontier = [(module, unit)]
        callees: list[Callee] = []
        for level in range(1, MAX_LEVEL + 1):
            reached: list[tuple[ModuleIndex, Unit]] = []
            for owner, caller in frontier:
                for home, callee in self._direct(owner, caller):
                    key = (home.dotted, callee.qualname)
                    if key not in seen and len(reached) < MAX_CALLEES:
                        seen.add(key)
                        reached.append((home, callee))
            callees += [Callee(callee.text, level) for _, callee in reached]
            frontier = reached
        return tuple(callees)

    def _direct(self, module: ModuleIndex, unit: Unit) -> list[tuple[ModuleIndex, Unit]]:
        resolved = []
        for call in module.calls.get(unit.text, ()):
            callee = self.resolve(module, unit.qualname, call) if not call.is_read else None
            if callee is None:
                continue
            # What is defined inside the unit is part of its text already.
            if callee[0] is not module or not callee[1].qualname.startswith(unit.qualname + ".<locals>."):
                resolved.append(callee)
        return resolved

    def call_sites(self, module: ModuleIndex, unit: Unit) -> ResolvedCalls:
        """The calls of ``unit``, each with the functions of the workspace that it may run.

        Calls that run the same functions under the same loops and branches are one site, whose ``times`` add up.
        """
        sites: dict[tuple[object, ...], ResolvedCall] = {}
        outside = unresolved = 0
        known: dict[tuple[str, str | None, bool], tuple[Resolved, ...] | None] = {}
        for call in module.calls.get(unit.text, ()):
            key = call.name, call.target, call.is_read
            if key not in known:
                known[key] = self.candidates(module, unit, call)
            candidates = known[key]
            if candidates is None:
                outside += 1
            elif not candidates:
                unresolved += 1
            else:
                places = tuple((home.dotted, callee.qualname) for home, callee in candidates)
                if places == ((module.dotted, unit.qualname),) or len(candidates) == 0:
                    continue
                site = (places, call.loops, call.branches)
                before = sites.get(site)
                if before is not None or len(sites) < MAX_SITES:
                    times = call.times + (before.times if before is not None else 0.0)
                    sites[site] = ResolvedCall(candidates, call.loops, call.branches, times)
        return ResolvedCalls(tuple(sites.values()), outside, unresolved)

    def candidates(self, module: ModuleIndex, unit: Unit, call: Call) -> tuple[Resolved, ...] | None:
        """The functions that a call of ``unit`` may run: none where they are unknown, None for a call outside.

        In the order of module and qualified name, at most ``MAX_CANDIDATES``.
        """
        if call.is_read:
            owner = unit.qualname.split(".<locals>")[0].rpartition(".")[0]
            read = self._method(module, owner, call.name) if owner in module.bases else None
            return (read,) if read is not None and _PROPERTY.match(read[1].text) else None
        callee = self.resolve(module, unit.qualname, call)
        if callee is None and call.target is not None:
            owner_type = self._type_of(module, unit, call.target)
            if owner_type is not None:
                callee = self._method(*owner_type, call.name)
        if callee is not None and not is_stub(callee[1]):
            if callee[0] is module and callee[1].qualname.startswith(unit.qualname + ".<locals>."):
                return None  # It is part of the unit's text.
            return (callee,)
        if callee is None and self._is_outside(module, call):
            return None
        if call.target is None:
            return ()
        return self._by_name(module, call.name)

    def _by_name(self, module: ModuleIndex, name: str) -> tuple[Resolved, ...]:
        homes = self._named(name)
        if homes is None:
            return ()
        modules = {home.dotted: home for home in (module, *homes)}
        methods = [
            (home, home.units[qualname])
            for _, home in sorted(modules.items())
            for qualname in sorted(set(home.by_name.get(name, ())))
            if "." in qualname and "<locals>" not in qualname and not is_stub(home.units[qualname])
        ]
        return tuple(methods) if len(methods) <= MAX_CANDIDATES else ()

    def _is_outside(self, module: ModuleIndex, call: Call) -> bool:
        """Return whether an unresolved call is one of a builtin, a container or another package."""
        if call.target is None:
            if call.name in module.imports:
                source, _ = module.imports[call.name]
                return self._load(source) is None
            return call.name in _BUILTINS or call.name in module.bases
        if call.name in _CONTAINER_METHODS:
            return True
        first = call.target.partition(".")[0]
        return first in module.imports and self._load(module.imports[first][0]) is None

    def _type_of(self, module: ModuleIndex, unit: Unit, target: str, depth: int = 0) -> tuple[ModuleIndex, str] | None:
        """The class of an object, where an assignment or annotation shows it: its module and name."""
        if depth > _MOST_HOPS:
            return None
        owner = unit.qualname.split(".<locals>")[0].rpartition(".")[0]
        if target in ("self", "cls"):
            return (module, owner) if owner in module.bases else None
        if (made := _CONSTRUCTED.fullmatch(target)) is not None:
            return self._class_of(module, made[1])
        if _DOTTED.fullmatch(target) is None:
            return None
        variables = module.types.get(unit.text, {})
        if target in variables:
            text = variables[target]
            if not text.startswith("="):
                return self._class_of(module, text)
            return self._type_of(module, unit, text[1:], depth + 1) if text[1:] != target else None
        first, _, last = target.rpartition(".")
        if first:
            holder = self._type_of(module, unit, first, depth + 1)
            return self._attribute_type(*holder, last) if holder is not None else None
        text = module.constants.get(target, "")
        return self._class_of(module, made[1]) if (made := _CONSTRUCTED.fullmatch(text)) is not None else None

    def _attribute_type(
        self, module: ModuleIndex, owner: str, name: str, seen: set[tuple[str, str]] | None = None
    ) -> tuple[ModuleIndex, str] | None:
        seen = set() if seen is None else seen
        if (module.dotted, owner) in seen or len(seen) >= _MOST_CLASSES:
            return None
        seen.add((module.dotted, owner))
        text = module.attributes.get(owner, {}).get(name)
        if text is not None:
            return self._class_of(module, text)
        if (made := _CONSTRUCTED.fullmatch(module.constants.get(f"{owner}.{name}", ""))) is not None:
            return self._class_of(module, made[1])
        for base in module.bases.get(owner, []):
            home = self._class_of(module, base)
            if home is not None:
                found = self._attribute_type(*home, name, seen)
                if found is not None:
                    return found
        return None

    def _class_of(self, module: ModuleIndex, text: str, depth: int = 0) -> tuple[ModuleIndex, str] | None:
        """The class that an annotation or a constructor's name means, through imports and re-exports."""
        text = text.strip().strip("\"'")
        if (inner := _OPTIONAL.fullmatch(text)) is not None:
            text = inner[1].strip().strip("\"'")
        if "|" in text:
            parts = [part.strip() for part in text.split("|")]
            classes = [found for part in parts if (found := self._class_of(module, part, depth)) is not None]
            return classes[0] if len(classes) == 1 else None
        if _DOTTED.fullmatch(text) is None or depth > _MOST_HOPS:
            return None
        if text in module.bases:
            return module, text
        first, _, rest = text.partition(".")
        if first not in module.imports:
            return None
        source, original = module.imports[first]
        if rest:
            holder, _, last = rest.rpartition(".")
            dotted = ".".join(filter(None, [source, original, holder]))
            home = self._load(dotted)
            return self._class_of(home, last, depth + 1) if home is not None else None
        home = self._load(source) if original is not None else None
        return self._class_of(home, original, depth + 1) if home is not None and original is not None else None

    def load(self, dotted: str) -> ModuleIndex | None:
        """The index of a module, None where it cannot be had."""
        return self._load(dotted)

    def resolve(self, module: ModuleIndex, caller: str, call: Call) -> tuple[ModuleIndex, Unit] | None:
        """The function that a call runs in a unit of ``module`` with the qualified name ``caller``.

        A method of an unknown object is the only one of its name in the file.
        """
        is_named = call.target in (None, "self", "cls") or call.target in module.bases or call.target in module.imports
        if is_named or (call.target or "").startswith("super("):
            return self._named_function(module, caller, call)
        if call.name in _CONTAINER_METHODS:
            return None
        candidates = [name for name in module.by_name.get(call.name, []) if "." in name]
        return (module, module.units[candidates[0]]) if len(candidates) == 1 else None

    def shown(self, module: ModuleIndex, unit: Unit, call: Call) -> tuple[ModuleIndex, Unit] | None:
        """The function that a call of ``unit`` runs, if the text shows it; None for a method of an unknown object."""
        function = self._named_function(module, unit.qualname, call)
        if function is None and call.target is not None:
            owner = self._type_of(module, unit, call.target)
            function = self._method(*owner, call.name) if owner is not None else None
        return function

    def _named_function(self, module: ModuleIndex, caller: str, call: Call) -> tuple[ModuleIndex, Unit] | None:
        """The function that a call by name runs: of a global, ``self``, a class or an imported module."""
        if call.target is None:
            return self._global(module, call.name)
        owner = caller.split(".<locals>")[0].rpartition(".")[0]
        if call.target in ("self", "cls"):
            return self._method(module, owner, call.name)
        if call.target.startswith("super("):
            return self._inherited(module, owner, call.name)
        if call.target in module.bases:
            return self._method(module, call.target, call.name)
        if call.target in module.imports:
            source, name = module.imports[call.target]
            home = self._load(source if name is None else f"{source}.{name}")
            if home is not None:
                return self._global(home, call.name)
            if name is not None and (home := self._load(source)) is not None:
                return self._method(home, name, call.name)
        return None

    def _global(self, module: ModuleIndex, name: str, depth: int = 0) -> tuple[ModuleIndex, Unit] | None:
        if name in module.units:
            return module, module.units[name]
        if name in module.bases:
            return self._method(module, name, "__init__")
        if name in module.imports and depth < 4:
            source, original = module.imports[name]
            home = self._load(source) if original is not None else None
            if home is not None and original is not None and home is not module:
                return self._global(home, original, depth + 1)
        return None

    def _method(
        self, module: ModuleIndex, owner: str, name: str, seen: set[tuple[str, str]] | None = None
    ) -> tuple[ModuleIndex, Unit] | None:
        qualname = f"{owner}.{name}"
        if qualname in module.units:
            return module, module.units[qualname]
        return self._inherited(module, owner, name, seen)

    def _inherited(
        self, module: ModuleIndex, owner: str, name: str, seen: set[tuple[str, str]] | None = None
    ) -> tuple[ModuleIndex, Unit] | None:
        """A method of the first base that has it; ``seen`` has the classes that were looked at, each once."""
        seen = set() if seen is None else seen
        if (module.dotted, owner) in seen or len(seen) >= _MOST_CLASSES:
            return None
        seen.add((module.dotted, owner))
        for base in module.bases.get(owner, []):
            if base in module.bases and base != owner:
                hit = self._method(module, base, name, seen)
            elif base in module.imports:
                source, original = module.imports[base]
                home = self._load(source) if original is not None else None
                hit = self._method(home, original, name, seen) if home is not None and original is not None else None
            else:
                hit = None
            if hit is not None:
                return hit
        return None
