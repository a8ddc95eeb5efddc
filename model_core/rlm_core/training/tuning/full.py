"""A full model tuned: trained on with the team's rows from where it stands, and kept only if held-out groups say so.

What is trained is what its encoder was made for: all of it, adapters, or nothing beside the decoder. A quarter of the
groups is held out to compare and to calibrate on, an eighth stops early.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlm_core.errors import DataError
from rlm_core.inference.calibration import Calibration
from rlm_core.training.corpus import Corpus
from rlm_core.training.distributed import Processes
from rlm_core.training.full import store
from rlm_core.training.full.model import FullModel
from rlm_core.training.full.model_fit import FullTrainer
from rlm_core.training.full.store import Serving, autocast
from rlm_core.training.full.training_config import ModelFitConfig
from rlm_core.training.full.training_data import Examples, examples
from rlm_core.training.full.validation import medians, scores

from .bands import HeadBands
from .options import Options, Say, Tuning, told_of
from .place import check_free, unfinished
from .rows import Known, Own, TeamRows, read_rows
from .tuners import Answers, folds_of
from .verdict import Verdict, judge

_FOLDS, _HELD, _STOP = 8, (0, 1), 2
_FEWEST_GROUPS = 8
# A tenth of the rates of training: what is known is to stay.
_LOOP = ModelFitConfig(epochs=4, learning_rate=1e-4, matrix_learning_rate=2e-4, warmup_steps=20, group_power=1.0)


def tune_full(
    data: Sequence[Path],
    model: Path,
    out: Path,
    options: Options,
    say: Say,
    loop: ModelFitConfig = _LOOP,
    processes: Processes | None = None,
) -> Tuning:
    """Tune the full model in ``model``; as :func:`rlm_core.training.tuning.run.tune`.

    ``processes`` tune together, each of which calls this and gets the same; the main one writes. None: one alone.

    Raises:
        DataError: unusable or too few rows, or ``out`` is in use or cannot be written.
        ModelError: the model cannot be opened.
    """
    processes = processes or Processes()
    processes.once(lambda: check_free(out))
    if options.threads:
        torch.set_num_threads(options.threads)
    with processes.together():
        if options.keep:
            raise DataError("--keep is for students: a full model stays near what it was by its small steps")
        tuned, card = store.load(model, processes.device)
        serving = Serving.read(model, card)
        team = _team(data, serving, options.fewest, say)
        rows = team.corpus.rows
        folds = folds_of(rows.group, _FOLDS)
        split = np.where(np.isin(folds, _HELD), "cal", np.where(folds == _STOP, "val", "train"))
        known = replace(team.corpus, rows=replace(rows, split=split))
        own = _renamed(known, team.own)
        shipped, ours = (examples(corpus, tuned, serving.callees) for corpus in (known, own))
    config = replace(loop, callees=serving.callees)
    held = shipped.rows_of("cal")
    say(f"asking the model about {len(held):,} held-out rows")
    before = _answers(tuned, shipped, held, serving, config, processes)
    with tempfile.TemporaryDirectory(prefix="rlm-lsp-tune-") as scratch:
        say(f"training on {int((split == 'train').sum()):,} rows")
        running = FullTrainer(tuned, ours, config, Path(scratch), processes)
        running.run()
    tuned.encoder.recompute(False)
    after = _answers(tuned, ours, held, serving, config, processes)
    verdicts, levels = _judged(known, own, held, folds, before, after, serving)
    refused = next((f"{verdict.key}: {verdict.refused}" for verdict in verdicts if verdict.refused), None)
    if refused is not None:
        return Tuning(verdicts, None, f"{refused}; no model is written")
    served = replace(
        serving,
        devices=_devices(serving, own, team.own),
        defaults=dict(serving.defaults)
        | ({"call": {"device": team.own.device, "workload": team.own.workload}} if team.own else {}),
        calibration=Calibration.from_json({**serving.calibration.to_json(), **levels}),
    )
    told = told_of(card.model_id, data, team, verdicts, options)
    told["steps"] = running.step
    say("writing")

    def write() -> str:
        with unfinished(out) as made:
            trained: dict[str, Any] = {**card.trained, "tuned": [*card.trained.get("tuned", []), told]}
            trained |= served.write(made.directory)
            store.save(tuned.cpu(), made.directory, options.name, trained)
            return made.commit()

    return Tuning(verdicts, processes.once(write), None)


def _team(data: Sequence[Path], serving: Serving, fewest: int, say: Say) -> TeamRows:
    """The rows to tune on.

    Raises:
        DataError: unusable or too few rows.
    """
    say("reading rows")
    team = read_rows(data, Known(list(serving.floors), serving.devices, serving.defaults, None))
    for reason, count in team.left_out.items():
        say(f"left out {count:,} rows: {reason}")
    rows, groups = len(team.corpus.rows), len(np.unique(team.corpus.rows.group))
    if rows < fewest or groups < _FEWEST_GROUPS:
        raise DataError(
            f"{rows} rows of {groups} groups: a full model takes {fewest} of {_FEWEST_GROUPS} to tune;"
            " tune a student, or teach a device with rlm-lsp adapt"
        )
    return team


def _renamed(corpus: Corpus, own: Own | None) -> Corpus:
    """The rows as the new model is asked about them: calls are those of the team's machine."""
    if own is None:
        return corpus
    calls = np.array([name.startswith("call/") for name in corpus.tasks])[corpus.rows.task]
    number = len(corpus.queries)
    query = np.where(calls, number, corpus.rows.query)
    return replace(
        corpus, rows=replace(corpus.rows, query=query), queries=[*corpus.queries, (own.device, own.workload)]
    )


