"""``rlm-lsp tune`` for students: read rows, predict them, tune each task, judge, and write what is better.

Options, the entry in the card and the output directory are shared with the tuning of full models.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from rlm_core.errors import DataError
from rlm_core.files import partial_path, remove_abandoned
from rlm_core.folders import remove_tree
from rlm_core.inference.adaptation.fit import MIN_MEASUREMENTS
from rlm_core.inference.card import read_model_card
from rlm_core.inference.features import answers_alone
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training.corpus import load_corpus
from rlm_core.training.evaluation.rows import Row, predict_table, select
from rlm_core.types import Query

from .data import Encoded, Rows, TeamRows, TuningData, build, compact, encode, read_rows, sampled, unlabelled_callees
from .judging import Bands, ForestBands, HeadBands, TuningResult, judge
from .student import EditableModel, LoadedStudent, load_student
from .tuners import FEWEST_GROUPS, AffineTuner, ForestTuner, HeadTuner, Tuner, folds_of, suffices

FEWEST_ROWS = 200
_MOST_PROJECT_GROUPS = 20
Say = Callable[[str], None]
_ANCHOR_ROWS, _CHECKED_ROWS = 2000, 300
_FORGOTTEN = 1.1  # times the error on original rows


@dataclass(frozen=True, slots=True)
class Options:
    """Options of tuning.

    Attributes:
        name: of the new model.
        keep: original data sets, against forgetting.
        fewest: with fewer rows, only an offset and a slope are fitted.
        threads: of PyTorch; 0 for automatic.
    """

    name: str = "tuned"
    keep: tuple[Path, ...] = ()
    fewest: int = FEWEST_ROWS
    threads: int = 0


@dataclass(frozen=True, slots=True)
class TuningOutcome:
    """The results by task; ``model`` is the id of the new model, None where nothing improved and none was written."""

    results: tuple[TuningResult, ...]
    model: str | None
    refused: str | None


def card_entry(
    model_id: str, data: Sequence[Path], team: TeamRows, kept: Sequence[TuningResult], options: Options
) -> dict[str, Any]:
    """The entry in the card of a model that was tuned from ``model_id``."""
    rows = team.corpus.rows
    entry: dict[str, Any] = {
        "from": model_id,
        "date": date.today().isoformat(),
        "data": [path.name for path in data],
        "rows": len(rows),
        "groups": len(np.unique(rows.group)),
        "families": sorted(set(rows.family.tolist()))[:_MOST_PROJECT_GROUPS],
        "original_data": [path.name for path in options.keep],
        "slices": {result.key: result.to_json() for result in kept},
    }
    if team.machine is not None:
        entry["calls_measured_on"] = {"device": team.machine.device, **team.machine.workload}
    return entry


@dataclass(frozen=True, slots=True)
class OutputDirectory:
    """A directory to write a model into, and the path that it moves to when it is complete."""

    directory: Path
    out: Path

    def commit(self) -> str:
        """Move the complete model to its path and return its id."""
        model_id = read_model_card(self.directory).model_id
        if self.out.is_dir():
            self.out.rmdir()  # it was empty at the start
        self.directory.rename(self.out)
        return model_id


def check_free(out: Path) -> None:
    """Check that a path does not exist or is an empty directory.

    Raises:
        DataError: it holds something.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out}: already exists; give another path, or remove it")


