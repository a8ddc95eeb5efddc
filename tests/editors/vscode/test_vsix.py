"""The VS Code extension as it is packaged: the same bytes from two checkouts, and the hash of the wheel in it.

Runs where the Node.js tools of the extension are installed: from ``.ci/run`` and ``tests/editors/run.sh``.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.package.test_wheel import REPOSITORY, copy_of_checkout

pytestmark = pytest.mark.timeout(900)

TOOLS = REPOSITORY / "vscode-extension" / "node_modules"
# The Node.js of the editors' tests comes before that on PATH.
NODE = Path(os.environ["EDITORS_CACHE"]) / "node24" / "bin"


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
    for command in (
        ["node", "esbuild.mjs", "--minify"],
        ["node", "scripts/bundle-server.mjs"],
        [
            *("node", "node_modules/@vscode/vsce/vsce", "package", "--no-dependencies", "--allow-missing-repository"),
            *("--no-rewrite-relative-links", "-o", "rlm-lsp.vsix"),
        ],
    ):
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
    assert sums == f"{digest}  {Path(wheel).name}\n"
    assert first.read_bytes() == second.read_bytes()
