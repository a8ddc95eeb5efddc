"""Runs functions on the machine of a trial, for tests."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

from rlm_core.source.work.scope import Texts
from rlm_core.source.work.trial.machine import Machine
from rlm_core.source.work.trial.names import Names
from rlm_core.source.work.trial.observations import Observations
from rlm_core.source.work.trial.values import Budget


def run(text: str, name: str = "f", *, steps: int = 30_000, samples: bool = False) -> tuple[Any, Observations]:
    """What a function of a module returns, and what was counted.

    Raises:
        Refused: the machine does not go on.
    """
    seen = Observations()
    machine = Machine(Budget(steps), seen, samples=samples)
    names = Names(Texts(), None, "")
    machine.run(ast.parse(textwrap.dedent(text)).body, names)
    return names.values[name](), seen
