"""A bounded trial run: how often loops run, conditions hold and functions recurse where the text fixes all inputs.

Nothing of a program is handed to Python: :mod:`machine` evaluates its syntax tree, one node at a time, with the few
operations of :mod:`values` on numbers, texts and containers. A step budget bounds time and memory.
"""

from __future__ import annotations

from .observations import Observations
from .trial import Trial

__all__ = ["Observations", "Trial"]
