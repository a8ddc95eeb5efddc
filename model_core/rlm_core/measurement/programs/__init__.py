"""Measuring whole programs: time and peak memory on given inputs, compiled and run in a sandbox under limits.

``sources`` finds programs, ``toolchains`` knows how each language is compiled and run, ``inputs`` what is fed to them;
``plan`` joins these and says what would run. ``sandbox`` shuts a command in, ``execute`` runs it there by ``inside``,
which measures; ``run`` does the whole plan, ``spread`` does it on a cluster. Nothing runs but on an explicit command.
Linux only.
"""

from .plan import ProgramPlan, make_plan
from .run import ProgramCounts, run_plan, spread_plan
from .sandbox import ProgramLimits

__all__ = ["ProgramCounts", "ProgramLimits", "ProgramPlan", "make_plan", "run_plan", "spread_plan"]
