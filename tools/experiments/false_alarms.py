"""``python -m tools.experiments.false_alarms REPOSITORY... --out FILE``: findings of ``check --diff`` on commits.

Input: clones of public projects (their work trees are overwritten), and the number of commits to read of each: the
newest ones that change Python files outside tests and documentation. Each is checked against its parent, as
``rlm-lsp check --diff HEAD^`` in the project's folder does it. Output: one JSON line per finding with the change of its
file, for reading, and the findings per commit. ``--every`` reports whatever is more likely than not, so that rules can
be compared on the result.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm_core import load
from rlm_core.inference.predictor import Predictor
from rlm_lsp.findings.checked_files import find_files
from rlm_lsp.findings.checker import Checker
from rlm_lsp.findings.formats import LocatedFinding

_EVERY = {"RLM_LSP_CHANGE_RATIO": "1.25", "RLM_LSP_CHANGE_CONFIDENCE": "0.5", "RLM_LSP_GROWTH_CONFIDENCE": "0.5"}
_SOURCES = ("*.py", ":!test*", ":!**/test*/**", ":!doc*", ":!**/conftest.py")


def git(repository: Path, *arguments: str) -> str:
    """The output of git in a repository."""
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def commits(repository: Path, count: int) -> list[str]:
    """The newest commits of the clone's branch that change Python sources and have one parent, the newest first."""
    form = ("log", "origin/HEAD", "--no-merges", "--min-parents=1", "--format=%H", "--diff-filter=M", f"-{count}")
    return git(repository, *form, "--", *_SOURCES).split()


def findings(repository: Path, commit: str, predictor: Predictor) -> Iterator[LocatedFinding]:
    """Return the findings of ``rlm-lsp check --diff HEAD^`` at a commit."""
    git(repository, "checkout", "-q", "-f", "--detach", commit)
    checked = find_files([repository], (), f"{commit}^")
    yield from Checker(checked, lambda: predictor, revision=f"{commit}^").run(lambda done, total: None)


def row(repository: Path, commit: str, located: LocatedFinding) -> dict[str, Any]:
    """A finding as JSON, with the change of its file."""
    finding, change = located.finding, located.finding.change
    return {
        "project": repository.name,
        "commit": commit[:12],
        "subject": git(repository, "log", "-1", "--format=%s", commit).strip(),
        "file": located.location.name,
        "unit": finding.qualname,
        "code": finding.code,
        "severity": finding.severity,
        "metric": finding.metric,
        "message": finding.message,
        "probability": finding.probability,
        "ratio": change.ratio if change is not None else None,
        "above": {str(least): change.above(least) for least in (1.25, 1.5, 2.0)} if change is not None else {},
        "diff": git(repository, "diff", "-U4", f"{commit}^", commit, "--", located.location.name),
    }


def main() -> None:
    """Check the commits of all projects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repositories", metavar="REPOSITORY", type=Path, nargs="+")
    parser.add_argument("--commits", type=int, default=40, help="of each project (default: 40)")
    parser.add_argument("--only", metavar="HASH", nargs="+", default=[""], help="read only these of the commits")
    parser.add_argument("--every", action="store_true", help="report what is more likely than not")
    parser.add_argument("--out", type=Path, required=True, help="JSON Lines of the findings")
    arguments = parser.parse_args()
    if arguments.every:
        os.environ.update(_EVERY)
    predictor = load("builtin")
    total: Counter[str] = Counter()
    read = 0
    with arguments.out.open("w", encoding="utf-8") as out:
        for repository in arguments.repositories:
            newest = commits(repository.resolve(), arguments.commits)
            chosen = [commit for commit in newest if commit.startswith(tuple(arguments.only))]
            codes: Counter[str] = Counter()
            for commit in chosen:
                for located in findings(repository.resolve(), commit, predictor):
                    codes[located.finding.code] += 1
                    out.write(json.dumps(row(repository.resolve(), commit, located)) + "\n")
                out.flush()
            print(f"{repository.name}: {len(chosen)} commits, {sum(codes.values())} findings {dict(codes)}", flush=True)
            total += codes
            read += len(chosen)
    print(f"all: {read} commits, {sum(total.values())} findings, {sum(total.values()) / max(read, 1):.3f} per commit")


if __name__ == "__main__":
    main()
