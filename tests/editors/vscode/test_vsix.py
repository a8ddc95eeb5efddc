"""The VS Code extension as it is packaged: the same bytes from two checkouts, and the hash of the wheel in it.

Runs where the Node.js tools of the extension are installed: from ``.ci/run`` and ``tests/editors/run.sh``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tests.package.test_wheel import REPOSITORY, copy_of_checkout

pytestmark = pytest.mark.timeout(900)

TOOLS = REPOSITORY / "vscode-extension" / "node_modules"
# The Node.js of the editors' tests comes before that on PATH.
NODE = Path(os.environ["EDITORS_CACHE"]) / "node24" / "bin"


def steps() -> list[list[str]]:
    """The commands of the script `package`, which `make vsix` runs, without npm and the check of the types."""
    scripts = json.loads((TOOLS.parent / "package.json").read_text(encoding="utf-8"))["scripts"]
    found = []
    for command in map(shlex.split, scripts["package"].split("&&")):
        if command[:2] == ["npm", "run"]:
            name, *arguments = (word for word in command[2:] if word != "--")
            command = [*shlex.split(scripts[name]), *arguments]
        if command[0] == "vsce":
            command = ["node", "node_modules/@vscode/vsce/vsce", *command[1:]]
        if command[0] != "tsc":
            assert command[0] == "node", f"{command} needs more than Node.js"
            found.append(command)
    return found


def package(checkout: Path) -> Path:
    """Package the extension of a checkout as `make vsix` does, with the tools that are installed here."""
    extension = checkout / "vscode-extension"
    (extension / "node_modules").symlink_to(TOOLS)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(NODE), os.environ["PATH"]]),
        "PYTHON": sys.executable,
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say: without; hatchling is installed
        "SOURCE_DATE_EPOCH": "1700000000",
    }
    for command in steps():
        done = subprocess.run(command, cwd=extension, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return extension / "rlm-lsp.vsix"


def test_the_extension_has_the_same_bytes_from_two_checkouts_and_names_the_hash_of_its_wheel(tmp_path: Path) -> None:
    assert TOOLS.is_dir(), f"{TOOLS} not found; `make vsix` installs it"
    first, second = (package(copy_of_checkout(tmp_path / name)) for name in ("one", "two"))
    with zipfile.ZipFile(first) as archive, zipfile.ZipFile(second) as other:
        different = [name for name in archive.namelist() if archive.read(name) != other.read(name)]
        assert different == []
        [wheel] = [name for name in archive.namelist() if name.endswith(".whl")]
        digest = hashlib.sha256(archive.read(wheel)).hexdigest()
        sums = archive.read("extension/bundled/SHA256SUMS").decode()
        script = json.loads(archive.read("extension/package.json"))["scripts"]["vscode:uninstall"]
        assert f"extension/{PurePosixPath(script.removeprefix('node '))}" in archive.namelist()
    assert sums == f"{digest}  {Path(wheel).name}\n"
    assert first.read_bytes() == second.read_bytes()


def test_make_vsix_needs_node_and_python_only() -> None:
    # --always-make: also the steps that were done before.
    command = ["make", "--dry-run", "--always-make", "--no-print-directory", "PYTHON=the-python", "vsix"]
    # The runner's make, if there is one, must not pass its options on.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"
    }
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    assert "npm run --silent package" in done.stdout
    assert re.findall(r"\S*tests/[^\s)]*", done.stdout) == ["PATH=$(tests/editors/vscode/get_node.sh"]
    assert not re.search(r"code-server|chromium|apt-get|playwright|--pinned|\.venv/", done.stdout, re.IGNORECASE)
