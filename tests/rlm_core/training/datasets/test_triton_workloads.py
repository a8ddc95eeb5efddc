"""The workload of a label: sizes, dtypes, mode and backend."""

from __future__ import annotations

from rlm_core.training.datasets.triton_workloads import dtype_text, label_workload, named


def test_dtypes_keep_their_first_order_once() -> None:
    assert dtype_text(["torch.int8", "float16", "half"]) == "int8+fp16"


def test_a_model_named_instead_of_sizes_gives_its_sizes() -> None:
    given = {"model_config": "llama_3_8b", "BT": 4}
    assert named(given) == {"model_config": "llama_3_8b", "BT": "4", "hidden_size": "4096"}
    assert named(given, (), "vocab_size")["vocab_size"] == "128256"


def test_tensors_named_with_their_dtypes_are_the_arguments_in_order() -> None:
    label = {"kernel_id": "tree/embedding", "input_size": {"weight": [64, 8], "idx": [16]}, "config": {"k": {"B": 2}}}
    label["dtype"] = {"weight": "float32", "idx": "int64"}
    expected = {"arg0": "64x8", "arg1": "16", "dtype": "fp32+int64", "autotuned": "best"}
    assert label_workload(label, {}) == expected


def test_a_script_names_dtypes_by_its_parameters_and_its_pass() -> None:
    sizes = {"M": 4, "num_warps": 8, "a_dtype_str": "float16", "c_dtype_str": "float32", "pass": "backward"}
    expected = {"M": "4", "num_warps": "8", "dtype": "fp16+fp32", "mode": "backward"}
    assert label_workload({"kernel_id": "rocm/check", "input_size": sizes}, {}) == expected


def test_a_wrapper_s_wall_time_is_named() -> None:
    label = {"kernel_id": "tsvc/s000", "input_size": {"N": 32000}, "dtype": "float32", "wrapper": "s000_triton"}
    assert label_workload(label, {}) == {"N": "32000", "dtype": "fp32", "timed": "host"}
