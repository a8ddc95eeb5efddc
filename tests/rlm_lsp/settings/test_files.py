"""Configuration files: which one is read, and what is reported when it cannot be."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from rlm_lsp.settings.files import MAX_BYTES, folder_source, read_config, user_file, user_source
from rlm_lsp.settings.project import read_budgets

from .support import lines, store

pytestmark = pytest.mark.timeout(30)


def test_a_folder_has_its_own_file_or_a_table_in_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.rlm-lsp]\nlabel = "median"\n[tool.rlm-lsp.severity]\nerror = 0.99\n'
    )
    found = store(None, tmp_path)
    assert (found.session.label, found.session.severity["error"]) == ("median", 0.99)
    (tmp_path / "rlm-lsp.toml").write_text("threads = 2\n")
    found = store(None, tmp_path)
    assert (found.session.label, found.session.threads) == ("band", 2)
    assert lines(found) == [
        f"{tmp_path / 'pyproject.toml'}: [tool.rlm-lsp] is ignored because of rlm-lsp.toml; keep one of the two"
    ]


def test_a_project_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other\n")
    assert lines(store(None, tmp_path)) == []


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"label = ", "is not valid TOML: "),
        (b"label = '\xff'", "is not valid UTF-8"),
        (b"#" * (MAX_BYTES + 1), "is over 64 KiB"),
        (b"#" * 2**21, "cannot be read (2 MiB is over the limit of 1 MiB)"),
        (b"a = " + b"[" * 5000, "is "),
        (b".".join([b"a"] * 30_000) + b" = 1", "has a key of more than 16 parts"),
        (b"[" + b" . ".join([b"'a'"] * 9_000) + b"]", "has a key of more than 16 parts"),
        (b"threads = " + b"9" * 5000, "has an integer of more than 64 bits"),
        (b"threads = 0x" + b"f" * 60_000, "has an integer of more than 64 bits"),
        (b"[budgets]\n'*.py' = [0x" + b"f" * 60_000 + b"]", "has an integer of more than 64 bits"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path, content: bytes, part: str) -> None:
    (tmp_path / "rlm-lsp.toml").write_bytes(content)
    began = time.process_time()
    found = store({"label": "median"}, tmp_path)
    assert time.process_time() - began < 1
    [line] = lines(found)
    assert line.startswith(f"{tmp_path / 'rlm-lsp.toml'}: {part}")
    assert "\n" not in line
    assert found.session.label == "median"


@pytest.mark.parametrize(
    "line",
    [
        b"'a%d.a.a' = 1\n",
        b"[a%d.b.c.d.e.f.g.h]\n",
        b"[[a.b.c]]\n[a.b.c.d%d]\n",
        b"a.b.c.d.e.f.g.h.i.j%d = 1\n",
        b"a%d = [[[[[[{a.b = {c.d = [1, 2, 3]}}]]]]]]\n",
        b"[tool.rlm-lsp.budgets]\n'%d' = 'latency < 1 ms'\n",
        b'a%d = """\\\n  \\\n  """\n',
    ],
)
def test_no_small_file_takes_long_to_read(tmp_path: Path, line: bytes) -> None:
    content = b""
    for number in range(MAX_BYTES):
        if len(content) + len(line) + 5 > MAX_BYTES:
            break
        content += line % number
    (tmp_path / "rlm-lsp.toml").write_bytes(content)
    began = time.process_time()
    read_config(tmp_path / "rlm-lsp.toml")
    assert time.process_time() - began < 3


def test_a_large_project_file_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"[tool.other]\n" + b"# rather long\n" * 10_000)
    assert lines(store(None, tmp_path)) == []


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rlm-lsp.toml")
    assert lines(store(None, tmp_path)) == [
        f"{tmp_path / 'rlm-lsp.toml'}: cannot be read (not a regular file); its settings are not read"
    ]


@pytest.mark.parametrize("name", ["rlm-lsp.toml", "pyproject.toml"])
def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    (folder / "shared").mkdir(parents=True)
    for parent in (tmp_path, folder / "shared"):
        table = "" if name == "rlm-lsp.toml" else "[tool.rlm-lsp]\n"
        (parent / name).write_text(f'{table}label = "median"\n')
    (folder / name).symlink_to(tmp_path / name)
    found = store(None, folder)
    assert found.session.label == "band"
    assert lines(found) == [f"{folder / name}: cannot be read (outside {folder}); its settings are not read"]
    budgets = read_budgets(folder)
    assert budgets is not None
    assert "outside" in budgets.malformed[0].message
    (folder / name).unlink()
    (folder / name).symlink_to(folder / "shared" / name)
    assert store(None, folder).session.label == "median"


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "rlm-lsp.toml").write_bytes(b'\xef\xbb\xbflabel = "median"')
    assert store(None, tmp_path).session.label == "median"


def test_the_user_has_a_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('model = "mine"\n')
    source, problems = user_source(file)
    assert (source.values, problems) == ({"model": "mine"}, [])
    assert store(user=file).session.model == "mine"
    assert user_file().name == "config.toml"


def test_a_folder_that_is_none_has_no_settings(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    source, problems = folder_source(tmp_path / "file")
    assert (source.values, problems) == (None, [])
