"""``rlm-lsp report``: one file that may load nothing, its charts and tables, and what it says where it cannot be."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rlm_lsp.cli.app import app

from tests.rlm_core.training.evaluation.report_rows import write_shop

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report on a small project, compared with the same model."""
    folder = tmp_path_factory.mktemp("report")
    store = write_shop(folder)
    out = folder / "report.html"
    done = CliRunner().invoke(
        app, ["report", "--store", str(store.path), "--out", str(out), "--before", "builtin", "--threads", "1"]
    )
    assert done.exit_code == 0, done.output
    assert f"{out}: written" in done.stdout
    assert not list(folder.glob("*.partial"))
    return out.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def charts(html: str) -> dict[str, Any]:
    """The figures in it."""
    [text] = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', html, re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found


def test_it_may_run_its_own_scripts_and_load_nothing(html: str) -> None:
    [policy] = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "http" not in policy
    scripts = re.findall(r"<script>(.*?)</script>\n", html, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.findall(r"'sha256-([^']*)'", policy) == hashes
    outside = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"(src|href)=\"(?!data:)", outside)


def test_it_has_a_chart_a_question(charts: dict[str, Any], html: str) -> None:
    assert set(charts) == {
        *("calibration", "coverage", "scatter-latency", "scatter-memory", "tuning"),
        *(
            f"modules-{basis}-{which}-{metric}"
            for basis in ("call", "program")
            for which in ("measured", "predicted")
            for metric in ("latency", "memory")
        ),
    }
    for name in re.findall(r'data-figure="([\w-]+)"', html):
        assert name in charts
    names = [trace.get("name") for trace in charts["scatter-latency"]["data"]]
    assert names == ["measured as predicted", "call", "program"]


def test_modules_hold_what_their_units_cost(charts: dict[str, Any]) -> None:
    [trace] = charts["modules-call-measured-latency"]["data"]
    value = dict(zip(trace["ids"], trace["values"], strict=True))
    assert value["all/shop/tax"] == pytest.approx(1.0)
    assert "all/judge" not in value
    for name, total in value.items():
        below = [value[one] for one, parent in zip(trace["ids"], trace["parents"], strict=True) if parent == name]
        assert not below or sum(below) == pytest.approx(total)


def test_the_biggest_surprise_is_in_the_table(html: str) -> None:
    [table] = re.findall(r'<table class="sortable">(.*?)</table>', html, re.DOTALL)
    [_, first, *_] = table.split("<tr>")[1:]
    assert re.search(r">(rate|round_up)</td>", first)
    assert "shop/tax.py:" in first
    assert "500 ms" in first
    assert "× above" in first


def test_names_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    store = write_shop(tmp_path)
    evil = "</script><script>alert(1)</script>"
    with_evil = [one for one in store.all() if one.qualname == "rate"]
    from dataclasses import replace

    store.add([replace(one, package=evil, file=evil, run="run-9") for one in with_evil])
    out = tmp_path / "r.html"
    assert CliRunner().invoke(app, ["report", "--store", str(store.path), "--out", str(out)]).exit_code == 0
    assert "<script>alert" not in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "{empty}"], "holds nothing to show; run rlm-lsp measure tests"),
        (["--no-store"], "there is nothing to show; name --data"),
        (["--store", "{store}", "--model", "nowhere"], "no such model"),
        (["--store", "{store}", "--out", "{folder}/none/r.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    store = write_shop(tmp_path)
    names = {"empty": tmp_path / "empty.sqlite3", "store": store.path, "folder": tmp_path}
    done = CliRunner().invoke(app, ["report", *(word.format(**names) for word in arguments)])
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_without_plotly_it_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith(("plotly", "rlm_lsp.rendering.report_"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    done = CliRunner().invoke(app, ["report", "--out", str(tmp_path / "r.html")])
    assert done.exit_code == 2
    assert "plotly is not installed; run: pip install '.[report]'" in done.stderr
