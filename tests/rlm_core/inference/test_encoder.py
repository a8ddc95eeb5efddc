"""Encodings: each distinct text is encoded once, alone, and by content."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cachetools import LRUCache
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnxruntime import SessionOptions
from rlm_core.errors import ModelError, SourceError
from rlm_core.inference import encoder as encodings
from rlm_core.inference.encoder import Encodings, encode, open_session
from rlm_core.inference.ngram_ridge import NgramRidge, code_weights
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.source.canonical import canonical
from rlm_core.source.syntax_counts import structure

CONTEXT = 24
FUNCTION = "def f(items):\n    return sorted(items)\n"
KERNEL = "@triton.jit\ndef k(x, n):\n    tl.store(x, tl.load(x) + 1)\n"


class CountingSession:
    """Stands in for onnxruntime: a vector that tells the ids apart, and the shapes that were asked."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []
        self._lock = threading.Lock()

    def get_outputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(shape=[1, 2])]

    def run(self, outputs: None, inputs: dict[str, Any]) -> list[npt.NDArray[np.float32]]:
        ids = inputs["ids"]
        assert ids.dtype == np.int64
        with self._lock:
            self.shapes.append(ids.shape)
        return [np.array([[ids.sum(), (ids * np.arange(1, ids.shape[1] + 1)).sum()]], np.float32)]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> CountingSession:
    """The session that every encoder file opens."""
    found = CountingSession()
    monkeypatch.setattr(encodings, "open_session", lambda path: found)
    return found


@pytest.fixture
def made(session: CountingSession, small_tokenizer: Tokenizer) -> Encodings:
    """Encodings with a wide part for Python functions."""
    rng = np.random.default_rng(0)
    part: NgramRidge = code_weights(np.ones(256, np.float32), rng.normal(size=(3, 2, 256)).astype(np.float32))
    return Encodings(Path("encoder.onnx"), small_tokenizer, {"call/python": part}, CONTEXT, threads=2)


def test_a_text_is_encoded_once_alone_and_without_padding(
    made: Encodings, session: CountingSession, small_tokenizer: Tokenizer
) -> None:
    entries = [("x = 1\n", "python", "call"), ("yy = 22\n", "python", "call"), ("x = 1\n", "python", "call")]
    found = made.of(entries)
    assert made.of(entries[:1])[entries[0]] is found[entries[0]]
    lengths = {len(small_tokenizer.encode(canonical(text, "python"), "python")) for text, _, _ in entries}
    assert sorted(session.shapes) == sorted((1, length) for length in lengths)


def test_a_text_that_no_task_needs_encoded_is_read_without_the_encoder(
    made: Encodings, small_tokenizer: Tokenizer, session: CountingSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "_encoded", {"program/python"})
    long = "\n".join(f"x{number} = {number}" for number in range(10 * CONTEXT))
    entries = [(long, "python", "call"), (long, "python", "program")]
    found = made.of(entries)
    assert not found[entries[0]].vector.any()
    assert found[entries[1]].vector.any()
    assert [found[entry].truncated for entry in entries] == [False, True]
    assert found[entries[0]].tokens == found[entries[1]].tokens == len(small_tokenizer.encode(long, "python"))
    assert len(session.shapes) == 1


def test_comments_and_layout_share_an_encoding(made: Encodings, session: CountingSession) -> None:
    first, second = (FUNCTION, "python", "call"), ("# why\n" + FUNCTION.replace("    ", "  "), "python", "call")
    found = made.of([first, second])
    assert found[first] is found[second]
    assert len(session.shapes) == 1


def test_the_same_text_in_another_language_or_basis_is_another_encoding(made: Encodings) -> None:
    entries = [("x", "python", "call"), ("x", "ruby", "program"), ("x", "python", "program")]
    found = made.of(entries)
    assert len({id(encoding) for encoding in found.values()}) == 3
    assert found[entries[0]].vector.tolist() != found[entries[1]].vector.tolist()


def test_only_a_slice_with_a_wide_part_has_contributions(made: Encodings) -> None:
    function, program = (FUNCTION, "python", "call"), (FUNCTION, "python", "program")
    found = made.of([function, program])
    own = found[function].contributions
    assert own is not None
    assert own.shape == (3, 2)
    assert found[program].contributions is None


def test_only_a_basis_with_trees_is_described(made: Encodings) -> None:
    function, kernel = (FUNCTION, "python", "call"), (KERNEL, "triton", "kernel")
    found = made.of([function, kernel])
    assert found[function].described is None
    assert found[kernel].described is not None


def test_counts_are_those_of_the_canonical_text(made: Encodings) -> None:
    entry = ("# a comment\n" + FUNCTION, "python", "call")
    assert made.of([entry])[entry].counts.tolist() == structure(canonical(FUNCTION, "python"), "python").tolist()


def test_a_long_text_is_cropped_and_reported(made: Encodings, session: CountingSession) -> None:
    long, short = ("x = y + z\n" * 200, "python", "call"), ("x\n", "python", "call")
    found = made.of([long, short])
    assert (found[long].truncated, found[short].truncated) == (True, False)
    assert found[long].tokens > CONTEXT >= max(shape[1] for shape in session.shapes)


def test_no_queries_give_no_results(made: Encodings) -> None:
    assert made.of([]) == {}


