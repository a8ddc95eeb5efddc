"""The tuned model while it is made: the parts of the model it comes from, changed one by one, then written."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rlm_core.inference import ngram_ridge, trees
from rlm_core.inference.calibration import Calibration
from rlm_core.inference.card import TaskCard
from rlm_core.inference.cost_ratio import RatioModel
from rlm_core.inference.novelty import DISTANCE, NoveltyDetector
from rlm_core.inference.residuals import Residuals, forest_of_data_sheet
from rlm_core.inference.student import ENCODER, HEAD, NGRAM_RIDGE, TOKENIZER, TREES
from rlm_core.queries.query_vector import query_vector
from rlm_core.training.student.export import export_head

from .rows import Own
from .student import Opened, features_of


class Draft:
    """A model being tuned. Its fields are those of the card and of the files beside it."""

    def __init__(self, student: Opened) -> None:
        card = student.card
        self._student = student
        self.head = copy.deepcopy(student.head)
        self.parts = dict(student.parts)
        self.forests = dict(student.forests)
        self.slices: list[TaskCard] = list(card.slices)
        self.levels: dict[str, Any] = card.calibration.to_json()
        self.residuals: dict[str, Residuals] = dict(card.residuals)
        self.changes: dict[str, RatioModel] = dict(card.changes)
        self.familiarity = NoveltyDetector.load(student.directory / DISTANCE)
        self.devices: dict[str, list[str]] = {basis: list(known) for basis, known in card.devices.items()}
        self.defaults: dict[str, dict[str, Any]] = {basis: dict(query) for basis, query in card.defaults.items()}

    def add_devices(self, new: Mapping[str, list[str]]) -> None:
        """Answer for more devices."""
        for basis, names in new.items():
            self.devices[basis] = list(dict.fromkeys([*self.devices.get(basis, []), *names]))

    def own(self, own: Own) -> None:
        """Let the answers about calls stand for the team's machine, and move the embeddings so that none changes."""
        before = self.defaults["call"]
        old = query_vector(before.get("device"), before.get("workload", {}))
        moved = torch.from_numpy(old - query_vector(own.device, own.workload))
        numbers = [number for number, entry in enumerate(self.slices) if entry.name.startswith("call/")]
        with torch.no_grad():
            for part in (self.head.deep, self.head.base, self.head.prior):
                part.asked.slice.weight[numbers] += part.asked.query.weight @ moved
        self.defaults["call"] = {"device": own.device, "workload": dict(own.workload)}
        self.devices["call"] = [own.device]
        for name in [name for name in self.levels if name.startswith("call/") and name.count("/") == 3]:
            # A level of the old device's; that of its slice holds for the new one too.
            task_name = name.rpartition("/")[0]
            self.levels.setdefault(task_name, self.levels[name])
            del self.levels[name]

    def write(self, partial: Path, name: str, trained: Mapping[str, Any]) -> None:
        """Write the model into an empty directory."""
        card = self._student.card
        for file in (ENCODER, TOKENIZER):
            shutil.copyfile(self._student.directory / file, partial / file)
        export_head(self.head.eval(), self._student.sizes, partial / HEAD)
        ngram_ridge.save(self.parts, partial / NGRAM_RIDGE)
        trees.save(self.forests, features_of(card), partial / TREES)
        self.familiarity.save(partial / DISTANCE)
        tuned = replace(
            card,
            name=name,
            slices=self.slices,
            calibration=Calibration.from_json(self.levels),
            residuals=self._kept_residuals(),
            changes=self.changes,
            devices=self.devices,
            defaults=self.defaults,
            trained=dict(trained),
            files={},
        )
        tuned.write(partial, [ENCODER, HEAD, TOKENIZER, NGRAM_RIDGE, TREES, DISTANCE])

    def _kept_residuals(self) -> dict[str, Residuals]:
        """All but those of devices that were left out of a forest which is another now."""
        before = self._student.forests

        def is_kept(key: str) -> bool:
            forest = forest_of_data_sheet(key)
            return forest is None or self.forests.get(forest) is before.get(forest)

        return {key: found for key, found in self.residuals.items() if is_kept(key)}
