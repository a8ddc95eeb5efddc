"""``rlm-lsp tune`` from rows to a directory: read, ask, tune each slice, judge, write what is better."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from rlm_core.inference.features import answers_alone
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training.corpus import load_corpus
from rlm_core.training.evaluation.prediction_table import predict_table
from rlm_core.training.evaluation.rows import Row, select
from rlm_core.types import Query

from .bands import Bands, ForestBands, HeadBands
from .draft import Draft
from .level import MIN_MEASUREMENTS
from .material import Encoded, Material, Rows, build, encode
from .options import Options, Say, Tuning, told_of
from .place import check_free, unfinished
from .rows import callees_alone, compact, read_rows, sampled
from .student import Opened, opened
from .tuners import FEWEST_GROUPS, ForestTuner, HeadTuner, LevelTuner, Tuner, folds_of, suffices
from .verdict import Verdict, judge

_STILL_ROWS, _CHECKED_ROWS = 2000, 300
_FORGOTTEN = 1.1  # times the error on original rows


@dataclass(frozen=True, slots=True)
class _Job:
    """One slice or forest to tune, its rows, and the ways to do it: the first that is better is taken."""

    key: str
    rows: Rows
    folds: Rows
    tuners: tuple[Tuner, ...]
    bands: Bands


def tune(data: Sequence[Path], model: Path, out: Path, options: Options, say: Say) -> Tuning:
    """Tune the student in ``model`` on the ``train``, ``val`` and ``cal`` rows of data sets.

    Args:
        data: Parquet files of :mod:`rlm_core.training.datasets.schema`.
        model: a directory of ``rlm-lsp export`` or ``rlm-lsp train``.
        out: the directory to write; it must not exist or be empty.
        options: see :class:`Options`.
        say: is told of each stage, a line each.

    Raises:
        DataError: unusable rows, or ``out`` is in use or cannot be written.
        ModelError: the model cannot be opened.
    """
    began = time.monotonic()
    check_free(out)
    if options.threads:
        torch.set_num_threads(options.threads)
    with opened(model) as student:
        say("reading rows")
        team = read_rows(data, student.known)
        for reason, count in team.left_out.items():
            say(f"left out {count:,} rows: {reason}")
        corpus = compact(team.corpus)
        say(f"encoding {len(corpus.texts):,} texts of {len(corpus.rows):,} rows")
        encoded = encode(student, corpus)
        material = build(student, corpus, encoded)
        still = _still(student, material, encoded, options.keep, say)
        draft = Draft(student)
        verdicts = [_tuned(job, material, draft, say) for job in _jobs(student, material, still, options.fewest, say)]
        kept = [verdict for verdict in verdicts if verdict.refused is None]
        if not kept:
            return Tuning(tuple(verdicts), None, "nothing would be better, so no model is written")
        tuned_bases = {verdict.key.split("/")[0] for verdict in kept}
        draft.add_devices({basis: names for basis, names in team.devices.items() if basis in tuned_bases})
        if team.own is not None and "call" in tuned_bases:
            draft.own(team.own)
        card = student.card
        told = told_of(card.model_id, data, team, kept, options)
        told["seconds"] = round(time.monotonic() - began, 1)
        say("writing")
        with unfinished(out) as made:
            draft.write(made.directory, options.name, {**card.trained, "tuned": [*card.trained.get("tuned", []), told]})
            refused = _forgotten(
                student.directory, made.directory, options.keep, {v.key.partition("@")[0] for v in kept}
            )
            if refused is not None:
                return Tuning(tuple(verdicts), None, refused)
            model_id = made.commit()
    return Tuning(tuple(verdicts), model_id, None)


def _still(
    student: Opened, material: Material, encoded: Encoded, keep: Sequence[Path], say: Say
) -> tuple[Material, bool] | None:
    """Rows whose answers are to stay, and whether they are original ones: else the team's own unlabelled callees."""
    if keep:
        corpus = sampled(load_corpus(keep, None, student.slices), _STILL_ROWS)
        say(f"encoding {len(corpus.texts):,} texts of {len(corpus.rows):,} original rows")
        return build(student, corpus, encode(student, corpus)), True
    corpus = callees_alone(material.corpus)
    rng = np.random.default_rng(0)
    if len(corpus.rows) > _STILL_ROWS:
        chosen = np.sort(rng.choice(len(corpus.rows), _STILL_ROWS, replace=False))
        corpus = replace(corpus, rows=corpus.rows.chosen(chosen))
    return (build(student, corpus, encoded), False) if len(corpus.rows) else None


