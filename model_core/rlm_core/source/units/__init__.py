"""A source file -> the units in it: functions, Triton kernels, PyTorch modules, programs.

``find_units`` is what others use; ``python`` knows Python's functions, kernels and modules, ``programs`` knows whole
solutions in every language. A file with syntax errors still gives the units that parse.
"""

from .finder import MAX_FILE_BYTES, find_units, read_source

__all__ = ["MAX_FILE_BYTES", "find_units", "read_source"]
