"""The command behind "Compare GPUs": the latency of a kernel or a module on all GPUs that the model answers for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pygls.exceptions import JsonRpcInvalidParams
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.queries.devices import canonical_device, device_table
from rlm_core.types import CodeText, Prediction, Unit

from rlm_lsp.lsp.session import Session
from rlm_lsp.rendering.json_rows import prediction_fields
from rlm_lsp.rendering.launch_words import comparison

from .requests import analysis_of, position_of, unit_at

COMPARE_GPUS = "rlm-lsp.compareGpus"
_KINDS = frozenset({"kernel", "module"})


def is_compared(unit: Unit) -> bool:
    """Return whether the latency of a unit differs between GPUs."""
    return unit.kind in _KINDS


async def compare_gpus(session: Session, arguments: Sequence[Any]) -> dict[str, Any]:
    """The latency of the kernel or module at a position on the GPUs that the model knows and those of the settings.

    ``rows`` have the fields of ``rlm-lsp predict --format json``, the fastest first, and ``markdown`` shows them as a
    table.
    """
    analysis = await analysis_of(session, arguments)
    located = unit_at(analysis, position_of(arguments))
    unit, code = located.analysed.unit, replace(located.analysed.code, measured=())
    if not is_compared(unit):
        raise JsonRpcInvalidParams(f"{unit.qualname} is not a kernel or a module")
    selection = session.settings_for(analysis.document.uri).selection
    answers = await session.predictions.run(lambda predictor: _answers(session, predictor, code, selection))
    numbers = [answer for answer in answers or () if answer.median is not None]
    if not numbers:
        raise JsonRpcInvalidParams(f"there is no prediction for {unit.qualname}; specify its sizes")
    numbers.sort(key=lambda answer: answer.median or 0.0)
    return {
        "qualname": unit.qualname,
        "rows": [prediction_fields(answer) for answer in numbers],
        "markdown": comparison(unit.qualname, numbers),
    }


def _answers(session: Session, predictor: Predictor, code: CodeText, selection: QuerySelection) -> Sequence[Prediction]:
    chosen = [name for name in selection.devices if name is not None]
    known = dict.fromkeys(canonical_device(name) or name for name in (*chosen, *predictor.devices(code.basis)))
    table = device_table()
    gpus = [name for name in known if name not in table or table[name].kind == "gpu"]
    queries = queries_for(predictor, code, replace(selection, metrics=("latency",), devices=gpus))
    return session.predictions.answer(predictor, [(code, queries)])[0]