@contextmanager
def output_directory(out: Path) -> Iterator[OutputDirectory]:
    """An empty directory next to ``out``; it is removed when the block ends without a commit.

    Raises:
        DataError: it cannot be written.
    """
    partial = partial_path(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(out)
        partial.mkdir()
        yield OutputDirectory(partial, out)
    except OSError as error:
        where = error.filename or out
        raise DataError(f"{where}: cannot be written ({error.strerror}); choose another --out") from None
    finally:
        remove_tree(partial)


@dataclass(frozen=True, slots=True)
class _TaskJob:
    """One task or forest to tune, its rows, and ways to do it: the first that improves it is used."""

    key: str
    rows: Rows
    folds: Rows
    tuners: tuple[Tuner, ...]
    bands: Bands


def tune(data: Sequence[Path], model: Path, out: Path, options: Options, say: Say) -> TuningOutcome:
    """Tune the student in ``model`` on the ``train``, ``val`` and ``cal`` rows of data sets.

    Args:
        data: Parquet files of :mod:`rlm_core.training.datasets.schema`.
        model: a directory of ``rlm-lsp export`` or ``rlm-lsp train``.
        out: the directory to write; it must not exist or be empty.
        options: see :class:`Options`.
        say: called with a line for each stage.

    Raises:
        DataError: unusable rows, or ``out`` is in use or cannot be written.
        ModelError: the model cannot be load_student.
    """
    began = time.monotonic()
    check_free(out)
    if options.threads:
        torch.set_num_threads(options.threads)
    with load_student(model) as student:
        say("reading rows")
        team = read_rows(data, student.scope)
        for reason, count in team.left_out.items():
            say(f"left out {count:,} rows: {reason}")
        corpus = compact(team.corpus)
        say(f"encoding {len(corpus.texts):,} texts of {len(corpus.rows):,} rows")
        encoded = encode(student, corpus)
        tuning_data = build(student, corpus, encoded)
        anchors = _anchors(student, tuning_data, encoded, options.keep, say)
        editable = EditableModel(student)
        results = [
            _tuned(job, tuning_data, editable, say) for job in _jobs(student, tuning_data, anchors, options.fewest, say)
        ]
        kept = [result for result in results if result.refused is None]
        if not kept:
            return TuningOutcome(tuple(results), None, "nothing would improve, so no model is written")
        tuned_bases = {result.key.split("/")[0] for result in kept}
        editable.add_devices({basis: names for basis, names in team.devices.items() if basis in tuned_bases})
        if team.machine is not None and "call" in tuned_bases:
            editable.adopt_machine(team.machine)
        card = student.card
        entry = card_entry(card.model_id, data, team, kept, options)
        entry["seconds"] = round(time.monotonic() - began, 1)
        say("writing")
        with output_directory(out) as made:
            editable.write(
                made.directory, options.name, {**card.trained, "tuned": [*card.trained.get("tuned", []), entry]}
            )
            refused = _forgetting(
                student.directory, made.directory, options.keep, {v.key.partition("@")[0] for v in kept}
            )
            if refused is not None:
                return TuningOutcome(tuple(results), None, refused)
            model_id = made.commit()
    return TuningOutcome(tuple(results), model_id, None)


def _anchors(
    student: LoadedStudent, tuning_data: TuningData, encoded: Encoded, keep: Sequence[Path], say: Say
) -> tuple[TuningData, bool] | None:
    """Rows whose predictions should not change: original ones (True), or the team's unlabelled callees (False)."""
    if keep:
        corpus = sampled(load_corpus(keep, None, student.tasks, student.card.forms), _ANCHOR_ROWS)
        say(f"encoding {len(corpus.texts):,} texts of {len(corpus.rows):,} original rows")
        return build(student, corpus, encode(student, corpus)), True
    corpus = unlabelled_callees(tuning_data.corpus)
    rng = np.random.default_rng(0)
    if len(corpus.rows) > _ANCHOR_ROWS:
        chosen = np.sort(rng.choice(len(corpus.rows), _ANCHOR_ROWS, replace=False))
        corpus = replace(corpus, rows=corpus.rows.chosen(chosen))
    return (build(student, corpus, encoded), False) if len(corpus.rows) else None


def _jobs(
    student: LoadedStudent, tuning_data: TuningData, anchors: tuple[TuningData, bool] | None, fewest: int, say: Say
) -> list[_TaskJob]:
    """The tasks with enough rows to tune; a line for each of the others."""
    found: list[_TaskJob] = []
    groups = tuning_data.corpus.rows.group
    prefixes = np.array([name.rpartition("/")[0] for name in student.tasks])[tuning_data.corpus.rows.task]
    for number in np.unique(tuning_data.corpus.rows.task).tolist():
        name = student.tasks[number]
        alone = answers_alone(name)
        in_slice = tuning_data.rows_of(number)
        for key in np.unique(tuning_data.keys[in_slice]).tolist() if alone else [name]:
            rows = in_slice[tuning_data.keys[in_slice] == key] if alone else in_slice
            count = len(np.unique(groups[rows]))
            folds = folds_of(groups[rows])
            if not suffices(folds):
                say(
                    f"{key}: {len(rows)} rows of {count} groups; tuning needs {FEWEST_GROUPS} groups and"
                    f" {MIN_MEASUREMENTS} rows without any one of them (a group is a module, a problem or a kernel)"
                )
                continue
            # The metrics of a function are measured together and count together; a setting of networks counts alone.
            total = len(rows) if alone else int((prefixes == name.rpartition("/")[0]).sum())
            few = total < fewest
            if few:
                say(f"{key}: {total} rows, fewer than {fewest}: only an offset and a slope are fitted")
            tuners: tuple[Tuner, ...]
            bands: Bands
            if alone:
                residuals = student.card.residuals.get(key)
                if residuals is None:
                    say(f"{key}: the model has no bands for it and abstains; its rows are not used")
                    continue
                tuners = (ForestTuner(student, tuning_data, number, rows, folds, few=True),)
                if not few:
                    tuners = (ForestTuner(student, tuning_data, number, rows, folds, few=False), *tuners)
                bands = ForestBands(key, residuals)
            else:
                tuners = (AffineTuner(student, tuning_data, number, folds),)
                if not few:
                    tuners = (HeadTuner(student, tuning_data, number, folds, anchors), *tuners)
                bands = HeadBands(name, student.card.calibration)
            found.append(_TaskJob(key, rows, folds, tuners, bands))
    return found


def _tuned(job: _TaskJob, tuning_data: TuningData, editable: EditableModel, say: Say) -> TuningResult:
    """Tune one task, judge the result, and put it into the model if it is better."""
    rows, corpus = job.rows, tuning_data.corpus
    say(f"{job.key}: tuning on {len(rows):,} rows")
    groups = corpus.rows.group[rows]
    fresh = _fresh(corpus.rows.text[rows], job.folds)
    first: TuningResult | None = None
    for tuner in job.tuners:
        answers = tuner.shipped(), tuner.held_out()
        result = judge(job.key, tuner.kind, tuning_data.actual[rows], groups, job.folds, answers, job.bands, fresh)
        if result.refused is None:
            if first is not None:
                say(f"{job.key}: {first.refused}; only an offset and a slope are fitted instead")
            tuner.put(editable)
            devices = np.array([corpus.queries[query][0] or "" for query in corpus.rows.query[rows]])
            job.bands.put(editable, answers[1].score, groups, devices)
            return result
        first = first or result
    assert first is not None
    return first


def _fresh(texts: Rows, folds: Rows) -> npt.NDArray[np.bool_]:
    """The rows whose text is in one fold only: equal texts in other folds were trained on."""
    pairs = np.unique(np.stack([texts, folds], axis=1), axis=0)
    several, counts = np.unique(pairs[:, 0], return_counts=True)
    fresh = ~np.isin(texts, several[counts > 1])
    return fresh if fresh.sum() >= len(texts) / 4 else np.ones(len(texts), bool)


def _forgetting(before: Path, after: Path, keep: Sequence[Path], slices: set[str]) -> str | None:
    """Return the reason to refuse the new model, a larger error on original rows of the tuned tasks, or None."""
    if not keep:
        return None
    rows: list[Row] = []
    for splits in (("val", "cal", "test"), ("train",)):
        if not rows:
            rows = [row for row in select(keep, splits, _CHECKED_ROWS).rows if row.task.name in slices]
    rows = [row if row.code.basis != "call" else replace(row, query=Query(row.query.metric)) for row in rows]
    pairs = [(row.code, row.query) for row in rows]
    medians = [predict_table(OnnxPredictor(directory), pairs).table.median for directory in (before, after)]
    actual = np.array([row.value for row in rows])
    names = np.array([row.task.name for row in rows])
    for name in sorted(slices):
        selected = (names == name) & np.isfinite(medians[0]) & np.isfinite(medians[1])
        if not selected.any():
            continue
        errors = [
            float(
                np.median(
                    np.abs(np.log10(np.maximum(m[selected], 1e-9)) - np.log10(np.maximum(actual[selected], 1e-9)))
                )
            )
            for m in medians
        ]
        if errors[1] > _FORGOTTEN * errors[0]:
            return (
                f"{name}: the error on the original rows would grow from {errors[0]:.3f} to {errors[1]:.3f}, so no"
                " model is written; tune without --keep if only the team's code matters"
            )
    return None
