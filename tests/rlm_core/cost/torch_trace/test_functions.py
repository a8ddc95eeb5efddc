"""Rules of PyTorch functions: which arguments of a call they get."""

from __future__ import annotations

from typing import Any

import pytest
from rlm_core.cost.concrete.frame import RULE_ERRORS
from rlm_core.cost.concrete.values import UNKNOWN
from rlm_core.cost.torch_trace import layers, library  # noqa: F401 - their rules register themselves
from rlm_core.cost.torch_trace.functions import FUNCTIONS
from rlm_core.cost.torch_trace.recorder import Recorder
from rlm_core.cost.torch_trace.values import Tensor

X = Tensor((2, 3, 4))


def result(name: str, *args: Any, **named: Any) -> Any:
    return FUNCTIONS[name](Recorder(), list(args), named)


@pytest.mark.parametrize(
    ("name", "args", "named"),
    [
        ("flatten", (X, 1, 2), {"start_dim": 1, "end_dim": 2}),
        ("softmax", (X, 1), {"dim": 1}),
        ("sum", (X, 0), {"dim": 0}),
        ("max_pool2d", (X, 2, 1), {"kernel_size": 2, "stride": 1}),
        ("repeat_interleave", (X, 2, 1), {"repeats": 2, "dim": 1}),
        ("view", (X, 6, -1), {"shape": (6, -1)}),
        ("interpolate", (X, 8), {"size": 8}),
    ],
)
def test_arguments_count_by_position_and_by_name(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    assert result(name, *args).shape == result(name, X, **named).shape


def test_arguments_that_a_rule_has_no_parameter_for_are_left_out() -> None:
    assert result("softmax", X, 1, None, dtype="fp16", _stacklevel=3).shape == X.shape
    assert result("add", X, 2.0, alpha=2, out=UNKNOWN).shape == X.shape


def test_an_argument_by_position_takes_precedence_over_one_by_name() -> None:
    assert result("unsqueeze", X, 0, dim=3).shape == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("name", "args"),
    [("linear", (X, UNKNOWN)), ("softmax", ()), ("cdist", (X, 3)), ("flatten", (UNKNOWN,)), ("unsqueeze", (X,))],
)
def test_a_rule_refuses_what_is_not_a_tensor_and_what_is_missing(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(RULE_ERRORS):
        result(name, *args)
