"""Fuzzed readers of other formats: ONNX networks, Triton IR, and requests to a model server."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

from rlm_core.errors import RlmError

from . import fuzz_generators as generate
from .fuzz_target import Target, one_line


class Networks(Target):
    """ONNX files of users: read, written as text, and their costs."""

    name = "onnx"
    share = 0.1

    @cached_property
    def _seeds(self) -> list[Any]:
        import numpy as np
        from onnx import TensorProto, helper, numpy_helper

        def tensor(name: str, *shape: int | str) -> Any:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))

        def weight(name: str, *shape: int) -> Any:
            return numpy_helper.from_array(np.zeros(shape, np.float32), name)

        nodes = [
            helper.make_node("Conv", ["x", "w", "b"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("GlobalAveragePool", ["r"], ["p"]),
            helper.make_node("Flatten", ["p"], ["f"]),
            helper.make_node("Gemm", ["f", "m"], ["y"], transB=1),
        ]
        body = helper.make_graph([helper.make_node("Relu", ["f"], ["o"])], "body", [], [tensor("o", 1, 8)])
        branches = [
            *nodes[:4],
            helper.make_node("Constant", [], ["k"], value=helper.make_tensor("k", TensorProto.BOOL, [], [True])),
            helper.make_node("If", ["k"], ["y"], then_branch=body, else_branch=body),
        ]
        inputs, weights = [tensor("x", "n", 3, 32, 32)], [weight("w", 8, 3, 3, 3), weight("b", 8), weight("m", 4, 8)]
        return [
            helper.make_model(
                helper.make_graph(chosen, "g", inputs, [tensor("y", "n", 4)], weights),
                opset_imports=[helper.make_opsetid("", 17)],
                ir_version=9,
            )
            for chosen in (nodes, branches)
        ]

    def make(self, rng: random.Random) -> bytes:
        return generate.proto_bytes(rng, self._seeds)

    def read(self, data: bytes) -> None:
        from rlm_core.source.onnx_graph.costs import costs, total
        from rlm_core.source.onnx_graph.reader import read_onnx
        from rlm_core.source.onnx_graph.render import render

        graph = read_onnx(self.file("network.onnx", data))
        render(graph)
        total(costs(graph))


class TritonIr(Target):
    """Triton IR: its functions, canonical text and sizes."""

    name = "ttir"
    share = 0.3
    _WORDS = (
        *("tt.func", "public", "@k", "(", ")", "{", "}", "%arg0", ":", "!tt.ptr<f32>", "{tt.divisibility = 16 : i32}"),
        *(
            "loc(",
            "#loc",
            '"k.py":1:0',
            "\n",
            " " * 30,
            "tt.load",
            "tt.return",
            "tensor<64x64xf32>",
            "9" * 50,
            "\0",
            "`",
        ),
        *("scf.for", "=", "arith.constant", "dense<0>", "<", ">", "module", "@", '"', "\ud800", "\r", "\u2028", "-"),
    )
    _SEEDS = (
        '#loc = loc("k.py":1:0)\nmodule {\n  tt.func public @k(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {\n'
        "    %c = arith.constant 64 : i32 loc(#loc)\n    %0 = tt.load %arg0 : !tt.ptr<f32> loc(#loc2)\n"
        "    tt.return loc(#loc)\n  }\n}\n",
        "tt.func @f(%x: i32) {\n  scf.for %i = %x to %x {\n    %t = tt.dot %a, %b : tensor<64x64xf32>\n  }\n"
        "  tt.return\n}\n",
    )

    def make(self, rng: random.Random) -> bytes:
        return generate.broken(rng, generate.lines(rng, self._WORDS, self._SEEDS).encode("utf-8", "surrogatepass"), 0.1)

    def read(self, data: bytes) -> None:
        from rlm_core.inference.features import describe
        from rlm_core.source.canonical import canonical
        from rlm_core.source.units import find_units, read_source

        for unit in find_units(read_source(self.file("kernel.ttir", data))):
            describe(canonical(unit.text, unit.language), unit.basis, unit.language)


class Http(Target):
    """The bodies of requests to a model server, and of its answers to a client."""

    name = "http"
    _REQUEST: ClassVar[Any] = {
        "version": 3,
        "questions": [
            {
                "text": "def f(): pass",
                "language": "python",
                "basis": "call",
                "queries": [{"metric": "latency", "device": "x86-64", "workload": {"n": "3"}}],
                "callees": [{"text": "def g(): pass", "depth": 1}],
            }
        ],
    }
    _ANSWER: ClassVar[Any] = {
        "version": 3,
        "model": "m",
        "predictions": [[{"basis": "call", "metric": "latency", "device": None, "workload": {}, "model_id": "m"}]],
    }
    _PLAIN: Sequence[Any] = ({"error": "no"}, {"status": "ok", "queued": 3})

    @cached_property
    def _answers(self) -> list[Any]:
        from rlm_core.serving import wire

        from tests.rlm_core.serving.support import LATENCY, LengthPredictor, call

        found = tuple(map(tuple, LengthPredictor().predict([call("abc"), call("odd")], [LATENCY, LATENCY])))
        answer = json.loads(wire.write(wire.Answer(version=wire.VERSION, model="m", predictions=found)))
        return [answer, self._ANSWER, *self._PLAIN]

    def make(self, rng: random.Random) -> bytes:
        if rng.random() < 0.6:
            return b"Q" + generate.json_bytes(rng, [self._REQUEST])
        return b"A" + generate.json_bytes(rng, self._answers)

    def read(self, data: bytes) -> None:
        from rlm_core.serving import wire
        from rlm_core.serving.typed_json import WireError

        if data[:1] == b"Q":
            if len(data) > wire.Limits().body_bytes:
                raise RlmError("a longer body is refused before it is read")
            for question in wire.read_request(data[1:]).questions:
                _ = question.characters, question.code
            return
        readers: tuple[Callable[[bytes], object], ...] = (
            partial(wire.read, wire.Answer),
            partial(wire.read, wire.Problem),
            partial(wire.read, wire.Health),
        )
        for read in readers:
            try:
                read(data[1:])
            except WireError as error:
                one_line(str(error))
