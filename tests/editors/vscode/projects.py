"""Public projects for a person's way in VS Code: their source distributions, each as a git repository.

``python projects.py FOLDER`` downloads what is not in the cache yet and writes a folder per project.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.editors import get_editors

PROJECTS = {"httpx": "0.28.1", "toolz": "1.0.0", "rich": "14.0.0", "petl": "1.7.30", "agate": "1.14.2"}


def archive(name: str, version: str) -> Path:
    """The source distribution of a project, from the cache."""
    cache = get_editors.folder() / "projects"
    file = cache / f"{name}-{version}.tar.gz"
    if not file.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:", "--dest", str(cache)]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, f"{name}=={version}"], check=True)
    return file


def write(folder: Path) -> None:
    """Write the repositories; a file for settings is there, but empty."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, version in PROJECTS.items():
        with tarfile.open(archive(name, version)) as packed:
            packed.extractall(folder, filter="data")
        project = folder / name
        shutil.move(folder / f"{name}-{version}", project)
        (project / "rlm-lsp.toml").touch()
        git = ["git", "-C", str(project), "-c", "user.name=test", "-c", "user.email=test@example.org"]
        for step in (["init", "--quiet"], ["add", "--force", "."], ["commit", "--quiet", "-m", f"{name} {version}"]):
            subprocess.run([*git, *step], check=True)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
