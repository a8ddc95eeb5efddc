"""Paths named on the command line -> the files to check, and the texts that they had at a revision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cachetools import LRUCache
from rlm_core import RlmError

from rlm_lsp.history import git
from rlm_lsp.rendering import console
from rlm_lsp.sources import SourceFile, find_sources, matches

_READ_AHEAD = 24


class CheckedFiles:
    """The files to check, their names in reports, and their texts at the compared revision, if there is one."""

    def __init__(self, files: Sequence[SourceFile], trees: Mapping[Path, git.Tree] | None = None) -> None:
        self.files = tuple(files)
        self._trees = trees
        self._folders: dict[Path, tuple[Path, Path | None]] = {}
        self._overlays: LRUCache[Path, bytes | None] = git.text_cache()
        self._texts: LRUCache[Path, bytes | None] = git.text_cache()
        self._order = {source.path: index for index, source in enumerate(self.files)}

    def __reduce__(self) -> tuple[type[CheckedFiles], tuple[object, ...]]:
        return CheckedFiles, (self.files, self._trees)

    @property
    def compares(self) -> bool:
        """True if there is an earlier revision to compare with."""
        return self._trees is not None

    def real(self, path: Path) -> Path:
        """The path as :func:`rlm_lsp.history.git.real` has it."""
        return self._folder(path)[0] / path.name

    def name_of(self, path: Path) -> str:
        """A path relative to its repository, or to the working folder; absolute outside both."""
        folder, root = self._folder(path)
        path, root = folder / path.name, root or Path.cwd().resolve()
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()

    def is_changed(self, path: Path) -> bool:
        """Return whether a file differs from the revision or did not exist there."""
        tree = self._tree(path)
        return tree is None or not tree.same(path)

    def before(self, path: Path) -> bytes | None:
        """The bytes of a file at the revision; None for a new one and where nothing is compared."""
        tree = self._tree(path)
        if tree is None:
            return None
        if path in self._texts:
            return self._texts[path]
        # git is asked for the next files too: they come in this order.
        index = self._order.get(path)
        following = [source.path for source in self.files[index : index + _READ_AHEAD]] if index is not None else []
        texts = dict(tree.texts([path, *(other for other in following if self._tree(other) is tree)]))
        self._texts.update(texts)
        return texts[path]

    def overlay(self, path: Path) -> bytes | None:
        """The text of a file when those of the revision are analysed; None for the file on disk."""
        if path not in self._overlays:
            text = None
            tree = self._tree(path)
            if tree is not None and not tree.same(path):
                text = dict(tree.texts([path]))[path]
                # A file that was not there then is empty.
                text = b"" if text is None and path.is_file() else text
            self._overlays[path] = text
        return self._overlays[path]

    def _folder(self, path: Path) -> tuple[Path, Path | None]:
        """The real path of a file's folder, and the repository that holds it."""
        if path.parent not in self._folders:
            folder = path.parent.resolve()
            self._folders[path.parent] = folder, git.repository_of(folder)
        return self._folders[path.parent]

    def _tree(self, path: Path) -> git.Tree | None:
        root = self._folder(path)[1] if self._trees else None
        return self._trees.get(root) if self._trees and root is not None else None


def find_files(
    paths: Sequence[Path],
    exclude: Sequence[str] = (),
    diff: str | None = None,
    allowed: Callable[[Path], bool] = lambda path: True,
) -> CheckedFiles:
    """The files below ``paths`` without what git ignores and ``exclude`` names; with ``diff`` only the changed ones.

    A file that is named itself is checked although git may ignore it. Outside a repository only the rules of
    :mod:`rlm_lsp.sources` apply. Files that are not ``allowed`` are left out.

    Raises:
        RlmError: ``diff`` is not a revision of the repositories that hold the paths.
    """
    # In one order, whatever that of the paths: the same files give the same report.
    found = sorted(find_sources(paths, _note, notebooks=True), key=lambda source: source.path)
    sources = [source for source in found if allowed(source.path)]
    ignored = _ignored([source.path for source in sources if not source.named])
    checked = CheckedFiles([source for source in sources if source.path not in ignored])
    files = [
        source for source in checked.files if not any(matches(glob, checked.name_of(source.path)) for glob in exclude)
    ]
    if diff is None:
        return CheckedFiles(files)
    trees = _trees(files, diff)
    compared = CheckedFiles(files, trees)
    return CheckedFiles([source for source in files if compared.is_changed(source.path)], trees)


def _note(error: RlmError) -> None:
    console.note(str(error))


def _ignored(paths: Sequence[Path]) -> set[Path]:
    ignored: set[Path] = set()
    for root, group in git.by_repository(paths).items():
        try:
            ignored |= git.ignored(root, group) if root is not None else set()
        except git.GitError as error:
            console.note(f"{error}; files that git ignores are checked too")
    return ignored


def _trees(files: Sequence[SourceFile], revision: str) -> dict[Path, git.Tree]:
    trees: dict[Path, git.Tree] = {}
    for root, group in git.by_repository(source.path for source in files).items():
        if root is None:
            raise RlmError(f"--diff: {group[0]} is not in a git repository; omit --diff or name other paths")
        commit = git.commit_of(root, revision)
        if commit is None:
            raise RlmError(f"--diff: {root} has no revision {revision!r}; name a commit, a branch or a tag that it has")
        trees[root] = git.Tree(root, commit)
    return trees
