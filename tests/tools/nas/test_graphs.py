"""Architecture codes -> ONNX graphs that are valid, run, and count what benchmarks print."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.errors import DataError

from tools.nas import fbnet, hat, mnasnet, nasbench101, nasbench201, nasbench_macro, ofa
from tools.nas.counts import count
from tools.nas.spaces import Architecture, build
from tools.nas.writer import with_weights, with_weights_as_inputs

pytestmark = pytest.mark.extras

CONV3 = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|"
SKIPS = "|skip_connect~0|+|skip_connect~0|none~1|+|skip_connect~0|none~1|none~2|"
NOTHING = "|nor_conv_3x3~0|+|none~0|none~1|+|none~0|none~1|avg_pool_3x3~2|"
DEAD = "|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|"
CELL = (
    "0100110;0010000;0001001;0000010;0000010;0000001;0000000",
    "input conv3x3-bn-relu maxpool3x3 conv3x3-bn-relu conv3x3-bn-relu conv1x1-bn-relu output",
)
SHALLOW = ("01;00", "input output")
UNEVEN = ("01111;00001;00001;00001;00000", "input conv3x3-bn-relu conv1x1-bn-relu maxpool3x3 output")
TRUNCATED = ("01100;00101;00011;00001;00000", "input conv1x1-bn-relu conv1x1-bn-relu maxpool3x3 output")
OFA = ("2 2 2 2 3", "7 5 5 5 7 7 5 7 5 7 3 7 5 3 7 3 5 3 5 3", "6 4 4 6 6 3 4 3 3 6 3 3 3 6 3 4 6 4 3 6")
MNASNET = ("6 4 6 6 6 1 1", "3 5 3 5 5 3 3", "1 2 3 3 2 2 2", "0 0 0 0 0 0 0")
SQUEEZED = ("4 6 4 4 4 1 6", "5 3 3 3 3 3 5", "3 1 1 2 3 2 2", "0 1 1 0 1 1 1")
HAT = {
    "encoder_embed_dim": "640",
    "encoder_layer_num": "6",
    "encoder_ffn_embed_dim_avg": "1962.67",
    "encoder_self_attention_heads_avg": "6.33333",
    "decoder_embed_dim": "512",
    "decoder_layer_num": "4",
    "decoder_ffn_embed_dim_avg": "1920",
    "decoder_self_attention_heads_avg": "2.5",
    "decoder_ende_attention_heads_avg": "5.5",
    "decoder_arbitrary_ende_attn_avg": "1.25",
}
SMALL_HAT = HAT | {
    "encoder_embed_dim": "64",
    "encoder_ffn_embed_dim_avg": "128",
    "decoder_embed_dim": "32",
    "decoder_layer_num": "2",
    "decoder_arbitrary_ende_attn_avg": "2",
}
ARCHITECTURES: tuple[Architecture, ...] = (
    ("nasbench201", (CONV3,)),
    ("nasbench201", (NOTHING,)),
    ("nasbench201", (DEAD,)),
    ("nasbench101", CELL),
    ("nasbench101", SHALLOW),
    ("nasbench101", TRUNCATED),
    ("nasbench_macro", ("00000000",)),
    ("nasbench_macro", ("12021102",)),
    ("mnasnet", MNASNET),
    ("mnasnet", SQUEEZED),
    ("fbnet", (" ".join(["k5_e6", "skip", "k3_e1_g2", "k5_e1", "k3_e3"] * 4 + ["k5_e1_g2", "skip"]),)),
    ("fbnet", (" ".join(["skip"] * 22),)),
    ("ofa", (132, *OFA)),
    ("ofa", (204, "4 2 3 2 4", *OFA[1:])),
    ("hat", ("iwslt14deen", hat.parse(SMALL_HAT))),
)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda a: f"{a[0]}-{str(a[1])[:20]}")
def test_every_space_gives_valid_graphs_that_run(architecture: Architecture) -> None:
    model = build(architecture)
    onnx.checker.check_model(with_weights_as_inputs(model), full_check=True)
    full = with_weights(model)
    onnx.checker.check_model(full, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(full.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {
        value.name: np.ones(value.shape, np.float32 if value.type == "tensor(float)" else np.int64)
        for value in session.get_inputs()
    }
    (output,) = session.run(None, feeds)
    assert output.shape == tuple(session.get_outputs()[0].shape)
    assert np.isfinite(output).all()


@pytest.mark.parametrize("task", list(hat.TASKS))
def test_transformers_of_every_task_are_valid(task: str) -> None:
    onnx.checker.check_model(with_weights_as_inputs(hat.build(task, hat.parse(HAT))), full_check=True)


@pytest.mark.parametrize(
    ("architecture", "parameters"),
    [
        (("nasbench201", (CONV3,)), 1_531_546),
        (("nasbench201", (SKIPS,)), 73_306),
        (("nasbench101", CELL), 8_555_530),
        (("nasbench_macro", ("00000000",)), 387_882),
        (("nasbench_macro", ("00000002",)), 1_219_370),
        (("mnasnet", MNASNET), 2_501_160),
        (("mnasnet", SQUEEZED), 4_563_978),
    ],
)
def test_parameters_are_those_that_benchmarks_print(architecture: Architecture, parameters: int) -> None:
    assert count(build(architecture)).parameters == parameters


def test_operations_are_those_that_benchmarks_print() -> None:
    assert count(nasbench_macro.build("00000000")).macs == 7_713_280
    assert count(nasbench_macro.build("00000002")).macs == 20_910_592
    assert float(f"{count(mnasnet.build(*MNASNET)).thop_operations / 1e6:.6g}") == 415.361
    assert float(f"{count(mnasnet.build(*SQUEEZED)).thop_operations / 1e6:.6g}") == 492.993


def test_a_graph_without_values_is_small_and_keeps_every_shape() -> None:
    model = build(("nasbench101", CELL))
    assert model.ByteSize() < 30_000
    assert {tuple(t.dims) for t in model.graph.initializer} == {
        tuple(t.dims) for t in with_weights(model).graph.initializer
    }


def test_values_are_the_same_for_the_same_seed() -> None:
    model = nasbench_macro.build("00000000")
    assert with_weights(model, 1).SerializeToString() == with_weights(model, 1).SerializeToString()
    assert with_weights(model, 1).SerializeToString() != with_weights(model, 2).SerializeToString()


def test_an_operation_with_an_unused_result_stays_in_the_graph() -> None:
    kinds = [node.op_type for node in nasbench201.build(DEAD).graph.node]
    without = [node.op_type for node in nasbench201.build(DEAD.replace("nor_conv_3x3", "none")).graph.node]
    assert kinds.count("Conv") == without.count("Conv") + 15
    assert nasbench201.key(DEAD) == nasbench201.key(DEAD.replace("nor_conv_3x3", "none"))


def test_other_data_sets_change_head_and_resolution_only() -> None:
    model = nasbench201.build(CONV3, classes=120, resolution=16)
    assert [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == [1, 3, 16, 16]
    assert count(model).parameters == 1_531_546 + 110 * 65


def test_cells_that_compute_the_same_function_share_a_key() -> None:
    through_node_1 = "|skip_connect~0|+|none~0|nor_conv_1x1~1|+|none~0|none~1|skip_connect~2|"
    through_node_2 = "|none~0|+|nor_conv_1x1~0|avg_pool_3x3~1|+|none~0|skip_connect~1|skip_connect~2|"
    assert nasbench201.key(through_node_1) == nasbench201.key(through_node_2)
    assert nasbench201.key(through_node_1) != nasbench201.key(CONV3)


def test_a_path_is_found_through_any_nodes() -> None:
    assert nasbench201.has_path(CONV3)
    assert nasbench201.has_path("|nor_conv_1x1~0|+|none~0|avg_pool_3x3~1|+|none~0|none~1|skip_connect~2|")
    assert not nasbench201.has_path(NOTHING)


def test_the_outputs_channels_are_split_evenly_with_the_rest_to_the_first() -> None:
    matrix, _ = nasbench101.parse(*UNEVEN)
    assert nasbench101.vertex_channels(128, 128, matrix) == [128, 43, 43, 42, 128]
    matrix, _ = nasbench101.parse(*TRUNCATED)
    assert nasbench101.vertex_channels(128, 256, matrix) == [128, 86, 85, 85, 256]
    assert "Slice" in [node.op_type for node in nasbench101.build(*TRUNCATED).graph.node]


def test_the_order_of_vertices_follows_the_number_of_parameters() -> None:
    stored = (
        "011011;001000;000101;000001;000001;000000",
        "input conv3x3-bn-relu conv3x3-bn-relu maxpool3x3 conv3x3-bn-relu output",
    )
    published = 4_871_494
    found = nasbench101.renumbered(*stored, published)
    assert nasbench101.parameters(*stored) == count(nasbench101.build(*stored)).parameters != published
    assert nasbench101.parameters(*found) == count(nasbench101.build(*found)).parameters == published
    assert nasbench101.key(*found) == nasbench101.key(*stored)
    assert nasbench101.renumbered(*found, published) == found
    assert nasbench101.renumbered(*stored, 1) == stored


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_the_key_of_a_nasbench101_cell_does_not_depend_on_the_numbering(data: st.DataObject) -> None:
    inner = data.draw(st.lists(st.sampled_from(["conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3"]), max_size=5))
    names = ["input", *inner, "output"]
    size = len(names)
    order = data.draw(st.permutations(range(1, size - 1)))
    place = [0, *(order.index(v) + 1 for v in range(1, size - 1)), size - 1]
    pairs = [(a, b) for a, b in itertools.combinations(range(size), 2) if place[a] < place[b]]
    edges = {pair for pair in pairs if data.draw(st.booleans())}
    moved = {(place[a], place[b]) for a, b in edges}
    shuffled = ["input", *(names[v] for v in order), "output"]
    assert nasbench101.key(*_cell(names, edges)) == nasbench101.key(*_cell(shuffled, moved))


def _cell(names: list[str], edges: set[tuple[int, int]]) -> tuple[str, str]:
    size = range(len(names))
    return ";".join("".join(str(int((a, b) in edges)) for b in size) for a in size), " ".join(names)


def test_layers_that_do_nothing_do_not_distinguish_architectures() -> None:
    assert nasbench_macro.key("10102021") == nasbench_macro.key("10120021")
    assert nasbench_macro.key("10102021") != nasbench_macro.key("10012021")
    blocks = ["k5_e6"] * 22
    first, second = blocks.copy(), blocks.copy()
    first[2], second[3] = "skip", "skip"
    assert fbnet.key(" ".join(first)) == fbnet.key(" ".join(second))
    first[1] = "skip"
    assert fbnet.key(" ".join(first)) != fbnet.key(" ".join(second))


def test_unused_entries_and_the_resolution_do_not_distinguish_ofa_architectures() -> None:
    depth, kernel, expand = OFA
    assert ofa.key(depth, kernel, expand) == ofa.key(depth, kernel[:4] + "3" + kernel[5:], expand)
    assert ofa.build(132, depth, kernel, expand) == ofa.build(132, depth, kernel[:4] + "3" + kernel[5:], expand)


def test_channels_are_multiples_of_eight_that_lose_at_most_a_tenth() -> None:
    assert [ofa.divisible(c) for c in (3, 16, 18, 20, 160 * 6)] == [8, 16, 24, 24, 960]


def test_a_hat_row_becomes_the_evenest_transformer_with_its_averages() -> None:
    sizes = hat.parse(HAT)
    assert (sizes.encoder_hidden, sizes.decoder_hidden) == (1963, 1920)
    assert (sizes.encoder_heads, sizes.decoder_heads, sizes.cross_heads) == (8, 2, 4)
    assert sizes.attended == (2, 1, 1, 1)
    assert count(hat.build("wmt14enfr", sizes)).macs > count(hat.build("wmt14ende", sizes)).macs


@pytest.mark.parametrize(
    "broken",
    [
        ("nasbench201", ("|nor_conv_3x3|",)),
        ("nasbench201", ("|conv_9x9~0|",)),
        ("nasbench201", ("|none~1|+|none~0|none~1|",)),
        ("nasbench101", ("01;10", "input output")),
        ("nasbench101", ("01;00", "input maxpool3x3 output")),
        ("nasbench101", ("0a;00", "input output")),
        ("nasbench_macro", ("0123",)),
        ("fbnet", ("skip",)),
        ("fbnet", (" ".join(["k9_e9"] * 22),)),
        ("ofa", (224, "2 2", "3", "3")),
        ("ofa", (224, "2 2 2 2 9", *OFA[1:])),
        ("ofa", (224, "a", *OFA[1:])),
        ("mnasnet", ("6 4", "3", "1", "0")),
        ("mnasnet", ("6", "3", "1", "0")),
        ("hat", ("wmt99", hat.parse(HAT))),
    ],
    ids=str,
)
def test_codes_that_are_no_architecture_are_refused(broken: Architecture) -> None:
    with pytest.raises(DataError):
        build(broken)


def test_a_hat_row_without_a_column_is_refused() -> None:
    with pytest.raises(DataError, match="decoder_layer_num"):
        hat.parse({name: value for name, value in HAT.items() if name != "decoder_layer_num"})
