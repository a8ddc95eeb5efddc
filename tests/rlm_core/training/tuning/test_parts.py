"""The parts of tuning, each by its law: heads read back, forests summed, scales moved, groups kept whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rlm_core
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.errors import ModelError
from rlm_core.inference.bins import Scale
from rlm_core.inference.calibration import INTERVALS, Calibration, Level
from rlm_core.inference.card import TaskCard, read_card
from rlm_core.inference.encoder import open_session
from rlm_core.inference.features import feature_names
from rlm_core.inference.ngram_ridge import code_weights
from rlm_core.inference.residuals import Residuals, data_sheet_key
from rlm_core.inference.student import ENCODER, HEAD, NGRAM_RIDGE, TREES
from rlm_core.queries.query_vector import QUERY
from rlm_core.source.syntax_counts import FACTS
from rlm_core.training.student.config import TreesConfig
from rlm_core.training.student.forest_fit import fit_forest
from rlm_core.training.student.network import Head, StudentConfig
from rlm_core.training.tuning.corrections import AffineCorrection, decoded, fit_correction, joined
from rlm_core.training.tuning.judging import HeadBands
from rlm_core.training.tuning.student import EditableModel, load_student, read_head
from rlm_core.training.tuning.tuners import folds_of, suffices
from rlm_core.types import LEVELS
from safetensors.torch import load_file

from tests.rlm_core.training.conftest import Trained


def test_the_head_of_an_export_is_the_trained_one(trained: Trained) -> None:
    sizes = StudentConfig(**read_card(trained.exported).sizes)
    head = Head(sizes)
    weights = load_file(trained.directory / "student.safetensors")
    head.load_state_dict({k.removeprefix("head."): w for k, w in weights.items() if k.startswith("head.")})
    for name, tensor in read_head(trained.exported / HEAD, sizes).state_dict().items():
        torch.testing.assert_close(tensor, head.state_dict()[name], atol=0, rtol=0, msg=name)


def test_the_head_of_the_shipped_model_answers_as_its_graph() -> None:
    directory = Path(rlm_core.__file__).parent / "builtin"
    sizes = StudentConfig(**read_card(directory).sizes)
    rows, generator = 2 * sizes.slices, torch.Generator().manual_seed(0)
    inputs = {
        "unit": torch.randn(rows, sizes.width, generator=generator),
        "callees": torch.randn(rows, 4 * sizes.width, generator=generator),
        "counts": torch.randint(0, 5, (rows, 2), generator=generator).float(),
        "wide": torch.rand(rows, generator=generator) * (sizes.outcomes - 1),
        "facts": 4 * torch.rand(rows, FACTS, generator=generator),
        "slice": torch.arange(sizes.slices).repeat(2),
        "date": torch.full((rows,), 2024.3),
        "query": torch.randn(rows, QUERY, generator=generator),
    }
    with torch.no_grad():
        logits = read_head(directory / HEAD, sizes)(*inputs.values())
    [answered] = open_session(directory / HEAD).run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
    torch.testing.assert_close(logits, torch.from_numpy(answered), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("moved", [False, True])
def test_devices_left_out_of_a_forest_say_nothing_of_another(trained: Trained, tmp_path: Path, moved: bool) -> None:
    kernels = "kernel/triton/latency"
    with load_student(trained.exported) as student:
        editable = EditableModel(student)
        editable.residuals[data_sheet_key(kernels)] = own = Residuals((0.0,) * len(LEVELS), 21, 500)
        if moved:
            editable.forests[kernels] = replace(editable.forests[kernels])
        editable.write(tmp_path, "team", {})
    found = read_card(tmp_path).residuals
    assert found.get(data_sheet_key(kernels)) == (None if moved else own)
    assert found.keys() - {data_sheet_key(kernels)} == student.card.residuals.keys()


def test_another_graph_is_refused_as_a_head(trained: Trained) -> None:
    with pytest.raises(ModelError, match="has no weights"):
        read_head(trained.exported / ENCODER, StudentConfig(**read_card(trained.exported).sizes))


def test_a_damaged_file_is_refused_as_a_head(trained: Trained) -> None:
    for name in (NGRAM_RIDGE, TREES):
        with pytest.raises(ModelError, match="not a usable ONNX model"):
            read_head(trained.exported / name, StudentConfig(**read_card(trained.exported).sizes))


def test_a_joined_forest_predicts_the_sum() -> None:
    rng = np.random.default_rng(0)
    told = rng.normal(size=(80, len(feature_names("kernel")))).astype(np.float32)
    config = TreesConfig(trees=5, seeds=1, leaves=4, leaf_rows=2)
    name, weights = "kernel/triton/residual", np.ones(80)
    first, second = (fit_forest(told, rng.normal(size=80), weights, name, config) for _ in range(2))
    np.testing.assert_allclose(
        joined(first, second).predict(told), first.predict(told) + second.predict(told), atol=1e-5
    )


def test_decoded_weights_are_coded_to_the_same(trained: Trained) -> None:
    with load_student(trained.exported) as student:
        for part in student.parts.values():
            again = code_weights(part.idf, decoded(part))
            np.testing.assert_array_equal(again.codes, part.codes)
            np.testing.assert_allclose(again.largest, part.largest, rtol=1e-6)


@given(st.floats(0.2, 3), st.floats(-3, 3), st.floats(-6, 2))
def test_a_moved_scale_gives_a_moved_value_its_place(slope: float, offset: float, log: float) -> None:
    moved = AffineCorrection(slope, offset)
    entry = TaskCard("program/java/memory", Scale(0.0, np.linspace(-7, 3, 65)), -2.0, (0.1,))
    place, again = entry.scale.position(10**log), moved.move_task(entry).scale.position(10 ** (slope * log + offset))
    np.testing.assert_allclose(again, place, atol=1e-6)


@given(st.floats(0.3, 2), st.floats(-2, 2), st.integers(20, 80))
@settings(max_examples=25)
def test_a_level_is_found_again(slope: float, offset: float, rows: int) -> None:
    predicted = np.linspace(-6, 0, rows)
    found = fit_correction(predicted, slope * predicted + offset)
    np.testing.assert_allclose(found.apply(predicted), slope * predicted + offset, atol=0.1)


def test_a_level_never_turns_the_ranks_around() -> None:
    predicted = np.linspace(-6, 0, 40)
    assert fit_correction(predicted, -predicted).slope > 0


@given(st.lists(st.sampled_from("abcdefgh"), min_size=3, max_size=60))
def test_a_group_is_in_one_fold_only(groups: list[str]) -> None:
    names = np.array(groups)
    folds = folds_of(names)
    assert all(len(set(folds[names == name])) == 1 for name in groups)
    assert len(set(folds)) == min(5, len(set(groups)))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((2, 2, 2), False), ((6, 3, 1), False), ((9, 1), False), ((6, 3, 2), True), ((1,) * 8, True)],
)
def test_a_level_needs_five_rows_whatever_fold_is_left_out(counts: tuple[int, ...], expected: bool) -> None:
    groups = np.repeat([f"group {number}" for number in range(len(counts))], counts)
    assert suffices(folds_of(groups)) is expected


@pytest.mark.parametrize(("groups", "expected"), [(40, 0.5), (10, 0.7)])
def test_few_groups_count_beside_the_models_own_levels(groups: int, expected: float) -> None:
    shipped = Calibration({"call": Level("call", (0.9,) * len(INTERVALS), 100, 1000)})
    names = np.array([f"module{number}" for number in range(groups)])
    bands = HeadBands("call/python/latency", shipped, "")
    covered = bands.after(np.full(groups, 0.5), names, np.array([expected - 0.01, expected + 0.01]))
    assert covered.tolist() == [True, False]
