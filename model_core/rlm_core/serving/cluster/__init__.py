"""Work spread over a Ray cluster: items in, their results out as they come, those of lost workers sent again.

Items are worked on by importable functions, in processes of the nodes, which must have this version of rlm-lsp.
``connect`` makes this process a driver of a cluster and alone imports Ray, when an address is named; ``driver`` sends
items and takes results, ``node`` is what runs on the nodes.
"""

from __future__ import annotations

from .driver import Cluster, Need, Result, in_order

__all__ = ["Cluster", "Need", "Result", "in_order"]
