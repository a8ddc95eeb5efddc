"""Measuring one's own code: latency and peak memory of functions while tests run, and where the figures are kept.

``run`` starts the tests, with ``inside`` in their processes; ``collect`` reads what they wrote; ``store`` keeps it;
``labels`` exports and imports it. Nothing here needs more than the base install.
"""

from .store import Store, default_path
from .types import Measurement, source_hash

__all__ = ["Measurement", "Store", "default_path", "source_hash"]
