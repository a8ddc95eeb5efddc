"""Workspaces for the tests in VS Code: a repository with a function and its edit, and networks; another folder.

The edit is taken from the held-out counterfactual suite: a function and its measured edit, of a family that the model
was never trained on. Of the edits that really made a function more expensive, the script chooses the one whose
prediction exceeds a budget with the highest probability.
``python prepare.py FOLDER`` writes ``shop/``, ``depot/``, ``shop.code-workspace`` with both, and ``edit.json`` into the
folder.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rlm_core
from rlm_core.inference.predictor import Predictor
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Prediction, Query

from tools.counterfactual.builder import LABELS, family_split
from tools.nas.nasbench201 import build

EXAMPLES = Path(__file__).parents[3] / "examples"
LEAST_RATIO = 4.0
MOST_LINES = 14
# A finding is reported from 80 % on, as a warning from 90 % on; before the edit it must be clearly below.
PASSED, WARNED, KEPT = 0.83, 0.92, 0.7
# Nothing in it is expensive or grows: no function has a hint by default.
ORDINARY = 'def full_name(person):\n    return f"{person.first} {person.last}"\n'
COUNTS = "def frequencies(words):\n    return {word: words.count(word) for word in words}\n"
# The texts of both fix what they cost, so that it is known how much they differ.
REPORT = "def report():\n    return sorted(range(100))\n"
LONGER_REPORT = "def report():\n    return [sorted(range(100)) for _ in range(100)]\n"
# Code as in any project, and what an edit makes of two lines of it.
CHECKOUT = '''"""The orders of a shop."""

import json
import time
from urllib.request import urlopen

SHOP = "https://shop.example/orders"


def download(pages=20):
    orders = []
    for page in range(pages):
        with urlopen(f"{SHOP}?page={page}") as answer:
            orders += json.load(answer)
        time.sleep(0.5)  # no more than two requests a second
    return orders


def without_duplicates(orders):
    return list({order.id: order for order in orders}.values())


def unpaid(orders, payments):
    paid = {payment.order for payment in payments}
    return [order for order in orders if order.id not in paid]


# rlm: latency < 500 ms
def price_table(rows=100_000):
    return {number: round(number * 1.19, 2) for number in range(rows)}
'''
CHECKOUT_EDITS = (
    ("{payment.order for payment in payments}", "[payment.order for payment in payments]"),
    ("rows=100_000", "rows=10_000_000"),
)
# The second cell calls the function of the first.
CELLS_OF_NOTEBOOK = (
    "def pairs(values):\n    return [(one, other) for one in values for other in values if one < other]\n",
    "%matplotlib inline\n\n\ndef count_pairs(values):\n    return len(pairs(sorted(values)))\n",
)
# A size from a comment and one from a call, and a budget at a size that is exceeded.
SIZES = '''"""Costs at the sizes of inputs."""


# rlm: sizes items=10k
# rlm: latency < 50 ms at items=20k
def equal_pairs(items: list[int]) -> int:
    found = 0
    for first in items:
        for second in items:
            if first == second:
                found += 1
    return found


def simulate(steps: int) -> float:
    position = 0.0
    for step in range(steps):
        position += step * 0.5
    return position


if __name__ == "__main__":
    simulate(1_000)
    simulate(50_000)
'''
# What an edit in the animation of the README replaces, and what the cost is for.
BLOCKED = '''"""The users of a shop."""


# rlm: sizes users=20k, blocked=5k
def allowed(users: list[int], blocked: list[int]) -> list[int]:
    known = set(blocked)
    return [user for user in users if user not in known]
'''
TOTALS = '''"""The sales of a shop."""

import pandas as pd


def total(orders: pd.DataFrame) -> float:
    result = 0.0
    for _, row in orders.iterrows():
        result += row["price"] * row["count"]
    return result
'''
BUDGETS = [digit * 10.0**power for power in range(-7, 0) for digit in (1, 2, 3, 5)]
CELLS = {
    "resnet-like": ("nor_conv_3x3", "nor_conv_3x3", "nor_conv_3x3", "skip_connect", "nor_conv_3x3", "nor_conv_3x3"),
    "wide-3x3": ("nor_conv_3x3", "nor_conv_3x3", "nor_conv_3x3", "nor_conv_3x3", "nor_conv_3x3", "nor_conv_3x3"),
    "mixed-a": ("nor_conv_3x3", "nor_conv_1x1", "nor_conv_3x3", "skip_connect", "nor_conv_1x1", "nor_conv_3x3"),
    "mixed-b": ("nor_conv_1x1", "skip_connect", "nor_conv_3x3", "skip_connect", "nor_conv_1x1", "nor_conv_3x3"),
    "small-1x1": ("nor_conv_1x1", "nor_conv_1x1", "nor_conv_1x1", "skip_connect", "nor_conv_1x1", "nor_conv_1x1"),
    "pooled": ("avg_pool_3x3", "skip_connect", "avg_pool_3x3", "skip_connect", "nor_conv_1x1", "avg_pool_3x3"),
    "one-conv": ("none", "none", "none", "nor_conv_3x3", "none", "none"),
    "light": ("skip_connect", "none", "nor_conv_1x1", "skip_connect", "none", "nor_conv_1x1"),
    "deep": ("nor_conv_3x3", "none", "nor_conv_3x3", "none", "none", "nor_conv_3x3"),
    "pool-heavy": ("avg_pool_3x3", "avg_pool_3x3", "nor_conv_3x3", "avg_pool_3x3", "nor_conv_1x1", "skip_connect"),
    "skip-heavy": ("skip_connect", "nor_conv_3x3", "skip_connect", "skip_connect", "skip_connect", "nor_conv_3x3"),
    "balanced": ("nor_conv_3x3", "skip_connect", "nor_conv_1x1", "skip_connect", "nor_conv_3x3", "none"),
}


@dataclass(frozen=True)
class Edit:
    """A function before and after a measured edit, and a budget that it keeps before and passes after.

    ``certainty`` orders them: those whose finding is a warning first, then by the difference of both probabilities.
    """

    group: str
    kind: str
    name: str
    before: str
    after: str
    budget: float
    certainty: float


def pairs() -> Iterator[tuple[str, str, str, str, str]]:
    """Group, kind, name and both texts of each short held-out edit that was measured to be clearly more expensive."""
    with gzip.open(LABELS, "rt", encoding="utf-8") as lines:
        for label in map(json.loads, lines):
            base, *edits = label["functions"]
            before = _alone(base["module"])
            if family_split(label["family"]) != "test" or before is None:
                continue
            for edit in edits:
                after = _alone(edit["module"])
                short = after is not None and len(after.splitlines()) <= MOST_LINES
                if after is not None and short and edit["latency"] > LEAST_RATIO * base["latency"]:
                    yield label["group"], edit["kind"], base["name"], before, after


def _alone(module: str) -> str | None:
    """The text of a module's only function; None where it has others or a class."""
    [_, *rest] = ast.parse(module).body
    if len(rest) != 1 or not isinstance(rest[0], ast.FunctionDef):
        return None
    return "\n".join(module.splitlines()[rest[0].lineno - 1 :]) + "\n"


