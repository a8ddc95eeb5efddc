"""A sample of the fuzzing of each target, and the inputs that once failed."""

from __future__ import annotations

import time

import pytest

from . import fuzzing

pytestmark = pytest.mark.timeout(120)
_SECONDS = 2.0  # for each target


@pytest.mark.parametrize("name", fuzzing.TARGETS)
def test_hostile_inputs_are_read_or_refused_in_one_line(name: str) -> None:
    report = fuzzing.run(name, 4_000, 7, until=time.monotonic() + _SECONDS)
    assert report.failures == []
    assert report.inputs >= 20
    # The inputs are neither all right nor all refused at once.
    assert report.refused < report.inputs


@pytest.mark.parametrize(
    ("name", "seed", "number"),
    [
        ("settings", 1, 225),  # a name with a line end gave a message of two lines
        ("cards", 1, 66),  # bytes that are not UTF-8
        ("measurements", 1, 288),  # an integer beyond the range of floats
        ("measurements", 1, 2070),  # an integer of 5,002 digits
        ("onnx", 1, 9),  # a type of numbers that does not exist
        ("onnx", 1, 610),  # more elements than a float can count
        ("onnx", 1, 686),  # a name that is not UTF-8
        ("onnx", 1, 2666),  # an operator whose name is not UTF-8
        ("onnx", 12, 21906),  # a constant of several tensors
        ("onnx", 20261124, 3097),  # a constant that refers to an attribute of a function
        ("http", 42, 77457),  # 13 MB of arrays in arrays
    ],
)
def test_an_input_that_once_failed_is_read_or_refused(name: str, seed: int, number: int) -> None:
    assert fuzzing.run(name, 1, seed, first=number).failures == []
