"""Loaded students: the head is read back as trained, other files are refused, residuals follow their forests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import rlm_core
import torch
from rlm_core.errors import ModelError
from rlm_core.inference.card import read_card
from rlm_core.inference.encoder import open_session
from rlm_core.inference.residuals import Residuals, data_sheet_key
from rlm_core.inference.student import ENCODER, HEAD, NGRAM_RIDGE, TREES
from rlm_core.queries.query_vector import QUERY
from rlm_core.source.syntax_counts import FACTS
from rlm_core.training.student.network import Head, StudentConfig
from rlm_core.training.tuning.student import EditableModel, load_student, read_head
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
