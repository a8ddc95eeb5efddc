"""What VS Code runs once the extension has been uninstalled: the environments of the server go, and nothing else.

The script is built as for the package and run with node alone, on real folders. Runs where ``test_vsix.py`` runs.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from .test_vsix import NODE, TOOLS

EXTENSION = TOOLS.parent
NAME = "rlm-lsp.rlm-lsp"
WHEEL, OTHER_WHEEL = "0123456789ab", "ba9876543210"
ENVIRONMENT = {**os.environ, "PATH": os.pathsep.join([str(NODE), os.environ["PATH"]])}

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the scripts as `npm run build` makes them; the checkout's own is left as it is."""
    folder = tmp_path_factory.mktemp("built")
    for name in ("src", "node_modules"):
        (folder / name).symlink_to(EXTENSION / name)
    subprocess.run(["node", EXTENSION / "esbuild.mjs"], cwd=folder, env=ENVIRONMENT, check=True, capture_output=True)
    return folder / "dist"


@dataclass(frozen=True)
class Installed:
    """An extension of VS Code with its record, and the global storage with its environments."""

    root: Path
    built: Path

    @property
    def extensions(self) -> Path:
        return self.root / "extensions"

    @property
    def storage(self) -> Path:
        return self.root / "user" / "User" / "globalStorage" / NAME

    @property
    def server(self) -> Path:
        return self.storage / "server"

    def version(self, version: str, *recorded: Path | str) -> Path:
        """Install a version, with these folders in its record."""
        folder = self.extensions / f"{NAME}-{version}"
        (folder / "dist").mkdir(parents=True)
        manifest = (EXTENSION / "package.json").read_text(encoding="utf-8")
        (folder / "package.json").write_text(manifest, encoding="utf-8")
        program, script = shlex.split(json.loads(manifest)["scripts"]["vscode:uninstall"])
        assert program == "node"
        (folder / script).write_bytes((self.built / Path(script).name).read_bytes())
        (folder / "environments.json").write_text(json.dumps([str(name) for name in recorded]))
        return folder

    def mark(self, *folders: Path) -> None:
        """Mark versions as removed, as VS Code does until it deletes their folders."""
        (self.extensions / ".obsolete").write_text(json.dumps({folder.name: True for folder in folders}))

    def uninstall(self, version: Path, **variables: str) -> tuple[int, list[str]]:
        """Run the script of a version as VS Code does: the status, and what it printed."""
        command = ["node", str(version / "dist" / "uninstall.js"), "--type=extension-post-uninstall"]
        env = ENVIRONMENT | variables
        done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, (done.stdout + done.stderr).splitlines()


@pytest.fixture
def installed(tmp_path: Path, built: Path) -> Installed:
    """A data folder with one environment; no extension yet."""
    made = Installed(tmp_path.resolve(), built)
    environment(made.server / WHEEL)
    return made


def environment(folder: Path) -> Path:
    """An environment as venv and pip leave it."""
    library = folder / "lib" / "python3.11" / "site-packages" / "rlm_lsp"
    library.mkdir(parents=True)
    (library / "__init__.py").touch()
    (folder / "pyvenv.cfg").touch()
    (folder / "installed.json").write_text("{}")
    (folder / "lib64").symlink_to("lib")
    return folder


def failure(folder: Path | str, reason: str) -> tuple[int, list[str]]:
    """The status and the line for a folder that is not removed."""
    return 1, [f"rlm-lsp: the server environment in {folder} was not removed: {reason}"]


def test_the_environment_is_removed(installed: Installed) -> None:
    version = installed.version("0.1.0", installed.server)
    # An environment of an earlier version of the extension, and one whose installation was interrupted.
    environment(installed.server / OTHER_WHEEL)
    (installed.server / "cccccccccccc").mkdir()
    assert installed.uninstall(version) == (0, [])
    assert not installed.server.exists()
    assert installed.storage.is_dir()
    assert installed.uninstall(version) == (0, []), "what is gone already is not a failure"


def test_environments_of_other_data_folders_are_removed_also_after_a_failure(installed: Installed) -> None:
    other = installed.root / "second" / "globalStorage" / NAME / "server"
    environment(other / WHEEL)
    version = installed.version("0.1.0", "/", installed.server, other)
    assert installed.uninstall(version) == failure("/", "it is not a folder of this extension")
    assert not installed.server.exists()
    assert not other.exists()


def test_what_links_lead_to_is_kept(installed: Installed) -> None:
    python = installed.root / "python"
    python.mkdir()
    (python / "python3.11").write_text("binary")
    (installed.server / WHEEL / "bin").symlink_to(python)
    (installed.server / OTHER_WHEEL).symlink_to(python)
    assert installed.uninstall(installed.version("0.1.0", installed.server)) == (0, [])
    assert not (installed.server / WHEEL).exists()
    assert (python / "python3.11").read_text() == "binary"
    assert (installed.server / OTHER_WHEEL).is_symlink(), "a link is not an environment that the extension created"


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_folder_that_is_reached_through_a_link_is_kept(installed: Installed, depth: int) -> None:
    part = [installed.server, *installed.server.parents][depth]
    real = part.rename(installed.root / "elsewhere")
    part.symlink_to(real)
    version = installed.version("0.1.0", installed.server)
    assert installed.uninstall(version) == failure(installed.server, f"{part} is a link or a file")
    assert (installed.server / WHEEL / "pyvenv.cfg").exists()


