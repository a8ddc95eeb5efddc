"""What the training loop learns from: texts, the head's inputs for all rows, a teacher's targets if there is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from rlm_core.inference.tokenizer import Ids

from .batches import HeadInputs


@dataclass(frozen=True, slots=True)
class Teacher:
    """A teacher's distributions of rows, ``targets (rows, outcomes)``, and their share of each row's target."""

    targets: Tensor
    weight: Tensor

    def rows(self, chosen: Tensor) -> Teacher:
        """The same for some rows."""
        return Teacher(self.targets[chosen], self.weight[chosen])


@dataclass(slots=True)
class Task:
    """What the loop trains on: cropped ids of all texts, the head's inputs, and each row's split, group and basis."""

    ids: list[Ids]
    inputs: HeadInputs
    split: npt.NDArray[np.str_]
    group: npt.NDArray[np.str_]
    basis: npt.NDArray[np.str_]
    teacher: Teacher | None = None

    def texts_of(self, split: str) -> npt.NDArray[np.int64]:
        """The texts that rows of a split are about."""
        return np.unique(self.inputs.text.numpy()[self.split == split])
