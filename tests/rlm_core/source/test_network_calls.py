"""The network that a call or a text in a Python file names."""

from __future__ import annotations

import pytest
from rlm_core.source.network_calls import network_call
from rlm_core.source.parsed import ParsedSource


def found_at(text: str, word: str) -> str | None:
    source = text.encode()
    call = network_call(ParsedSource(source, "python"), source.index(word.encode()))
    return call.path if call is not None else None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('session = onnxruntime.InferenceSession("net.onnx")', "Inference"),
        ('session = ort.InferenceSession(path_or_bytes="net.onnx", providers=names)', "names"),
        ("session = InferenceSession('net.onnx')", "Inference"),
        ('torch.onnx.export(model, (x,), "net.onnx", opset_version=17)', "export"),
        ('def f(model):\n    torch.onnx.export(\n        model,\n        "net.onnx",\n    )', "model,"),
        ('model = onnx.load("net.onnx")', "load"),
        ('PATH = "net.onnx"', "net.onnx"),
    ],
)
def test_a_call_with_a_literal_path_names_its_network(text: str, word: str) -> None:
    assert found_at(text, word) == "net.onnx"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("session = InferenceSession(path)  # net.onnx", "Inference"),
        ('session = InferenceSession(f"{folder}/net.onnx")', "Inference"),
        ('session = InferenceSession(folder + "net.onnx")', "Inference"),
        ('print("net.onnx")', "print"),
        ('def f():\n    x = 1\n    return open("net.onnx")', "x = 1"),
    ],
)
def test_what_names_no_network_has_none(text: str, word: str) -> None:
    assert found_at(text, word) is None


def test_directives_next_to_a_call_belong_to_it() -> None:
    text = (
        "# rlm: sizes tokens=9\nx = 1\n# for the shop\n# rlm: sizes batch=8 image=384\n"
        'net = InferenceSession(\n    "net.onnx",\n)  # rlm: sizes samples=100\n'
    )
    call = network_call(ParsedSource(text.encode(), "python"), text.index("Inference"))
    assert call is not None
    assert [entry.text for entry in call.directives] == ["sizes batch=8 image=384", "sizes samples=100"]
