"""Sources of settings, in order of precedence -> the settings, and one problem per value that is not valid.

Nothing is read from disk here: ``files`` turns files and the client's answers into sources.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_lsp.budgets.rules import ActiveBudget, GlobBudgets

from .model import ENTRIES, Scope, SettingEntry, Settings, camel

_PREFIX = "RLM_LSP_"
# Variables with the prefix that are not settings.
OTHER_VARIABLES = frozenset(
    {"RLM_LSP_TOKEN", "RLM_LSP_ALLOW_HTTP", "RLM_LSP_CPU_SCALE", "RLM_LSP_FACTS_CACHE", "RLM_LSP_STRICT"}
)
# An initialization option: the client shows the notification of invalid settings itself, with a button that opens them.
INVALID_SETTINGS = "invalidSettings"
# An initialization option: the client shows HTML in the Markdown of a unit's details.
PLOTS = "plots"
# Keys of our section that editors use themselves (which server to start, how to trace it) or that only they can set.
_CLIENT_KEYS = frozenset({"path", "interpreter", "importStrategy", "trace", "trusted", INVALID_SETTINGS, PLOTS})
ALL_SCOPES: frozenset[Scope] = frozenset({"folder", "session", "machine"})
OF_WORKSPACE: frozenset[Scope] = frozenset({"folder", "session"})
_LINE_END = re.compile(r"[\n-\r\x1c-\x1e\x85\u2028\u2029]+")
_REFUSED: dict[Scope, str] = {
    "machine": "cannot be set by a workspace because it decides what runs or where source text goes; set it in your"
    " user settings",
    "session": "applies to the whole session and can only be set by the first workspace folder",
}


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """Where values come from: ``place`` is its name in problems, ``scopes`` those of the settings that it may set."""

    place: str
    values: Any
    scopes: frozenset[Scope] = ALL_SCOPES
    client: bool = False
    variables: bool = False

    def name_of(self, entry: SettingEntry) -> str:
        """The name of a setting in this source."""
        return entry.variable if self.variables else entry.key


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """A value that is not valid, and the source that it is in.

    ``setting`` is the name of the setting as the source writes it, empty where the whole source cannot be used; then
    ``line`` (0-based) is the line of its file that is wrong.
    """

    place: str
    text: str
    setting: str = ""
    line: int = 0

    def __post_init__(self) -> None:
        # Names in a source may have line ends; a problem is one line.
        object.__setattr__(self, "text", _LINE_END.sub(" ", self.text))

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


def resolve(sources: Sequence[SettingsSource]) -> tuple[Settings, tuple[SettingsProblem, ...]]:
    """The settings of ``sources``, in order of precedence; tables are merged entry by entry.

    A value that is not valid or not allowed is a problem, and the next source or the default applies instead.
    """
    values: dict[str, Any] = {}
    problems: list[SettingsProblem] = []
    for source in sources:
        for name, value in _read(source, problems).items():
            entry = ENTRIES[name]
            if name == "budgets":
                known = {entry.glob for entry in values.get(name, ())}
                added = (
                    GlobBudgets(glob, tuple(map(ActiveBudget, budgets)), source.place)
                    for glob, budgets in value.items()
                    if glob not in known
                )
                values[name] = (*values.get(name, ()), *added)
            elif entry.kind.table:
                values[name] = {**value, **values.get(name, {})}
            else:
                values.setdefault(name, value)
    for name in ("severity", "defaultSizes"):
        if name in values:
            values[name] = {**ENTRIES[name].default, **values[name]}
    settings = Settings(**{ENTRIES[name].name: value for name, value in values.items()})
    return settings, tuple(dict.fromkeys(problems))


def environment(variables: Mapping[str, str]) -> SettingsSource:
    """The settings in environment variables: ``RLM_LSP_`` and the name of a setting."""
    named = {name: text for name, text in variables.items() if name.startswith(_PREFIX) and text}
    values = {name: text for name, text in sorted(named.items()) if name not in OTHER_VARIABLES}
    return SettingsSource("environment", values, variables=True)


def _read(source: SettingsSource, problems: list[SettingsProblem]) -> dict[str, Any]:
    """The values of one source by key; null counts as not set."""
    if source.values is None:
        return {}
    if not isinstance(source.values, Mapping):
        problems.append(SettingsProblem(source.place, "is not an object of settings; it is ignored"))
        return {}
    by_name = {entry.variable: entry for entry in ENTRIES.values()} if source.variables else ENTRIES
    read: dict[str, Any] = {}
    for written, value in source.values.items():
        written = str(written)
        name = written if source.variables else camel(written)
        entry = by_name.get(name)
        if value is None or (source.client and name in _CLIENT_KEYS):
            continue
        if entry is None:
            problems.append(SettingsProblem(source.place, _unknown(written, name, by_name), written))
        elif entry.scope not in source.scopes:
            text = f"setting `{written}` {_REFUSED[entry.scope]}"
            problems.append(SettingsProblem(source.place, text, written))
        elif entry.key in read:
            text = f"setting `{written}` is set twice; the first value applies"
            problems.append(SettingsProblem(source.place, text, written))
        else:
            messages: list[str] = []
            usable = entry.kind.read(entry.kind.parse(value) if source.variables else value, messages.append)
            problems += [
                SettingsProblem(source.place, f"setting `{source.name_of(entry)}` {text}", written) for text in messages
            ]
            if usable is not None:
                read[entry.key] = usable
    return read


def _unknown(written: str, name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    advice = f"did you mean `{near[0]}`?" if near else "see docs/settings.md for all settings"
    return f"unknown setting `{written}`; {advice}"


# The name in problems of the client's configuration.
