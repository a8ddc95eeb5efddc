"""The count of call sites: what is left out, and what has an entry."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tools.experiments.call_sites import figures, in_part, main, missing, read_project

_SHOP = """
import os
import requests
from unknown_package import convert
from .prices import price

def total(urls, client):
    names = [os.path.basename(url) for url in urls]
    names.sort()
    for url in urls:
        requests.get(url)
        convert(url)
        client.frobnicate(url)
    return price(len(names))
"""


@pytest.fixture(autouse=True)
def _without_stored_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_LSP_FACTS_CACHE", "off")


def _project(folder: Path) -> Path:
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "shop" / "prices.py").write_text("def price(count):\n    return count * 3\n")
    (folder / "shop" / "totals.py").write_text(_SHOP)
    cells = ["%matplotlib inline\nimport os\n", "os.getcwd()\n"]
    book = {"cells": [{"cell_type": "code", "source": [cell]} for cell in cells]}
    (folder / "look.ipynb").write_text(json.dumps(book))
    return folder


def test_calls_of_libraries_are_counted_and_others_are_left_out(tmp_path: Path) -> None:
    project = read_project(_project(tmp_path / "shop"), 12)
    named = {project.names[site]: kind for site, kind in project.found.items()}
    assert named["requests.get"] == named["os.path.basename"] == named["os.getcwd"] == "entry"
    assert named["unknown_package.convert"] == "no entry"
    assert named["?.frobnicate"] == "open"
    assert named["sort"] == named["len"] == "builtin"
    assert Counter(named.values())["own"] == 1


def test_the_table_has_the_share_and_the_names_without_an_entry(tmp_path: Path) -> None:
    project = read_project(_project(tmp_path / "shop"), 12)
    first = next(iter(figures([project])))
    assert "1 projects, 5 calls, 60.0% with an entry" in first
    assert "unknown_package.convert:1/1" in "\n".join(missing([project], 5))


def test_only_the_chosen_part_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _project(tmp_path / "shop")
    other = "development" if in_part("shop") == "exam" else "exam"
    main([str(folder), "--part", other])
    assert "all: 0 projects" in capsys.readouterr().out
