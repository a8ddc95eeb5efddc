"""One box serves a team: a predictor over HTTP (:mod:`.server`) and the predictor that asks it (:mod:`.client`).

The client is part of the base install; the server needs the ``[serve]`` extra and is imported by its command alone.
"""

from __future__ import annotations

from .client import RemotePredictor
from .connection import Patience

__all__ = ["Patience", "RemotePredictor"]
