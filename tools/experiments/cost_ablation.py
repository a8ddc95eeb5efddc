"""What the cost analysis adds on functions of real packages: labels in, a page of the model card out.

    python -m tools.experiments.cost_ablation --cache CACHE --page docs/model-card/cost-analysis.md --state COMMIT

Each labelled function is read from its package's wheel as `rlm-lsp predict` reads it, callees in other files included,
and answered by the shipped model four times: whole, without the costs of what it calls, without any of the cost
analysis, and by the cost analysis alone. The gain is the difference of Spearman to the model without the analysis, with
the 95 % interval of draws of packages.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from rlm_core.errors import RlmError
from rlm_core.inference import model_store
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.student import OnnxPredictor
from rlm_core.inference.work_mixture import is_fixed, log_work
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.training.corpus import floor_of
from rlm_core.training.datasets.cache import find_wheel, open_wheel
from rlm_core.training.datasets.functions import WheelSources, values_of
from rlm_core.training.evaluation.metrics import RESAMPLES, bootstrap, covered, spearman
from rlm_core.training.evaluation.report import table
from rlm_core.types import CodeText, Metric, Prediction, Query

Array = npt.NDArray[np.float64]
_LABELS = Path("model_core/labels/unseen.jsonl.gz")
_METRICS: tuple[Metric, ...] = ("latency", "memory")
_BATCH = 128
_WHOLE, _CALLEES, _NONE, _ALONE = (
    "whole model",
    "without costs of callees",
    "without the cost analysis",
    "the cost analysis alone",
)
_PAGE = """# The cost analysis

What the cost analysis adds on functions of real packages: {functions:,} functions of {packages} packages that are in
no split, read as `rlm-lsp predict` reads them ({date}, commit {state}, model {model}). Choices about functions were
made on these packages, and the bands are calibrated on them, so the figures compare the rows with each other; the
accuracy on packages that nothing was chosen on is under [functions](functions.md).

{table}

"Without costs of callees" leaves out what is predicted of the functions that a function calls; "without the cost
analysis" leaves out the facts about its own text, too. "Gain" is the difference of Spearman to that row, with the 95 %
interval of {draws} draws of packages. "Fixed" are functions whose text determines their cost according to the analysis.
The analysis alone has no bands.

To make this page again:

```sh {{ .not-run reason="downloads 39 packages" }}
python -m tools.experiments.cost_ablation --cache CACHE --page docs/model-card/cost-analysis.md --state COMMIT
```
"""


@dataclass(frozen=True, slots=True)
class Function:
    """A labelled function as it is predicted, with its package and its measured values in SI units."""

    package: str
    code: CodeText
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of one variant for functions: medians, the ends of 80 % bands (NaN: none), each ``(rows,)``."""

    median: Array
    low: Array
    high: Array


def main() -> None:
    """Read the functions, answer them and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--labels", type=Path, default=_LABELS)
    parser.add_argument("--cache", type=Path, required=True, help="folder of wheels; what it lacks is downloaded")
    parser.add_argument("--packages", nargs="*", help="only these")
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("--state", required=True, help="commit whose code runs")
    arguments = parser.parse_args()
    functions = [*read(arguments.labels, arguments.cache, arguments.packages)]
    rows, model = report(functions)
    text = _PAGE.format(
        functions=len(functions),
        packages=len({one.package for one in functions}),
        date=datetime.now(UTC).strftime("%d %B %Y").lstrip("0"),
        state=arguments.state,
        model=model,
        draws=RESAMPLES,
        table=table(rows),
    )
    arguments.page.write_text(text, encoding="utf-8")


def read(path: Path, cache: Path, packages: Sequence[str] | None) -> Iterator[Function]:
    """The labelled functions whose text is in the wheel of their package, as they are predicted."""
    labels: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for label in map(json.loads, lines):
            if (not packages or label["package"] in packages) and not label["generator"] and values_of(label):
                labels[label["package"], label["version"]].append(label)
    for (package, version), own in labels.items():
        wheel = find_wheel(cache, package, version, download=True)
        if wheel is None:
            print(f"{package} {version}: no wheel", file=sys.stderr)
            continue
        with open_wheel(wheel) as archive, TemporaryDirectory() as folder:
            archive.extractall(folder)
            found = [*_of_package(WheelSources(archive), Path(folder), package, own)]
        print(f"{package}: {len(found)} of {len(own)} functions", file=sys.stderr, flush=True)
        yield from found


def _of_package(
    sources: WheelSources, folder: Path, package: str, labels: Sequence[dict[str, Any]]
) -> Iterator[Function]:
    files: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for label in labels:
        files[label["file"]].append(label)
    analyser = Analyser()
    for file, own in files.items():
        path = folder / file
        try:
            units = analyser.analyse(ParsedSource(path.read_bytes(), "python"), path)
        except (OSError, RlmError) as error:
            print(f"{package} {file}: {error}", file=sys.stderr)
            continue
        by_place = {(unit.unit.qualname, unit.unit.span.start_line + 1): unit for unit in units}
        for label in own:
            unit = by_place.get((label["qualname"], label["firstlineno"]))
            # The hash of the label says whether this is the text that was measured.
            if unit is not None and sources.function(label)[0] is not None:
                yield Function(package, unit.code, values_of(label))


def report(functions: Sequence[Function]) -> tuple[list[list[str]], str]:
    """The lines of the table, the head first, and the model's id."""
    directory = model_store.find("builtin")
    whole = OnnxPredictor(directory)
    variants: dict[str, Predictor] = {
        _WHOLE: whole,
        _CALLEES: OnnxPredictor(directory, propagate=False),
        _NONE: OnnxPredictor(directory, join_facts=False),
    }
    answered = {name: answers(predictor, functions) for name, predictor in variants.items()}
    lines = [
        ["metric", "functions", "rows", "variant", "Spearman", "gain", "median log10 error", "80 % covers", "width"]
    ]
    for metric in _METRICS:
        fixed = np.array([is_fixed(line[metric]) for line in answered[_WHOLE]])
        known = np.array([metric in one.values for one in functions])
        found = {name: _columns(metric, rows) for name, rows in answered.items()}
        found[_ALONE] = _alone(metric, functions)
        # The same rows in all variants.
        known &= np.all([~np.isnan(columns.median) for columns in found.values()], axis=0)
        for title, chosen in (("all", known), ("fixed", known & fixed), ("others", known & ~fixed)):
            lines += _lines(metric, title, functions, found, np.flatnonzero(chosen))
    return lines, whole.model_id


