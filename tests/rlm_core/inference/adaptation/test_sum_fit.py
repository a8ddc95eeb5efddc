"""Sums of parts for a new device: factors are found from few networks, and kinds of devices that fit count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rlm_core.inference.adaptation.build import adapt
from rlm_core.inference.adaptation.measurements import Measurement
from rlm_core.inference.adaptation.predictor import AdaptedPredictor
from rlm_core.inference.adaptation.store import read_adapters, write_adapters
from rlm_core.inference.adaptation.sum_fit import MIN_NETWORKS, PARTS, fit_sum, kinds_of, part_columns
from rlm_core.inference.model_store import builtin
from rlm_core.inference.network_cost import NetworkCosts
from rlm_core.inference.network_settings import NETWORK_COSTS
from rlm_core.inference.predictor import WithoutComparison
from rlm_core.types import MEDIAN, Basis, CodeText, Prediction, Query

CPU = "intel-i7-12700h"
TRUE = np.array([3.0, 1.0, 0.3])


class Costs(WithoutComparison):
    """The shipped costs of networks as a predictor."""

    model_id = "costs"

    def __init__(self) -> None:
        self.costs = NetworkCosts(builtin() / NETWORK_COSTS)

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return self.costs.devices if basis == "network" else ()

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return (Query("latency", CPU),)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        found = [
            [self.costs.answer(code, query, "costs") for query in line]
            for code, line in zip(texts, queries, strict=True)
        ]
        return [[answer for answer in line if answer is not None] for line in found]


def network(channels: int, side: int, depth: int) -> CodeText:
    blocks = "".join(f"·Conv3x3 p1 {channels}·Relu" for _ in range(depth))
    return CodeText(f"in a 1x{channels}x{side}x{side}\n{blocks}", "onnx", "network")


NETWORKS = [network(8 << i % 4, 16 << i % 3, 2 + i) for i in range(9)]


def columns(texts: list[CodeText]) -> np.ndarray:
    answers = Costs().predict(texts, [[Query("latency", CPU)]] * len(texts))
    return np.array([part_columns(line) for line in answers])


def measured(texts: list[CodeText]) -> list[Measurement]:
    """As on a device whose arithmetic, memory and start of kernels take :data:`TRUE` times as long."""
    seconds = columns(texts) @ TRUE
    return [
        Measurement(i, code, Query("latency"), value)
        for i, (code, value) in enumerate(zip(texts, seconds, strict=True))
    ]


def test_parts_of_a_device_add_up_to_its_latency() -> None:
    [[answer]] = Costs().predict([NETWORKS[0]], [[Query("latency", CPU)]])
    assert answer.median is not None
    assert part_columns([answer]).sum() == pytest.approx(answer.median)
    assert np.isnan(part_columns([replace(answer, parts=None)])).all()


def test_three_factors_are_found_and_hold_for_another_network() -> None:
    known = columns(NETWORKS)
    target = np.log10(known @ TRUE)
    fit = fit_sum(known[:8], target[:8], range(8), [[0]])
    assert fit.predict(known[8:])[0] == pytest.approx(target[8], abs=0.03)
    [low], [high] = fit.band(known[8:], 0.8)
    assert low <= target[8] <= high


def test_few_networks_give_one_common_factor() -> None:
    known = columns(NETWORKS[:MIN_NETWORKS])
    fit = fit_sum(known, np.log10(known.sum(axis=1) * 5), range(MIN_NETWORKS), [[0]])
    assert fit.weights == pytest.approx(np.full(len(PARTS), 5.0), rel=1e-3)
    with pytest.raises(ValueError, match="2 networks"):
        fit_sum(known[:2], np.zeros(2), range(2), [[0]])


def test_the_kind_of_device_that_fits_counts() -> None:
    known = columns(NETWORKS)
    other = known[:, ::-1] ** 1.5
    fit = fit_sum(np.concatenate([known, other], axis=1), np.log10(known @ TRUE), range(len(known)), [[0], [1]])
    both = fit.weights.reshape(2, len(PARTS)) * np.concatenate([known, other], axis=1).mean(axis=0).reshape(2, -1)
    assert both[0].sum() > 0.95 * both.sum()
    assert kinds_of([CPU, "nvidia-rtx-4090", "intel-i9-10940x"]) == [[0, 2], [1]]


def test_a_device_of_networks_is_adapted_from_three(tmp_path: Path) -> None:
    base = Costs()
    [adapter] = adapt(base, "my-board", measured(NETWORKS[:MIN_NETWORKS])).adapters
    assert adapter.fit.is_sum
    write_adapters([adapter], tmp_path / "my-board.json")
    predictor = AdaptedPredictor(base, read_adapters(tmp_path / "my-board.json"))
    [[answer]] = predictor.predict([NETWORKS[5]], [[Query("latency", "my-board")]])
    assert (answer.device, answer.workload) == ("my-board", {})
    assert answer.median == pytest.approx(float(columns([NETWORKS[5]])[0] @ TRUE), rel=0.3)
    assert answer.quantiles[MEDIAN] == answer.median
    assert answer.parts is not None
    assert not answer.parts.operators
    assert 0 < answer.parts.arithmetic + answer.parts.once < 1


def test_devices_of_benchmarks_that_know_few_of_the_networks_are_left_out() -> None:
    class WithPhones(Costs):
        """Knows nine phones too, which answer about the first network only."""

        def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
            return (*(f"phone-{number}" for number in range(9)), *super().devices(basis))

        def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
            found = []
            for code, line in zip(texts, queries, strict=True):
                asked = [replace(query, device=CPU) if str(query.device)[:5] == "phone" else query for query in line]
                answers = super().predict([code], [asked])[0]
                found.append(
                    [
                        self._of_phone(answer, query, is_known=code == NETWORKS[0])
                        if str(query.device)[:5] == "phone"
                        else answer
                        for answer, query in zip(answers, line, strict=True)
                    ]
                )
            return found

        @staticmethod
        def _of_phone(answer: Prediction, query: Query, *, is_known: bool) -> Prediction:
            plain = replace(answer, device=query.device, parts=None)
            return plain if is_known else replace(plain, median=None, bands=(), quantiles=())

    found = adapt(WithPhones(), "my-board", measured(NETWORKS[:4]))
    [adapter] = found.adapters
    assert (adapter.fit.n, found.problems) == (4, ())
    assert not [name for name in adapter.known if name.startswith("phone")]
