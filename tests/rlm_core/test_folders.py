"""Folders: walked and removed at any depth; those of processes that were killed go, those of others stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rlm_core.files import remove_abandoned
from rlm_core.folders import ScratchFolder, remove_tree, walk

from tests.nested_folders import DEPTH, nested_folders


def test_a_walk_is_sorted_and_enters_what_the_caller_leaves(tmp_path: Path) -> None:
    for name in ("b/two.py", "b/one.py", "a/c/three.py", "skipped/four.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "file").touch()
    (tmp_path / "linked").symlink_to(tmp_path / "b")
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    seen = []
    for folder, folders, files in walk(tmp_path):
        seen.append((folder.relative_to(tmp_path).as_posix(), list(folders), files))
        folders[:] = [name for name in folders if name != "skipped"]
    assert seen == [
        (".", ["a", "b", "skipped"], ["broken", "file"]),
        ("a", ["c"], []),
        ("a/c", [], ["three.py"]),
        ("b", [], ["one.py", "two.py"]),
    ]


def test_a_folder_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    errors: list[OSError] = []
    assert list(walk(tmp_path / "missing", errors.append)) == []
    assert [error.filename for error in errors] == [str(tmp_path / "missing")]


def test_a_tree_of_any_depth_is_walked_and_removed(tmp_path: Path) -> None:
    tree, kept = tmp_path / "tree", tmp_path / "kept"
    tree.mkdir()
    kept.mkdir()
    (kept / "file").touch()
    with nested_folders(tree) as deepest:
        (deepest / "file").touch()
        (deepest / "linked").symlink_to(kept)
        closed = deepest / "closed"
        (closed / "inner").mkdir(parents=True)
        closed.chmod(0)
        assert sum(1 for _ in walk(tree)) >= DEPTH
        remove_tree(tree)
        assert not tree.exists()
    assert (kept / "file").exists()


def test_a_link_to_a_folder_is_not_removed_as_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    remove_tree(tmp_path / "link")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link"]


def test_an_abandoned_tree_of_any_depth_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".out.1.partial"
    left.mkdir()
    with nested_folders(left):
        for folder, _, _ in walk(left):
            os.utime(folder, (0, 0))
        remove_abandoned(tmp_path / "out")
        assert not left.exists()


_MAKES_ONE = "import sys; from rlm_core.folders import ScratchFolder; from pathlib import Path\n"
_MAKES_ONE += "print(ScratchFolder(Path(sys.argv[1])).path, flush=True); sys.stdin.read()"


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_stays(tmp_path: Path) -> None:
    (tmp_path / "rlm-lsp-scratch-of-the-user").mkdir()
    command = [sys.executable, "-c", _MAKES_ONE, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with nested_folders(left, depth=1):
            with ScratchFolder(tmp_path) as own:
                assert left.is_dir()
            process.kill()
            process.wait()
            with ScratchFolder(tmp_path) as own:
                assert own.is_dir()
                assert not left.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["rlm-lsp-scratch-of-the-user"]


def test_a_scratch_folder_goes_with_all_in_it(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), ScratchFolder(tmp_path) as folder, nested_folders(folder):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
