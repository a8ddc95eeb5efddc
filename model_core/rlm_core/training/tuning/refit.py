"""Parts of a finished model, fitted again: ``rlm-lsp tune --refit`` and ``rlm-lsp tune --work``.

``--refit`` fits everything that reads labels again, on the model's encoder. For new labels of functions or programs:
minutes, where a whole training takes hours. N-gram ridge, each task's part of the head or its trees, calibration,
ratios and novelty of the bases in the data are fitted to all their rows. The encoder, the deep part that tasks share,
and the predictions for other bases stay as they are. Programs, which trees answer where another judge than LeetCode ran
them, may have tasks that the model lacks: a judge, a language, a metric.

``--work`` is the last stage of a training, which joins the model with work facts. The mixture, its bands and the ratios
of functions are fitted to functions of packages that the n-gram ridge has not seen, and to generated ones; everything
else of the model stays as it is. The bands of texts that fix their cost are wide enough for functions written by hand,
too; from data with nothing but those, only these bands change.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from rlm_core.errors import DataError
from rlm_core.inference.card import TaskCard
from rlm_core.inference.features import answers_alone
from rlm_core.inference.student import OnnxPredictor
from rlm_core.inference.tokenizer import Ids
from rlm_core.training.corpus import Corpus, default_queries_of, known_devices, load_corpus
from rlm_core.training.datasets.schema import Edit, read_edits
from rlm_core.training.package_graph import PackageGraph, is_graph, read_graph
from rlm_core.training.student.batches import head_inputs
from rlm_core.training.student.config import FORMS, TrainConfig
from rlm_core.training.student.cost_ratio_fit import fit_cost_ratios
from rlm_core.training.student.head_fit import Features, calibrate, log_medians, needed
from rlm_core.training.student.network import Head
from rlm_core.training.student.ngram_ridge_fit import BASES, NgramRidgeFit, fit_ngram_ridge
from rlm_core.training.student.train import fit_scales, texts_by_prefix
from rlm_core.training.student.trees_fit import answerable, fit_trees
from rlm_core.training.student.work_fit import (
    WorkRows,
    calibrate_mixture,
    calibrate_written,
    fit_mixture,
    fit_ratios,
    work_rows,
)

from .data import Encoded, compact, encode
from .first_pass import first_pass
from .run import Say, check_free, output_directory
from .student import EditableModel, LoadedStudent, load_student
from .tuners import TaskBatch, TaskHead, fit

Indices = npt.NDArray[np.int64]
_BATCH = 4096
_NOVELTY_TEXTS = 600
_CONFIG = TrainConfig()  # of the n-gram ridge and the trees


def refit(data: Sequence[Path], model: Path, out: Path, name: str, say: Say) -> str:
    """Fit ``model`` to the rows of data sets; the id of the new model, which is exported already.

    Args:
        data: Parquet files of ``rlm-lsp data build`` with all labels of their bases, including the previous ones.
        model: a directory of ``rlm-lsp export`` or ``rlm-lsp train``.
        out: the directory to write; it must not exist or be empty.
        name: of the new model.
        say: called with a line for each stage.

    Raises:
        DataError: unusable rows, or ``out`` is in use or cannot be written.
        ModelError: the model cannot be load_student.
    """
    check_free(out)
    with load_student(model) as student:
        say("reading rows")
        corpus = answerable(load_corpus(data, ("train", "val", "cal"), forms=FORMS))
        _check(corpus, student)
        editable = EditableModel(student)
        editable.keeps_calls = not any(name.startswith("call/") for name in corpus.tasks)
        trees = np.array([answers_alone(name) for name in corpus.tasks])
        for basis in sorted({name.split("/")[0] for name in corpus.tasks}):
            of_basis = np.array([name.split("/")[0] == basis for name in corpus.tasks])
            if (of_basis & ~trees).any():
                part = _of_tasks(corpus, of_basis & ~trees)
                _refit_head(part, student, editable, read_edits(data, ("train",)), say)
            if (of_basis & trees).any():
                _refit_forests(_of_tasks(corpus, of_basis & trees), student, editable, say)
        refitted = set(corpus.prefixes())
        kept = {prefix: form for prefix, form in editable.forms.items() if prefix not in refitted}
        editable.forms = {**kept, **corpus.forms}
        say("writing")
        with output_directory(out) as made:
            editable.write(made.directory, name, _trained(student, editable.head, data, corpus))
            return made.commit()


def _refit_head(
    corpus: Corpus, student: LoadedStudent, editable: EditableModel, edits: Iterable[Edit], say: Say
) -> None:
    """Fit the ridge and the head of a basis that the head answers."""
    numbered = _numbered(corpus, student)
    say(f"encoding {len(corpus.texts):,} texts of {len(corpus.rows):,} rows")
    encoded = encode(student, corpus)
    fitted = _fit_ridge(corpus, encoded.ids, editable, say)
    features = _features(student, numbered, encoded, fitted)
    for entry, terms in fitted.terms.items():
        number = student.tasks.index(entry)
        scale = student.card.tasks[number].scale
        editable.put_task(TaskCard(entry, scale, terms.intercept, tuple(terms.calendar)))
    evidence = _evidence(student.head, features)

    def head_of(train: Indices, val: Indices) -> Head:
        return _fit_head(student.head, features, evidence, train, val)

    say("fitting the head")
    rows = numbered.rows
    editable.head = head_of(np.flatnonzero(rows.split == "train"), np.flatnonzero(rows.split == "val"))
    say("calibrating on project groups left out in turn")
    scales = [entry.scale for entry in student.card.tasks]
    editable.drop_levels(corpus.prefixes())
    editable.levels |= calibrate(features, numbered, editable.head, scales, head_of).to_json()
    medians = log_medians(features, editable.head, numbered, scales)
    editable.changes |= fit_cost_ratios(numbered, medians, fitted.changes, edits)
    editable.fit_regions(texts_by_prefix(corpus, encoded.bank.vectors.numpy()))


def _refit_forests(corpus: Corpus, student: LoadedStudent, editable: EditableModel, say: Say) -> None:
    """Fit the ridge and the trees of tasks that forests answer, and ask about their judges as they were asked."""
    fitted = _fit_ridge(corpus, corpus.encode(student.tokenizer), editable, say)
    say("fitting the trees")
    grown = fit_trees(corpus, _CONFIG.trees, fitted.predictions)
    editable.forests |= grown.forests
    editable.residuals |= grown.residuals
    for entry, scale in zip(corpus.tasks, fit_scales(corpus), strict=True):
        terms = fitted.terms[entry]
        editable.put_task(TaskCard(entry, scale, terms.intercept, tuple(terms.calendar)))
    editable.add_devices(known_devices(corpus))
    editable.add_defaults(default_queries_of(corpus))
    sample = _few_texts(corpus)
    say(f"encoding {len(sample.texts):,} texts, to tell what is unlike them")
    editable.fit_regions(texts_by_prefix(sample, encode(student, sample).bank.vectors.numpy()))


def _fit_ridge(corpus: Corpus, ids: list[Ids], editable: EditableModel, say: Say) -> NgramRidgeFit:
    say("fitting the n-gram ridge")
    fitted = fit_ngram_ridge(corpus, ids, bits=_CONFIG.ngram_bits, penalty=_CONFIG.ngram_penalty)
    editable.parts |= fitted.parts
    return fitted


def _of_tasks(corpus: Corpus, chosen: npt.NDArray[np.bool_]) -> Corpus:
    """The rows of some tasks, and those tasks alone."""
    numbers = np.flatnonzero(chosen)
    rows = corpus.rows.chosen(np.flatnonzero(chosen[corpus.rows.task]))
    rows = replace(rows, task=np.searchsorted(numbers, rows.task))
    return compact(replace(corpus, rows=rows, tasks=[corpus.tasks[number] for number in numbers]))


def _few_texts(corpus: Corpus) -> Corpus:
    """At most ``_NOVELTY_TEXTS`` texts of each task and split: distances need no more."""
    rng = np.random.default_rng(0)
    kept = []
    for number in range(len(corpus.tasks)):
        mine = np.flatnonzero(corpus.rows.task == number)
        for split in ("train", "cal"):
            _, first = np.unique(corpus.rows.text[mine[corpus.rows.split[mine] == split]], return_index=True)
            chosen = mine[corpus.rows.split[mine] == split][first]
            few = len(chosen) > _NOVELTY_TEXTS
            kept.append(rng.choice(chosen, _NOVELTY_TEXTS, replace=False) if few else chosen)
    return compact(replace(corpus, rows=corpus.rows.chosen(np.sort(np.concatenate(kept)))))


def _check(corpus: Corpus, student: LoadedStudent) -> None:
    """Refuse rows that need a whole training.

    Raises:
        DataError: says which.
    """
    for split in ("train", "val", "cal"):
        if split not in corpus.rows.split:
            raise DataError(f"no rows of split {split}; build a data set with --split auto")
    for name in corpus.tasks:
        basis = name.split("/")[0]
        if basis not in BASES:
            raise DataError(f"rows of {name}: only {' and '.join(BASES)} can be refitted; use rlm-lsp train")
        if name not in student.tasks and not answers_alone(name):
            raise DataError(f"rows of {name}, which {student.card.model_id} does not know; use rlm-lsp train")
    bases = {name.split("/")[0] for name in corpus.tasks if not answers_alone(name)}
    for name in student.tasks:
        if name.split("/")[0] in bases and not answers_alone(name) and name not in corpus.tasks:
            raise DataError(f"no rows of {name}: all tasks of a basis are fitted together; add a data set that has it")


def _numbered(corpus: Corpus, student: LoadedStudent) -> Corpus:
    """The corpus with the model's numbers of the tasks."""
    numbers = np.array([student.tasks.index(name) for name in corpus.tasks])
    rows = replace(corpus.rows, task=numbers[corpus.rows.task])
    return replace(corpus, rows=rows, tasks=student.tasks)


