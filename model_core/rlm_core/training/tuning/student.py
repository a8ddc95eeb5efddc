"""An exported student: loaded for tuning, changed part by part, and written as a new model."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch

from rlm_core.errors import ModelError
from rlm_core.folders import ScratchFolder
from rlm_core.inference import ngram_ridge, trees
from rlm_core.inference.calibration import Calibration
from rlm_core.inference.card import StudentCard, TaskCard, read_card
from rlm_core.inference.cost_ratio import RatioModel
from rlm_core.inference.encoder import open_session
from rlm_core.inference.features import all_feature_names
from rlm_core.inference.ngram_ridge import NgramRidge
from rlm_core.inference.novelty import DISTANCE, NoveltyDetector, fit_novelty_detector
from rlm_core.inference.propagation import CALLS
from rlm_core.inference.residuals import Residuals, forest_of
from rlm_core.inference.student import HEAD, NGRAM_RIDGE, TOKENIZER, TREES, WORK
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.inference.trees import Forest
from rlm_core.inference.work_mixture import WorkMixture
from rlm_core.queries.query_vector import query_vector
from rlm_core.source.canonical import CanonicalForm
from rlm_core.training.student.export import WEIGHTS, export, export_head
from rlm_core.training.student.head_fit import deep_weight_of
from rlm_core.training.student.network import Head, StudentConfig


@dataclass(frozen=True, slots=True)
class TeamMachine:
    """The device and default workload that predictions for calls describe after tuning: the team's machine."""

    device: str
    workload: dict[str, str]


