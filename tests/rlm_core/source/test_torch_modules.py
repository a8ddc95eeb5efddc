"""PyTorch modules in Python files: which classes they are, and what of the file the model reads about each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.torch_modules import find_modules, module_text
from rlm_core.types import Unit

FILE = """\
import torch
import torch.nn as nn

WIDTH, DEPTH = 64, 3
batch = 16
unused = 5


def act(x):
    return torch.relu(x)


class Block(nn.Module):
    def forward(self, x):
        return act(x)


class Other(nn.Module):
    pass


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x) * DEPTH


def get_inputs():
    return [torch.randn(batch, WIDTH)]


def test_model():
    Model()
"""


def modules(source: str) -> dict[str, Unit]:
    data = source.encode()
    return {unit.qualname: unit for unit in find_modules(ParsedSource(data, "python"))}


def test_each_module_class_is_a_unit() -> None:
    found = modules(FILE)
    assert list(found) == ["Block", "Other", "Model"]
    unit = found["Model"]
    assert (unit.kind, unit.language, unit.basis) == ("module", "pytorch", "module")
    assert FILE.encode()[: unit.header.end_byte].endswith(b"class Model(nn.Module):")


def test_the_text_holds_the_classes_functions_and_sizes_that_a_module_needs() -> None:
    text = modules(FILE)["Model"].text
    for part in ("class Model", "class Block", "def act", "WIDTH, DEPTH = 64, 3", "batch = 16", "def get_inputs"):
        assert part in text
    for part in ("import", "Other", "unused", "test_model"):
        assert part not in text
    assert text.index("WIDTH") < text.index("class Block") < text.index("class Model") < text.index("get_inputs")
    assert module_text(FILE) == module_text(FILE, "Model") == text


@pytest.mark.parametrize(
    ("lines", "base"),
    [
        ("import torch", "torch.nn.Module"),
        ("import torch.nn as nn", "nn.Module"),
        ("from torch import nn", "nn.Module"),
        ("from torch import nn as layers", "layers.Module"),
        ("from torch.nn import Module", "Module"),
        ("from torch.nn import Module as M", "Mixin, M"),
        ("import torch.nn.functional", "torch.nn.Module"),
        ("from torch.nn.modules.module import Module", "Module"),
    ],
)
def test_every_spelling_of_nn_module_is_known(lines: str, base: str) -> None:
    assert list(modules(f"{lines}\n\nclass A({base}):\n    pass\n\n\nclass B(A):\n    pass\n")) == ["A", "B"]


@pytest.mark.parametrize(("lines", "base"), [("from flax import linen as nn", "nn.Module"), ("import ast", "Module")])
def test_another_librarys_module_is_none(lines: str, base: str) -> None:
    assert modules(f"{lines}\n\nclass A({base}):\n    pass\n") == {}


def test_a_nested_class_is_read_by_itself() -> None:
    source = "from torch import nn\n\ndef make():\n    class A(nn.Module):\n        pass\n    return A\n"
    assert modules(source)["make.<locals>.A"].text.strip() == "class A(nn.Module):\n        pass"


def test_functions_represent_a_file_without_classes() -> None:
    source = (
        "import torch\n\ndef half(x):\n    return x / 2\n\ndef f(x):\n    return half(x)\n\ndef test_f():\n    f(1)\n"
    )
    assert module_text(source, "f") == "def half(x):\n    return x / 2\n\n\ndef f(x):\n    return half(x)\n"
    assert module_text(source) == module_text(source, "absent") == module_text(source, "f")
    assert module_text("x = 1\n") == "x = 1\n"


@given(st.text(alphabet="clasdefnn.Module():= \n'@x", max_size=80))
def test_odd_text_raises_nothing(text: str) -> None:
    modules(f"from torch import nn\n{text}")
    module_text(text, "x")
