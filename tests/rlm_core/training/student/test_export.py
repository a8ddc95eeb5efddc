"""Export: the shipped graphs give the numbers of the trained model, for each text alone and in any company."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import rlm_core
import torch
from rlm_core import CodeText, ModelError, Query
from rlm_core.inference import ngram_ridge, trees
from rlm_core.inference.card import StudentCard, read_card
from rlm_core.inference.encoder import encode, open_session
from rlm_core.inference.features import all_feature_names
from rlm_core.inference.head import on_axis, season
from rlm_core.inference.model_store import builtin
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.student import OnnxPredictor
from rlm_core.inference.tokenizer import Tokenizer, crop
from rlm_core.queries.query_vector import QUERY
from rlm_core.source.syntax_counts import FACTS, structure
from rlm_core.training.corpus import Corpus, load_corpus
from rlm_core.training.datasets.schema import read_rows
from rlm_core.training.student.batches import head_inputs
from rlm_core.training.student.encoder_fit import Bank
from rlm_core.training.student.export import export, export_encoder, export_head, read_encoder
from rlm_core.training.student.head_fit import Features, probabilities
from rlm_core.training.student.network import Encoder, Student, StudentConfig
from rlm_core.training.student.ngram_ridge_fit import BASES, contributions
from rlm_core.training.student.trees_fit import feature_matrix
from rlm_core.types import Callee
from safetensors.torch import load_file

from tests.rlm_core.training.conftest import Trained

Array = npt.NDArray[np.float64]
FILES = (
    *("card.json", "distance.safetensors", "encoder.onnx", "head.onnx", "tokenizer.model"),
    *("trees.safetensors", "wide.safetensors"),
)


def questions(data: Path) -> tuple[list[CodeText], list[Query]]:
    rows = list(read_rows([data]))
    codes = [
        CodeText(
            row["text"],
            row["language"],
            row["basis"],
            tuple(Callee(callee["text"], callee["level"]) for callee in row["callees"]),
        )
        for row in rows
    ]
    return codes, [Query(row["metric"], row["device"], row["workload"]) for row in rows]


def card_slices(card: StudentCard) -> list[str]:
    return [entry.name for entry in card.tasks]


def torch_distributions(directory: Path, corpus: Corpus) -> Array:
    """Distributions of all rows by the training code, in float32 and without padding, ``(rows, outcomes)``."""
    card = read_card(directory)
    student = Student(StudentConfig(**card.sizes))
    student.load_state_dict(load_file(directory / "student.safetensors"))
    student.eval()
    ids = corpus.encode(Tokenizer.load(directory / "tokenizer.model"))
    rows = corpus.rows
    position = np.zeros(len(rows))
    parts = dict(ngram_ridge.load(directory / "wide.safetensors"))
    forests = trees.load(directory / "trees.safetensors", all_feature_names())
    for number, task in enumerate(card.tasks):
        mine, basis = np.flatnonzero(rows.task == number), task.name.split("/")[0]
        logs = np.zeros(len(mine))
        if basis in BASES:
            dates = np.array([season(task, float(date)) for date in rows.date[mine]])
            logs = task.intercept + contributions(parts, corpus, ids, mine) + dates
        if task.name in forests:
            logs = forests[task.name].predict(feature_matrix(corpus, mine, basis, logs))
        position[mine] = on_axis(task, logs)
    lengths = np.array([len(text) for text in ids])
    counts = np.stack([structure(*entry) for entry in corpus.texts])
    inputs = head_inputs(corpus, counts, lengths, position, np.zeros(len(rows)))
    short = [crop(text, student.config.context)[0] for text in ids]
    with torch.inference_mode():
        vectors = torch.cat([student.encoder(torch.from_numpy(text[None, :].astype(np.int64))) for text in short])
    features = Features.build(inputs, Bank(vectors, torch.ones(len(vectors), dtype=torch.bool)))
    return probabilities(features, student.head, np.arange(len(rows)), [entry.scale for entry in card.tasks])


def test_each_of_several_models_of_one_size_is_exported_with_its_weights(tmp_path: Path) -> None:
    sizes = StudentConfig(width=16, layers=1, heads=2, hidden=24, head_hidden=16, base_hidden=16, vocabulary=64)
    rng = np.random.default_rng(0)
    inputs: dict[str, npt.NDArray[Any]] = {
        "unit": rng.normal(size=(5, 16)),
        "callees": rng.normal(size=(5, 64)),
        "counts": rng.integers(0, 3, (5, 2)),
        "wide": rng.uniform(0, 60, 5),
        "facts": rng.normal(size=(5, FACTS)),
        "date": rng.uniform(2020, 2026, 5),
        "query": rng.normal(size=(5, QUERY)),
    }
    arrays = {name: values.astype(np.float32) for name, values in inputs.items()} | {"slice": rng.integers(0, 12, 5)}
    ids = rng.integers(5, 64, (1, 9))
    for seed in range(2):
        torch.manual_seed(seed)
        student = Student(sizes).eval()
        with torch.no_grad():
            for parameter in student.parameters():
                parameter.add_(torch.randn_like(parameter) / 10)
            logits = student.head(**{name: torch.from_numpy(values) for name, values in arrays.items()})
            vector = student.encoder(torch.from_numpy(ids))
        export_head(student.head, sizes, tmp_path / "head.onnx")
        export_encoder(student, tmp_path / "encoder.onnx", quantise=False)
        head, encoder = (open_session(tmp_path / f"{name}.onnx") for name in ("head", "encoder"))
        np.testing.assert_allclose(head.run(None, arrays)[0], logits.numpy(), atol=1e-3)
        np.testing.assert_allclose(encoder.run(None, {"ids": ids})[0], vector.numpy(), atol=1e-4)


@pytest.mark.parametrize(("quantise", "tolerance"), [(False, 2e-3), (True, 0.1)])
def test_exported_numbers_are_those_of_training(
    trained: Trained, tmp_path: Path, quantise: bool, tolerance: float
) -> None:
    corpus = load_corpus([trained.data], forms=read_card(trained.directory).forms)
    export(trained.directory, tmp_path / "out", quantise=quantise)
    found, slices = OnnxPredictor(tmp_path / "out").distributions(*questions(trained.data))
    assert slices.tolist() == corpus.rows.task.tolist()
    distance = 0.5 * np.abs(found - torch_distributions(trained.directory, corpus)).sum(1)
    assert distance.max() < tolerance


def test_an_exported_directory_holds_what_its_card_names(trained: Trained) -> None:
    assert sorted(path.name for path in trained.exported.iterdir()) == sorted(FILES)
    assert sorted(read_card(trained.exported).files) == sorted(set(FILES) - {"card.json"})


def test_no_exported_file_is_a_pickle(trained: Trained) -> None:
    json.loads((trained.exported / "card.json").read_text())
    for path in trained.exported.iterdir():
        start = path.read_bytes()[:2]
        assert start != b"PK"
        assert start[:1] != b"\x80"


@pytest.mark.parametrize("name", ["encoder.onnx", "head.onnx"])
def test_no_exported_graph_reveals_paths_of_the_machine(trained: Trained, name: str) -> None:
    assert str(Path(rlm_core.__file__).parent).encode() not in (trained.exported / name).read_bytes()


def test_the_encoders_matrices_are_in_8_bits(trained: Trained, tmp_path: Path) -> None:
    export(trained.directory, tmp_path / "plain", quantise=False)
    assert (trained.exported / "encoder.onnx").stat().st_size < (tmp_path / "plain" / "encoder.onnx").stat().st_size


def test_a_text_has_one_number_alone_in_any_batch_and_in_any_order(trained: Trained) -> None:
    codes, queries = questions(trained.data)
    together = OnnxPredictor(trained.exported).predict(codes, [[query] for query in queries])
    order = list(range(len(codes)))
    random.Random(0).shuffle(order)
    shuffled = OnnxPredictor(trained.exported, threads=3).predict(
        [codes[i] for i in order], [[queries[i]] for i in order]
    )
    for place, i in enumerate(order):
        assert shuffled[place] == together[i]
    fresh = OnnxPredictor(trained.exported)
    for i in order[:12]:
        assert fresh.predict([codes[i]], [[queries[i]]]) == [together[i]]


def test_many_queries_about_a_text_are_answered_as_one_would_be(predictor: Predictor, trained: Trained) -> None:
    codes, _ = questions(trained.data)
    [both] = predictor.predict([codes[0]], [[Query("latency"), Query("memory"), Query("latency")]])
    assert predictor.predict([codes[0]] * 2, [[Query("latency")], [Query("memory")]]) == [[both[0]], [both[1]]]
    assert both[2] == both[0]


@pytest.mark.usefixtures("warm_children")
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_damaged_model_is_refused_by_the_files_name(trained: Trained, tmp_path: Path, name: str, damage: str) -> None:
    shutil.copytree(trained.exported, tmp_path / "model")
    path = tmp_path / "model" / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        rlm_core.load(tmp_path / "model")


@pytest.mark.usefixtures("warm_children")
@pytest.mark.parametrize("name", FILES[1:])
def test_a_damaged_file_with_a_right_checksum_is_refused_too(trained: Trained, tmp_path: Path, name: str) -> None:
    shutil.copytree(trained.exported, tmp_path / "model")
    path = tmp_path / "model" / name
    path.write_bytes(b"\x80\x04" + path.read_bytes()[: path.stat().st_size // 2])
    card = read_card(trained.exported)
    card.write(tmp_path / "model", [other for other in FILES if other != "card.json"])
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        rlm_core.load(tmp_path / "model")


def test_a_directory_that_was_not_trained_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"card\.json"):
        export(tmp_path, tmp_path / "out")


def test_rows_of_the_data_set_are_read_as_they_were_trained_on(trained: Trained) -> None:
    card = read_card(trained.exported)
    again = load_corpus([trained.data], tasks=[entry.name for entry in card.tasks])
    assert again.tasks == [entry.name for entry in card.tasks]


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
