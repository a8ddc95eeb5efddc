"""What documents were at HEAD, from real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_lsp.history.head_units import COMMIT_SECONDS, Revisions

from tests.lsp.recording import commit

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]


async def texts(revisions: Revisions, path: Path) -> list[str] | None:
    units = await revisions.units(path, "python")
    return [unit.unit.text for unit in units] if units is not None else None


async def test_the_units_are_those_of_the_newest_commit(tmp_path: Path) -> None:
    now = 0.0
    revisions = Revisions(clock=lambda: now)
    path = tmp_path / "a.py"
    path.write_text("def f(): return 1\n")
    assert await texts(revisions, path) is None
    commit(tmp_path, [path])
    now += COMMIT_SECONDS
    path.write_text("def f(): return 2\n")
    assert await texts(revisions, path) == ["def f(): return 1"]
    commit(tmp_path, [path])
    assert await texts(revisions, path) == ["def f(): return 1"]
    now += COMMIT_SECONDS
    assert await texts(revisions, path) == ["def f(): return 2"]
    revisions.close()


async def test_new_files_and_empty_ones_were_nothing(tmp_path: Path) -> None:
    revisions = Revisions()
    empty, new = tmp_path / "empty.py", tmp_path / "new.py"
    empty.touch()
    commit(tmp_path, [empty])
    new.write_text("def f(): return 1\n")
    assert await texts(revisions, new) is None
    assert await texts(revisions, empty) is None
    revisions.close()


async def test_what_is_called_is_read_at_head_too(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    caller, callee, late = package / "caller.py", package / "callee.py", package / "late.py"
    (package / "__init__.py").touch()
    caller.write_text("from .callee import work\nfrom .late import more\n\ndef run(n): return work(n) + more(n)\n")
    callee.write_text("def work(n): return n\n")
    commit(tmp_path, [package])
    callee.write_text("def work(n): return sorted(range(n))\n")
    late.write_text("def more(n): return n\n")
    revisions = Revisions()
    units = await revisions.units(caller, "python")
    assert units is not None
    assert [callee.text for callee in units[0].code.callees] == ["def work(n): return n"]
    revisions.close()


async def test_a_file_that_was_no_text_has_no_units(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"\0\1\2\xff")
    commit(tmp_path, [path])
    revisions = Revisions()
    assert await texts(revisions, path) == []
    revisions.close()
