"""Sources of settings, the most important first -> the settings, and a line for each thing that was not understood.

Nothing is read from disk here: files and the client are turned into :class:`Source` by others.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_lsp.budgets.rules import ActiveBudget, GlobBudgets

from .model import ENTRIES, Entry, Scope, Settings, camel

_PREFIX = "RLM_LSP_"
# Variables of the same family that are no settings.
OTHER_VARIABLES = frozenset({"RLM_LSP_TOKEN", "RLM_LSP_ALLOW_HTTP", "RLM_LSP_CPU_SCALE"})
# What editors keep in our section for themselves (which server to start, how to trace it), and what only they tell us.
_CLIENTS_OWN = frozenset({"path", "interpreter", "importStrategy", "trace", "trusted"})
ALL_SCOPES: frozenset[Scope] = frozenset({"folder", "session", "machine"})
OF_WORKSPACE: frozenset[Scope] = frozenset({"folder", "session"})
_REFUSED: dict[Scope, str] = {
    "machine": "is not taken from a workspace, since it decides what runs or where source text goes; set it in your"
    " own settings",
    "session": "holds for the whole session and is taken from the first workspace folder only",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where values come from: ``place`` as problems name it, ``scopes`` of the settings that it may set."""

    place: str
    values: Any
    scopes: frozenset[Scope] = ALL_SCOPES
    client: bool = False
    variables: bool = False

    def name_of(self, entry: Entry) -> str:
        """What this source calls a setting."""
        return entry.variable if self.variables else entry.key


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was not understood, and in which source."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


def resolve(sources: Sequence[Source]) -> tuple[Settings, tuple[Problem, ...]]:
    """The settings of ``sources``, the most important first; tables are joined entry by entry.

    What is not understood or not allowed is a problem, and the next source or the default holds for it.
    """
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    for source in sources:
        for name, value in _read(source, problems).items():
            entry = ENTRIES[name]
            if name == "budgets":
                known = {entry.glob for entry in found.get(name, ())}
                added = (
                    GlobBudgets(glob, tuple(map(ActiveBudget, budgets)), source.place)
                    for glob, budgets in value.items()
                    if glob not in known
                )
                found[name] = (*found.get(name, ()), *added)
            elif entry.kind.table:
                found[name] = {**value, **found.get(name, {})}
            else:
                found.setdefault(name, value)
    for name in ("hideBelow", "severity", "defaultSizes"):
        if name in found:
            found[name] = {**ENTRIES[name].default, **found[name]}
    settings = Settings(**{ENTRIES[name].name: value for name, value in found.items()})
    return settings, tuple(dict.fromkeys(problems))


def environment(variables: Mapping[str, str]) -> Source:
    """The source that environment variables are: ``RLM_LSP_`` and a setting's name."""
    named = {name: text for name, text in variables.items() if name.startswith(_PREFIX) and text}
    values = {name: text for name, text in sorted(named.items()) if name not in OTHER_VARIABLES}
    return Source("environment", values, variables=True)


def _read(source: Source, problems: list[Problem]) -> dict[str, Any]:
    """The values of one source by key; what is null counts as not set."""
    if source.values is None:
        return {}
    if not isinstance(source.values, Mapping):
        problems.append(Problem(source.place, "must be an object of settings; nothing is taken from it"))
        return {}
    by_name = {entry.variable: entry for entry in ENTRIES.values()} if source.variables else ENTRIES
    read: dict[str, Any] = {}
    for written, value in source.values.items():
        name = written if source.variables else camel(str(written))
        entry = by_name.get(name)
        if value is None or (source.client and name in _CLIENTS_OWN):
            continue
        if entry is None:
            problems.append(Problem(source.place, _unknown(str(written), name, by_name)))
        elif entry.scope not in source.scopes:
            problems.append(Problem(source.place, f"setting `{written}` {_REFUSED[entry.scope]}"))
        elif entry.key in read:
            problems.append(Problem(source.place, f"setting `{written}` is there twice; the first holds"))
        else:
            told: list[str] = []
            usable = entry.kind.read(entry.kind.parse(value) if source.variables else value, told.append)
            problems += [Problem(source.place, f"setting `{source.name_of(entry)}` {text}") for text in told]
            if usable is not None:
                read[entry.key] = usable
    return read


def _unknown(written: str, name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    advice = f"did you mean `{near[0]}`?" if near else "docs/settings.md lists all"
    return f"unknown setting `{written}`; {advice}"
