"""Latency of networks as a sum over kernels: batches, settings, unknown operators, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from rlm_core.errors import ModelError
from rlm_core.inference.model_store import builtin
from rlm_core.inference.network_cost import NetworkCost, NetworkCosts
from rlm_core.inference.network_settings import COLUMNS, NETWORK_COSTS, SettingCost, load, save
from rlm_core.inference.network_work import work_of
from rlm_core.types import LEVELS, MEDIAN, Abstention, AbstentionCode, CodeText, Prediction, Query

NET = "in a 1x3x224x224\n·Conv3x3/2 32·Relu\nb=·Conv3x3 32·Relu·Conv3x3 32\n·Add b·GlobalAveragePool·Flatten·Gemm 10"
GPU = "nvidia-rtx-4090"
KNOWN = ("conv", "elementwise", "product", "pool")


def setting(**changed: object) -> SettingCost:
    seconds = tuple(1e-3 if name.endswith((".macs", ".moved")) else 1e-6 for name in COLUMNS)
    errors = tuple(level - 0.5 for level in LEVELS)
    usual = SettingCost(
        "cpu", {"mode": "infer"}, seconds, errors, (1, 8, 4), ("conv", "elementwise", "product"), 30, 90
    )
    return msgspec.structs.replace(usual, **changed)


def costs_of(tmp_path: Path, *settings: SettingCost) -> NetworkCosts:
    save(settings, tmp_path / NETWORK_COSTS)
    return NetworkCosts(tmp_path / NETWORK_COSTS)


def answered(found: NetworkCost | Abstention) -> NetworkCost:
    assert isinstance(found, NetworkCost)
    return found


def code_of(found: NetworkCost | Abstention) -> AbstentionCode:
    assert isinstance(found, Abstention)
    return found.code


def test_the_parts_of_a_network_add_up_to_its_latency() -> None:
    found = answered(NetworkCosts(builtin() / NETWORK_COSTS).cost(NET, GPU, {}))
    assert sum(part.cost for part in found.parts) == pytest.approx(found.quantiles[MEDIAN])
    assert list(found.quantiles) == sorted(found.quantiles)
    assert 0 <= found.arithmetic <= 1


def test_what_is_once_per_batch_does_not_grow_with_it(tmp_path: Path) -> None:
    costs = costs_of(tmp_path, setting(known=("conv", "elementwise", "product", "pool")))
    one, eight = (answered(costs.cost(NET, "cpu", {"batch": batch})).quantiles[MEDIAN] for batch in ("1", "8"))
    work = work_of(NET)
    once = len(work.kernels) * 1e-6 + sum(kernel.weights for kernel in work.kernels) * 1e-12
    assert eight - once == pytest.approx(8 * (one - once))


def test_a_graph_for_a_batch_counts_per_image() -> None:
    one, four = work_of(NET), work_of(NET.replace("1x3", "4x3"))
    assert four.batch == 4
    assert four.at(8)[:, :-2] == pytest.approx(one.at(8)[:, :-2])


def test_a_query_names_as_much_of_a_setting_as_it_needs() -> None:
    costs = NetworkCosts(builtin() / NETWORK_COSTS)
    plain, compiled = (answered(costs.cost(NET, GPU, {"backend": name})) for name in ("eager", "compile"))
    assert (plain.workload["backend"], compiled.workload["backend"]) == ("eager", "compile")
    assert compiled.quantiles[MEDIAN] < plain.quantiles[MEDIAN]
    trained = answered(costs.cost(NET, GPU, {"dataset": "cifar100", "epochs": "200"}))
    assert trained.quantiles == plain.quantiles
    assert code_of(costs.cost(NET, GPU, {"dtype": "int4"})) is AbstentionCode.SETTING_NOT_TRAINED


@pytest.mark.parametrize("batch", ["0", "none", "17"])
def test_other_batches_than_those_measured_are_refused(batch: str, tmp_path: Path) -> None:
    costs = costs_of(tmp_path, setting(known=("conv", "elementwise", "product", "pool")))
    assert code_of(costs.cost(NET, "cpu", {"batch": batch})) is AbstentionCode.BATCH_NOT_MEASURED


def test_a_small_batch_is_answered_only_where_each_kernel_computes_for_long() -> None:
    costs = NetworkCosts(builtin() / NETWORK_COSTS)
    large = NET.replace("224x224", "4096x4096")
    assert code_of(costs.cost(NET, GPU, {"batch": "1"})) is AbstentionCode.BATCH_NOT_MEASURED
    assert answered(costs.cost(large, GPU, {"batch": "8"})).workload["batch"] == "8"


def test_an_operator_that_hardly_any_measured_network_has_is_named(tmp_path: Path) -> None:
    found = costs_of(tmp_path, setting(known=("conv", "product"))).cost(NET, "cpu", {})
    assert isinstance(found, Abstention)
    assert found.code is AbstentionCode.OPERATOR_NOT_MEASURED
    assert "Relu" in found.details["operators"]


def test_a_band_is_wider_the_more_of_the_work_is_unknown(tmp_path: Path) -> None:
    costs = [setting(device=name, known=known) for name, known in (("a", ("conv", "elementwise", "product", "pool")),)]
    costs.append(msgspec.structs.replace(costs[0], device="b", known=("conv", "elementwise", "pool")))
    known, unknown = (answered(costs_of(tmp_path, *costs).cost(NET, name, {})) for name in "ab")
    assert unknown.quantiles[-1] > known.quantiles[-1]
    assert unknown.quantiles[MEDIAN] == known.quantiles[MEDIAN]


def test_assumed_sizes_are_in_the_workload_and_others_are_refused() -> None:
    costs = NetworkCosts(builtin() / NETWORK_COSTS)
    text = f"{NET}\n# sizes assumed: a"
    assert answered(costs.cost(text, GPU, {})).workload["arg0"] == "1x3x224x224"
    assert code_of(costs.cost(text, GPU, {"arg0": "1x3x32x32"})) is AbstentionCode.SETTING_NOT_TRAINED


def test_sizes_that_depend_on_values_are_refused() -> None:
    found = NetworkCosts(builtin() / NETWORK_COSTS).cost("in a 1x8\n·NonMaxSuppression:?x3·Relu", GPU, {})
    assert code_of(found) is AbstentionCode.OPEN_SIZES


def test_only_latencies_on_measured_devices_are_answered() -> None:
    costs = NetworkCosts(builtin() / NETWORK_COSTS)
    code = CodeText(NET, "onnx", "network")
    assert costs.answer(code, Query("accuracy"), "m") is None
    assert costs.answer(code, Query("latency", "pixel-3"), "m") is None
    answer = costs.answer(code, Query("latency", GPU), "m")
    assert answer is not None
    assert answer.band is not None
    assert answer.band.low < (answer.median or 0) < answer.band.high
    broken = costs.answer(replace(code, text="no graph"), Query("latency", GPU), "m")
    assert broken is not None
    assert broken.abstained == Abstention(AbstentionCode.ANALYSIS_FAILED, {"error": "DataError"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"costs": (1.0,)},
        {"costs": (-1.0,) * len(COLUMNS)},
        {"errors": tuple(0.5 - level for level in LEVELS)},
        {"batches": (4, 1, 2)},
        {"most": (1.0,)},
        {"least": -1.0},
    ],
)
def test_damaged_costs_are_refused(wrong: dict[str, object], tmp_path: Path) -> None:
    save([setting(**wrong)], tmp_path / NETWORK_COSTS)
    with pytest.raises(ModelError, match="corrupt"):
        load(tmp_path / NETWORK_COSTS)


def memory_of_net(workload: dict[str, str], device: str | None = GPU, text: str = NET) -> Prediction:
    costs = NetworkCosts(builtin() / NETWORK_COSTS)
    answer = costs.answer(CodeText(text, "onnx", "network"), Query("memory", device, workload), "model")
    assert answer is not None
    return answer


def test_the_memory_of_a_network_is_that_of_its_batch_in_the_types_of_the_setting() -> None:
    one, two, eight = (memory_of_net({"batch": batch}, "any-board").median or 0.0 for batch in ("1", "2", "8"))
    assert eight - one == pytest.approx(7 * (two - one))
    on_cpu = memory_of_net({"batch": "8"}, "intel-i7-12700h")
    assert on_cpu.median == eight
    assert memory_of_net({"batch": "8", "dtype": "bf16"}, "nvidia-rtx-pro-6000-blackwell-max-q").median == eight / 2
    assert eight / 2 < (memory_of_net({"batch": "8"}).median or 0.0) < eight
    assert not on_cpu.bands
    assert on_cpu.above(eight * 0.9) > 0.9 > 0.1 > on_cpu.above(eight * 1.1)


def test_the_memory_of_training_and_of_an_unknown_setting_is_not_stated() -> None:
    for workload in ({"mode": "train"}, {"dtype": "int4"}):
        refused = memory_of_net(workload, "nvidia-rtx-3090").abstained
        assert refused is not None
        assert refused.code is AbstentionCode.SETTING_NOT_TRAINED
    assert NetworkCosts(None).answer(CodeText("def f(): ...", "python", "network"), Query("memory"), "model") is None


LSTM = "in a 32x1x64\n·LSTM {1x1024x64}{1x1024x256}{1x2048} hidden_size=256·Squeeze[1]·MatMul{256x10}"


def test_a_recurrent_layer_is_a_product_at_each_step() -> None:
    work = work_of(LSTM)
    starts = {
        operator: row[COLUMNS.index("kernels")] for operator, row in zip(work.operators, work.amounts, strict=True)
    }
    assert starts == {"LSTM": 32, "MatMul": 1}
    assert work.amounts[0, COLUMNS.index("product.macs")] == pytest.approx(32 * 1024 * (64 + 256) / 1e9)
    found = answered(NetworkCosts(builtin() / NETWORK_COSTS).cost(LSTM, "intel-i7-12700h", {}))
    assert found.quantiles[MEDIAN] > 0


def test_what_takes_most_of_the_time_must_be_known(tmp_path: Path) -> None:
    text = "in a 1x64x56x56\n{blocks}·GlobalAveragePool·Flatten·Gemm 10"
    unknown = setting(known=("elementwise", "product", "pool"))
    costs = costs_of(tmp_path, unknown)
    some = costs.cost(text.format(blocks="·Conv1x1 1·Relu" + "·Sigmoid·Relu" * 40), "cpu", {})
    most = costs.cost(text.format(blocks="·Conv3x3 64·Relu" * 4), "cpu", {})
    assert answered(some).quantiles[-1] > answered(some).quantiles[MEDIAN]
    assert code_of(most) is AbstentionCode.OPERATOR_NOT_MEASURED
    assert isinstance(most, Abstention)
    assert most.details["operators"] == "Conv"


def test_networks_of_short_kernels_have_wider_bands_on_a_gpu(tmp_path: Path) -> None:
    fast = setting(device=GPU, costs=tuple(1e-9 for _ in COLUMNS), batches=(1, 8, 4), known=KNOWN)
    slow = msgspec.structs.replace(fast, device="nvidia-rtx-3090", costs=tuple(1.0 for _ in COLUMNS))
    costs = costs_of(tmp_path, fast, slow)
    short, long = (answered(costs.cost(NET, device, {})) for device in (GPU, "nvidia-rtx-3090"))
    assert short.quantiles[-1] / short.quantiles[MEDIAN] > long.quantiles[-1] / long.quantiles[MEDIAN]
    assert costs.cost(NET, GPU, {"batch": "8"}) != short
    on_cpu = costs_of(tmp_path, msgspec.structs.replace(fast, device="intel-i7-12700h")).cost(
        NET, "intel-i7-12700h", {}
    )
    assert answered(on_cpu).quantiles[-1] / answered(on_cpu).quantiles[MEDIAN] == pytest.approx(
        long.quantiles[-1] / long.quantiles[MEDIAN]
    )


CIFAR = "in a 1x3x32x32\n·Conv3x3 16·BatchNormalization·Relu" + "·Conv3x3 16·BatchNormalization·Relu" * 8
PI = "raspberry-pi-5"


def energy_of(text: str, device: str | None = PI, **workload: str) -> Prediction:
    costs = NetworkCosts(builtin() / NETWORK_COSTS)
    answer = costs.answer(CodeText(text, "onnx", "network"), Query("energy", device, workload), "model")
    assert answer is not None
    return answer


def test_the_energy_of_a_small_network_has_a_band_for_each_runtime() -> None:
    text = f"{CIFAR}·GlobalAveragePool·Flatten·Gemm 10"
    usual, other = energy_of(text), energy_of(text, backend="litert")
    assert (usual.workload["backend"], other.workload["backend"]) == ("onnxruntime", "litert")
    for answer in (usual, other):
        assert answer.band is not None
        assert 1e-3 < answer.band.low < (answer.median or 0) < answer.band.high < 27e-3
        assert answer.bands[0].groups > 1000
        assert answer.parts is None


@pytest.mark.parametrize(
    ("text", "workload", "device", "code"),
    [
        (f"{CIFAR}·GlobalAveragePool·Flatten·Gemm 10".replace("32x32", "224x224"), {}, PI, "beyond-measured"),
        (NET, {}, PI, "beyond-measured"),
        ("in a 1x64\n·Gemm 10", {}, PI, "operator-not-measured"),
        ("in a 1x3x32x32\n·Conv3x3 16·Relu", {}, PI, "beyond-measured"),
        (CIFAR, {}, GPU, "setting-not-trained"),
        (CIFAR, {"backend": "torchmobile"}, PI, "setting-not-trained"),
        (CIFAR, {"batch": "64"}, PI, "batch-not-measured"),
    ],
)
def test_an_energy_beyond_the_measured_networks_is_refused(
    text: str, workload: dict[str, str], device: str, code: str
) -> None:
    refused = energy_of(text, device, **workload).abstained
    assert refused is not None
    assert refused.code == code


def test_a_model_without_energies_leaves_the_question_to_others(tmp_path: Path) -> None:
    code = CodeText(NET, "onnx", "network")
    assert costs_of(tmp_path, setting()).answer(code, Query("energy", "cpu"), "model") is None


def test_what_all_measured_networks_have_alike_is_part_of_each_cost(tmp_path: Path) -> None:
    plain = answered(costs_of(tmp_path, setting(known=KNOWN)).cost(NET, "cpu", {}))
    fixed = answered(costs_of(tmp_path, setting(known=KNOWN, fixed=0.5)).cost(NET, "cpu", {}))
    assert fixed.quantiles[MEDIAN] == pytest.approx(plain.quantiles[MEDIAN] + 0.5)
