"""The groups of kernels, operators and problems: names in benchmarks -> one name for each idea or problem.

A group is never in two splits. The same idea from several sources (RMS norm of three libraries, softmax of two
benchmarks, ``nn.Softmax`` and its kernels) has one name in the table below.
"""

from __future__ import annotations

import re
from collections.abc import Collection

# Whole or partial names, in lower case with single underscores -> idea; the first match wins. Kernels and problems of a
# single operation are looked up here.
_IDEAS = tuple(
    (re.compile(pattern), idea)
    for pattern, idea in (
        (r"fused_linear_(cross|ce)|linear_cross_entropy", "fused_linear_cross_entropy"),
        (r"fused_linear_jsd|distill_\w+_loss", "fused_linear_distillation"),
        (r"(fused_linear_)?(dpo|cpo|orpo|simpo|grpo|kto)_loss", "fused_linear_preference"),
        (r"cross_?entropy|(^|_)ce_loss", "cross_entropy"),
        (r"kl_?div|(^|_)jsd(_|$)", "kl_div"),
        (r"(^|_)tvd(_|$)", "tvd"),
        (r"rms_matmul|rms_rbe", "rms_matmul_rope"),
        (r"rms_?norm", "rms_norm"),
        (r"layer_?norm", "layer_norm"),
        (r"group_?norm", "group_norm"),
        (r"batch_?norm", "batch_norm"),
        (r"instance_?norm", "instance_norm"),
        (r"l2_?norm|l1_?norm|frobenius", "vector_norm"),
        (r"retention", "retention"),
        (
            r"rwkv|hgrn|recurrent_delta|gla_|delta_fwd|dqkg|gate_recurrence|linear_attn|lightning_att",
            "linear_attention",
        ),
        (r"bmm_chunk|chunk_(scan|state)|state_passing|selective_scan", "state_space"),
        (r"neighborhood_att", "neighborhood_attention"),
        (r"multi_token_att", "multi_token_attention"),
        (r"softmax_reducev|token_att|flash_decode|reduce_segments", "decode_attention"),
        (r"att(entio)?n|scaled_?dot_?product", "attention"),
        (r"sparsemax", "sparsemax"),
        (r"log_?sum_?exp", "logsumexp"),
        (r"softmax", "softmax"),
        (r"rope|rotary|(^|_)rbe_", "rope"),
        (r"swiglu|geglu|silu_and_mul", "glu"),
        (r"(^|_)moe(_|$)", "moe"),
        (r"conv_?transpose(d)?_?1d", "conv_transposed_1d"),
        (r"conv_?transpose(d)?_?2d", "conv_transposed_2d"),
        (r"conv_?transpose(d)?_?3d", "conv_transposed_3d"),
        (r"short_conv", "short_conv"),
        (r"conv_depthwise", "conv_depthwise"),
        (r"conv_?(standard_|pointwise_)?1d", "conv_1d"),
        (r"conv_?(standard_|pointwise_)?2d", "conv_2d"),
        (r"conv_?(standard_|pointwise_)?3d", "conv_3d"),
        (r"mat(rix)?_?vec(tor)?", "matvec"),
        (r"batched_vecmat", "batched_vecmat_mult"),
        (r"lora|bgmv|sgmv", "lora"),
        (
            r"dequant\w*_matmul|matmul_dequant|int4_(matmul|gemm)|int8_\w*matmul|int_scaled|a8w8|matmul_quant"
            r"|(matmul|bmm|linear)_w\d+a\d+",
            "quantized_matmul",
        ),
        (r"matrix_scalar|transpose$", "matrix_elementwise"),
        (r"(^|_)(addmm|bmm|mm|mat_?mul|gemm)(_|$)|matrix_multiplication|tensor_matrix|^kernel_dot$", "matmul"),
        (r"quantize_kv|quantize_copy_kv|destindex|kcache|kv_cache|reshape_and_cache|cache_transform", "cache_copy"),
        (r"quantiz|dequantize|f8_conversion|fp4_to", "quantize"),
        (r"embedding", "embedding"),
        (r"dropout", "dropout"),
        (r"cumsum", "cumsum"),
        (r"arg(max|min)", "argmax"),
        (r"max_pool", "max_pooling"),
        (r"(avg|average)_pool", "average_pooling"),
        (r"vector_add|^add(_value)?$|masked_add", "add"),
        (r"^vector_exp$", "exp"),
        (r"matrix_reduction", "max"),
    )
)
# Single operations: the group is named for the operation.
_OPERATION = re.compile(
    r"(relu|leaky_?relu|selu|gelu|elu|swish|sigmoid|tanh|hard_?sigmoid|hard_?tanh|softplus|softsign|abs|sin|cos|exp|erf"
    r"|log1p|log|sqrt|rsqrt|floor|trunc|reciprocal|asin|pow|signbit|isfinite|sub|mul|div|max|mean|sum|min|std|prod)"
    r"(?:_strided_buffer|_triton_kernel|_kernel|_reduction(?:_over_a_dimension)?)?\Z"
)
# Networks that differ in a size or in which of their outputs they return.
_NETWORKS = tuple(
    (re.compile(pattern), idea)
    for pattern, idea in ((r"^(lstm|ltsm)", "lstm"), (r"^gru", "gru"), (r"^vanilla_?rnn", "rnn"))
)
_LEVEL = re.compile(r"level_?(\d+)/(?:task_)?(\d+)(?:_(.*))?\Z")
_OF_TEST = re.compile(r"^test_(?:triton_)?")
_PRECISION = re.compile(r"_(?:fp16|bf16|int8)\Z")
_SIZE = re.compile(r"_bs\d+_seq\d+\Z|_(?:large|small)batch\Z|_1gpu\Z|_decode\Z")


