"""Measuring your own code: the only room that runs it, and only on an explicit command.

``functions`` times functions while their tests run, ``programs`` runs whole programs in a sandbox, ``gpu`` benchmarks
kernels, modules and networks. ``store`` keeps the results; ``labels`` exports and imports them. Functions and programs
need nothing beyond the base install.
"""

from .store import Store, default_path
from .types import Measurement, source_hash

__all__ = ["Measurement", "Store", "default_path", "source_hash"]
