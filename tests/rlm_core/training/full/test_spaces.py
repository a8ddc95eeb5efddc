"""Spaces: what a published or a user's own data set measured, on which device, and how a model is asked about it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rlm_core.errors import DataError
from rlm_core.training.full.spaces import APPS, KERNELBOOK, SPACES, TRITON_LATENCY, new_space, on_device, spaces_of

OWN: dict[str, Any] = {"name": "ours", "basis": "call", "metric": "memory", "languages": ("python",), "unit": 1024.0}


def test_the_device_of_a_space_that_names_none_is_the_users() -> None:
    (space,) = spaces_of("Srizzle/triton-demo", "A100 80GB")
    assert (space.basis, space.languages, space.unit, space.prefix) == ("module", ("pytorch",), 1e-3, "")
    assert space.device == "nvidia-a100-sxm4-80gb"
    assert spaces_of("someone/else", None) == SPACES
    apps, kernels, triton = on_device([APPS, KERNELBOOK, TRITON_LATENCY], "H100", "x")
    assert (apps, kernels, triton.device) == (APPS, KERNELBOOK, "nvidia-h100-sxm")


@pytest.mark.parametrize(
    ("model", "device", "message"),
    [
        ("Srizzle/triton-demo", None, "Srizzle/triton-demo: no public source names the GPU"),
        ("Srizzle/triton-demo", "abacus", "--device abacus: unknown; name the device of the measurements"),
        ("Srizzle/triton-demo", "x86-64", "--device x86-64: not a GPU, which a module runs on"),
        ("someone/else", "H100", "--device H100: does not apply to someone/else; leave the option out"),
    ],
)
def test_a_device_that_is_missing_or_wrong_is_refused(model: str, device: str | None, message: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(message)}"):
        spaces_of(model, device)


def test_a_users_space_answers_for_what_it_measured() -> None:
    space = new_space(**OWN, device="x86_64", prefix="# {language}: ")
    assert space.device == "x86-64"
    assert space.reading("x = 1", "Python") == "# Python: x = 1"
    assert space.answers("call", "memory", "python", {})
    assert not space.answers("call", "memory", "go", {})
    network = new_space("ours", "network", "accuracy", ("onnx",), 0.01)
    assert network.answers("network", "accuracy", "onnx", {})
    assert not network.answers("network", "accuracy", "onnx", {"space": "enas"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "accuracy"}, "--metric accuracy: not a metric of call; give latency or memory"),
        ({"languages": ("cobol",)}, "--language: unknown language 'cobol'; known: c, cpp"),
        ({"unit": 0.0}, "--unit 0: not a positive number"),
        ({"unit": float("nan")}, "--unit nan: not a positive number"),
        ({"unit": float("inf")}, "--unit inf: not a positive number"),
        ({"metric": "latency"}, "--metric latency: needs --device"),
        ({"device": "abacus"}, "--device abacus: unknown"),
        ({"basis": "kernel", "metric": "latency", "device": "x86-64"}, "--device x86-64: not a GPU"),
        ({"basis": "network", "metric": "accuracy", "device": "H100"}, "--device: an accuracy has no device"),
        ({"prefix": "{task}"}, "--prefix {task}: only {space} and {language} are filled in"),
        ({"prefix": "{"}, "--prefix {: only {space} and {language} are filled in"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(message)}"):
        new_space(**(OWN | changes))
