"""Measuring whole programs: time and peak memory on given inputs, compiled and run in a sandbox under limits.

``sources`` finds programs, ``toolchains`` knows how each language is compiled and run; ``plan`` joins them with their
inputs and says what would run. ``sandbox`` runs one command under ``injected/rlm_run.py``, which measures it; ``run``
carries out the plan, here or on a cluster. Nothing runs without an explicit command. Linux only.
"""

from .plan import ProgramPlan, make_plan
from .run import ProgramCounts, run_plan, spread_plan
from .sandbox import ProgramLimits

__all__ = ["ProgramCounts", "ProgramLimits", "ProgramPlan", "make_plan", "run_plan", "spread_plan"]
