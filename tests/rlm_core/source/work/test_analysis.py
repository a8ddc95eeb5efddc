"""Facts of a unit: within a budget, and the same in every process and order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import rlm_core
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.work.analysis import work_facts
from rlm_core.source.work.scope import Texts
from rlm_core.types import WaitKind, WorkFacts

PRINT_FACTS = """
import sys
from pathlib import Path
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource

for path in map(Path, sys.argv[1:]):
    for unit in Analyser().analyse(ParsedSource(path.read_bytes(), "python"), path):
        print(unit.unit.qualname, unit.code.work)
"""
SOURCES = ("types.py", "source/call_graph.py", "source/solutions.py", "source/work/outline.py")


def test_facts_do_not_depend_on_the_order_of_sets() -> None:
    paths = [str(Path(rlm_core.__file__).parent / name) for name in SOURCES]
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINT_FACTS, *paths],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
    assert printed.pop().count(b"WorkFacts(") > 50


def test_a_callee_beyond_its_share_of_the_budget_is_unknown_and_the_rest_is_read() -> None:
    huge = "def huge(a):\n" + "    a = [b + 1 for b in a if b > 2]\n" * 500
    facts = work_facts("def f(a):\n    huge(a)\n    time.sleep(2)\n", Texts({"huge": huge}))
    assert facts is not None
    assert facts.unknown_calls == 1
    assert [wait.kind for wait in facts.waits] == [WaitKind.TIME]
    assert work_facts(huge) is None


def test_facts_do_not_depend_on_what_was_analysed_before(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    (tmp_path / "__init__.py").touch()
    calling = "from .second import work\ndef f(n):\n    return work(n)\n"

    def facts(analyser: Analyser, path: Path) -> list[WorkFacts | None]:
        return [unit.code.work for unit in analyser.analyse(ParsedSource(path.read_bytes(), "python"), path)]

    first.write_text(calling)
    second.write_text("def work(n):\n    return sum(range(10))\n")
    analyser = Analyser()
    small = facts(analyser, first)
    second.write_text("def work(n):\n    return sum(range(1_000_000))\n")
    [large] = facts(analyser, first)
    assert [large] == facts(Analyser(), first) != small
    assert facts(analyser, second) == facts(Analyser(), second)
    assert large is not None
    assert large.latency.known.likely > 1e-3
