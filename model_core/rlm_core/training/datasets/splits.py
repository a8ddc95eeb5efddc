"""The splits of data sets: groups of rows that belong together -> train, val, cal or test.

A group is drawn by a hash of its name, so that it is in the same split of every data set; groups that share a text are
one. Whole packages are kept for the test split.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable

SPLITS = ("train", "val", "cal", "test")
# Upper ends of the shares of the splits: 75 % train, 5 % val, 10 % cal, 10 % test.
_SHARES = (("train", 0.75), ("val", 0.80), ("cal", 0.90), ("test", 1.0))
# Of functions; no model is trained on them.
TEST_PACKAGES = frozenset(
    {"networkx", "click", "tomlkit", "Werkzeug", "docutils", "jedi", "tornado", "petl", "biopython", "mutagen"}
    # Of the packages that we measured ourselves, drawn by a hash of their names.
    | {"Sphinx", "pony", "boltons", "simpy", "glue-core", "trio", "typer", "ipython", "linearmodels", "pgmpy"}
)


def split_of(group: str) -> str:
    """The split of a group by a hash of its name: the same on every machine and for every data set."""
    digest = hashlib.sha256(group.encode()).digest()
    point = int.from_bytes(digest[:8], "big") / 2**64
    return next(split for split, end in _SHARES if point < end)


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
