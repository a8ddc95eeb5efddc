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
from rlm_core.training.datasets.triton import TritonBuilder

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
    builder = TritonBuilder([folder], cache, download=False, **options)
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


def test_a_program_is_read_from_a_line_of_a_journal(cache: Path) -> None:
    lines = [{"code": KERNEL.replace("pass", f"x + {number}")} for number in range(2)] + [{"note": "no program"}]
    blob = add(cache, "\n".join(map(json.dumps, lines)))
    names = [f"k{number}" for number in range(4)]
    labels = [label(blob, row=row, key="code", kernel_id="tree/exp", kernel_name=names) for row in range(4)]
    rows, builder = build(cache, *labels)
    assert [("x + 0" in row["text"], "x + 1" in row["text"]) for row in rows] == [(True, False), (False, True)]
    assert {row["group"] for row in rows} == {"kernel/exp"}
    assert rows[1]["source"].endswith("a.py:2")
    assert builder.report().left_out == {"empty source": 2}


def test_a_wall_time_is_what_lies_above_its_floor(cache: Path) -> None:
    blob = add(cache, KERNEL)
    timed = {"wrapper": "run", "kernel_id": "tsvc/s000", "floor_ms": 0.5}
    sizes = [[[64, 128]], [[8, 8]], [[4, 4]], [[2, 2]]]
    rows, builder = build(
        cache,
        label(blob, **timed, input_size=sizes[0]),
        label(blob, **timed, input_size=sizes[1], latency_ms=0.75),
        label(blob, **timed | {"floor_ms": None}, input_size=sizes[2]),
        label(blob, input_size=sizes[3]),
    )
    assert [(row["value"], row["floor"]) for row in rows] == [
        (pytest.approx(1.5e-3), 5e-4), (pytest.approx(5e-4), 5e-4), (pytest.approx(2e-3), None)
    ]  # fmt: skip
    assert builder.report().left_out == {"too few others to know what an empty function costs": 1}


def test_files_and_folders_of_labels_are_one_data_set(cache: Path) -> None:
    blob = add(cache, MODULE)
    for name, operator in (("t", "tritonbench_t/add_gelu"), ("x", "kernelbenchx/fused_add_gelu")):
        changes = {"kernel_id": operator, "language": "pytorch", "backend": "torch", "latency_ms": 1.0 + (name == "x")}
        (cache / name).mkdir()
        (cache / name / "a.jsonl").write_text(json.dumps(label(blob, **changes)) + "\n")
    rows = list(TritonBuilder([cache / "t", cache / "x" / "a.jsonl"], cache, download=False).rows())
    assert {row["group"] for row in rows} == {"problem/operator-add_gelu"}


def test_a_folder_without_labels_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no \.jsonl or \.jsonl\.gz file"):
        TritonBuilder([tmp_path], tmp_path)


def test_labels_of_another_kind_are_reported(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"repo": "a/b"}\n')
    with pytest.raises(DataError, match=r"x\.jsonl:1: .* is missing; is this a file of Triton labels"):
        TritonBuilder([tmp_path / "x.jsonl"], tmp_path)
