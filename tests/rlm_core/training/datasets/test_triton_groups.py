"""The group of a kernel, an operator or a problem by its name."""

from __future__ import annotations

import pytest
from rlm_core.training.datasets.triton_groups import kernel_group, operator_group, problem_group, problem_of


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
        (("batched_vecmat_mult", "test_batched_vecmat"), "kernel/batched_vecmat_mult"),
        (("int4_gemm", "dequantize_matmul"), "kernel/quantized_matmul"),
        (("test_triton_flip", "flip"), "kernel/flip"),
        (("vector_add", "vector_addition"), "kernel/add"),
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


def test_an_operator_is_one_group_in_every_precision_and_under_its_fused_name() -> None:
    operators = {"add_gelu", "cholesky_solve", "fused_cholesky_solve"}
    assert operator_group("gelu_bf16") == operator_group("gelu_fp16") == operator_group("gelu") == "kernel/gelu"
    assert operator_group("fused_add_gelu", operators) == operator_group("add_gelu") == "problem/operator-add_gelu"
    assert operator_group("fused_cholesky_solve", operators) != operator_group("cholesky_solve", operators)
    assert operator_group("matmul_w8a8") == operator_group("linear_w4a16") == "kernel/quantized_matmul"
