"""Sizes of modules from how a file calls them and from their layers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.queries.module_sizes import InferredSizes, example_sizes, forward_parameters, inferred_sizes
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.torch_modules import find_modules

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
NET = f"""{HEAD}
class Net(nn.Module):
    def __init__(self, width, depth=2):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = F.relu(layer(x))
        return x
"""


def sizes(source: str, name: str = "Net") -> InferredSizes | None:
    modules = find_modules(ParsedSource(source.encode(), "python"))
    inferred = inferred_sizes(source.encode(), [(unit.qualname, unit.text) for unit in modules])
    return dict(zip((unit.qualname for unit in modules), inferred, strict=True))[name]


def layered(init: str, forward: str, inputs: str = "x") -> dict[str, str] | None:
    """The sizes of a module with a body of ``__init__`` and an expression for ``forward``."""
    made = "\n".join(f"        {line}" for line in init.splitlines())
    inferred = sizes(
        f"{HEAD}\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n{made}\n\n"
        f"    def forward(self, {inputs}):\n        return {forward}\n"
    )
    return dict(inferred.workload) if inferred is not None else None


@pytest.mark.parametrize(
    "calling",
    [
        "model = Net(64)\nmodel(torch.randn(8, 64))",
        "x = torch.zeros(8, 64)\nNet(64).cuda().eval()(x.cuda())",
        "net = torch.compile(Net(width=64))\nnet.forward(torch.ones((8, 64)))",
        "B, D = 8, 32 * 2\ndevice = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
        "model = Net(D).to(device)\nwith torch.no_grad():\n    y = model(torch.rand(B, D, device=device))",
        "if __name__ == '__main__':\n    model = Net(64)\n    print(model(torch.empty(8, 64)).shape)",
        "def main():\n    Net(64)(torch.randn(8, 64))",
        "def test_shape():\n    assert Net(64)(torch.randn(8, 64)).shape == (8, 64)",
        "class TestNet:\n    def test_shape(self):\n        assert Net(64)(x=torch.randn(8, 64)) is not None",
        "def train(loader):\n    for x in loader:\n        Net(64)(x)\n\ntrain([])\nNet(64)(torch.randn([8, 64]))",
    ],
)
def test_a_call_in_the_file_gives_the_sizes(calling: str) -> None:
    inferred = sizes(f"{NET}\n{calling}\n")
    assert inferred is not None
    assert dict(inferred.workload) == {"x": "8x64", "width": "64"}
    assert inferred.line is not None
    assert "torch" in inferred.call or "(x" in inferred.call


def test_the_line_is_that_of_the_first_call_and_its_text() -> None:
    source = f"{NET}\nmodel = Net(64, depth=3)\nmodel(torch.randn(8,\n  64))\nmodel(torch.randn(9, 64))\n"
    line = source.splitlines().index("model(torch.randn(8,") + 1
    workload = {"x": "8x64", "width": "64", "depth": "3"}
    assert sizes(source) == InferredSizes(workload, line, "model(torch.randn(8, 64))")


def test_a_module_inside_another_has_the_sizes_that_follow_from_the_call() -> None:
    outer = (
        "class Outer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = Net(32)\n\n"
    )
    outer += "    def forward(self, x):\n        return self.net(x[:, :32])\n"
    inferred = sizes(f"{NET}\n{outer}\nOuter()(torch.randn(8, 64))\n")
    assert inferred is not None
    assert (inferred.workload, inferred.call) == ({"x": "8x32", "width": "32"}, "Outer()(torch.randn(8, 64))")


@pytest.mark.parametrize(
    ("init", "forward", "expected"),
    [
        ("self.a = nn.Linear(1024, 10)", "self.a(x)", {"x": "32x1024"}),
        ("self.b = nn.Linear(8, 10)\nself.a = nn.Linear(1024, 8)", "self.b(self.a(x))", {"x": "32x1024"}),
        ("self.a = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 10))", "self.a(x)", {"x": "32x784"}),
        ("self.a = nn.Conv2d(3, 8, 3)", "self.a(x)", {"x": "32x3x224x224"}),
        (
            "self.a = nn.Conv2d(1, 8, 3)\nself.b = nn.Linear(8 * 26 * 26, 2)",
            "self.b(self.a(x).flatten(1))",
            {"x": "32x1x28x28"},
        ),
        ("self.a = nn.Conv1d(16, 8, 3)", "self.a(x)", {"x": "32x16x128"}),
        ("self.e = nn.Embedding(1000, 64)\nself.a = nn.Linear(64, 8)", "self.a(self.e(x))", {"x": "32x128"}),
        ("self.a = nn.LSTM(40, 64, batch_first=True)", "self.a(x)[0]", {"x": "32x128x40"}),
        ("self.n = nn.LayerNorm(64)\nself.a = nn.Linear(64, 8)", "self.a(self.n(x))", {"x": "32x128x64"}),
    ],
)
def test_the_layers_give_the_sizes_that_the_module_fixes(init: str, forward: str, expected: dict[str, str]) -> None:
    assert layered(init, forward) == expected


def test_several_inputs_may_have_separate_layers() -> None:
    init = "self.a = nn.Linear(100, 64)\nself.b = nn.Linear(30, 64)"
    assert layered(init, "self.a(user) * self.b(item)", "user, item") == {"user": "32x100", "item": "32x30"}


@pytest.mark.parametrize(
    ("init", "forward", "inputs"),
    [
        ("pass", "x * 2", "x"),
        ("self.a = nn.Linear(8, 8)", "helper(x).decode(self.a)", "x"),
        ("self.a = nn.Linear(8, 8)", "self.a(a + b + c + d + e)", "a, b, c, d, e"),
    ],
)
def test_what_does_not_follow_from_the_layers_is_unknown(init: str, forward: str, inputs: str) -> None:
    assert layered(init, forward, inputs) is None


def test_sizes_in_the_text_are_left_alone() -> None:
    assert sizes(f"{NET}\ndef get_inputs():\n    return [torch.randn(4, 4)]\n\nNet(64)(torch.randn(8, 64))\n") is None


def test_the_example_names_the_parameters() -> None:
    [unit] = find_modules(ParsedSource(NET.encode(), "python"))
    assert sizes(NET) is None
    assert example_sizes(unit.text) == "x=32x1024 width=1024"
    assert forward_parameters("Net", unit.text) == ["x"]
    assert example_sizes("") == "arg0=32x1024"


@pytest.mark.parametrize("size", ["10**12", "-1", "0", "float('nan')", "10**400"])
def test_absurd_sizes_are_not_taken(size: str) -> None:
    inferred = sizes(f"{NET}\nmodel = Net(64)\nmodel(torch.randn({size}, 64))\n")
    assert inferred is None or "64" in inferred.workload["x"]


def test_a_file_that_never_ends_is_left(tmp_path: object) -> None:
    loop = "while True:\n    for i in range(10**9):\n        torch.randn(3)\n"
    assert sizes(f"{NET}\n{loop}\nNet(64)(torch.randn(8, 64))\n") is None
    recursion = "def main():\n    main()\n    torch.randn(1)\n"
    inferred = sizes(f"{NET}\nNet(64)(torch.randn(8, 64))\n{recursion}")
    assert inferred is not None


@given(
    st.text(max_size=80), st.sampled_from(["torch.randn(8, 64)", "", "1", "torch.randn(q, 2)", "*torch.randn(2, 2)"])
)
def test_any_text_around_a_module_gets_an_answer(text: str, given_to: str) -> None:
    source = f"{NET}\nmodel = Net(64)\nmodel({given_to})\n{text}\n"
    modules = [("Net", NET)]
    assert len(inferred_sizes(source.encode("utf-8", "replace"), modules)) == 1