def test_an_unknown_language_is_an_error_and_does_no_lasting_harm(made: Encodings) -> None:
    with pytest.raises(SourceError, match="unknown language 'cobol'"):
        made.of([("x", "cobol", "call")])
    assert made.of([("x", "python", "call")])


def test_old_texts_make_room_for_new_ones(made: Encodings, session: CountingSession) -> None:
    made._encodings, made._keys = LRUCache(3), LRUCache(3)
    entries = [(f"x = {number}\n", "python", "call") for number in range(4)]
    for entry in (*entries[:3], entries[0], entries[3]):
        made.of([entry])
    before = len(session.shapes)
    made.of([entries[0], entries[2], entries[3]])
    assert len(session.shapes) == before
    made.of([entries[1]])
    assert len(session.shapes) == before + 1


def test_more_texts_than_are_remembered_are_all_answered(made: Encodings) -> None:
    made._encodings, made._keys = LRUCache(3), LRUCache(3)
    entries = [(f"x = {number}\n", "python", "call") for number in range(20)]
    assert made.of(entries).keys() == set(entries)


def test_threads_may_query_concurrently(made: Encodings) -> None:
    entries = [(f"x{number} = f({number})\n", "python", "call") for number in range(40)]
    expected = {entry: made.of([entry])[entry].vector.tolist() for entry in entries}
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(made.of, [entries, entries[::-1], entries[::2], entries[1::2]]):
            assert all(encoding.vector.tolist() == expected[entry] for entry, encoding in found.items())


def test_one_text_gives_one_vector(session: CountingSession) -> None:
    assert encode(session, np.array([1, 2], np.int32)).tolist() == [3, 5]


@pytest.mark.parametrize("content", [None, b"", b"not a model", b"\x80\x04\x95"])
def test_a_bad_model_file_is_one_line_with_its_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "encoder.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=r"encoder\.onnx: (not a usable ONNX model|cannot be read)") as caught:
        open_session(path)
    assert "\n" not in str(caught.value)


def test_an_encoder_that_asks_for_too_much_memory_is_one_line(tmp_path: Path) -> None:
    shape = numpy_helper.from_array(np.array([10**12], np.int64), "shape")
    nodes = [
        helper.make_node("Cast", ["ids"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Slice", ["f", "from", "to", "axes"], ["one"]),
        helper.make_node("Squeeze", ["one", "both"], ["scalar"]),
        helper.make_node("Expand", ["scalar", "shape"], ["y"]),
    ]
    numbers = {"from": [0], "to": [1], "axes": [1], "both": [0, 1]}
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m"])
    graph = helper.make_graph(
        nodes,
        "g",
        [ids],
        [y],
        [shape, *(numpy_helper.from_array(np.array(v, np.int64), k) for k, v in numbers.items())],
    )
    path = tmp_path / "encoder.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    )
    with pytest.raises(ModelError, match=r"not a usable ONNX model|the encoder of the model cannot be run"):
        encode(open_session(path), np.array([1, 2], np.int32))


def product_session(weights: npt.NDArray[np.int8], path: Path) -> Path:
    """A model that multiplies its input by weights of 8 bits, as the layers of the encoder do."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node("MatMulInteger", ["q", "w", "zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["floats", "scale"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, len(weights)])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, weights.shape[1]])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def test_sums_of_8_bit_products_are_exact_on_this_cpu(tmp_path: Path) -> None:
    weights = np.full((64, 3), 127, np.int8)
    session = open_session(product_session(weights, tmp_path / "product.onnx"))
    [found] = session.run(None, {"x": np.linspace(0.99, 1, 64, dtype=np.float32)[None]})
    assert found == pytest.approx(np.full((1, 3), np.linspace(0.99, 1, 64).sum() * 127), rel=0.01)


def test_the_model_of_that_product_is_a_plain_one() -> None:
    infos = [("a", TensorProto.UINT8), ("b", TensorProto.INT8), ("c", TensorProto.INT32)]
    a, b, c = (helper.make_tensor_value_info(name, kind, None) for name, kind in infos)
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "b"], ["c"])], "p", [a, b], [c])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=7)
    expected = ModelProto.FromString(encodings._PRODUCT)
    assert (model.graph, list(model.opset_import)) == (expected.graph, list(expected.opset_import))


@pytest.mark.parametrize("result", [64 * 255 * 127, 64 * 32767 // 2])
def test_a_product_shows_whether_sums_saturate(result: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Product:
        def __init__(self, model: bytes, options: SessionOptions, providers: list[str]) -> None:
            assert model == encodings._PRODUCT

        def run(self, outputs: None, inputs: dict[str, Any]) -> list[npt.NDArray[np.int32]]:
            return [np.array([[result]], np.int32)]

    monkeypatch.setattr("onnxruntime.InferenceSession", Product)
    assert encodings.saturates.__wrapped__() == (result != 64 * 255 * 127)


_ENDING = """
import sys, threading
from rlm_core.errors import StoppedError
from rlm_core.inference.encoder import Encodings
from rlm_core.inference.model_store import builtin
from rlm_core.inference.student import OnnxPredictor

encodings = OnnxPredictor(builtin(), threads=1)._encodings

def ask():
    threading.main_thread().join()  # the main thread has ended: the process waits for this one
    try:
        encodings.of([("def f(): pass", "python", "call")])
    except StoppedError:
        print("stopped")

threading.Thread(target=ask).start()
"""


def test_texts_are_not_encoded_while_the_process_ends() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", _ENDING], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("stopped\n", "")