def _answers(
    model: FullModel,
    data: Examples,
    rows: np.ndarray[Any, np.dtype[np.int64]],
    serving: Serving,
    config: ModelFitConfig,
    processes: Processes,
) -> Answers:
    model.eval()
    floor = np.array([serving.floors[name] or 1e-12 for name in data.corpus.tasks])[data.corpus.rows.task[rows]]
    mixed, budget, texts = autocast(model.device), config.tokens_per_batch, data.text[rows]
    found = processes.spread(rows, texts, lambda own: medians(model, data, own, mixed, budget))
    score = processes.spread(rows, texts, lambda own: scores(model, data, own, mixed, budget))
    return Answers(np.log10(np.maximum(found, floor)), score)


def _judged(
    known: Corpus,
    own: Corpus,
    held: np.ndarray[Any, np.dtype[np.int64]],
    folds: np.ndarray[Any, np.dtype[np.int64]],
    before: Answers,
    after: Answers,
    serving: Serving,
) -> tuple[tuple[Verdict, ...], dict[str, Any]]:
    """The verdict on each slice and the new levels."""
    rows = known.rows
    taught = set(rows.text[~np.isin(folds, _HELD)].tolist())
    verdicts: list[Verdict] = []
    levels: dict[str, Any] = {}
    kept = serving.calibration.to_json()
    for number in np.unique(rows.task[held]).tolist():
        mine = np.flatnonzero(rows.task[held] == number)
        chosen = held[mine]
        name = known.tasks[number]
        bands = HeadBands(name, serving.calibration, "")
        answers = Answers(before.median[mine], before.score[mine]), Answers(after.median[mine], after.score[mine])
        actual = np.log10(np.maximum(rows.value[chosen], serving.floors[name] or 1e-12))
        fresh = np.array([text not in taught for text in rows.text[chosen].tolist()])
        fresh = fresh if fresh.any() else np.ones(len(chosen), bool)
        groups = rows.group[chosen]
        if len(np.unique(folds[chosen])) == len(_HELD):
            verdicts.append(judge(name, "tuned", actual, groups, folds[chosen], answers, bands, fresh))
            devices = np.array([own.queries[query][0] or "" for query in own.rows.query[chosen]])
            levels |= bands.levels(kept, answers[1].score, groups, devices)
    return tuple(verdicts), levels


def _devices(serving: Serving, own: Corpus, calls: Own | None) -> dict[str, list[str]]:
    """The devices of the new model; those of calls are the team's alone."""
    found = {basis: list(names) for basis, names in serving.devices.items()}
    for number, query in set(zip(own.rows.task.tolist(), own.rows.query.tolist(), strict=True)):
        device = own.queries[query][0]
        names = found.setdefault(own.tasks[number].split("/")[0], [])
        if device is not None and device not in names:
            names.append(device)
    if calls is not None:
        found["call"] = [calls.device]
    return found