def answers(predictor: Predictor, functions: Sequence[Function]) -> list[dict[str, Prediction]]:
    """The predictions of each function by metric."""
    found: list[dict[str, Prediction]] = []
    for start in range(0, len(functions), _BATCH):
        codes = [one.code for one in functions[start : start + _BATCH]]
        lines = predictor.predict(codes, [[Query(metric) for metric in _METRICS]] * len(codes))
        found += [dict(zip(_METRICS, line, strict=True)) for line in lines]
    return found


def _columns(metric: Metric, rows: Sequence[dict[str, Prediction]]) -> Answers:
    columns = np.full((3, len(rows)), np.nan)
    for place, row in enumerate(rows):
        one = row[metric]
        if one.median is not None and one.band is not None:
            columns[:, place] = one.median, one.band.low, one.band.high
    return Answers(*columns)


def _alone(metric: Metric, functions: Sequence[Function]) -> Answers:
    """The work of each text, the geometric mean of that for typical and for large inputs; NaN without facts."""
    works = [one.code.work for one in functions]
    medians = np.array([np.nan if work is None else 10 ** log_work(work, metric) for work in works])
    none = np.full(len(functions), np.nan)
    return Answers(medians, none, none)


def _lines(
    metric: Metric, title: str, functions: Sequence[Function], found: dict[str, Answers], chosen: npt.NDArray[np.int64]
) -> Iterator[list[str]]:
    floor = floor_of(f"call/python/{metric}")
    values = np.array([functions[row].values[metric] for row in chosen])
    packages = np.array([functions[row].package for row in chosen])
    logs = np.log10(np.maximum(values, floor or 1e-30))
    medians = {name: np.log10(np.maximum(one.median[chosen], floor or 1e-30)) for name, one in found.items()}
    for name, one in found.items():
        cells = [metric, title, f"{len(chosen):,}", name, f"{spearman(medians[name], logs) or 0:.3f}"]
        cells.append("" if name == _NONE else _gain(packages, logs, medians[name], medians[_NONE]))
        cells.append(f"{np.median(np.abs(medians[name] - logs)):.3f}")
        low, high = one.low[chosen], one.high[chosen]
        if name == _ALONE:
            cells += ["", ""]
        else:
            width = np.median(np.maximum(high, floor) / np.maximum(low, max(floor, 1e-12)))
            cells += [f"{100 * covered(low, high, values, floor).mean():.1f}", f"{width:.3g}x"]
        yield cells


def _gain(packages: npt.NDArray[np.str_], logs: Array, medians: Array, other: Array) -> str:
    """The difference of Spearman, with its interval over draws of packages."""

    def difference(times: npt.NDArray[np.int64]) -> float | None:
        rows = np.repeat(np.arange(len(times)), times)
        first, second = spearman(medians[rows], logs[rows]), spearman(other[rows], logs[rows])
        return None if first is None or second is None else first - second

    whole = difference(np.ones(len(logs), np.int64))
    interval = bootstrap(packages, difference)
    if whole is None or interval is None:
        return ""
    return f"{whole:+.3f} ({interval[0]:+.3f} to {interval[1]:+.3f})"


if __name__ == "__main__":
    main()
