"""Experiments behind the figures in the documentation and the model card: ``python -m tools.experiments.NAME``.

Benchmarks of speed are in ``tests/bench``. The product imports neither.
"""

import rlm_core  # noqa: F401 (switches telemetry off before a script imports a library that has some)
