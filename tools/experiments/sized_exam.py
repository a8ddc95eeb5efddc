"""How good costs at given sizes are on functions that were measured at several sizes.

    python -m tools.experiments.sized_exam LABELS... --source-cache DIR [--count 300] [--seed 0]

In: labels of `python -m tools.label_run.collect`. Of functions with a loop over an input that grew, ``--count`` are
drawn; each is predicted at the recorded sizes of its inputs at 1, 10 and 100 times those of the tests, as `rlm-lsp
predict` does without measurements. Out: JSON with how many are answered by a number, and how many of these numbers have
the measured time inside their band and within a factor of 10. `small inputs` and lower bounds do not count as answers;
of bounds it is counted how many hold.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_core.cost.input_uses import USES, input_uses
from rlm_core.folders import ScratchFolder
from rlm_core.inference.adaptation.predictor import with_corrections
from rlm_core.inference.model_store import builtin
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.sized_predictor import may_end_early
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training.datasets.cache import find_archive, find_wheel, open_wheel
from rlm_core.training.datasets.functions import UnpackedPackage, WheelSources
from rlm_core.types import CodeText, Query, SizedPrediction, SizeValue

_FACTORS = (1, 10, 100)
_LOOPS = [USES.index(name) for name in ("loops", "comprehensions")]


def loops_over(text: str, inputs: list[str]) -> bool:
    """Return whether a function has a loop over one of some inputs."""
    return any(input_uses(text).features(name)[place] for name in inputs for place in _LOOPS)


def functions(
    labels: list[dict[str, Any]], cache: Path, *, with_loop: bool = True
) -> Iterator[tuple[dict[str, Any], CodeText]]:
    """The labelled functions as `rlm-lsp predict` reads them; ``with_loop`` means one over an input that grew."""
    packages: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for label in labels:
        packages[label["package"], label["version"]].append(label)
    for (package, version), rows in packages.items():
        repository = rows[0].get("repository")
        if repository:
            archive = find_archive(cache, repository, version, download=True)
        else:
            archive = find_wheel(cache, package, version, download=True)
        if archive is None:
            continue
        with open_wheel(archive) as file, ScratchFolder() as folder:
            sources = WheelSources(file)
            unpacked = UnpackedPackage(sources, folder)
            for row in rows:
                text, unit, _ = sources.function(row)
                if text is None or unit is None:
                    continue
                if not with_loop or loops_over(text, row["points"][0]["grown"]):
                    yield row, unpacked.code(row["file"], unit)


def judge(predictor: Predictor, label: dict[str, Any], code: CodeText, tally: Counter[str]) -> None:
    """Count the answers about one function."""
    grown = label["points"][0]["grown"]
    for point in label["points"]:
        if point["grown"] != grown or point["factor"] not in _FACTORS:
            continue
        sizes = tuple(SizeValue(name, float(size), "query") for name, size in point["sizes"].items())
        [[answer]] = predictor.predict([replace(code, sizes=sizes)], [[Query("latency")]])
        tally["asked"] += 1
        if not isinstance(answer, SizedPrediction):
            tally["fixed" if code.work is not None and code.work.fixed else "small inputs"] += 1
            continue
        seconds = point["seconds"]
        if answer.at.kind == "bound":
            tally["bounds"] += 1
            tally["bounds that hold"] += answer.at.least <= seconds * 1.25
            continue
        low, high, median = answer.bands[0].low, answer.bands[0].high, answer.median
        assert median is not None, "a number at sizes has a median"
        tally["answered"] += 1
        tally["inside"] += low <= seconds <= high
        tally["within 10x"] += median / 10 <= seconds <= median * 10
        tally["within 3x"] += median / 3 <= seconds <= median * 3
        tally["below the band"] += seconds < low
        if may_end_early(code):
            tally["with a loop that may end early"] += 1
            tally["of these inside"] += low <= seconds <= high
            tally["of these below"] += seconds < low


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", nargs="+", type=Path)
    parser.add_argument("--source-cache", type=Path, required=True)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="print so many answers outside their band")
    options = parser.parse_args()
    labels = []
    for path in options.labels:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            labels += [json.loads(line) for line in file]
    found = list(functions(labels, options.source_cache))
    chosen = random.Random(options.seed).sample(found, min(options.count, len(found)))
    predictor = with_corrections(OnnxPredictor(builtin(), threads=1))
    tally: Counter[str] = Counter()
    for label, code in chosen:
        before = tally["inside"], tally["answered"]
        judge(predictor, label, code, tally)
        if options.show and tally["answered"] - before[1] > tally["inside"] - before[0]:
            options.show -= 1
            print(label["package"], label["qualname"], label["points"][0]["sizes"], label["points"][0]["seconds"])
            print(code.text)
    print(json.dumps({"functions with such a loop": len(found), "drawn": len(chosen)} | dict(tally), indent=1))


if __name__ == "__main__":
    main()
