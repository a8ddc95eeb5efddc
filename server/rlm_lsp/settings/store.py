"""The settings of a session: all its sources, and the settings of each workspace folder.

Files are read only by :meth:`SettingsStore.read_files`; everything else is a look-up, so the event loop may ask for the
settings of a document at any time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from rlm_lsp.sources import path_of_uri

from .files import folder_source, user_source, workspace_source
from .model import Settings
from .resolve import ALL_SCOPES, INVALID_SETTINGS, OF_WORKSPACE, SettingsProblem, SettingsSource, environment, resolve

SECTION = "rlm-lsp"
# The name in problems of the client's configuration.
OF_CLIENT = "workspace/configuration"
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class FileSources:
    """The sources on disk: the user's file, that of each workspace folder, the user's own for it, and the problems."""

    user: SettingsSource
    folders: Mapping[Path, SettingsSource]
    of_user: Mapping[Path, SettingsSource]
    problems: tuple[SettingsProblem, ...]


class SettingsStore:
    """The settings of one session; precedence is that of ``docs/settings.md``.

    Args:
        options: the client's ``initializationOptions``. They come from whoever starts the server, so they may set
            everything; ``trusted: true`` in them lets the client's configuration set everything too.
        folders: the workspace folders, the first of which may set what applies to the session.
        variables: the environment.
        user: the user's configuration file, by default in the system's folder for such files; the file of settings
            for single workspaces is next to it.
    """

    def __init__(
        self,
        options: Any = None,
        folders: Sequence[Path] = (),
        variables: Mapping[str, str] | None = None,
        user: Path | None = None,
    ) -> None:
        self._environment = environment(os.environ if variables is None else variables)
        self._options = SettingsSource("initializationOptions", options, client=True)
        self._trusted = isinstance(options, Mapping) and options.get("trusted") is True
        self._client_reports = isinstance(options, Mapping) and options.get(INVALID_SETTINGS) is True
        self._user = user
        self._client: Mapping[Path | None, Any] = {}
        self._reported: frozenset[SettingsProblem] = frozenset()
        self.use(self.read_files(folders))

    @property
    def trusted(self) -> bool:
        """True if the client trusts the workspace."""
        return self._trusted

    @property
    def client_reports(self) -> bool:
        """True if the client itself notifies the user of invalid settings."""
        return self._client_reports

    def set_client(self, values: Mapping[Path | None, Any]) -> None:
        """Set the client's configuration by folder (None: for no folder); it applies from the next :meth:`use` on."""
        self._client = {folder.resolve() if folder else None: value for folder, value in values.items()}

    def read_files(self, folders: Sequence[Path]) -> FileSources:
        """Read all files for these workspace folders; changes nothing here, so it may run on a thread."""
        user, problems = user_source(self._user)
        sources: dict[Path, SettingsSource] = {}
        of_user: dict[Path, SettingsSource] = {}
        for folder in dict.fromkeys(folder.resolve() for folder in folders):
            sources[folder], in_folder = folder_source(folder, first=not sources)
            of_user[folder], in_workspaces = workspace_source(folder, self._user)
            problems += [*in_folder, *in_workspaces]
        return FileSources(user, sources, of_user, tuple(problems))

    def use(self, files: FileSources) -> None:
        """Resolve all settings from the files and the client's configuration."""
        resolved = {folder: resolve(self._sources(folder, files)) for folder in (None, *files.folders)}
        # One assignment: the analysis thread may look at any time.
        self.by_folder: Mapping[Path | None, Settings] = {
            folder: settings for folder, (settings, _) in resolved.items()
        }
        self._by_uri: dict[str, Settings] = {}
        self.session: Settings = self.by_folder[next(iter(files.folders), None)]
        problems = [*files.problems, *(problem for _, of_folder in resolved.values() for problem in of_folder)]
        self.problems: tuple[SettingsProblem, ...] = tuple(dict.fromkeys(problems))

    def unreported(self) -> tuple[SettingsProblem, ...]:
        """The current problems that did not exist at the previous call."""
        unreported = tuple(problem for problem in self.problems if problem not in self._reported)
        self._reported = frozenset(self.problems)
        return unreported

    def settings_for(self, uri: str) -> Settings:
        """The settings of a document: those of the innermost workspace folder that holds it."""
        settings = self._by_uri.get(uri)
        if settings is None:
            # Looked up for every unit of a document: resolving a path costs more than all the rest.
            if len(self._by_uri) >= _REMEMBERED:
                self._by_uri.clear()
            settings = self._by_uri[uri] = self.settings_of(_path(uri))
        return settings

    def settings_of(self, path: Path | None) -> Settings:
        """The settings of a file, by its absolute path; None for what is not in the file system."""
        known = self.by_folder
        return known[_innermost(known, path)]

    def relative(self, path: Path) -> PurePath:
        """A file's path below its workspace folder, for globs; its name alone outside all of them."""
        folder = _innermost(self.by_folder, path)
        return path.relative_to(folder) if folder is not None else PurePath(path.name)

    def excludes(self, path: Path | None) -> bool:
        """Return whether a file gets no predictions."""
        return path is not None and self.settings_of(path).excludes(self.relative(path))

    def _sources(self, folder: Path | None, files: FileSources) -> list[SettingsSource]:
        """The sources for a folder, in order of precedence."""
        answered = self._client.get(folder, self._client.get(None))
        scopes = ALL_SCOPES if self._trusted else OF_WORKSPACE
        client = SettingsSource(OF_CLIENT, answered, scopes, client=True)
        of_folder = [files.of_user[folder], files.folders[folder]] if folder is not None else []
        return [self._environment, client, self._options, *of_folder, files.user]


def _innermost(folders: Iterable[Path | None], path: Path | None) -> Path | None:
    """The innermost folder that holds a file."""
    holding = [folder for folder in folders if folder and path and path.is_relative_to(folder)]
    return max(holding, key=lambda folder: len(folder.parts), default=None)


def _path(uri: str) -> Path | None:
    path = path_of_uri(uri)
    return path.resolve() if path is not None else None
