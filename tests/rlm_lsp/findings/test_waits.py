"""Findings about waits that need neither a model nor an earlier revision."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_lsp.budgets.rules import Rules
from rlm_lsp.findings.finding import Finding
from rlm_lsp.findings.waits import wait_findings
from rlm_lsp.history.comparison import NEW, UnitDiff, unit_diffs

LOOP = "from .models import User\n\n\ndef load(users):\n    for user in users:\n        user.save()\n"
SLEEP = "import time\n\n\nasync def poll():\n    time.sleep(1)\n"


def _units(text: str) -> list[AnalysedUnit]:
    return list(Analyser().analyse(ParsedSource(text.encode(), "python"), Path("a.py")))


def _findings(text: str, before: str | None = None, rules: Rules | None = None) -> list[Finding]:
    units = _units(text)
    diffs = [NEW] * len(units) if before is None else unit_diffs(_units(before), units)
    return wait_findings(units, [rules or Rules()] * len(units), diffs)


def test_a_wait_in_a_loop_names_medium_loop_line_and_cure() -> None:
    [finding] = _findings(LOOP)
    assert (finding.code, finding.severity, finding.qualname) == ("wait-in-loop", "information", "load")
    assert finding.message == (
        "load waits for a database for each item of users (line 6, user.save): "
        "bulk_create or bulk_update does it for all at once"
    )


def test_a_loop_is_one_finding_for_each_medium() -> None:
    text = (
        "import requests\nfrom .models import User\n\n\ndef load(users):\n    for user in users:\n"
        "        user.save()\n        user.delete()\n"
        "        requests.get(user.url)\n"
    )
    assert [finding.budget for finding in _findings(text)] == ["database users", "network users"]


def test_of_an_edited_unit_only_new_waits_count() -> None:
    edited = LOOP.replace("user.save()", "user.name = 1\n        user.save()")
    assert _findings(edited, before=LOOP) == []
    other = edited + "    for user in users:\n        user.delete()\n"
    assert len(_findings(other, before=LOOP)) == 1
    assert _findings(LOOP, before=LOOP) == []


def test_a_unit_whose_latency_is_ignored_has_none() -> None:
    assert _findings(LOOP, rules=Rules(ignored=frozenset({"latency"}))) == []


def test_a_unit_that_is_not_edited_has_none() -> None:
    units = _units(LOOP)
    assert wait_findings(units, [Rules()], [UnitDiff("same")]) == []


def test_a_coroutine_that_sleeps_without_await() -> None:
    [finding] = _findings(SLEEP)
    assert finding.code == "blocking-sleep"
    assert finding.message == (
        "poll calls time.sleep in a coroutine (line 5), which stops all other tasks: await asyncio.sleep"
    )
    assert _findings(SLEEP.replace("poll():", "poll():\n    pass"), before=SLEEP) == []


@pytest.mark.parametrize(
    "text",
    [
        "import asyncio\n\n\nasync def poll():\n    await asyncio.sleep(1)\n",
        "from asyncio import sleep\n\n\nasync def poll():\n    await sleep(1)\n",
        "import time\n\n\ndef poll():\n    time.sleep(1)\n",
        "import asyncio\nimport time\n\n\nasync def poll():\n    await asyncio.to_thread(time.sleep, 1)\n",
    ],
)
def test_a_sleep_that_stops_no_task(text: str) -> None:
    assert _findings(text) == []
