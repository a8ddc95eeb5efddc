"""``rlm-lsp tune``: a trained model and a team's own measurements -> a model that knows the team's code.

The encoder stays as it is, so a laptop does it in minutes. ``rows`` reads the measurements, ``student`` opens the model
and ``material`` asks it about them; ``additions`` learn what its wide part or trees miss, ``slice_head`` and ``level``
fit the rest; ``tuners`` do so with groups left out, ``verdict`` compares before and after, ``draft`` writes the new
model; ``run`` puts them in order. ``full`` is the same for full models.
"""

from __future__ import annotations

from .options import Options, Tuning
from .run import tune
from .verdict import Figures, Verdict

__all__ = ["Figures", "Options", "Tuning", "Verdict", "tune"]
