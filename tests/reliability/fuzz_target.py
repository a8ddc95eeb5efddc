"""A reader of outside data that is fuzzed."""

from __future__ import annotations

import random
from pathlib import Path


class Target:
    """One reader of outside data: how its inputs are made, and what reads them."""

    name = ""
    share = 1.0  # of the inputs of a run over all targets

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, rng: random.Random) -> bytes:
        """An input."""
        raise NotImplementedError

    def read(self, data: bytes) -> None:
        """Read an input, as the product does.

        Raises:
            RlmError: a declared refusal.
        """
        raise NotImplementedError

    def file(self, name: str, data: bytes) -> Path:
        """A file with the input."""
        path = self.folder / name
        path.write_bytes(data)
        return path


def one_line(text: str) -> None:
    """A message must be a line."""
    assert "\n" not in text, f"a message of several lines: {text[:200]!r}"
    assert len(text) < 20_000, f"a message of {len(text)} characters"
