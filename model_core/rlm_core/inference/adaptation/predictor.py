"""A predictor that also answers for adapted devices: the base is asked about the known ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from rlm_core.errors import ModelError, RlmError
from rlm_core.inference.anchoring import AnchoredPredictor
from rlm_core.inference.calibration import INTERVALS, bands
from rlm_core.inference.guarded import GuardedPredictor
from rlm_core.inference.predictor import Predictor, PredictorWrapper
from rlm_core.inference.sized_predictor import SizedPredictor
from rlm_core.queries.devices import canonical_device
from rlm_core.types import (
    MEDIAN,
    Abstention,
    AbstentionCode,
    Basis,
    CalibrationSource,
    CodeText,
    NetworkParts,
    Prediction,
    Query,
)

from . import cpu_score
from .fit import SMALLEST, Array
from .store import Adapter, folder, read_adapters, text_key
from .sum_fit import PARTS, part_columns

# Columns that describe a network in addition to the known devices' predictions: how many operators of each kind it has.
# New kinds of devices weigh operators differently (a launch costs a GPU more than a phone), and a few counts let ten
# measurements find that. Other bases have no columns: the known devices are enough.
_KINDS = {
    "Add": "merge",
    "Concat": "merge",
    "AveragePool": "pool",
    "MaxPool": "pool",
    "Gemm": "product",
    "MatMul": "product",
    "Identity": "identity",
    "BatchNormalization": "normalisation",
    "LayerNormalization": "normalisation",
}
_OPERATORS = (
    "pointwise", "spatial", "wide", "grouped", "merge", "pool", "product", "identity", "normalisation", "other"
)  # fmt: skip


class AdaptedPredictor(PredictorWrapper):
    """Answers queries on adapted devices through the known devices' predictions; all others pass through.

    ``unusable`` maps devices whose adapter cannot be used to the reason, with which their queries are answered.
    """

    def __init__(self, base: Predictor, adapters: Sequence[Adapter], unusable: Mapping[str, str] | None = None) -> None:
        super().__init__(base)
        self._adapters = {(_device_id(entry.device), entry.basis, entry.metric): entry for entry in adapters}
        self._unusable = {_device_id(device): reason for device, reason in (unusable or {}).items()}

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        """The base's devices of a basis and the adapted ones."""
        known = self.base.devices(basis, language)
        adapted = [entry.device for entry in self._adapters.values() if entry.basis == basis]
        return tuple(dict.fromkeys([*known, *adapted]))

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        parts = [
            [part for query in line for part in self._parts(code, query)]
            for code, line in zip(texts, queries, strict=True)
        ]
        results = []
        for code, line, answers in zip(texts, queries, self.base.predict(texts, parts), strict=True):
            left = iter(answers)
            results.append(
                [self._answer(code, query, [next(left) for _ in self._parts(code, query)]) for query in line]
            )
        return results

    def _adapter(self, code: CodeText, query: Query) -> Adapter | None:
        return self._adapters.get((_device_id(query.device or ""), code.basis, query.metric))

    def _parts(self, code: CodeText, query: Query) -> list[Query]:
        adapter = self._adapter(code, query)
        return [query] if adapter is None else [replace(query, device=device) for device in adapter.known]

    def _answer(self, code: CodeText, query: Query, answers: list[Prediction]) -> Prediction:
        adapter = self._adapter(code, query)
        if adapter is not None:
            return _mapped(adapter, code, query, answers)
        [answer] = answers
        problem = self._unusable.get(_device_id(query.device or ""))
        if problem is None or answer.abstained is None:
            return answer
        return replace(answer, abstained=Abstention(AbstentionCode.ADAPTER_UNUSABLE, {"problem": problem}))


def _device_id(device: str) -> str:
    """The canonical id of a device, or its name as given."""
    return canonical_device(device) or device


def logs(answers: Sequence[Prediction]) -> Array:
    """log10 of the medians; a median at or below the floor counts as the floor."""
    return np.array([math.log10(max(answer.median or 0.0, answer.floor, SMALLEST)) for answer in answers])


def _half_width(answers: Sequence[Prediction], out: int) -> float:
    """Half the mean width in log10 of the known devices' intervals ``out`` quantiles from the median.

    Unbounded ones do not count.
    """
    widths = []
    for answer in answers:
        low, high = max(answer.quantiles[MEDIAN - out], answer.floor, SMALLEST), answer.quantiles[MEDIAN + out]
        if low < high < math.inf:
            widths.append(math.log10(high / low) / 2)
    return float(np.mean(widths)) if widths else 0.0


