"""``rlm-lsp tune`` for full models: training continues on the team's rows, kept only if held-out groups improve.

What is trained depends on the encoder: all of it, adapters, or the decoder alone. A quarter of the groups is held out
for comparison and calibration, an eighth for early stopping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlm_core.errors import DataError
from rlm_core.folders import ScratchFolder
from rlm_core.inference.calibration import Calibration
from rlm_core.training.corpus import Corpus
from rlm_core.training.distributed import Processes
from rlm_core.training.full import store
from rlm_core.training.full.model import FullModel
from rlm_core.training.full.model_fit import FullTrainer, medians, scores
from rlm_core.training.full.store import Serving, autocast
from rlm_core.training.full.training_config import ModelFitConfig
from rlm_core.training.full.training_data import Examples, examples

from .data import TeamRows, read_rows
from .judging import HeadBands, TuningResult, judge
from .run import Options, Say, TuningOutcome, card_entry, check_free, output_directory
from .student import ModelScope, TeamMachine
from .tuners import HeldOutScores, folds_of

_FOLDS, _HELD, _STOP = 8, (0, 1), 2
_FEWEST_GROUPS = 8
# A tenth of the rates of training, against forgetting.
_LOOP = ModelFitConfig(epochs=4, learning_rate=1e-4, matrix_learning_rate=2e-4, warmup_steps=20, group_power=1.0)


def tune_full(
    data: Sequence[Path],
    model: Path,
    out: Path,
    options: Options,
    say: Say,
    loop: ModelFitConfig = _LOOP,
    processes: Processes | None = None,
) -> TuningOutcome:
    """Tune the full model in ``model``; as :func:`rlm_core.training.tuning.run.tune`.

    ``processes`` tune together: each calls this and gets the same outcome; the main one writes. None: a single process.

    Raises:
        DataError: unusable or too few rows, or ``out`` is in use or cannot be written.
        ModelError: the model cannot be load_student.
    """
    processes = processes or Processes()
    processes.once(lambda: check_free(out))
    if options.threads:
        torch.set_num_threads(options.threads)
    with processes.together():
        if options.keep:
            raise DataError("--keep is for students: a full model forgets little because its steps are small")
        tuned, card = store.load(model, processes.device)
        serving = Serving.read(model, card)
        team = _team(data, serving, options.fewest, say)
        rows = team.corpus.rows
        folds = folds_of(rows.group, _FOLDS)
        split = np.where(np.isin(folds, _HELD), "cal", np.where(folds == _STOP, "val", "train"))
        known = replace(team.corpus, rows=replace(rows, split=split))
        renamed = _renamed(known, team.machine)
        shipped, ours = (examples(corpus, tuned, serving.callees) for corpus in (known, renamed))
    config = replace(loop, callees=serving.callees)
    held = shipped.rows_of("cal")
    say(f"asking the model about {len(held):,} held-out rows")
    before = _answers(tuned, shipped, held, serving, config, processes)
    with ScratchFolder() as scratch:
        say(f"training on {int((split == 'train').sum()):,} rows")
        running = FullTrainer(tuned, ours, config, scratch, processes)
        running.run()
    tuned.encoder.recompute(False)
    after = _answers(tuned, ours, held, serving, config, processes)
    results, levels = _judged(known, renamed, held, folds, before, after, serving)
    refused = next((f"{result.key}: {result.refused}" for result in results if result.refused), None)
    if refused is not None:
        return TuningOutcome(results, None, f"{refused}; no model is written")
    served = replace(
        serving,
        devices=_devices(serving, renamed, team.machine),
        defaults=dict(serving.defaults)
        | ({"call": {"device": team.machine.device, "workload": team.machine.workload}} if team.machine else {}),
        calibration=Calibration.from_json({**serving.calibration.to_json(), **levels}),
    )
    entry = card_entry(card.model_id, data, team, results, options)
    entry["steps"] = running.step
    say("writing")

    def write() -> str:
        with output_directory(out) as made:
            trained: dict[str, Any] = {**card.trained, "tuned": [*card.trained.get("tuned", []), entry]}
            trained |= served.write(made.directory)
            store.save(tuned.cpu(), made.directory, options.name, trained)
            return made.commit()

    return TuningOutcome(results, processes.once(write), None)


def _team(data: Sequence[Path], serving: Serving, fewest: int, say: Say) -> TeamRows:
    """The rows to tune on.

    Raises:
        DataError: unusable or too few rows.
    """
    say("reading rows")
    team = read_rows(data, ModelScope(list(serving.floors), serving.devices, serving.defaults, None))
    for reason, count in team.left_out.items():
        say(f"left out {count:,} rows: {reason}")
    rows, groups = len(team.corpus.rows), len(np.unique(team.corpus.rows.group))
    if rows < fewest or groups < _FEWEST_GROUPS:
        raise DataError(
            f"{rows} rows of {groups} groups: tuning a full model needs {fewest} rows of {_FEWEST_GROUPS} groups;"
            " tune a student, or add a device with rlm-lsp adapt"
        )
    return team


def _renamed(corpus: Corpus, machine: TeamMachine | None) -> Corpus:
    """The rows with the queries of the new model: calls are those of the team's machine."""
    if machine is None:
        return corpus
    calls = np.array([name.startswith("call/") for name in corpus.tasks])[corpus.rows.task]
    number = len(corpus.queries)
    query = np.where(calls, number, corpus.rows.query)
    return replace(
        corpus, rows=replace(corpus.rows, query=query), queries=[*corpus.queries, (machine.device, machine.workload)]
    )


