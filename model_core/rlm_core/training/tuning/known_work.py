"""``rlm-lsp tune --work``: the last stage of a training, which joins a finished model with work facts.

The mixture, its bands and the ratios of functions are fitted to functions of packages that the n-gram ridge has not
seen, and to generated ones; everything else of the model stays as it is. The bands of texts that fix their cost are
wide enough for functions written by hand, too; from data with nothing but those, only these bands change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from rlm_core.errors import DataError
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training.datasets.schema import read_edits
from rlm_core.training.package_graph import PackageGraph, is_graph, read_graph
from rlm_core.training.student.work_fit import (
    WorkRows,
    calibrate_mixture,
    calibrate_written,
    fit_mixture,
    fit_ratios,
    work_rows,
)

from .first_pass import first_pass
from .job import Say, check_free, output_directory
from .student import EditableModel, load_student


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