def _mapped(adapter: Adapter, code: CodeText, query: Query, answers: Sequence[Prediction]) -> Prediction:
    first, device = answers[0], adapter.device
    for answer in answers:
        if answer.abstained is not None:
            reason = replace(answer.abstained, known_device=answer.device)
            return replace(answer, device=device, abstained=reason)
    known = (part_columns(answers) if adapter.fit.is_sum else logs(answers))[None, :]
    extra = text_columns(code, adapter.columns)[None, :] if adapter.columns and not adapter.fit.is_sum else None
    floor = max(answer.floor for answer in answers)
    fit = adapter.fit
    key = text_key(code.text, code.language) if adapter.texts else None
    text = adapter.texts.index(key) if key in adapter.texts else None

    def value(log: float) -> float:
        result = 10 ** min(max(log, -300.0), 300.0)
        return 0.0 if result <= floor else float(result)

    median = value(float(fit.predict(known, extra, text)[0]))
    lows, highs = [median], [median]
    for out, coverage in enumerate(INTERVALS, 1):
        (low,), (high,) = fit.band(known, coverage, _half_width(answers, out), extra, text)
        lows.append(min(value(low), lows[-1]))
        highs.append(max(value(high), highs[-1], floor))
    found = (*reversed(lows[1:]), *highs)
    # The types and the runtime of a known device are not those of the new one.
    assumed = {name: shape for name, shape in first.workload.items() if name.startswith("arg")}
    return replace(
        first,
        device=device,
        workload={**assumed, **query.workload} if adapter.fit.is_sum else first.workload,
        median=median,
        bands=bands(found, fit.text_count, fit.n, CalibrationSource(adapted_device=device)),
        quantiles=found,
        floor=floor,
        truncated=any(answer.truncated for answer in answers),
        parts=_parts_of(adapter, known[0], answers),
    )


def _parts_of(adapter: Adapter, columns: Array, answers: Sequence[Prediction]) -> NetworkParts | None:
    """What limits a network on an adapted device; its operators' times are not known there."""
    parts = answers[0].parts
    if parts is None or not adapter.fit.is_sum:
        return None
    seconds = (adapter.fit.weights * columns).reshape(-1, len(PARTS)).sum(axis=0)
    arithmetic, _, once = seconds / seconds.sum()
    return NetworkParts(float(arithmetic), (), parts.kernels, float(once))


@dataclass(frozen=True, slots=True)
class UserCorrections:
    """Corrections from this user's measurements: adapted devices, and the CPU's score if it was measured.

    ``unusable`` maps devices to the problem of their adapter. ``is_unscored`` says that predictions are for a CPU
    without a score. As plain data it can be sent to another machine.
    """

    adapters: Sequence[Adapter] = ()
    unusable: Mapping[str, str] = field(default_factory=dict)
    score: cpu_score.CpuScore | None = None
    is_unscored: bool = False

    @classmethod
    def read(cls, model_id: str, devices: Path | None = None, *, cpu: bool = True) -> UserCorrections:
        """The corrections for a model; for the arguments see :func:`with_corrections`."""
        adapters: list[Adapter] = []
        unusable: dict[str, str] = {}
        directory = devices or folder()
        for path in sorted(directory.glob("*.json")) if directory.is_dir() else ():
            try:
                adapters += read_adapters(path, model_id)
            except ModelError as error:
                unusable[path.stem] = str(error)
        score = cpu_score.stored() if cpu else None
        return cls(adapters, unusable, score, cpu and score is None and cpu_score.enabled())

    def around(self, base: Predictor) -> Predictor:
        """``base`` with these corrections, with what was measured of a text in place of its predictions, and at sizes.

        A text whose prediction fails costs no other text, see :mod:`rlm_core.inference.guarded`.
        """
        known = self.adapters or self.unusable
        result: Predictor = AdaptedPredictor(base, self.adapters, self.unusable) if known else base
        if self.score is not None:
            result = cpu_score.ScaledPredictor(result, self.score)
        elif self.is_unscored:
            result = cpu_score.UnscoredPredictor(result)
        return GuardedPredictor(SizedPredictor(AnchoredPredictor(result)))


def with_corrections(base: Predictor, devices: Path | None = None, *, cpu: bool = True) -> Predictor:
    """``base`` with what this user has measured.

    Args:
        base: the model's own predictor.
        devices: the folder of adapters; None for the user's.
        cpu: whether predictions of calls are for this CPU; if not, and where the environment's ``RLM_LSP_CPU_SCALE=0``
            switches it off, they are for the reference machine.
    """
    return UserCorrections.read(base.model_id, devices, cpu=cpu).around(base)


def text_column_names(basis: Basis) -> tuple[str, ...]:
    """The columns that describe a text of a basis: none but for networks."""
    return _OPERATORS if basis == "network" else ()


def text_columns(code: CodeText, names: Sequence[str]) -> Array:
    """The columns called ``names`` of a text, ``(names,)``: log10 of one plus a count; NaN where unknown."""
    counts = _counts(code.text) if code.basis == "network" else None
    if counts is None:
        return np.full(len(names), np.nan)
    return np.array([math.log10(1 + counts[name]) if name in _OPERATORS else math.nan for name in names])


@lru_cache(1024)
def _counts(text: str) -> Counter[str] | None:
    """Operators by kind; None when the text is not a graph."""
    from rlm_core.source.onnx_graph.graph import Constant, Node
    from rlm_core.source.onnx_graph.parse import parse

    def kind(node: Node) -> str:
        if node.operator not in ("Conv", "ConvTranspose"):
            return _KINDS.get(node.operator, "other")
        group, weight = node.attribute("group"), node.operands[1] if len(node.operands) > 1 else None
        if isinstance(group, int) and group > 1:
            return "grouped"
        size = max(weight.shape[2:], default=1) if isinstance(weight, Constant) else 1
        return "pointwise" if size == 1 else "spatial" if size <= 3 else "wide"

    try:
        return Counter(kind(node) for node in parse(text).nodes)
    except (RlmError, ValueError):
        return None
