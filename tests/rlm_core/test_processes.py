"""Programs are those of the absolute folders of PATH."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rlm_core.processes import find_program


def executable(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_a_program_of_the_working_folder_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "here" / "tool")
    executable(tmp_path / "here" / "bin" / "tool")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", os.pathsep.join((".", "", "bin")))
    assert find_program("tool") is None
    theirs = executable(tmp_path / "bin" / "tool")
    monkeypatch.setenv("PATH", os.pathsep.join((".", "", "bin", str(tmp_path / "bin"))))
    assert find_program("tool") == theirs
    assert find_program(str(tmp_path / "here" / "tool")) == str(tmp_path / "here" / "tool")
    assert find_program("missing") is None
