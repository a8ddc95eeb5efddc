"""The skill for reviews, followed by a script: its commands run against a local git server, and one comment is kept."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from rlm_lsp.cli.app import app
from rlm_lsp.mcp.skill import review_skill

from tests.rlm_lsp.findings.support import commit, write

from .test_action import CHECK, POST, Comments, comments, run

__all__ = ["comments"]

pytestmark = [pytest.mark.timeout(240), pytest.mark.skipif(os.name == "nt", reason="the steps are for bash")]

FAST = """
def drain(items: list[int]) -> int:
    total = 0
    while items:
        total += items.pop()
    return total


def mean(items: list[int]) -> float:
    return sum(items) / len(items)
"""
SLOW = FAST.replace("items.pop()", "items.pop(0)")
# What the agent writes for a function with a finding.
BENCH = "import shapes\n\n\ndef bench_{name}(n):\n    return shapes.{name}, list(range(100 * n))\n"


def steps() -> list[str]:
    """The commands of the skill: those that find, and those that measure."""
    return re.findall(r"```sh\n(.*?)```", review_skill(), re.DOTALL)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *arguments], cwd=folder, check=True)


def shell(text: str, folder: Path, program: Path, **variables: str) -> None:
    environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", **variables}
    done = subprocess.run(["bash", "-e", "-c", text], cwd=folder, env=environment, check=False)
    assert done.returncode in (0, 1)


def test_the_skill_is_printed_and_has_front_matter() -> None:
    printed = CliRunner().invoke(app, ["mcp", "--skill"])
    assert (printed.exit_code, printed.stdout) == (0, review_skill())
    head = re.match(r"---\nname: (\S+)\ndescription: >-\n((?:  .+\n)+)---\n", printed.stdout)
    assert head is not None
    assert len(head[2]) < 1024
    assert len(steps()) == 2


def test_a_scripted_review_keeps_one_comment_with_measurements(tmp_path: Path, comments: Comments) -> None:
    server, work = tmp_path / "server.git", tmp_path / "work"
    work.mkdir()
    commit(work, {"src/shapes.py": FAST})
    git(work, "branch", "-M", "main")
    git(tmp_path, "clone", "--quiet", "--bare", str(work), str(server))
    git(work, "remote", "add", "origin", server.as_uri())
    git(work, "fetch", "--quiet")
    git(work, "checkout", "--quiet", "-b", "change")
    program = tmp_path / "temporary" / "bin" / "rlm-lsp"
    find, measure = steps()

    def review(text: str) -> list[str]:
        """Push a text, review it as the skill says, and return the functions that were measured."""
        write(work, {"src/shapes.py": text})
        git(work, "commit", "--quiet", "--all", "--message", "change")
        git(work, "push", "--quiet", "--force", "origin", "change")
        status, outputs = run(CHECK, work, comments, PATHS="src", BASE="", FAIL_ON="never")
        assert status == 0
        shell(find, work, program)
        found = json.loads((work / "findings.json").read_text())
        names = sorted({row["qualname"] for row in found if row["code"] in ("growth", "regression")})
        append = ""
        if names:
            bench = tmp_path / "rlm_bench.py"
            bench.write_text("".join(BENCH.format(name=name) for name in names))
            shell(f'BASE="$(git merge-base origin/main HEAD)"\n{measure}', work, program, BENCH=str(bench))
            append = str(work / "measured.md")
        posted = run(POST, work, comments, TOKEN="secret", NUMBER="7", REPORT=outputs["report"], APPEND=append)
        assert posted[0] == 0
        (work / "findings.json").unlink()
        return names

    assert review(FAST.replace("total = 0", "total = 0 + 0")) == []
    assert list(comments.bodies) == [1]
    assert review(SLOW) == ["drain"]
    assert list(comments.bodies) == [1, 2]
    body = comments.bodies[2]
    assert body.startswith("<!-- rlm-lsp -->\n")
    assert "latency of drain is predicted to grow as n^2 in items" in body
    rows = [line for line in body.splitlines() if line.startswith("| `bench_drain` |")]
    assert [row.split(" | ")[1] for row in rows] == ["100", "1,000"]
    assert rows[1].endswith("| slower |")
    assert review(FAST) == []
    assert comments.bodies == {1: "Looks good.", 2: "<!-- rlm-lsp -->\n### Predicted costs\n\nNo findings.\n"}