def test_foreign_folders_are_kept(installed: Installed) -> None:
    foreign: list[Path | str] = [
        environment(installed.root / "work" / "server" / WHEEL).parent,
        environment(installed.storage.parent / "other.extension" / "server" / WHEEL).parent,
        environment(installed.root / "project" / NAME / "server" / WHEEL).parent,
        installed.storage,
        # Not canonical, not absolute.
        f"{installed.server}/../../other.extension/server",
        f"{installed.server}/",
        f"globalStorage/{NAME}/server",
    ]
    status, lines = installed.uninstall(installed.version("0.1.0", *foreign))
    assert (status, lines) == (1, [failure(folder, "it is not a folder of this extension")[1][0] for folder in foreign])
    for folder in foreign[:3]:
        assert (Path(folder) / WHEEL / "pyvenv.cfg").exists()
    assert (installed.server / WHEEL / "pyvenv.cfg").exists()


def test_foreign_files_next_to_the_environment_are_kept(installed: Installed) -> None:
    (installed.server / "notes.txt").write_text("mine")
    (installed.server / "work").mkdir()
    (installed.server / OTHER_WHEEL).write_text("a file")
    assert installed.uninstall(installed.version("0.1.0", installed.server)) == (0, [])
    assert sorted(path.name for path in installed.server.iterdir()) == [OTHER_WHEEL, "notes.txt", "work"]


@pytest.mark.parametrize("record", [None, "", "{", '{"folder": "/"}', "[1, null, {}]", "null"])
def test_without_a_readable_record_nothing_happens(installed: Installed, record: str | None) -> None:
    version = installed.version("0.1.0")
    (version / "environments.json").unlink()
    if record is not None:
        (version / "environments.json").write_text(record)
    assert installed.uninstall(version) == (0, [])
    assert (installed.server / WHEEL).exists()


def test_an_old_version_does_not_remove_what_a_newer_one_uses(installed: Installed) -> None:
    old, new = installed.version("0.1.0", installed.server), installed.version("0.2.0", installed.server)
    kept = (0, ["rlm-lsp: another version of the extension is installed; the server environment is kept"])
    assert installed.uninstall(old) == kept
    installed.mark(old)
    assert installed.uninstall(old) == kept
    (installed.extensions / ".obsolete").write_text("{")
    assert installed.uninstall(new) == kept
    assert (installed.server / WHEEL / "pyvenv.cfg").exists()


def test_of_several_removed_versions_all_records_count(installed: Installed) -> None:
    # Updated and uninstalled before the new version was ever activated.
    old, new = installed.version("0.1.0", installed.server), installed.version("0.2.0")
    (new / "environments.json").unlink()
    # What VS Code is deleting, another extension, and what is left of a version, are not installed versions.
    installed.version("0.0.1.2f1e.vsctmp")
    (installed.extensions / f"{NAME}-0.0.2").mkdir()
    (installed.extensions / "other.extension-1.0.0").mkdir()
    installed.mark(old, new)
    assert installed.uninstall(new) == (0, [])
    assert not installed.server.exists()


def test_what_cannot_be_removed_is_one_line_and_no_longer_counts_as_installed(installed: Installed) -> None:
    # As on Windows while the server is running; the rights of a folder do not stop root.
    faulty = installed.root / "faulty.cjs"
    faulty.write_text(
        "const fs = require('fs/promises'), { rm } = fs;\n"
        "fs.rm = async (file, options) => {\n"
        "  if (options.recursive) throw new Error('EBUSY: resource busy or locked,\\n  python.exe');\n"
        "  return rm(file, options);\n"
        "};\n"
    )
    version = installed.version("0.1.0", installed.server)
    failed = failure(installed.server, "EBUSY: resource busy or locked, python.exe")
    assert installed.uninstall(version, NODE_OPTIONS=f"--require {faulty}") == failed
    assert not (installed.server / WHEEL / "installed.json").exists()
    assert (installed.server / WHEEL / "pyvenv.cfg").exists()


def test_a_file_in_place_of_the_folder_is_kept(installed: Installed) -> None:
    file = installed.root / "globalStorage" / NAME / "server"
    file.parent.mkdir(parents=True)
    file.write_text("a file")
    assert installed.uninstall(installed.version("0.1.0", file)) == failure(file, f"{file} is a link or a file")
    assert file.read_text() == "a file"


def test_the_record_keeps_each_folder_once(tmp_path: Path) -> None:
    script = tmp_path / "environments.js"
    esbuild = TOOLS / ".bin" / "esbuild"
    options = ["--bundle", "--platform=node", "--format=cjs", f"--outfile={script}", "--log-level=error"]
    subprocess.run([esbuild, EXTENSION / "src" / "common" / "environments.ts", *options], env=ENVIRONMENT, check=True)
    for folder in ("/a/server", "/b/server", "/a/server"):
        call = f"require({json.dumps(str(script))}).record({json.dumps(str(tmp_path))}, {json.dumps(folder)})"
        subprocess.run(["node", "-e", call], env=ENVIRONMENT, check=True)
    assert json.loads((tmp_path / "environments.json").read_text()) == ["/a/server", "/b/server"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["environments.js", "environments.json"]
