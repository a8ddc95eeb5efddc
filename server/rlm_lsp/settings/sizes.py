"""The sizes and the lengths of waits that the settings give the functions of a file.

Input: the settings ``sizes`` and ``waits``, and the path of a file below the folder of the settings. Output:
:class:`SizeRules`, with globs resolved. An entry for a function takes precedence over one for the files of a glob, and
that over a name alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath

from rlm_core.queries.function_sizes import NO_RULES, SizeRules

from rlm_lsp.sources import matches

from .model import Settings
from .project import ProjectSettings


def size_rules(settings: Settings, path: PurePath) -> SizeRules:
    """The rules for a file at ``path``, relative to the folder of the settings."""
    if not (settings.sizes or settings.waits):
        return NO_RULES
    by_name: dict[str, tuple[float, str]] = {}
    of_globs: dict[str, tuple[float, str]] = {}
    by_function: dict[str, Mapping[str, float]] = {}
    for key, value in settings.sizes.items():
        if not isinstance(value, Mapping):
            by_name[key] = value, key
        elif not is_glob(key):
            by_function[key] = value
        elif matches(key, path.as_posix()):
            of_globs |= {name: (size, key) for name, size in value.items() if name not in of_globs}
    return SizeRules(by_name | of_globs, by_function, settings.waits)


def without_sizes(rules: SizeRules) -> SizeRules:
    """The rules for an earlier text of a file, which is compared without sizes: the lengths of waits."""
    return SizeRules(wait_lengths=rules.wait_lengths)


def is_glob(key: str) -> bool:
    """Return whether a key of the setting names files, and not a function."""
    return any(mark in key for mark in "/*?") or key.endswith((".py", ".ipynb", ".onnx"))


def project_rules(settings: ProjectSettings, path: Path | None) -> SizeRules:
    """The rules of the nearest configuration above a file, by its absolute path."""
    if path is None:
        return NO_RULES
    real = path.resolve()
    folder = settings.of(real)
    return size_rules(folder.settings, folder.relative(real))
