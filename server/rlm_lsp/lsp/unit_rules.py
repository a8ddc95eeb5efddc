"""The budgets and ignored metrics of the units of open documents: read in the background, used when known.

A request for hints never waits for a configuration file: it uses what is known, and a refresh follows when budgets have
changed. Findings and hovers wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from rlm_core.boundary import guarded
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import CodeText

from rlm_lsp.budgets.rules import Rules
from rlm_lsp.budgets.syntax import Budget
from rlm_lsp.findings.finding import Finding
from rlm_lsp.findings.judge import read_rules
from rlm_lsp.settings.model import Settings
from rlm_lsp.settings.project import BudgetTable, BudgetTables, configured_budgets

from .document import Analysis
from .session import Session

_Budgets = Mapping[tuple[str, CodeText], tuple[Budget, ...]]
WITHOUT_RULES = Rules()


@dataclass(frozen=True, slots=True)
class DocumentRules:
    """The rules of each unit of an analysis, the findings about malformed comments, and the configuration's table."""

    rules: tuple[Rules, ...]
    findings: tuple[Finding, ...] = ()
    table: BudgetTable | None = None


@dataclass(frozen=True, slots=True)
class _KnownRules:
    analysis: Analysis
    by_unit: Mapping[tuple[str, CodeText], Rules]
    budgets: _Budgets


class UnitRules:
    """The rules of all open documents; lives on the event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[str, _KnownRules] = {}
        session.on_close(self.forget)

    def of(self, uri: str, unit: AnalysedUnit) -> Rules:
        """The rules of a unit, as far as they are known."""
        known = self._known.get(uri)
        return known.by_unit.get(_key(unit), WITHOUT_RULES) if known is not None else WITHOUT_RULES

    def state_of(self, uri: str) -> object:
        """The rules for a document: a new object whenever a budget has changed."""
        known = self._known.get(uri)
        return known.budgets if known is not None else None

    def update(self, analysis: Analysis) -> None:
        """Read the rules of a document after a pause in typing, unless they are known."""
        uri = analysis.document.uri
        known = self._known.get(uri)
        if known is None or known.analysis is not analysis:
            self._session.spawn(f"rules of {uri}", self._update(analysis))

    async def read(self, analysis: Analysis) -> DocumentRules:
        """The rules of a document, as its configuration is now."""
        session, document = self._session, analysis.document
        settings = session.settings_for(document.uri)
        relative = session.settings_store.relative(document.path) if document.path is not None else PurePath()
        rules = await asyncio.to_thread(
            guarded,
            f"the budgets of {document.uri}",
            lambda: _read(analysis, settings, relative),
            lambda error: DocumentRules((WITHOUT_RULES,) * len(analysis.units)),
        )
        self._put(analysis, rules)
        return rules

    def forget(self, uri: str) -> None:
        """The document is closed."""
        self._session.cancel(f"rules of {uri}")
        self._known.pop(uri, None)

    async def _update(self, analysis: Analysis) -> None:
        await asyncio.sleep(self._session.settings.debounce_ms / 1000)
        known = self._known.get(analysis.document.uri)
        if known is None or known.analysis is not analysis:
            await self.read(analysis)

    def _put(self, analysis: Analysis, rules: DocumentRules) -> None:
        uri = analysis.document.uri
        if self._session.documents.version_of(uri) != analysis.document.version:
            return
        by_unit = {
            _key(located.analysed): of_unit for located, of_unit in zip(analysis.units, rules.rules, strict=True)
        }
        budgets: _Budgets = {
            key: tuple(active.budget for active in of_unit.budgets)
            for key, of_unit in by_unit.items()
            if of_unit.budgets
        }
        before = self._known.get(uri)
        same = before is not None and before.budgets == budgets
        self._known[uri] = _KnownRules(analysis, by_unit, before.budgets if before is not None and same else budgets)
        if not same and (before is not None or budgets):
            self._session.on_results.fire()


def _key(unit: AnalysedUnit) -> tuple[str, CodeText]:
    return unit.unit.qualname, unit.code


def _read(analysis: Analysis, settings: Settings, relative: PurePath) -> DocumentRules:
    document = analysis.document
    assert document.language is not None, "only documents in a supported language are analysed"
    units = [located.analysed for located in analysis.units]
    table = BudgetTables().above(document.path) if document.path is not None else None
    configured = configured_budgets(document.path, relative, settings, table)
    rules, findings = read_rules(document.parsed, units, configured)
    return DocumentRules(tuple(rules), tuple(findings), table)
