"""The spaces by name: a space and the arguments of one architecture -> its ONNX model."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from . import fbnet, hat, mnasnet, nasbench101, nasbench201, nasbench_macro, ofa

Architecture = tuple[str, tuple[object, ...]]

_SPACES: dict[str, Callable[..., onnx.ModelProto]] = {
    "nasbench201": nasbench201.build,
    "nasbench101": nasbench101.build,
    "nasbench_macro": nasbench_macro.build,
    "mnasnet": mnasnet.build,
    "fbnet": fbnet.build,
    "ofa": ofa.build,
    "hat": hat.build,
}


def build(architecture: Architecture) -> onnx.ModelProto:
    """The network of (name of the space, arguments of that space's ``build``)."""
    space, arguments = architecture
    return _SPACES[space](*arguments)