def _features(student: LoadedStudent, corpus: Corpus, encoded: Encoded, fitted: NgramRidgeFit) -> Features:
    """The head's inputs with the new ridge's predictions, which did not see the project group of a training row."""
    rows = corpus.rows
    wide, target = np.zeros(len(rows)), np.zeros(len(rows))
    for number in np.unique(rows.task):
        selected, scale = rows.task == number, student.card.tasks[number].scale
        wide[selected] = scale.position(10 ** np.clip(fitted.predictions[selected], -300, 300))
        target[selected] = scale.position(rows.value[selected])
    lengths = np.array([len(ids) for ids in encoded.ids])
    return Features.build(head_inputs(corpus, encoded.counts, lengths, wide, target), encoded.bank)


def _evidence(head: Head, features: Features) -> torch.Tensor:
    """The deep part's logits beyond the query's, ``(rows, outcomes)``."""
    with torch.no_grad():
        parts = [
            features.deep(head.deep, rows) - features.base(head.prior, rows)
            for rows in torch.arange(len(features.inputs.text)).split(_BATCH)
        ]
        return needed(head, features.inputs.task, torch.cat(parts))


def _fit_head(head: Head, features: Features, evidence: torch.Tensor, train: Indices, val: Indices) -> Head:
    """The head with each task's part fitted to ``train`` rows, stopped early on ``val``."""
    fitted = copy.deepcopy(head)
    for number in torch.unique(features.inputs.task[torch.from_numpy(train)]).tolist():
        batches = []
        for rows in (train, val):
            chosen = torch.from_numpy(rows)
            selected = chosen[features.inputs.task[chosen] == number]
            batches.append(TaskBatch(features.inputs.rows(selected), evidence[selected]))
        if len(batches[1].evidence):
            part: TaskHead = fit(head, number, batches[0], held_out=batches[1])[0]
            part.write_to(fitted)
    return fitted.eval()


