"""Labels of kernels and modules and git repositories -> rows: text, workload, device, group; what is left out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rlm_core.errors import DataError
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.datasets.splits import split_of
from rlm_core.training.datasets.triton import (
    TritonBuilder,
    dtype_text,
    kernel_group,
    named,
    operator_group,
    problem_group,
    problem_of,
)

KERNEL = (
    "import triton\n\n@triton.jit\ndef k(x):\n    pass\n\ndef run(x):\n    k[(1,)](x)\n\ndef test_k():\n    run(1)\n"
)
MODULE = "import torch.nn as nn\n\nclass Model(nn.Module):\n    pass\n\nx = Model()\n"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A source cache with an empty bare repository of ``someone/kernels``."""
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "someone+kernels" / "repo"], check=True)
    return tmp_path


def git(cache: Path, *arguments: str, text: str = "") -> str:
    """Run git in the repository; what it prints."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    command = ["git", *identity, f"--git-dir={cache / 'someone+kernels' / 'repo'}", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.strip()


def add(cache: Path, content: str) -> str:
    return git(cache, "hash-object", "-w", "--stdin", text=content)


def label(blob: str | None, **changes: Any) -> dict[str, Any]:
    fields = {
        "repo": "someone/kernels",
        "commit": "0" * 40,
        "kernel_id": "tritonbench_g/softmax_optimize",
        "source_path": "a.py",
        "source_blob": blob,
        "language": "triton",
        "input_size": [[64, 128], 0.5],
        "dtypes_in_harness": ["float16", "int32"],
        "device": "NVIDIA A100 80GB",
        "latency_ms": 2.0,
    }
    return fields | changes


def build(cache: Path, *labels: dict[str, Any], **options: Any) -> tuple[list[dict[str, Any]], TritonBuilder]:
    folder = cache / "labels"
    folder.mkdir(exist_ok=True)
    (folder / "a.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in labels))
    builder = TritonBuilder(folder, cache, download=False, **options)
    return list(builder.rows()), builder


def test_a_kernel_gives_a_row_in_seconds_with_what_the_model_reads(cache: Path, tmp_path: Path) -> None:
    blob = add(cache, KERNEL)
    [row], builder = build(cache, label(blob))
    assert row["text"] == "@triton.jit\ndef k(x):\n    pass\n\ndef run(x):\n    k[(1,)](x)\n"
    assert (row["basis"], row["language"], row["metric"], row["callees"]) == ("kernel", "triton", "latency", [])
    assert row["value"] == pytest.approx(0.002)
    assert row["device"] == "nvidia-a100-sxm4-80gb"
    assert row["workload"] == {"arg0": "64x128", "arg1": "0.5", "dtype": "fp16+int32"}
    assert row["group"] == row["family"] == "kernel/softmax"
    assert (row["held_out"], row["split"]) == ("kernel", split_of("kernel/softmax"))
    assert row["source"] == f"someone/kernels@{blob}:a.py"
    assert row["id"].startswith("triton/tritonbench_g/softmax_optimize/")
    assert (builder.report().rows, builder.report().units, builder.report().left_out) == (1, 1, {})
    assert builder.groups["kernel"] == {"kernel/softmax": 1}
    assert write_rows([row], tmp_path / "rows.parquet") == 1


def test_repeats_are_one_row_with_their_median(cache: Path) -> None:
    blob = add(cache, KERNEL)
    times = [1.0, 9.0, 2.0]
    [row], _ = build(cache, *(label(blob, latency_ms=time) for time in times))
    assert row["value"] == pytest.approx(0.002)
    rows, _ = build(cache, label(blob), label(blob, device="Tesla T4"), label(blob, input_size=[[64, 64]]))
    assert len({row["id"] for row in rows}) == 3


def test_what_cannot_be_had_is_counted_by_its_reason(cache: Path) -> None:
    blob = add(cache, KERNEL)
    rows, builder = build(
        cache,
        label(blob),
        label(None),
        label(None, language="baseline"),
        label(blob, language="cuda"),
        label("1" * 40),
        label(add(cache, " \n")),
        label(blob, device="Abacus 3"),
        label(blob, latency_ms=0.0),
        label(blob, repo="no/where"),
        label(blob, config_path="absent.json", input_size="N_1"),
    )
    assert len(rows) == 1
    assert builder.report().left_out == {
        "source not named by the labels": 1,
        "baseline of another library, its source is not named": 1,
        "language cuda is not supported": 1,
        "blob not in the repository": 1,
        "empty source": 1,
        "unknown device Abacus 3": 1,
        "no positive time": 1,
        "repository not found": 1,
        "sizes not in the repository": 1,
    }


def test_liger_rows_carry_mode_and_variant_and_flat_sizes(cache: Path) -> None:
    config = {"V": 7, "mode": "forward", "dtype": "torch.bfloat16", "kernel_size": [3, 3], "T": None}
    changes = {"kernel_id": "liger/rms_norm/liger/full", "kernel_name": "rms_norm", "mode": "full"}
    size = {"T": 16, "config": config}
    [row], _ = build(
        cache, label(add(cache, KERNEL), **changes, provider="liger_tiled", input_size=size, dtypes_in_harness=[])
    )
    assert row["workload"] == {
        "T": "16", "V": "7", "kernel_size": "3x3", "dtype": "bf16", "mode": "full", "variant": "tiled"
    }  # fmt: skip
    assert row["group"] == "kernel/rms_norm"


def test_an_autotuned_row_names_its_kernel_and_keeps_the_tuned_settings_out(cache: Path) -> None:
    two = KERNEL + "\n@triton.jit\ndef other(y):\n    pass\n"
    changes = {"kernel_id": "vllm_triton_backend/k", "kernel_name": "k", "best_config": {"BLOCK": "64"}}
    [row], _ = build(cache, label(add(cache, two), **changes, input_size={"n": "64"}, dtypes_in_harness=[]))
    assert row["workload"] == {"n": "64", "autotuned": "best"}
    assert "other" not in row["text"]


def test_a_module_row_carries_its_backend_and_a_problem_is_one_group_in_both_sizes(cache: Path) -> None:
    changes = {"language": "pytorch", "input_size": None, "dtypes_in_harness": None}
    compiled = {"backend": "torch_compile_inductor_max-autotune"}
    number = "kernelbench/level2/45_Gemm_Sigmoid"
    old, new = add(cache, MODULE), add(cache, MODULE.replace("pass", "size = 2"))
    rows, _ = build(
        cache,
        label(old, kernel_id=number, backend="torch", **changes),
        label(new, kernel_id=number, **compiled, **changes),
    )
    assert [row["workload"] for row in rows] == [
        {"backend": "eager", "dtype": "fp32"},
        {"backend": "compile-max-autotune", "dtype": "fp32"},
    ]
    assert {row["group"] for row in rows} == {"problem/level2-45"}
    assert {(row["basis"], row["held_out"]) for row in rows} == {("module", "problem")}
    assert rows[0]["text"] == "class Model(nn.Module):\n    pass\n"


def test_sizes_of_a_configuration_file_are_read_from_the_commit(cache: Path) -> None:
    config = add(cache, json.dumps({"single_input_configs": [{"N": 8}], "single_init_configs": [{"eps": 0.1}]}))
    tree = git(cache, "mktree", text=f"100644 blob {config}\tconfig.json\n")
    commit = git(cache, "commit-tree", tree, "-m", "x")
    changes = {
        "kernel_id": "robust_kbench/kernelbench/level_2/task_45/forward",
        "language": "pytorch",
        "commit": commit,
        "config_path": "config.json",
        "input_size": "N_8",
        "backend": "torch_compile",
        "dtypes_in_harness": None,
    }
    [row], _ = build(cache, label(add(cache, MODULE), **changes))
    assert row["workload"] == {"N": "8", "eps": "0.1", "backend": "compile", "dtype": "fp32"}
    assert row["group"] == "problem/level2-45"


def test_texts_that_differ_in_comments_alone_are_one_group(cache: Path) -> None:
    first, second = add(cache, KERNEL), add(cache, KERNEL.replace("    pass", "    # why\n    pass"))
    rows, _ = build(cache, label(first), label(second, kernel_id="tritonbench_g/a_kernel"))
    assert [row["group"] for row in rows] == ["kernel/a_kernel", "kernel/a_kernel"]


@pytest.mark.parametrize(
    ("names", "group"),
    [
        (("rmsnorm_fused_llama", "rms_norm", "fused_residual_rms_norm", "megatron_rms_norm"), "kernel/rms_norm"),
        (("layernorm_fwd_triton", "layer_norm_liger"), "kernel/layer_norm"),
        (("softmax_triton1", "token_softmax_bloom", "log_softmax"), "kernel/softmax"),
        (("fast_rope_embedding", "rotary_emb", "llama4_rope", "qwen2vl_mrope"), "kernel/rope"),
        (("matmul_kernel", "streamk_matmul", "gemm_a16w16"), "kernel/matmul"),
        (("swiglu_fwd", "geglu", "tiled_swiglu"), "kernel/glu"),
        (("kldiv_ops", "kl_div", "jsd"), "kernel/kl_div"),
        (("attn_fwd_causal", "kernel_unified_attention_2d", "context_attn_bloom"), "kernel/attention"),
        (("relu_triton_kernel",), "kernel/relu"),
        (("masked_select",), "kernel/masked_select"),
    ],
)
def test_one_idea_from_several_sources_is_one_group(names: tuple[str, ...], group: str) -> None:
    assert {kernel_group(name) for name in names} == {group}


def test_operators_and_problems_share_the_groups_of_their_kernels() -> None:
    assert operator_group("softmax") == problem_group("1", "23", "Softmax") == "kernel/softmax"
    assert operator_group("matmul") == problem_group("1", "1", "Square_matrix_multiplication_") == "kernel/matmul"
    assert operator_group("relu") == problem_group("1", "19", "ReLU") == "kernel/relu"
    assert operator_group("fused_mv_sigmoid_sub").startswith("problem/operator-")
    assert problem_group("3", "40", "GRUHidden") == problem_group("3", "41", "GRUBidirectional")
    assert problem_group("4", "1", "gpt2_bs1_seq2") == problem_group("4", "7", "gpt2_bs32_seq256")
    assert problem_of("robust_kbench/kernelbench/level_1/task_23/forward", "t/23_Softmax.py") == ("1", "23", "Softmax")
    assert problem_of("tritonbench_t/Adam", "Adam.py") is None


def test_dtypes_keep_their_first_order_once() -> None:
    assert dtype_text(["torch.int8", "float16", "half"]) == "int8+fp16"


def test_a_model_named_instead_of_sizes_gives_its_sizes() -> None:
    given = {"model_config": "llama_3_8b", "BT": 4}
    assert named(given) == {"model_config": "llama_3_8b", "BT": "4", "hidden_size": "4096"}
    assert named(given, (), "vocab_size")["vocab_size"] == "128256"


def test_a_folder_without_labels_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no \.jsonl or \.jsonl\.gz file"):
        TritonBuilder(tmp_path, tmp_path)


def test_labels_of_another_kind_are_reported(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"repo": "a/b"}\n')
    with pytest.raises(DataError, match=r"x\.jsonl:1: .* is missing; is this a file of Triton labels"):
        TritonBuilder(tmp_path / "x.jsonl", tmp_path)
