"""Which packages a project has, by the names under which its tests import them."""

from __future__ import annotations

import os
from pathlib import Path

_DEPTH = 4
_NOT_OURS = frozenset(
    {"bench", "benchmark", "benchmarks", "build", "dist", "doc", "docs", "example", "examples", "node_modules"}
    | {"script", "scripts", "site-packages", "test", "testing", "tests", "tools", "venv", "__pycache__"}
)
_NOT_MODULES = frozenset({"setup", "conftest", "noxfile", "tasks", "fabfile", "manage", "versioneer", "__init__"})


def packages_under(folder: Path) -> list[str]:
    """The top-level packages up to four folders below a project's, and single modules beside its configuration.

    Tests, documentation, examples, environments and hidden folders are passed over.
    """
    found: dict[str, None] = {}
    for path, folders, files in os.walk(folder):
        here = Path(path)
        depth = len(here.relative_to(folder).parts)
        if "__init__.py" in files and depth and here.name.isidentifier():
            found[here.name] = None
            folders.clear()
            continue
        if "pyvenv.cfg" in files or depth >= _DEPTH:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in _NOT_OURS and name[0] != ".")
        if here in (folder, folder / "src"):
            for name in sorted(files):
                stem, suffix = os.path.splitext(name)  # noqa: PTH122 - of a bare name
                if suffix == ".py" and stem.isidentifier() and stem not in _NOT_MODULES and not _is_test(stem):
                    found[stem] = None
    return list(found)


def _is_test(stem: str) -> bool:
    return stem.startswith("test_") or stem.endswith("_test")
