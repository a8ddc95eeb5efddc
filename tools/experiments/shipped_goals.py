"""The goals that the shipped model is measured against, read out of an evaluation.

    rlm-lsp eval --data X.parquet... --baselines --format json > eval.json
    python -m tools.experiments.shipped_goals --eval eval.json --out shipped.json [--join refit.json] [--model DIR]

``--join`` appends the goals of ``refit_goals.py``, so that one file goes to ``rlm-lsp eval --card --goals``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rlm_core
from rlm_core.training.evaluation.baselines import MAIN

Entry = dict[str, Any]
_BUILTIN = Path(rlm_core.__file__).parent / "builtin"


def main() -> None:
    """Write the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--eval", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--join", type=Path, nargs="*", default=[])
    parser.add_argument("--model", type=Path, default=_BUILTIN)
    arguments = parser.parse_args()
    report = json.loads(arguments.eval.read_text(encoding="utf-8"))
    goals = [*programs(report), *functions(report), *networks(report), *pairs(report), *bands(report)]
    goals.append(size(arguments.model))
    for path in arguments.join:
        goals += json.loads(path.read_text(encoding="utf-8"))
    arguments.out.write_text(json.dumps(goals, indent=1) + "\n", encoding="utf-8")
    for goal in goals:
        print(goal["task"], goal["measured"], goal["interval"], "goal", goal["goal"], goal["met"])


def entry(task: str, found: Entry, baseline: Entry | None, goal: float, note: str = "") -> Entry:
    """One row: ``found`` and ``baseline`` are figures with value, low and high."""
    ends = None if found["low"] is None else [round(found["low"], 4), round(found["high"], 4)]
    return {
        "task": task,
        "which": "shipped",
        "measured": round(found["value"], 4),
        "interval": ends,
        "baseline": None if baseline is None else round(baseline["value"], 4),
        "goal": round(goal, 4),
        "met": bool(found["value"] >= goal),
        "note": note,
    }


def programs(report: Entry) -> Iterator[Entry]:
    """LeetCode, unseen problems: within and across quarters."""
    goals = {("memory", "in_quarter"): 0.48, ("latency", "in_quarter"): 0.54}
    goals |= {("memory", "spearman"): 0.60, ("latency", "spearman"): 0.62}
    for mean in report["means"]:
        figures = mean["figures"]
        within = "within language x quarter" if mean["figure"] == "in_quarter" else "across quarters"
        yield entry(
            f"LeetCode {mean['metric']}, unseen problems, {within}, mean of {len(mean['languages'])} languages",
            figures["model"],
            figures.get("tfidf"),
            goals[mean["metric"], mean["figure"]],
        )


def functions(report: Entry) -> Iterator[Entry]:
    """Functions of unseen packages, pooled and mean of packages, against TF-IDF of the same run."""
    for part in report["slices"]:
        if part["basis"] == "call" and part["held_out"] == "package" and not part["setting"]:
            for name, words in (("spearman", "pooled"), ("by_family", "mean of packages")):
                own, other = part["figures"]["model"].get(name), part["figures"].get(MAIN["call"], {}).get(name)
                if own and other:
                    task = f"function {part['metric']}, unseen packages, {words}"
                    yield entry(task, own, other, other["value"] + 0.05, "goal: baseline + .05")


def networks(report: Entry) -> Iterator[Entry]:
    """NAS-Bench-201 latency, mean over its settings."""
    found = [
        part
        for part in report["slices"]
        if part["basis"] == "network" and part["metric"] == "latency" and part["setting"].startswith("nasbench201")
    ]
    if found:
        values = [part["figures"]["model"]["spearman"]["value"] for part in found]
        mean = {"value": sum(values) / len(values), "low": None, "high": None}
        others = [part["figures"].get("boosting", {}).get("spearman") for part in found]
        base = {"value": sum(o["value"] for o in others) / len(others)} if all(others) else None
        note = f"lowest {min(values):.3f}, highest {max(values):.3f} of {len(values)} settings"
        yield entry("NAS-Bench-201 latency, mean over devices", mean, base, 0.99, note)


def pairs(report: Entry) -> Iterator[Entry]:
    """Which of two is more expensive."""
    for part in report["pairs"]:
        if part["language"] == "all" or part["suite"] == "edits":
            goal = 0.85 if part["suite"] == "edits" else 0.70
            figures = part["figures"]
            note = f"{part['n']} pairs"
            if "length" in figures:
                note += f"; longer text is more expensive: {figures['length']['value']:.3f}"
            task = f"which of two is more expensive, {part['suite']}: {part['metric']}"
            yield entry(task, figures["model"], figures.get("tfidf"), goal, note)


def bands(report: Entry) -> Iterator[Entry]:
    """Coverage of the 80 % bands."""
    reported = sum(part["reported"] for part in report["coverage"])
    holding = sum(part["holding"] for part in report["coverage"])
    share = {"value": holding / max(reported, 1), "low": None, "high": None}
    yield entry("80 % bands: share of groups whose interval holds 80", share, None, 0.9, f"{holding} of {reported}")
    for part in report["coverage"]:
        found = entry(f"80 % bands: pooled coverage of {part['basis']}", part["pooled"], None, 0.77)
        found["goal"], found["met"] = ".77 to .83", 0.77 <= part["pooled"]["value"] <= 0.83
        found["note"] = f"narrower than the baseline's in {part['narrower']} of {part['compared']} tasks"
        yield found


def size(model: Path) -> Entry:
    """Megabytes of the shipped files."""
    total = sum(path.stat().st_size for path in model.iterdir() if path.is_file()) / 1e6
    found = entry("size of the shipped model, MB", {"value": total, "low": None, "high": None}, None, 30.0)
    return {**found, "met": total <= 30}


if __name__ == "__main__":
    main()