def choose(predictor: Predictor) -> Edit:
    """The edit and the budget for which the prediction is the surest."""
    found = [edit for pair in pairs() for edit in _judged(predictor, *pair)]
    if not found:
        raise SystemExit("no held-out edit exceeds a budget that its function meets; check the model")
    return max(found, key=lambda edit: edit.certainty)


def _judged(predictor: Predictor, group: str, kind: str, name: str, before: str, after: str) -> Iterator[Edit]:
    was, now = _latency(predictor, before), _latency(predictor, after)
    for budget in BUDGETS:
        if now.above(budget) >= PASSED and was.above(budget) <= KEPT:
            certainty = now.above(budget) - was.above(budget) + (now.above(budget) >= WARNED)
            yield Edit(group, kind, name, before, after, budget, certainty)


def _latency(predictor: Predictor, text: str) -> Prediction:
    [unit] = Analyser().analyse(ParsedSource(text.encode(), "python"))
    [[found]] = predictor.predict([unit.code], [[Query("latency")]])
    return found


def seconds(value: float) -> str:
    """A time as a budget has it."""
    return next(
        f"{value / scale:g} {unit}" for scale, unit in ((1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")) if value >= scale
    )


def notebook(cells: Sequence[str]) -> dict[str, Any]:
    """A Jupyter notebook with a heading and these cells of Python."""
    code: list[dict[str, Any]] = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell.splitlines(True)}
        for cell in cells
    ]
    heading = {"cell_type": "markdown", "metadata": {}, "source": ["# Pairs\n"]}
    metadata = {"language_info": {"name": "python"}}
    return {"cells": [heading, *code], "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}


def write(folder: Path, edit: Edit) -> None:
    """Write the workspace and what the tests need to know of it."""
    shop = folder / "shop"
    (shop / "networks").mkdir(parents=True)
    imports = "".join(f"import {name}\n" for name in sys.stdlib_module_names if re.search(rf"\b{name}\.", edit.after))
    head = f'"""A function with a budget."""\n\n{imports}\n\n# rlm: latency < {seconds(edit.budget)}\n'
    (shop / "orders.py").write_text(head + edit.before, encoding="utf-8")
    # Among tests, which the view Predicted Cost leaves out: its rows are those that fit the screen.
    (shop / "tests").mkdir()
    (shop / "tests" / "sizes.py").write_text(SIZES, encoding="utf-8")
    for name in ("functions.py", "kernel.py", "solution.py", "Solution.java", "solution.cpp"):
        shutil.copy(EXAMPLES / name, shop / name)
    (shop / "people.py").write_text(ORDINARY)
    (shop / "report.py").write_text(REPORT)
    (shop / "checkout.py").write_text(CHECKOUT)
    (shop / "tests" / "blocked.py").write_text(BLOCKED)
    (shop / "tests" / "totals.py").write_text(TOTALS)
    # Only functions of a package have tests that measure them.
    (shop / "toolbox").mkdir()
    (shop / "toolbox" / "__init__.py").touch()
    (shop / "toolbox" / "counts.py").write_text(COUNTS)
    (shop / "analysis.ipynb").write_text(json.dumps(notebook(CELLS_OF_NOTEBOOK), indent=1))
    # A language without labels: the model abstains and says why.
    (shop / "kernel.ttir").write_text(
        "module {\n  tt.func public @copy(%arg0: !tt.ptr<f32>) {\n    tt.return\n  }\n}\n"
    )
    for name, (a, b, c, d, e, f) in CELLS.items():
        model = build(f"|{a}~0|+|{b}~0|{c}~1|+|{d}~0|{e}~1|{f}~2|")
        (shop / "networks" / f"{name}.onnx").write_bytes(model.SerializeToString())
    # A second folder of the same workspace, with a file of the same name.
    (folder / "depot").mkdir()
    (folder / "depot" / "functions.py").write_text(COUNTS)
    workspace = {"folders": [{"path": "shop"}, {"path": "depot"}]}
    (folder / "shop.code-workspace").write_text(json.dumps(workspace))
    git = ["git", "-C", str(shop), "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for step in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "first"]):
        subprocess.run([*git, *step], check=True)
    checkout = CHECKOUT
    for old, new in CHECKOUT_EDITS:
        checkout = checkout.replace(old, new)
    description = {
        "checkout": checkout,
        "report": LONGER_REPORT,
        "group": edit.group,
        "kind": edit.kind,
        "name": edit.name,
        "budget": seconds(edit.budget),
        "before": head + edit.before,
        "after": head + edit.after,
    }
    (folder / "edit.json").write_text(json.dumps(description, indent=2, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    write(target, choose(rlm_core.load()))