def kernel_group(name: str) -> str:
    """The group of a kernel by its name in a benchmark, such as ``softmax_optimize`` or ``test_triton_flip``."""
    folded = _OF_TEST.sub("", fold(name))
    return f"kernel/{_idea(folded) or folded}"


def operator_group(name: str, operators: Collection[str] = ()) -> str:
    """The group of a PyTorch operator, fused or single: single ones share the group of their kernels.

    A name without its precision is the same operator (``gelu_bf16`` is ``gelu``), and so is one without ``fused_`` if
    only that is among the ``operators`` of another benchmark (``fused_add_gelu`` is ``add_gelu``).
    """
    folded = _PRECISION.sub("", fold(name))
    if folded not in operators and (shorter := folded.removeprefix("fused_")) in operators:
        folded = shorter
    single = not re.search(r"fused|_(?:and|add|mul|div|sub|dropout|gelu|linear|sqrt|exp|tanh|mean|abs)(?:_|\Z)", folded)
    idea = _idea(folded) if single else None
    return f"kernel/{idea}" if idea else f"problem/operator-{re.sub(r'_dropout_sub$', '_dropout', folded)}"


def problem_group(level: str, number: str, name: str) -> str:
    """The group of a KernelBench problem; ``name`` is that of its file, without number and suffix."""
    folded = fold(name)
    if level == "1" and (idea := _idea(folded)):
        return f"kernel/{idea}"
    for pattern, network in _NETWORKS:
        if pattern.search(folded):
            return f"problem/{network}"
    return f"problem/level{level}-{fold(_SIZE.sub('', name)) if level in '45' else number}"


def problem_of(kernel_id: str, source_path: str) -> tuple[str, str, str] | None:
    """Level, number and name of a KernelBench problem from its label; None when the label is of something else."""
    match = _LEVEL.search(kernel_id.removesuffix("/forward"))
    if match is None:
        return None
    name = match[3]
    if name is None:
        name = re.sub(r"^\d+_", "", source_path.rsplit("/", 1)[-1].removesuffix(".py"))
    return match[1], match[2], name


def fold(name: str) -> str:
    """A name in lower case, words joined by one underscore."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _idea(folded: str) -> str | None:
    if match := _OPERATION.match(folded):
        return match[1].replace("_", "")
    return next((idea for pattern, idea in _IDEAS if pattern.search(folded)), None)
