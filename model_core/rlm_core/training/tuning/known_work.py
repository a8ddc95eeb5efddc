"""``rlm-lsp tune --work``: the last stage of a training, which joins a finished model with work facts.

The mixture, its bands and the ratios of functions are fitted to rows that the model was not trained on; everything else
of the model stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np

from rlm_core.errors import DataError
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training.datasets.schema import read_edits
from rlm_core.training.student.work_fit import calibrate_mixture, fit_mixture, fit_ratios, work_rows

from .job import Say, check_free, output_directory
from .student import EditableModel, load_student


def fit_known_work(data: Sequence[Path], model: Path, out: Path, name: str, say: Say) -> str:
    """Fit the work mixture of ``model``; the id of the new model.

    Args:
        data: Parquet files with real functions (splits ``val`` and ``cal`` are used) and generated functions.
        model: a directory of ``rlm-lsp export`` or ``rlm-lsp tune``.
        out: the directory to write; it must not exist or be empty.
        name: of the new model.
        say: called with a line for each stage.

    Raises:
        DataError: the data sets have no work facts, or ``out`` is in use or cannot be written.
        ModelError: the model cannot be loaded.
    """
    check_free(out)
    with load_student(model) as student:
        say("predicting rows that the model was not trained on")
        rows = work_rows(OnnxPredictor(student.directory, join_facts=False), data)
        if set(rows) != {"latency", "memory"}:
            raise DataError(f"{', '.join(map(str, data))}: no rows of functions with work facts; build the data again")
        say("fitting the work mixture")
        mixture = fit_mixture(rows, say)
        editable = EditableModel(student)
        editable.mixture = mixture
        editable.levels |= calibrate_mixture(rows).to_json()
        editable.changes |= fit_ratios(rows, mixture, list(read_edits(data, ("train",))))
        trained = dict(student.card.trained)
        trained["work"] = {
            "from": student.card.model_id,
            "date": date.today().isoformat(),
            "data": [path.name for path in data],
            "rows": {metric: len(part.values) for metric, part in rows.items()},
            "groups": {metric: len(np.unique(part.groups)) for metric, part in rows.items()},
        }
        with output_directory(out) as made:
            editable.write(made.directory, name, trained)
            return made.commit()
