"""What an agent may read: files below the roots of its client, or below the folders that the user names."""

from __future__ import annotations

from pathlib import Path

import pytest

from .clients import BOTH_ERAS, FAST, Mode, call, connected, refused

pytestmark = pytest.mark.asyncio


@BOTH_ERAS
async def test_without_roots_a_path_outside_the_working_directory_is_refused(tmp_path: Path, mode: Mode) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.py").write_text(FAST)
    (inside / "link.py").symlink_to(outside / "a.py")
    async with connected(inside, None, mode) as client:
        await call(client, "predict", path="a.py")
        await call(client, "predict", path=str(inside / "a.py"))
        for name in (str(outside / "a.py"), "../outside/a.py", "link.py", "/etc/passwd", "..", "~/a.py\0"):
            for tool in ("predict", "explain", "check", "measure_command", "compare"):
                line = await refused(client, tool, path=name)
                assert ("is outside" in line) or "\0" in name, line
        assert "does not exist" in await refused(client, "predict", path="b.py")
        _, answer = await call(client, "predict", path=".")
        assert {row["file"] for row in answer["rows"]} == {"a.py"}


@BOTH_ERAS
async def test_the_users_folders_count_whatever_the_client_names(tmp_path: Path, mode: Mode) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir()
        (folder / f"{folder.name}.py").write_text(FAST)
    options = ["--root", "one", "--root", str(folders[1])]
    for roots in (None, [folders[2]]):
        async with connected(tmp_path, roots, mode, options) as client:
            for name in ("one", "two"):
                _, answer = await call(client, "predict", path=f"{name}.py")
                assert {row["file"] for row in answer["rows"]} == {f"{name}.py"}
            assert "is outside" in await refused(client, "predict", path=str(folders[2] / "three.py"))


@BOTH_ERAS
async def test_the_clients_roots_decide_what_may_be_read_and_may_change(tmp_path: Path, mode: Mode) -> None:
    folders = [tmp_path / name for name in ("here", "one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / f"{folder.name}.py").write_text(FAST)
    roots = [folders[1]]
    async with connected(folders[0], roots, mode) as client:
        await call(client, "predict", path="one.py")
        assert "is outside" in await refused(client, "predict", path=str(folders[0] / "here.py"))
        assert "is outside" in await refused(client, "predict", path=str(folders[2] / "two.py"))
        roots[:] = [folders[1], folders[2]]
        _, answer = await call(client, "predict", path="two.py")
        assert answer["rows"][0]["file"] == "two.py"
        roots.clear()
        assert "there are none" in await refused(client, "predict", path="one.py")
        await call(client, "predict", text=FAST)


async def test_code_outside_the_roots_does_not_reach_a_prediction(tmp_path: Path) -> None:
    package, secret = tmp_path / "work" / "package", tmp_path / "secret.py"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from .b import helper\n\n\ndef f(n):\n    return helper(n)\n")
    (package / "b.py").symlink_to(secret)
    numbers = []
    for text in ("def helper(n):\n    return n\n", "import time\n\n\ndef helper(n):\n    time.sleep(60)\n"):
        secret.write_text(text)
        async with connected(tmp_path / "work") as client:
            _, answer = await call(client, "predict", path="package/a.py")
        numbers.append([row["median"] for row in answer["rows"]])
    assert numbers[0] == numbers[1]