def _answers(
    model: FullModel,
    data: Examples,
    rows: np.ndarray[Any, np.dtype[np.int64]],
    serving: Serving,
    config: ModelFitConfig,
    processes: Processes,
) -> HeldOutScores:
    model.eval()
    floor = np.array([serving.floors[name] or 1e-12 for name in data.corpus.tasks])[data.corpus.rows.task[rows]]
    mixed, budget, texts = autocast(model.device), config.tokens_per_batch, data.text[rows]
    found = processes.spread(rows, texts, lambda share: medians(model, data, share, mixed, budget))
    score = processes.spread(rows, texts, lambda share: scores(model, data, share, mixed, budget))
    return HeldOutScores(np.log10(np.maximum(found, floor)), score)


def _judged(
    known: Corpus,
    renamed: Corpus,
    held: np.ndarray[Any, np.dtype[np.int64]],
    folds: np.ndarray[Any, np.dtype[np.int64]],
    before: HeldOutScores,
    after: HeldOutScores,
    serving: Serving,
) -> tuple[tuple[TuningResult, ...], dict[str, Any]]:
    """The result of each task and the new levels."""
    rows = known.rows
    taught = set(rows.text[~np.isin(folds, _HELD)].tolist())
    results: list[TuningResult] = []
    levels: dict[str, Any] = {}
    kept = serving.calibration.to_json()
    for number in np.unique(rows.task[held]).tolist():
        selected = np.flatnonzero(rows.task[held] == number)
        chosen = held[selected]
        name = known.tasks[number]
        bands = HeadBands(name, serving.calibration)
        answers = (
            HeldOutScores(before.median[selected], before.score[selected]),
            HeldOutScores(after.median[selected], after.score[selected]),
        )
        actual = np.log10(np.maximum(rows.value[chosen], serving.floors[name] or 1e-12))
        fresh = np.array([text not in taught for text in rows.text[chosen].tolist()])
        fresh = fresh if fresh.any() else np.ones(len(chosen), bool)
        groups = rows.group[chosen]
        if len(np.unique(folds[chosen])) == len(_HELD):
            results.append(judge(name, "tuned", actual, groups, folds[chosen], answers, bands, fresh))
            devices = np.array([renamed.queries[query][0] or "" for query in renamed.rows.query[chosen]])
            levels |= bands.levels(kept, answers[1].score, groups, devices)
    return tuple(results), levels


def _devices(serving: Serving, renamed: Corpus, calls: TeamMachine | None) -> dict[str, list[str]]:
    """The devices of the new model; calls have the team's only."""
    found = {basis: list(names) for basis, names in serving.devices.items()}
    for number, query in set(zip(renamed.rows.task.tolist(), renamed.rows.query.tolist(), strict=True)):
        device = renamed.queries[query][0]
        names = found.setdefault(renamed.tasks[number].split("/")[0], [])
        if device is not None and device not in names:
            names.append(device)
    if calls is not None:
        found["call"] = [calls.device]
    return found
