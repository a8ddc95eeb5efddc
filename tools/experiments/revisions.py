"""How well a measurement carries over to the next release: anchored predictions against what the next release costs.

    python -m tools.experiments.revisions --work DIR [--only NAME...] [--python PATH] [--check]

pip unpacks two releases of each package into separate folders. The newer release's tests that pass on both are
measured on both by ``rlm-lsp measure tests``, releases in turn, latency four times and memory twice. Even and odd
repetitions are two halves: changed functions of the new release are predicted from the old release's even half, as
``rlm-lsp check`` does from committed measurements, and judged by the new release's odd half. The noise is the
difference between the two halves of the new release. Finished packages are not measured again. The process and those
that it starts run on one core, so other work may use the others. The rows are in ``DIR/rows.jsonl``.
``tools.experiments.revisions_fit`` reads the rows that a run writes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rlm_core.errors import SourceError
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.inference.anchoring import AnchoredPredictor, anchor_of, repeat_spread
from rlm_core.loading import load
from rlm_core.measurement.known import Here, KnownMeasurements
from rlm_core.measurement.store import Store
from rlm_core.measurement.types import Measurement, source_hash
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units, read_source
from rlm_core.types import LEVELS, CodeText, CostRatio, MeasuredPrediction, Metric, Query

REPETITIONS, WITH_MEMORY = 4, 2
LISTING_SECONDS = 90
SIDES = ("old", "new")
_ROUNDING = 1e-9
_LARGE = math.log10(2)  # a change whose direction should be predicted
_PLUGIN = """import os


def pytest_collection_modifyitems(items):
    if path := os.environ.get("KEEP_TESTS"):
        with open(path) as file:
            kept = set(file.read().split("\\n"))
        items[:] = [item for item in items if item.nodeid in kept]


def pytest_runtest_logreport(report):
    if (path := os.environ.get("LIST_TESTS")) and report.when == "call" and report.passed:
        with open(path, "a") as file:
            file.write(report.nodeid + "\\n")
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two releases of a package; ``tests`` is what pytest is given in the newer one's source distribution."""

    name: str
    old: str
    new: str
    module: str
    tests: tuple[str, ...] = ("tests",)
    needs: tuple[str, ...] = ()


