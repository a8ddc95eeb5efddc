"""What the pictures of ``rlm-lsp report`` show: measurements beside predictions in, figures as plain numbers out.

``rows`` reads what was measured and finds the source text again, ``answers`` asks a model about it, ``summaries``
counts: calibration, coverage, errors, surprises. Drawing is not done here.
"""

from .answers import Answered, answer
from .rows import Row, Rows, from_data, from_store
from .summaries import Coverage, SliceSummary, calibration, coverage_by_group, slice_summaries, surprises

__all__ = [
    "Answered",
    "Coverage",
    "Row",
    "Rows",
    "SliceSummary",
    "answer",
    "calibration",
    "coverage_by_group",
    "from_data",
    "from_store",
    "slice_summaries",
    "surprises",
]
