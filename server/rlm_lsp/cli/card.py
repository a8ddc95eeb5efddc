"""``rlm-lsp card``: the model card, generated; needs the ``[train]`` extra."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from rlm_core import RlmError

from .extras import training_extra


def card(model: str, data: list[Path], out: Path, goals: Path | None, ablations: Path | None, most: int) -> None:
    """Evaluate a model on data sets and write its card, with plots in ``docs/model-card`` beside it.

    Raises:
        RlmError: bad input, or a package of the ``[train]`` extra is missing.
    """
    if find_spec("matplotlib") is None:
        raise RlmError("matplotlib is not installed; run: pip install '.[train]'")
    with training_extra():
        from rlm_core.training.evaluation.card_report import write_card

        write_card(model, data, out, goals=goals, ablations=ablations, most=most)
    print(out)