# None of the packages is among those of the function labels (shared/data/functions and model_core/labels).
PAIRS = (
    Pair("bitstring", "4.1.4", "4.3.1", "bitstring", needs=("bitarray",)),
    Pair("cachetools", "5.3.0", "7.0.0", "cachetools"),
    Pair("deepdiff", "7.0.1", "8.6.1", "deepdiff", needs=("ordered-set", "orderly-set", "numpy", "pyyaml")),
    Pair("funcy", "1.15", "2.0", "funcy", needs=("whatever",)),
    Pair("humanize", "4.0.0", "4.12.0", "humanize", needs=("freezegun",)),
    Pair("jinja2", "3.0.3", "3.1.6", "jinja2", needs=("markupsafe", "trio")),
    Pair("json5", "0.9.14", "0.12.0", "json5"),
    Pair("jsonpath-ng", "1.5.3", "1.7.0", "jsonpath_ng", needs=("ply", "decorator", "six", "hypothesis")),
    Pair("mistune", "3.0.2", "3.4.0", "mistune"),
    Pair("pathspec", "0.11.0", "0.12.1", "pathspec"),
    Pair("portion", "2.2.0", "2.6.0", "portion", needs=("sortedcontainers",)),
    Pair("prettytable", "3.5.0", "3.11.0", "prettytable", needs=("wcwidth", "pytest-lazy-fixtures")),
    Pair("pyasn1", "0.4.8", "0.6.1", "pyasn1"),
    Pair("pybtex", "0.24.0", "0.25.1", "pybtex", needs=("latexcodec", "pyyaml", "six", "setuptools<81")),
    Pair("pycparser", "2.21", "3.0", "pycparser"),
    Pair("tabulate", "0.9.0", "0.10.0", "tabulate", ("test",)),
    Pair("transitions", "0.8.0", "0.9.3", "transitions", needs=("six",)),
    Pair("voluptuous", "0.12.2", "0.15.2", "voluptuous", ("unused-voluptuous/tests/tests.py",)),
    Pair("w3lib", "1.21.0", "2.3.1", "w3lib"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A function of the new release: what was predicted of it, and what it costs; costs in SI units.

    ``group`` is "changed", "changed callee" or "unchanged". ``before`` and ``predicted`` rest on the old release's even
    half, ``reference`` is its odd half; ``after`` is the new release's odd half, ``again`` its even half. ``low`` and
    ``high`` are the band that is shown, which describes calls; ``least`` and ``most`` are the 10 % and 90 % quantiles
    of the median if it were measured again, which budgets are compared with. ``ratio`` is the predicted log10 ratio of
    a changed function before it is weighed by what revisions confirm, ``agreed`` what model and work facts agree on,
    and ``repeat`` the spread of a repeated measurement; None where there is none.
    """

    package: str
    file: str
    qualname: str
    group: str
    metric: str
    before: float
    reference: float
    predicted: float
    low: float
    high: float
    least: float
    most: float
    after: float
    again: float
    ratio: float | None
    agreed: float | None
    repeat: float


@dataclass(frozen=True, slots=True)
class Result:
    """Figures of one group; errors are medians in decades, widths factors, the other figures shares.

    ``width`` and ``covered`` are about the 10 % to 90 % quantiles of the median, ``calls_width`` and ``calls_covered``
    about the band of calls.
    """

    functions: int
    error: float
    unchanged_error: float
    noise: float
    width: float
    covered: float
    calls_width: float
    calls_covered: float
    large: int
    direction: float


def result(rows: Sequence[Row]) -> Result:
    """The figures of some rows; ``unchanged_error`` is that of a ratio of 1."""
    logs = [
        tuple(map(log_of(row.metric), (row.before, row.predicted, row.after, row.again, row.reference))) for row in rows
    ]
    # What is true rests on the halves that the prediction has not seen.
    large = [entry for entry in logs if abs(entry[2] - entry[4]) >= _LARGE]
    right = [(after - reference) * (predicted - before) > 0 for before, predicted, after, _, reference in large]
    widths = [log_of(row.metric)(row.most) - log_of(row.metric)(row.least) for row in rows]
    calls = [log_of(row.metric)(row.high) - log_of(row.metric)(row.low) for row in rows]
    return Result(
        len(rows),
        _median(abs(predicted - after) for _, predicted, after, _, _ in logs),
        _median(abs(before - after) for before, _, after, _, _ in logs),
        _median(abs(again - after) for _, _, after, again, _ in logs),
        10 ** _median(widths),
        _mean(_between(row.metric, row.least, row.after, row.most) for row in rows),
        10 ** _median(calls),
        _mean(_between(row.metric, row.low, row.after, row.high) for row in rows),
        len(large),
        _mean(right),
    )


def log_of(metric: str) -> Callable[[float], float]:
    """Log10 of values, none below what the measurement resolves."""
    least = 1e-7 if metric == "latency" else 16.0
    return lambda value: math.log10(max(value, least))


def _between(metric: str, low: float, value: float, high: float) -> bool:
    """Return whether a value is in a band, as far as the measurement resolves it."""
    log = log_of(metric)
    return log(low) <= log(value) + _ROUNDING and log(value) <= log(high) + _ROUNDING


def _median(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.median(known) if known else math.nan


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else math.nan


def main() -> None:
    """Measure what is not measured yet, then predict and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--python", default="python3.12", help="an interpreter with pytest and what the tests need")
    parser.add_argument("--check", action="store_true", help="only unpack the releases and run their tests once")
    arguments = parser.parse_args()
    work = arguments.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    (work / "kept_tests.py").write_text(_PLUGIN, encoding="utf-8")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    predictor = AnchoredPredictor(load(threads=1))
    rows: list[Row] = []
    for pair in PAIRS:
        if arguments.only and pair.name not in arguments.only:
            continue
        try:
            prepare(pair, work / pair.name, arguments.python)
            if arguments.check:
                print(f"{pair.name}: {_prepared(pair, work / pair.name)}", flush=True)
                continue
            measure(pair, work / pair.name, arguments.python)
            found = list(compared(pair, work / pair.name, predictor))
        except (subprocess.CalledProcessError, OSError, ValueError) as error:
            print(f"{pair.name}: failed ({error})", flush=True)
            continue
        print(f"{pair.name} {pair.old} {pair.new}: {len(found)} rows", flush=True)
        rows += found
        _write(rows)
    lines = [json.dumps(asdict(row), sort_keys=True) for row in rows]
    (work / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")


def _write(rows: Sequence[Row]) -> None:
    for metric in ("latency", "memory"):
        for group in ("changed", "changed callee", "unchanged"):
            chosen = [row for row in rows if (row.metric, row.group) == (metric, group)]
            print(metric, group, result(chosen), flush=True)


def measure(pair: Pair, folder: Path, python: str) -> None:
    """Measure both releases in turn; they must be prepared."""
    if (folder / "done").exists():
        return
    for number in range(REPETITIONS):
        for side in SIDES:
            store = folder / f"{side}-{number}.sqlite3"
            store.unlink(missing_ok=True)  # of a run that was stopped
            command = [sys.executable, "-m", "rlm_lsp", "measure", "tests", "--python", python]
            command += ["--package", pair.module, "--store", str(store)]
            command += ["--no-memory"] if number >= WITH_MEMORY else []
            kept = _environment(folder, side) | {"KEEP_TESTS": str(folder / "kept.txt")}
            with (folder / "log.txt").open("a", encoding="utf-8") as log:
                command += ["--", *_options(pair)]
                subprocess.run(command, cwd=_root(folder), env=kept, check=True, stdout=log, stderr=log)
    (folder / "done").touch()


def prepare(pair: Pair, folder: Path, python: str) -> None:
    """Unpack both releases and the tests, and list the tests that pass on both in ``kept.txt``."""
    if (folder / "kept.txt").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)  # of a preparation that was stopped
    folder.mkdir(parents=True)
    for side, version in zip(SIDES, (pair.old, pair.new), strict=True):
        wanted = ["--no-deps", "--target", str(folder / side), f"{pair.name}=={version}"]
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True, stderr=subprocess.DEVNULL)
    place = folder / "source"
    download = ["download", "-q", "--no-deps", "--no-binary", pair.name, "-d", str(place)]
    subprocess.run([python, "-m", "pip", *download, f"{pair.name}=={pair.new}"], check=False, stderr=subprocess.DEVNULL)
    # pip may fail after the download, where it prepares what it will not build.
    archive = next(place.glob("*.tar.gz"), None)
    if archive is None:
        raise ValueError(f"no source distribution of {pair.new}")
    with tarfile.open(archive) as file:
        file.extractall(place, filter="data")
    root = _root(folder)
    for home in (root, root / "src"):
        if (home / pair.module).is_dir():
            (home / pair.module).rename(root / f"unused-{pair.module}")
    for side in SIDES:
        listed = _environment(folder, side) | {"LIST_TESTS": str(folder / f"{side}.txt")}
        command = [python, "-m", "pytest", *_options(pair)]
        with (folder / f"{side}-tests.txt").open("w", encoding="utf-8") as log, suppress(subprocess.TimeoutExpired):
            # Tests of what the older release cannot do may hang; those before have been listed.
            subprocess.run(command, cwd=root, env=listed, stdout=log, stderr=log, timeout=LISTING_SECONDS, check=False)
    passed = [set((folder / f"{side}.txt").read_text(encoding="utf-8").splitlines()) for side in SIDES]
    (folder / "kept.txt").write_text("\n".join(sorted(passed[0] & passed[1])), encoding="utf-8")


def _prepared(pair: Pair, folder: Path) -> str:
    kept = (folder / "kept.txt").read_text(encoding="utf-8").splitlines()
    old, new = (_functions(folder / side, pair.module) for side in SIDES)
    changed = sum(
        name in old and sorted(map(source_hash, old[name])) != sorted(map(source_hash, texts))
        for name, texts in new.items()
    )
    return f"{len(kept)} tests pass on both; {changed} of {len(new)} functions have changed"


def _functions(folder: Path, module: str) -> dict[tuple[str, str], list[str]]:
    """The texts of the functions of a release by file and qualified name."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path, source in _sources(folder / module):
        for unit in find_units(source, path):
            if unit.kind == "function":
                found[path.relative_to(folder).as_posix(), unit.qualname].append(unit.text)
    return found


def _sources(folder: Path) -> Iterator[tuple[Path, ParsedSource]]:
    for path in sorted(folder.rglob("*.py")):
        with suppress(SourceError):  # an empty file
            yield path, read_source(path)


def _root(folder: Path) -> Path:
    """The folder of the unpacked source distribution."""
    [root] = (path for path in (folder / "source").iterdir() if path.is_dir())
    return root


def _options(pair: Pair) -> list[str]:
    options = ["-q", "-p", "no:cacheprovider", "-p", "kept_tests", "-W", "ignore", "--continue-on-collection-errors"]
    return [*options, "-o", "addopts=", "-o", "filterwarnings=", *pair.tests]


def _environment(folder: Path, side: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / side), str(folder.parent)])}


def compared(pair: Pair, folder: Path, predictor: AnchoredPredictor) -> Iterator[Row]:
    """The functions that were measured in both releases."""
    before, reference = (_half(folder, "old", half) for half in (0, 1))
    again, after = (_half(folder, "new", half) for half in (0, 1))
    measured = before.keys() & reference.keys() & after.keys() & again.keys()
    store = Store(folder / "anchors.sqlite3")
    # As if the newer release were the older one, edited.
    store.add(replace(one, path=str(folder / "new" / one.file)) for one in before.values())
    analyser = Analyser(measured=KnownMeasurements(store, here=lambda: Here(cpu_name())))
    old, new = (_functions(folder / side, pair.module) for side in SIDES)
    old_texts = {source_hash(text) for texts in old.values() for text in texts}
    for path, source in _sources(folder / "new" / pair.module):
        file = path.relative_to(folder / "new").as_posix()
        for analysed in analyser.analyse(source, path):
            if analysed.unit.kind != "function" or not analysed.code.measured:
                continue
            queries = [Query("latency"), Query("memory")]
            for answer in predictor.predict([analysed.code], [queries])[0]:
                name = file, analysed.unit.qualname
                key = *name, answer.metric
                if not isinstance(answer, MeasuredPrediction) or key not in measured:
                    continue
                # A property's getter and setter have one name.
                if len(old[name]) != 1 or len(new[name]) != 1:
                    continue
                called = analysed.code.calls.functions() if analysed.code.calls is not None else ()
                anchor = anchor_of(analysed.code, answer.predicted)
                group = "unchanged"
                if anchor is not None and anchor.before is not None and anchor.before.text != analysed.code.text:
                    group = "changed"
                elif any(source_hash(function.text) not in old_texts for function in called):
                    group = "changed callee"
                if answer.band is not None and answer.median is not None:
                    by_model = _compared(analysed.code, answer, predictor)
                    yield Row(
                        package=pair.name,
                        file=file,
                        qualname=analysed.unit.qualname,
                        group=group,
                        metric=answer.metric,
                        before=before[key].median,
                        reference=reference[key].median,
                        predicted=answer.median,
                        low=answer.band.low,
                        high=answer.band.high,
                        least=answer.quantiles[LEVELS.index(0.1)],
                        most=answer.quantiles[LEVELS.index(0.9)],
                        after=after[key].median,
                        again=again[key].median,
                        ratio=math.log10(by_model.ratio) if by_model is not None and by_model.ratio else None,
                        agreed=by_model.agreed if by_model is not None else None,
                        repeat=repeat_spread(answer.cost),
                    )


def _compared(code: CodeText, answer: MeasuredPrediction, predictor: AnchoredPredictor) -> CostRatio | None:
    """The ratio that the model itself predicts of a changed function."""
    anchor = anchor_of(code, answer.predicted)
    if anchor is None or anchor.before is None:
        return None
    ratios = predictor.base.compare([(anchor.before, code)], [[Query(answer.metric)]])
    return ratios[0][0] if ratios is not None else None


def _half(folder: Path, side: str, half: int) -> Mapping[tuple[str, str, Metric], Measurement]:
    """A half of the repetitions: of each function and metric, the median of its values."""
    runs: dict[tuple[str, str, Metric], list[Measurement]] = defaultdict(list)
    for number in range(half, REPETITIONS, 2):
        for one in Store(folder / f"{side}-{number}.sqlite3").all():
            if one.ok and one.kind == "function" and one.calls >= 5:
                runs[one.file, one.qualname, one.metric].append(one)
    return {
        key: replace(
            found[0],
            median=statistics.median(one.median for one in found),
            low=statistics.median(one.low for one in found),
            high=statistics.median(one.high for one in found),
        )
        for key, found in runs.items()
    }


if __name__ == "__main__":
    main()