def _trained(student: LoadedStudent, head: Head, data: Sequence[Path], corpus: Corpus) -> dict[str, Any]:
    """The ``trained`` entry of the new card: the previous one with this refit."""
    trained = dict(student.card.trained)
    train = corpus.rows.split == "train"
    refit_entry = {
        "from": student.card.model_id,
        "date": date.today().isoformat(),
        "data": [path.name for path in data],
        "rows": int(train.sum()),
        "texts": len(np.unique(corpus.rows.text[train])),
        "families": len(np.unique(corpus.rows.family[train])),
        "slices": list(corpus.tasks),
    }
    trained["refitted"] = [*trained.get("refitted", []), refit_entry]
    return trained


def fit_known_work(data: Sequence[Path], model: Path, out: Path, name: str, say: Say) -> str:
    """Fit the work mixture of ``model``; the id of the new model.

    Args:
        data: Parquet files with generated functions, those written by hand, and real ones: as call graphs (``data build
            calls``), predicted by a ridge that has not seen their package, or else as rows of the splits ``val`` and
            ``cal``. The model predicts those of packages that it knows better than others: facts then count too little.
        model: a directory of ``rlm-lsp export`` or ``rlm-lsp tune``.
        out: the directory to write; it must not exist or be empty.
        name: of the new model.
        say: called with a line for each stage.

    Raises:
        DataError: the data sets have no work facts, or only functions written by hand and the model no mixture, or
            ``out`` is in use or cannot be written.
        ModelError: the model cannot be loaded.
    """
    check_free(out)
    with load_student(model) as student:
        say("predicting functions that the model was not trained on")
        graphs = [path for path in data if is_graph(path)]
        sets = [path for path in data if path not in graphs]
        rows = work_rows(OnnxPredictor(student.directory, join_facts=False), sets) if sets else {}
        if graphs:
            for metric, part in unseen_rows(read_graph(graphs), student.directory).items():
                rows[metric] = rows[metric].joined(part) if metric in rows else part
        if set(rows) != {"latency", "memory"}:
            raise DataError(f"{', '.join(map(str, data))}: no rows of functions with work facts; build the data again")
        written = {metric: part.chosen(part.written) for metric, part in rows.items()}
        others = {metric: part.chosen(~part.written) for metric, part in rows.items() if not part.written.all()}
        editable = EditableModel(student)
        if others:
            say("fitting the work mixture")
            editable.mixture = fit_mixture(others, say)
            editable.levels |= calibrate_mixture(others).to_json()
            editable.changes |= fit_ratios(others, editable.mixture, list(read_edits(sets, ("train",))))
        if editable.mixture is None:
            raise DataError(f"{', '.join(map(str, data))}: only functions written by hand; add real functions")
        if all(len(part.values) for part in written.values()):
            say("calibrating texts that fix their cost on functions written by hand")
            for task, level in calibrate_written(written, editable.mixture).to_json().items():
                editable.levels[task] = _wider(editable.levels.get(task, level), level)
            editable.keeps_calls = not others  # they do not read texts that fix their cost
        trained = dict(student.card.trained)
        trained["work" if others else "written"] = {
            "from": student.card.model_id,
            "date": date.today().isoformat(),
            "data": [path.name for path in data],
            "rows": {metric: len(part.values) for metric, part in rows.items()},
            "groups": {metric: len(np.unique(part.groups)) for metric, part in rows.items()},
        }
        with output_directory(out) as made:
            editable.write(made.directory, name, trained)
            return made.commit()


def unseen_rows(graph: PackageGraph, model: Path) -> dict[str, WorkRows]:
    """Functions of packages as the model predicts them without facts and without having seen their package."""
    first = first_pass(replace(graph, facts=[None] * len(graph)), model)
    has_facts = np.array([facts is not None for facts in graph.facts])
    learnt = np.isin(graph.split, ("train", "val", "cal")) & has_facts
    rows = {}
    for metric, answers in first.items():
        places = np.flatnonzero(learnt & np.isfinite(graph.values[metric]))
        rows[metric] = WorkRows.of(
            metric,
            [f"{graph.package[place]}/{place}" for place in places],
            [facts for place in places if (facts := graph.facts[place]) is not None],
            [tuple(10.0**line) for line in answers.logs[places]],
            graph.values[metric][places],
            graph.package[places],
            np.zeros(len(places), bool),
        )
    return rows


def _wider(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The wider of two calibrations at each coverage."""
    counts = {name: first[name] + second[name] for name in ("groups", "rows")}
    levels = [max(pair) for pair in zip(first["levels"], second["levels"], strict=True)]
    return {**first, **counts, "levels": levels}
