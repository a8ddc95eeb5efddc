"""What the settings say about checking: the same sources as in an editor, but for the editor itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlm_core.inference.query_selection import QuerySelection

from rlm_lsp.budgets import BudgetTables
from rlm_lsp.settings import Settings, resolve
from rlm_lsp.settings.files import folder_source, user_source
from rlm_lsp.settings.resolve import environment

from .finding import Confidence, RegressionRule


@dataclass(frozen=True, slots=True)
class Profile:
    """The settings of the files below a folder (None: those without a configuration of their own)."""

    folder: Path | None
    settings: Settings

    def excludes(self, path: Path) -> bool:
        """Whether a file, by its real path, is left out."""
        if self.folder is None:
            return False
        return self.settings.excludes(path.relative_to(self.folder))

    def confidence(self, least: float | None) -> Confidence:
        """From which probabilities findings are told; ``least`` takes the place of the setting."""
        severity = self.settings.severity
        levels = (severity["information"], severity["warning"], severity["error"])
        return Confidence(self.settings.budget_confidence if least is None else least, *levels)

    @property
    def regression(self) -> RegressionRule:
        """What counts as a regression."""
        return RegressionRule(self.settings.change_ratio, self.settings.change_confidence)

    @property
    def asked(self) -> QuerySelection:
        """What units are asked about where a budget does not say."""
        return QuerySelection(None, self.settings.devices)


class Profiles:
    """The profiles of files, by the nearest configuration above each; ``problems`` are lines about bad settings."""

    def __init__(self, tables: BudgetTables, variables: Mapping[str, str] | None = None) -> None:
        self._tables = tables
        self._environment = environment(os.environ if variables is None else variables)
        self._user, found = user_source()
        self._known: dict[Path | None, Profile] = {}
        self.problems = [str(problem) for problem in found]

    def of(self, path: Path) -> Profile:
        """The profile of a file, by its real path."""
        table = self._tables.above(path)
        folder = table.path.parent if table is not None else None
        if folder not in self._known:
            sources = [self._environment, self._user]
            if folder is not None:
                source, found = folder_source(folder)
                sources.insert(1, source)
                self.problems += [str(problem) for problem in found]
            settings, problems = resolve(sources)
            # A malformed budget is a finding.
            self.problems += [str(problem) for problem in problems if "`budgets`" not in problem.text]
            self._known[folder] = Profile(folder, settings)
        return self._known[folder]
