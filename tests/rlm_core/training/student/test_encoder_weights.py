"""A student's encoder read back, from a trained folder and from an exported one, whatever form its matrices have."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from rlm_core.errors import ModelError
from rlm_core.inference.encoder import encode, open_session
from rlm_core.inference.model_store import builtin
from rlm_core.training.student.encoder_weights import read_encoder
from rlm_core.training.student.export import export_encoder
from rlm_core.training.student.network import Encoder, Student, StudentConfig
from safetensors.torch import load_file

from tests.rlm_core.training.conftest import Trained


def state_of(directory: Path) -> dict[str, torch.Tensor]:
    weights = load_file(directory / "student.safetensors")
    return {name.removeprefix("encoder."): own for name, own in weights.items() if name.startswith("encoder.")}


def assert_equal(encoder: Encoder, state: dict[str, torch.Tensor]) -> None:
    assert encoder.state_dict().keys() == state.keys()
    for name, own in encoder.state_dict().items():
        torch.testing.assert_close(own, state[name], rtol=0, atol=0, msg=name)


def test_a_trained_folder_gives_its_weights(trained: Trained) -> None:
    assert_equal(read_encoder(trained.directory), state_of(trained.directory))


def test_an_exported_folder_gives_them_rounded_to_its_int8(trained: Trained) -> None:
    encoder, state = read_encoder(trained.exported), state_of(trained.directory)
    assert encoder.training
    for name, own in encoder.state_dict().items():
        # Symmetric eight bits, a scale a column of the product or one for the whole table.
        step = state[name].abs().max() / 127
        assert (own - state[name]).abs().max() <= step, name


def with_encoder(directory: Path, folder: Path, sizes: StudentConfig, *, quantise: bool) -> dict[str, torch.Tensor]:
    """A folder whose encoder has random weights; those weights."""
    student = Student(sizes)
    for parameter in student.encoder.parameters():
        torch.nn.init.normal_(parameter)
    shutil.copytree(directory, folder, dirs_exist_ok=True)
    card = json.loads((folder / "card.json").read_text())
    card["sizes"], card["files"] = sizes.to_json(), {}
    (folder / "card.json").write_text(json.dumps(card))
    export_encoder(student.eval(), folder / "encoder.onnx", quantise=quantise)
    return student.encoder.state_dict()


def test_an_export_in_float32_gives_all_weights_exactly(trained: Trained, tmp_path: Path) -> None:
    sizes = StudentConfig(vocabulary=540, width=16, layers=2, heads=2, hidden=24, context=48)
    weights = with_encoder(trained.exported, tmp_path, sizes, quantise=False)
    assert_equal(read_encoder(tmp_path), weights)


def test_the_shipped_encoder_answers_as_its_graph_does() -> None:
    encoder = read_encoder(builtin()).eval()
    session = open_session(builtin() / "encoder.onnx")
    rng = np.random.default_rng(1)
    for length in (1, 30, 512):
        ids = rng.integers(5, encoder.config.vocabulary, length)
        with torch.inference_mode():
            found = encoder(torch.from_numpy(ids)[None])[0]
        expected = torch.from_numpy(encode(session, ids.astype(np.int32)))
        assert torch.cosine_similarity(found, expected, dim=0) > 0.99


def test_a_graph_whose_products_represent_other_matrices_is_refused(trained: Trained, tmp_path: Path) -> None:
    sizes = StudentConfig(**json.loads((trained.exported / "card.json").read_text())["sizes"])
    with_encoder(trained.exported, tmp_path, sizes, quantise=True)
    card = json.loads((tmp_path / "card.json").read_text())
    card["sizes"]["heads"] *= 2  # the same shapes, another encoder
    (tmp_path / "card.json").write_text(json.dumps(card))
    with pytest.raises(ModelError, match=r"encoder\.onnx: is not the encoder of a student \(cosine .*export the model"):
        read_encoder(tmp_path)


def test_a_graph_of_other_sizes_is_refused(trained: Trained, tmp_path: Path) -> None:
    shutil.copytree(trained.exported, tmp_path, dirs_exist_ok=True)
    card = json.loads((tmp_path / "card.json").read_text())
    card["sizes"]["layers"] += 1
    card["files"] = {}
    (tmp_path / "card.json").write_text(json.dumps(card))
    with pytest.raises(ModelError, match=r"encoder\.onnx: has no weights layers\.1\..* export the model again"):
        read_encoder(tmp_path)
    card["sizes"]["wings"] = 2
    (tmp_path / "card.json").write_text(json.dumps(card))
    with pytest.raises(ModelError, match=r"the sizes in its card are not those of a student .*wings"):
        read_encoder(tmp_path)
