"""A team's rows -> what can be learnt from them: usable values of slices and devices that the model can answer for.

Rows of the ``test`` split are never read, so that ``rlm-lsp eval`` on them stays an honest figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_core.errors import DataError
from rlm_core.inference.features import feature_names, forest_key
from rlm_core.inference.trees import Forest
from rlm_core.queries.devices import OWN_PREFIX, canonical_device
from rlm_core.training.corpus import Corpus, floor_of, load_corpus

SPLITS = ("train", "val", "cal")
Rows = npt.NDArray[np.int64]
_Filled = Callable[[str, str], tuple[str | None, dict[str, str]]]


@dataclass(frozen=True, slots=True)
class Own:
    """A basis whose numbers stand for the team's own machine from now on: its device and default workload."""

    device: str
    workload: dict[str, str]


@dataclass(frozen=True, slots=True)
class TeamRows:
    """Rows to tune on, their queries as the model is asked, what was left out by reason, and the new devices.

    ``own`` is set where rows of basis ``call`` came: calls have one device, and the model's answers for it are no
    longer those of the machine of the labels.
    """

    corpus: Corpus
    left_out: dict[str, int]
    devices: dict[str, list[str]]
    own: Own | None


@dataclass(frozen=True, slots=True)
class Known:
    """What a model answers: slices, devices by basis, default queries, and forests, None for a model without any."""

    slices: Sequence[str]
    devices: Mapping[str, Sequence[str]]
    defaults: Mapping[str, Mapping[str, Any]]
    forests: Mapping[str, Forest] | None


def read_rows(paths: Sequence[Path], known: Known) -> TeamRows:
    """The usable rows of data sets.

    Raises:
        DataError: a file is no data set, or no row is of a slice that the model has, or none can be used.
    """
    corpus = load_corpus(paths, SPLITS, known.slices)
    own = _own(corpus, known)
    asked = [_asked(corpus, known, query) for query in range(len(corpus.queries))]
    left_out: Counter[str] = Counter()
    kept, query = [], np.zeros(len(corpus.rows), np.int64)
    queries: dict[tuple[str | None, tuple[tuple[str, str], ...]], int] = {}
    new: dict[str, list[str]] = {}
    for row, (number, before, value) in enumerate(
        zip(corpus.rows.task, corpus.rows.query, corpus.rows.value, strict=True)
    ):
        name = corpus.tasks[number]
        basis, _, metric = name.split("/")
        device, workload = asked[before](basis, metric)
        reason = _unusable(name, float(value), device, workload, known)
        if reason is not None:
            left_out[reason] += 1
            continue
        if device is not None and device not in known.devices.get(basis, ()):
            names = new.setdefault(basis, [])
            if device not in names:
                names.append(device)
        kept.append(row)
        query[row] = queries.setdefault((device, tuple(sorted(workload.items()))), len(queries))
    if not kept:
        reasons = "; ".join(f"{count:,} rows: {reason}" for reason, count in left_out.items())
        raise DataError(f"{', '.join(map(str, paths))}: no row can be used ({reasons})")
    chosen = replace(corpus.rows, query=query).chosen(np.array(kept, np.int64))
    told = [(device, dict(workload)) for device, workload in queries]
    return TeamRows(replace(corpus, rows=chosen, queries=told), dict(left_out), new, own)


def _own(corpus: Corpus, known: Known) -> Own | None:
    """What calls stand for once they are tuned: the machine and interpreter of most of the rows."""
    calls = np.array([name.startswith("call/") for name in corpus.tasks])[corpus.rows.task]
    if not calls.any():
        return None
    numbers, counts = np.unique(corpus.rows.query[calls], return_counts=True)
    device, workload = corpus.queries[int(numbers[counts.argmax()])]
    default: Any = known.defaults["call"]
    device = device or default["device"]
    # Answers for the machine of the labels are scaled to the user's processor; those of the user's own must not be.
    named = device if device.startswith(OWN_PREFIX) else OWN_PREFIX + device
    return Own(named, {**default["workload"], **workload})


def _asked(corpus: Corpus, known: Known, number: int) -> _Filled:
    """The query of a row as the predictor fills it in; for calls the one that the model knows."""
    device, workload = corpus.queries[number]

    def filled(basis: str, metric: str) -> tuple[str | None, dict[str, str]]:
        default: Any = known.defaults.get(f"{basis}/{metric}") or known.defaults.get(basis, {})
        if basis == "call":
            return default.get("device"), dict(default.get("workload", {}))
        found = device or default.get("device")
        return found and (canonical_device(found) or found), {**default.get("workload", {}), **workload}

    return filled


def _unusable(name: str, value: float, device: str | None, workload: dict[str, str], known: Known) -> str | None:
    """Why a row cannot be learnt from."""
    basis, _, metric = name.split("/")
    if metric == "accuracy":
        return f"values of {name}: accuracies are not tuned"
    if not np.isfinite(value) or value < 0 or (value == 0 and floor_of(name) == 0):
        return f"values of {name} that are not positive numbers"
    forests = known.forests
    if forests is not None and feature_names(basis) and forest_key(name, workload, device) not in forests:
        return f"{name} with a device or workload that the model does not know; rlm-lsp adapt teaches it devices"
    unknown = device not in known.devices.get(basis, ())
    if unknown and basis != "call" and canonical_device(device or "") is None:
        return f"{name} on {device}, of which nothing is known; rlm-lsp adapt teaches it from a few measurements"
    return None


def sampled(corpus: Corpus, most: int, seed: int = 0) -> Corpus:
    """At most ``most`` rows of each slice."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in np.unique(corpus.rows.task):
        mine = np.flatnonzero(corpus.rows.task == number)
        parts.append(np.sort(rng.choice(mine, most, replace=False)) if len(mine) > most else mine)
    return compact(replace(corpus, rows=corpus.rows.chosen(np.concatenate(parts))))


def compact(corpus: Corpus) -> Corpus:
    """The corpus without the texts that no row refers to."""
    rows = corpus.rows
    used = np.unique(np.concatenate([rows.text, rows.callees.ravel()]))
    used = used[used >= 0]
    place = np.full(len(corpus.texts), -1)
    place[used] = np.arange(len(used))
    callees = np.where(rows.callees >= 0, place[rows.callees.clip(0)], -1).astype(np.int32)
    return replace(
        corpus, texts=[corpus.texts[i] for i in used], rows=replace(rows, text=place[rows.text], callees=callees)
    )


def callees_alone(corpus: Corpus) -> Corpus:
    """The callees that have no row of their own, asked as units: the team's unlabelled texts; values are NaN."""
    rows = corpus.rows
    labelled = {(int(number), int(text)) for number, text in zip(rows.task, rows.text, strict=True)}
    owners: list[int] = []
    texts: list[int] = []
    for row in range(len(rows)):
        for text in rows.callees[row].ravel():
            key = (int(rows.task[row]), int(text))
            if text >= 0 and key not in labelled:
                labelled.add(key)
                owners.append(row)
                texts.append(int(text))
    found = rows.chosen(np.array(owners, np.int64))
    return replace(
        corpus,
        rows=replace(
            found,
            text=np.array(texts, np.int64),
            callees=np.full_like(found.callees, -1),
            value=np.full(len(texts), np.nan),
        ),
    )
