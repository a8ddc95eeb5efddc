"""Splits by group, decided by a stable hash of the group's name: 75 train / 5 val / 10 cal / 10 test."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable

SHARES = (("train", 0.75), ("val", 0.80), ("cal", 0.90), ("test", 1.0))


def split_of(group: str) -> str:
    """The split of a group; the same on every machine and for every data set that holds the group."""
    digest = hashlib.sha256(group.encode()).digest()
    point = int.from_bytes(digest[:8], "big") / 2**64
    return next(split for split, end in SHARES if point < end)


def merge_groups(pairs: Iterable[tuple[Hashable, str]]) -> dict[str, str]:
    """Join the groups that share a key (the canonical text): group -> smallest name among those joined to it."""
    parent: dict[str, str] = {}

    def find(group: str) -> str:
        while parent[group] != group:
            parent[group] = parent[parent[group]]
            group = parent[group]
        return group

    first: dict[Hashable, str] = {}
    for key, group in pairs:
        parent.setdefault(group, group)
        other = first.setdefault(key, group)
        a, b = sorted((find(group), find(other)))
        parent[b] = a
    return {group: find(group) for group in parent}
