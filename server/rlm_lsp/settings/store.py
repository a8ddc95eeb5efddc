"""The settings of a session: all its sources, and what they come to for each workspace folder.

Files are read only when :meth:`SettingsStore.read_files` says so; everything else is a look-up, so the event loop may
ask for the settings of a document at any time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from pygls.uris import to_fs_path

from .files import folder_source, user_source, workspace_source
from .model import Settings
from .resolve import ALL_SCOPES, OF_WORKSPACE, Problem, Source, environment, resolve

SECTION = "rlm-lsp"
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class FileSources:
    """What was read from disk: the user's file, each workspace folder's and the user's own for it, and what was not."""

    user: Source
    folders: Mapping[Path, Source]
    own: Mapping[Path, Source]
    problems: tuple[Problem, ...]


class SettingsStore:
    """The settings of one session; precedence is that of ``docs/settings.md``.

    Args:
        options: the client's ``initializationOptions``. They come from whoever starts the server, so they may set
            everything; ``trusted: true`` in them lets the client's configuration set everything too.
        folders: the workspace folders, the first of which may set what holds for the session.
        variables: the environment.
        user: the user's configuration file, by default where the system keeps such files; that of settings for single
            workspaces lies beside it.
    """

    def __init__(
        self,
        options: Any = None,
        folders: Sequence[Path] = (),
        variables: Mapping[str, str] | None = None,
        user: Path | None = None,
    ) -> None:
        self._environment = environment(os.environ if variables is None else variables)
        self._options = Source("initializationOptions", options, client=True)
        self._trusted = isinstance(options, Mapping) and options.get("trusted") is True
        self._user = user
        self._client: Mapping[Path | None, Any] = {}
        self._reported: frozenset[Problem] = frozenset()
        self.use(self.read_files(folders))

    @property
    def trusted(self) -> bool:
        """Whether the client has told that it trusts the workspace."""
        return self._trusted

    def set_client(self, values: Mapping[Path | None, Any]) -> None:
        """What the client tells of its configuration, by folder (None: for no folder); counts from the next use on."""
        self._client = {folder.resolve() if folder else None: value for folder, value in values.items()}

    def read_files(self, folders: Sequence[Path]) -> FileSources:
        """Read all files anew, for these workspace folders; changes nothing here, so it may run on a thread."""
        user, problems = user_source(self._user)
        sources: dict[Path, Source] = {}
        own: dict[Path, Source] = {}
        for folder in dict.fromkeys(folder.resolve() for folder in folders):
            sources[folder], found = folder_source(folder, first=not sources)
            own[folder], told = workspace_source(folder, self._user)
            problems += [*found, *told]
        return FileSources(user, sources, own, tuple(problems))

    def use(self, files: FileSources) -> None:
        """Work out all settings from what was read and what the client has told."""
        found = {folder: resolve(self._sources(folder, files)) for folder in (None, *files.folders)}
        # One assignment: the analysis thread may look at any time.
        self.by_folder: Mapping[Path | None, Settings] = {folder: settings for folder, (settings, _) in found.items()}
        self._by_uri: dict[str, Settings] = {}
        self.session: Settings = self.by_folder[next(iter(files.folders), None)]
        standing = [*files.problems, *(problem for _, problems in found.values() for problem in problems)]
        self.problems: tuple[Problem, ...] = tuple(dict.fromkeys(standing))

    def unreported(self) -> tuple[Problem, ...]:
        """The problems that stand now and did not stand when this was called before."""
        news = tuple(problem for problem in self.problems if problem not in self._reported)
        self._reported = frozenset(self.problems)
        return news

    def settings_for(self, uri: str) -> Settings:
        """The settings of a document: those of the innermost workspace folder that holds it."""
        found = self._by_uri.get(uri)
        if found is None:
            # Looked up for every unit of a document: resolving a path costs more than all the rest.
            if len(self._by_uri) >= _REMEMBERED:
                self._by_uri.clear()
            found = self._by_uri[uri] = self.settings_of(_path(uri))
        return found

    def settings_of(self, path: Path | None) -> Settings:
        """The settings of a file, by its absolute path; None for what is not in the file system."""
        known = self.by_folder
        return known[_innermost(known, path)]

    def relative(self, path: Path) -> PurePath:
        """A file's path below its workspace folder, for globs; its bare name outside of all."""
        folder = _innermost(self.by_folder, path)
        return path.relative_to(folder) if folder is not None else PurePath(path.name)

    def excludes(self, path: Path | None) -> bool:
        """Whether a file gets no predictions."""
        return path is not None and self.settings_of(path).excludes(self.relative(path))

    def _sources(self, folder: Path | None, files: FileSources) -> list[Source]:
        """The sources for a folder, the most important first."""
        answered = self._client.get(folder, self._client.get(None))
        scopes = ALL_SCOPES if self._trusted else OF_WORKSPACE
        client = Source("workspace/configuration", answered, scopes, client=True)
        of_folder = [files.own[folder], files.folders[folder]] if folder is not None else []
        return [self._environment, client, self._options, *of_folder, files.user]


def _innermost(folders: Iterable[Path | None], path: Path | None) -> Path | None:
    """The innermost folder that holds a file."""
    holding = [folder for folder in folders if folder and path and path.is_relative_to(folder)]
    return max(holding, key=lambda folder: len(folder.parts), default=None)


def _path(uri: str) -> Path | None:
    name = to_fs_path(uri)
    return Path(name).resolve() if name else None