def _jobs(
    student: Opened, material: Material, still: tuple[Material, bool] | None, fewest: int, say: Say
) -> list[_Job]:
    """What has rows enough to be tuned; a line for what has not."""
    found: list[_Job] = []
    groups = material.corpus.rows.group
    prefixes = np.array([name.rpartition("/")[0] for name in student.slices])[material.corpus.rows.task]
    for number in np.unique(material.corpus.rows.task).tolist():
        name = student.slices[number]
        alone = answers_alone(name.split("/")[0])
        in_slice = material.rows_of(number)
        for key in np.unique(material.keys[in_slice]).tolist() if alone else [name]:
            rows = in_slice[material.keys[in_slice] == key] if alone else in_slice
            count = len(np.unique(groups[rows]))
            folds = folds_of(groups[rows])
            if not suffices(folds):
                say(
                    f"{key}: {len(rows)} rows of {count} groups; needed are {FEWEST_GROUPS} groups and"
                    f" {MIN_MEASUREMENTS} rows beside those of any one (a group is a module, a problem or a kernel)"
                )
                continue
            # The metrics of a function are measured together and count together; a setting of networks is alone.
            total = len(rows) if alone else int((prefixes == name.rpartition("/")[0]).sum())
            few = total < fewest
            if few:
                say(f"{key}: {total} rows, fewer than {fewest}: only level and slope are fitted")
            tuners: tuple[Tuner, ...]
            bands: Bands
            if alone:
                residuals = student.card.residuals.get(key)
                if residuals is None:
                    say(f"{key}: the model has no bands for it and abstains; its rows are not used")
                    continue
                tuners = (ForestTuner(student, material, number, rows, folds, few=True),)
                if not few:
                    tuners = (ForestTuner(student, material, number, rows, folds, few=False), *tuners)
                bands = ForestBands(key, residuals)
            else:
                tuners = (LevelTuner(student, material, number, folds),)
                if not few:
                    tuners = (HeadTuner(student, material, number, folds, still), *tuners)
                bands = HeadBands(name, student.card.calibration, "")
            found.append(_Job(key, rows, folds, tuners, bands))
    return found


def _tuned(job: _Job, material: Material, draft: Draft, say: Say) -> Verdict:
    """Tune one slice, judge it, and put it into the draft if it is better."""
    rows, corpus = job.rows, material.corpus
    say(f"{job.key}: tuning on {len(rows):,} rows")
    groups = corpus.rows.group[rows]
    fresh = _fresh(corpus.rows.text[rows], job.folds)
    first: Verdict | None = None
    for tuner in job.tuners:
        answers = tuner.shipped(), tuner.held_out()
        verdict = judge(job.key, tuner.kind, material.actual[rows], groups, job.folds, answers, job.bands, fresh)
        if verdict.refused is None:
            if first is not None:
                say(f"{job.key}: {first.refused}; level and slope alone are fitted instead")
            tuner.put(draft)
            devices = np.array([corpus.queries[query][0] or "" for query in corpus.rows.query[rows]])
            job.bands.put(draft, answers[1].score, groups, devices)
            return verdict
        first = first or verdict
    assert first is not None
    return first


def _fresh(texts: Rows, folds: Rows) -> npt.NDArray[np.bool_]:
    """The rows whose text is in one fold only: others have been learnt from under another name."""
    pairs = np.unique(np.stack([texts, folds], axis=1), axis=0)
    several, counts = np.unique(pairs[:, 0], return_counts=True)
    fresh = ~np.isin(texts, several[counts > 1])
    return fresh if fresh.sum() >= len(texts) / 4 else np.ones(len(texts), bool)


def _forgotten(before: Path, after: Path, keep: Sequence[Path], slices: set[str]) -> str | None:
    """Why the new model is refused: its error on original rows of the tuned slices has grown."""
    if not keep:
        return None
    rows: list[Row] = []
    for splits in (("val", "cal", "test"), ("train",)):
        if not rows:
            rows = [row for row in select(keep, splits, _CHECKED_ROWS).rows if "/".join(row.task) in slices]
    rows = [row if row.code.basis != "call" else replace(row, query=Query(row.query.metric)) for row in rows]
    pairs = [(row.code, row.query) for row in rows]
    medians = [predict_table(OnnxPredictor(directory), pairs).table.median for directory in (before, after)]
    actual = np.array([row.value for row in rows])
    names = np.array(["/".join(row.task) for row in rows])
    for name in sorted(slices):
        mine = (names == name) & np.isfinite(medians[0]) & np.isfinite(medians[1])
        if not mine.any():
            continue
        errors = [
            float(np.median(np.abs(np.log10(np.maximum(m[mine], 1e-9)) - np.log10(np.maximum(actual[mine], 1e-9)))))
            for m in medians
        ]
        if errors[1] > _FORGOTTEN * errors[0]:
            return (
                f"{name}: the error on the original rows would grow from {errors[0]:.3f} to {errors[1]:.3f}, so no"
                " model is written; tune without --keep if only the team's code matters"
            )
    return None