@dataclass(frozen=True, slots=True)
class ModelScope:
    """The scope of a model: tasks, devices by basis, default queries, and forests (None for a model without any).

    ``forms`` are the canonical forms that it reads by ``basis/language``.
    """

    tasks: Sequence[str]
    devices: Mapping[str, Sequence[str]]
    defaults: Mapping[str, Mapping[str, Any]]
    forests: Mapping[str, Forest] | None
    forms: Mapping[str, CanonicalForm] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadedStudent:
    """A model in memory; ``directory`` is the exported one that it was read from."""

    directory: Path
    card: StudentCard
    sizes: StudentConfig
    head: Head
    parts: dict[str, NgramRidge]
    forests: dict[str, Forest]
    tokenizer: Tokenizer

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks, in the order of their numbers."""
        return [entry.name for entry in self.card.tasks]

    @property
    def scope(self) -> ModelScope:
        """The scope of the model."""
        return ModelScope(self.tasks, self.card.devices, self.card.defaults, self.forests, self.card.forms)


@contextmanager
def load_student(model: Path) -> Iterator[LoadedStudent]:
    """The student in ``model``, a directory of ``rlm-lsp export`` or of ``rlm-lsp train`` (which is exported first).

    Raises:
        ModelError: the directory is missing, incomplete or corrupt.
    """
    with ScratchFolder() as scratch:
        directory = model
        if (model / WEIGHTS).is_file() and not (model / HEAD).is_file():
            directory = scratch
            export(model, directory)
        card = read_card(directory)
        try:
            sizes = StudentConfig(**card.sizes)
        except TypeError as error:
            raise ModelError(f"{directory}: the sizes in its card are not those of a student ({error})") from None
        yield LoadedStudent(
            directory,
            card,
            sizes,
            read_head(directory / HEAD, sizes),
            dict(ngram_ridge.load(directory / NGRAM_RIDGE)),
            trees.load(directory / TREES, all_feature_names()),
            Tokenizer.load(directory / TOKENIZER),
        )


def read_head(path: Path, sizes: StudentConfig) -> Head:
    """The head of an exported ``head.onnx`` as a PyTorch module in evaluation mode.

    The exporter keeps the names of all parameters but two vectors with one number per task: it folds them into unnamed
    constants, and the graph gathers first ``base.precision``, then ``weight``. ``prior.precision`` is 0 and drops out.

    Raises:
        ModelError: the file is not a head of these sizes.
    """
    open_session(path)  # says what is wrong with a file that cannot be read
    graph = onnx.load(str(path)).graph
    weights = {tensor.name: torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy()) for tensor in graph.initializer}
    by_task = [node.input[0] for node in graph.node if node.op_type == "GatherND" and node.input[0] in weights]
    weights |= {name: weights[folded] for name, folded in zip(("base.precision", "weight"), by_task, strict=False)}
    head = Head(sizes)
    weights["prior.precision"] = torch.zeros(sizes.slices)
    for name, tensor in head.state_dict().items():
        # Equal parameters of two parts are stored once. Only zeros, which were not trained, are equal.
        twins = [f"{part}.{name.partition('.')[2]}" for part in ("deep", "base", "prior")]
        if name not in weights and any(twin in weights and not weights[twin].any() for twin in twins):
            weights[name] = torch.zeros_like(tensor)
        if name not in weights or weights[name].shape != tensor.shape:
            raise ModelError(f"{path}: has no weights {name} of shape {tuple(tensor.shape)}; export the model again")
    head.load_state_dict({name: weights[name].float() for name in head.state_dict()})
    return head.eval()


class EditableModel:
    """A model while it is tuned: the fields of its card and of the files next to it, changed one by one.

    ``keeps_calls`` is set when predictions for functions stay as they are, so that what was fitted to them still holds.
    """

    keeps_calls = False

    def __init__(self, student: LoadedStudent) -> None:
        card = student.card
        self._student = student
        self.head = copy.deepcopy(student.head)
        self.parts = dict(student.parts)
        self.forests = dict(student.forests)
        self.tasks: list[TaskCard] = list(card.tasks)
        self.levels: dict[str, Any] = card.calibration.to_json()
        self.residuals: dict[str, Residuals] = dict(card.residuals)
        self.changes: dict[str, RatioModel] = dict(card.changes)
        self.forms: dict[str, CanonicalForm] = dict(card.forms)
        self.familiarity = NoveltyDetector.load(student.directory / DISTANCE)
        self.devices: dict[str, list[str]] = {basis: list(known) for basis, known in card.devices.items()}
        self.mixture = WorkMixture.load(student.directory / WORK) if WORK in card.files else None
        self.defaults: dict[str, dict[str, Any]] = {basis: dict(query) for basis, query in card.defaults.items()}

    def put_task(self, task: TaskCard) -> None:
        """Replace a task of that name, or add it last; a new one has no part in the head."""
        names = [entry.name for entry in self.tasks]
        if task.name in names:
            self.tasks[names.index(task.name)] = task
        else:
            self.tasks.append(task)

    def drop_levels(self, prefixes: Sequence[str]) -> None:
        """Forget the calibration of the head's answers for ``basis/language`` prefixes and for their bases."""
        bases = {prefix.split("/")[0] for prefix in prefixes}
        self.levels = {name: level for name, level in self.levels.items() if name.split("/")[0] not in bases}

    def fit_regions(self, texts: Mapping[str, Mapping[str, npt.NDArray[np.float32]]]) -> None:
        """Fit the regions of some languages and judges to the encodings of texts, by split and prefix.

        The regions of a basis share a matrix: where others of that basis stay, it stays too.
        """
        kept = {prefix: region for prefix, region in self.familiarity.regions.items() if prefix not in texts["train"]}
        fresh = fit_novelty_detector(texts["train"], texts["cal"], NoveltyDetector(kept))
        self.familiarity = NoveltyDetector({**kept, **fresh.regions})

    def add_defaults(self, fresh: Mapping[str, Mapping[str, Any]]) -> None:
        """Add what queries about a program's judge leave open; those of other devices stay as they are."""
        for name, query in fresh.items():
            basis = re.split("[/@]", name)[0]
            device = query.get("device")
            if device is not None and device != self.defaults.get(basis, {}).get("device"):
                self.defaults[name if "@" in name else f"{name}@{device}"] = dict(query)

    def add_devices(self, new: Mapping[str, list[str]]) -> None:
        """Predict for more devices."""
        for basis, names in new.items():
            self.devices[basis] = list(dict.fromkeys([*self.devices.get(basis, []), *names]))

    def adopt_machine(self, machine: TeamMachine) -> None:
        """Make predictions for calls those of the team's machine; embeddings move so that no prediction changes."""
        before = self.defaults["call"]
        old = query_vector(before.get("device"), before.get("workload", {}))
        moved = torch.from_numpy(old - query_vector(machine.device, machine.workload))
        numbers = [number for number, entry in enumerate(self.tasks) if entry.name.startswith("call/")]
        with torch.no_grad():
            for part in (self.head.deep, self.head.base, self.head.prior):
                part.asked.slice.weight[numbers] += part.asked.query.weight @ moved
        self.defaults["call"] = {"device": machine.device, "workload": dict(machine.workload)}
        self.devices["call"] = [machine.device]
        for name in [name for name in self.levels if name.startswith("call/") and name.count("/") == 3]:
            # A level of the previous device; the level of its task is also valid for the new device.
            task_name = name.rpartition("/")[0]
            self.levels.setdefault(task_name, self.levels[name])
            del self.levels[name]

    def write(self, partial: Path, name: str, trained: Mapping[str, Any]) -> None:
        """Write the model into an empty directory."""
        card = self._student.card
        made = [HEAD, NGRAM_RIDGE, TREES, DISTANCE, *([WORK] if self.mixture is not None else [])]
        copied = [file for file in card.files if file not in (*made, *(() if self.keeps_calls else (CALLS,)))]
        for file in copied:
            shutil.copyfile(self._student.directory / file, partial / file)
        export_head(self.head.eval(), self._student.sizes, partial / HEAD)
        ngram_ridge.save(self.parts, partial / NGRAM_RIDGE)
        trees.save(self.forests, all_feature_names(), partial / TREES)
        weights = self.head.weight.tolist()
        tasks = [
            replace(entry, deep_weight=deep_weight_of(entry.name, weights[number])) if number < len(weights) else entry
            for number, entry in enumerate(self.tasks)
        ]
        read = {entry.name.rpartition("/")[0] for entry in tasks if entry.deep_weight > 0}
        # What the encoder does not read has no place in its space.
        regions = {name: region for name, region in self.familiarity.regions.items() if name.partition("@")[0] in read}
        NoveltyDetector(regions).save(partial / DISTANCE)
        tuned = replace(
            card,
            name=name,
            tasks=tasks,
            calibration=Calibration.from_json(self.levels),
            residuals=self._kept_residuals(),
            changes=self.changes,
            devices=self.devices,
            defaults=self.defaults,
            trained=dict(trained),
            files={},
            forms=self.forms,
        )
        if self.mixture is not None:
            self.mixture.save(partial / WORK)
        tuned.write(partial, [*copied, *made])

    def _kept_residuals(self) -> dict[str, Residuals]:
        """All residuals except those of some devices or texts of a forest that has changed since."""
        before = self._student.forests

        def is_kept(key: str) -> bool:
            forest = forest_of(key)
            return forest == key or self.forests.get(forest) is before.get(forest)

        return {key: residuals for key, residuals in self.residuals.items() if is_kept(key)}
