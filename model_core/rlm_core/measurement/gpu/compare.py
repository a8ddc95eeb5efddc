"""Compares what a kernel gave with its reference, within tolerances of its dtype or the case's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .channel import WrongResultError
from .triton_cases import Case

# Relative and absolute tolerance by the width of what is compared.
_TOLERANCES = {torch.float16: (1e-2, 1e-2), torch.bfloat16: (2e-2, 2e-2), torch.float32: (1e-3, 1e-3)}


def compare(given: Any, expected: Any, case: Case) -> None:
    """Tensors, or lists, tuples and tables of them.

    Raises:
        WrongResultError: they differ, or there is something that cannot be compared.
    """
    given, expected = _flat(given), _flat(expected)
    if len(given) != len(expected):
        raise WrongResultError(f"gives {len(given)} tensors, its reference {len(expected)}")
    for one, other in zip(given, expected, strict=True):
        rtol, atol = _TOLERANCES.get(one.dtype, (0.0, 0.0))
        with torch._C.DisableTorchFunction():
            try:
                torch.testing.assert_close(
                    one.cpu(),
                    other.cpu(),
                    rtol=rtol if case.rtol is None else case.rtol,
                    atol=atol if case.atol is None else case.atol,
                    check_dtype=False,
                    equal_nan=True,
                )
            except AssertionError as error:
                raise WrongResultError(" ".join(str(error).split())) from None


def _flat(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [tensor for one in result for tensor in _flat(one)]
    raise WrongResultError(f"gives {type(result).__name__}, which cannot be compared; return tensors")
