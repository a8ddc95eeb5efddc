"""Draws functions of public packages whose cost is said to grow faster than in proportion to an input, with the line.

    python -m tools.experiments.growth_lines --work FOLDER --names NAMES [--most 30] [--of-each 3]

Input: a file with names of packages, one a line, which are taken in the order of a hash of their name. Each is
installed into a separate folder. Output: a row of JSON per function with its claim, its text and the places that the
hover names, for a reader who says whether one of them makes the cost grow. Of a package the functions are taken in the
order of a hash too, so that no choice is made.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import rlm_core
from rlm_core.errors import RlmError
from rlm_core.inference.cost_origins import growth_origins
from rlm_core.inference.growth_terms import STEEP_CLASSES
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import queries_for
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.file_units import file_units

_SEED = "growth-lines"
_TESTS = frozenset({"test", "tests", "testing", "conftest.py"})


def order(name: str) -> str:
    """What names are sorted by."""
    return hashlib.sha256(f"{_SEED}:{name}".encode()).hexdigest()


def installed(name: str, work: Path) -> Path | None:
    """The folder that a package is installed into, without what it needs; None where that fails."""
    site = work / name
    if not site.exists():
        options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps", "--target", str(site)]
        ended = subprocess.run([sys.executable, "-m", "pip", "install", *options, name], check=False)
        if ended.returncode != 0:
            return None
    return site


def claims(predictor: Predictor, site: Path) -> Iterator[tuple[Path, AnalysedUnit, rlm_core.Prediction]]:
    """The functions of a folder whose latency is said to grow faster than in proportion to an input."""
    analyser = Analyser()
    for path in sorted(site.rglob("*.py")):
        if _TESTS & set(path.relative_to(site).parts) or path.name.startswith("test_"):
            continue
        try:
            units = [unit for text in file_units(analyser, path) for unit in text.units if unit.code.basis == "call"]
        except RlmError:
            continue
        answers = predictor.predict([unit.code for unit in units], [queries_for(predictor, one.code) for one in units])
        for unit, line in zip(units, answers, strict=True):
            latency = next((one for one in line if one.metric == "latency"), None)
            growth = latency.growth if latency is not None else None
            if latency is not None and growth is not None and growth.is_claim and growth.growth_class in STEEP_CLASSES:
                yield path, unit, latency


def row(name: str, path: Path, unit: AnalysedUnit, latency: rlm_core.Prediction) -> dict[str, object]:
    """A claim and the places that are named for it."""
    assert latency.growth is not None
    origins = [
        {"place": asdict(origin.place), "loops": [asdict(loop) for loop in origin.loops], "cure": origin.cure}
        for origin in growth_origins(unit.code, latency.growth)
    ]
    claim = {"class": latency.growth.growth_class, "sizes": latency.growth.sizes}
    where = f"{path.name}:{unit.unit.name.start_line + 1}"
    return {"package": name, "where": where, "unit": unit.unit.qualname, "claim": claim, "origins": origins,
            "text": unit.code.text}  # fmt: skip


def main() -> None:
    """Print a row per claim."""
    parser = argparse.ArgumentParser(prog="python -m tools.experiments.growth_lines", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of the packages")
    parser.add_argument("--names", type=Path, required=True, help="file of names of packages")
    parser.add_argument("--most", type=int, default=30, help="claims in all")
    parser.add_argument("--of-each", type=int, default=3, help="claims of a package")
    given = parser.parse_args()
    predictor, found = rlm_core.load(threads=1), 0
    for name in sorted(given.names.read_text(encoding="utf-8").split(), key=order):
        site = installed(name, given.work)
        if site is None:
            continue
        rows = [row(name, *claim) for claim in claims(predictor, site)]
        print(f"{name}: {len(rows)} claims, {sum(bool(one['origins']) for one in rows)} with a line", file=sys.stderr)
        rows.sort(key=lambda one: order(f"{one['package']}/{one['where']}/{one['unit']}"))
        for one in rows[: min(given.of_each, given.most - found)]:
            found += 1
            print(json.dumps(one), flush=True)
        if found >= given.most:
            return


if __name__ == "__main__":
    main()
