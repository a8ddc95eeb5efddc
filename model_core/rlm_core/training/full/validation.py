"""Predicts the rows of a split: for validation during a run, and for calibration at its end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from rlm_core.training.distributed import Processes
from rlm_core.training.evaluation.resampling import spearman
from rlm_core.training.trainer import Validation

from .decoding import distribution, log_prob, quantiles
from .encoders.base import encode
from .model import FullModel, TextMemory
from .sequences import Slot
from .training_data import Examples, Ids

Array = npt.NDArray[np.float64]
_CHUNK = 64  # texts whose vectors are held at once
_FEWEST = 3  # rows of a task that can be ranked
_MEDIAN = 0.5


def validate(
    model: FullModel, data: Examples, rows: Ids, autocast: torch.autocast, budget: int, processes: Processes
) -> Validation:
    """Score a model, which is in evaluation mode, on rows, each without the other numbers of its text."""
    answers = processes.spread(rows, data.text[rows], lambda own: _answers(model, data, own, autocast, budget))
    medians, losses = answers.T
    slices = data.corpus.rows.task[rows]
    each = [
        spearman(medians[mine], data.value[rows[mine]]) or 0.0
        for mine in (np.flatnonzero(slices == number) for number in np.unique(slices))
        if len(mine) >= _FEWEST
    ]
    return Validation(float(losses.mean()), float(np.mean(each)) if each else 0.0)


def _answers(model: FullModel, data: Examples, rows: Ids, autocast: torch.autocast, budget: int) -> Array:
    """Medians and losses of rows, ``(rows, 2)``."""
    answers = np.empty((len(rows), 2))
    for places, memories in _encoded(model, data, rows, autocast, budget):
        queries = [[data.queries[data.query[rows[place]]] for place in own] for own in places]
        found = quantiles(model, memories, [[[Slot(query)] for query in own] for own in queries], (_MEDIAN,))
        values = [[float(data.value[rows[place]]) for place in own] for own in places]
        slots = [[[Slot(query, x)] for query, x in zip(*own, strict=True)] for own in zip(queries, values, strict=True)]
        scored = log_prob(model, memories, slots)
        for own, medians, scores in zip(places, found, scored, strict=True):
            answers[own, 0] = [one.smooth[0] for one in medians]
            answers[own, 1] = [-score[0] for score in scores]
    return answers


def medians(model: FullModel, data: Examples, rows: Ids, autocast: torch.autocast, budget: int) -> Array:
    """The medians of rows in SI units, ``(rows,)``; 0 for all at or below the floor."""
    found = np.empty(len(rows))
    for places, memories in _encoded(model, data, rows, autocast, budget):
        queries = [[[Slot(data.queries[data.query[rows[place]]])] for place in own] for own in places]
        for own, answers in zip(places, quantiles(model, memories, queries, (_MEDIAN,)), strict=True):
            found[own] = [answer.smooth[0] for answer in answers]
    return found


def scores(model: FullModel, data: Examples, rows: Ids, autocast: torch.autocast, budget: int) -> Array:
    """Nonconformity of rows: the smallest level whose central interval covers the value (``calibration``).

    A value at or below the floor is covered as soon as the interval's lower end reaches the floor.
    """
    found = np.empty(len(rows))
    # `disable=None`: no bar where stderr is not a terminal.
    with tqdm(desc="calibrating", total=len(rows), unit="row", disable=None) as bar:
        for places, memories in _encoded(model, data, rows, autocast, budget):
            queries = [[data.queries[data.query[rows[place]]] for place in own] for own in places]
            values = [data.value[rows[own]].tolist() for own in places]
            for own, answer in zip(places, distribution(model, memories, queries, values), strict=True):
                at_floor = np.maximum(0.0, 1 - 2 * answer.through)
                found[own] = np.where(data.value[rows[own]] <= 0, at_floor, np.abs(2 * answer.at - 1))
                bar.update(len(own))
    return found


def _encoded(
    model: FullModel, data: Examples, rows: Ids, autocast: torch.autocast, budget: int
) -> Iterator[tuple[list[Ids], list[TextMemory]]]:
    """The rows' places by text and the encoded texts, some texts of similar length at a time."""
    if len(rows) == 0:
        return  # a process may have no share
    text = data.text[rows]
    order = np.lexsort((text, -data.lengths[text]))
    starts = np.flatnonzero(np.diff(text[order], prepend=-1))
    ordered = text[order][starts].tolist()
    places = dict(zip(ordered, np.split(order, starts[1:]), strict=True))
    for start in range(0, len(ordered), _CHUNK):
        chosen = ordered[start : start + _CHUNK]
        with torch.inference_mode(), autocast:
            vectors = encode(model.encoder, [data.texts[i] for i in chosen], budget)
        memories = [TextMemory(own.float(), data.cropped[i]) for i, own in zip(chosen, vectors, strict=True)]
        yield [places[i] for i in chosen], memories
