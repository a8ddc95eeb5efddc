"""The order in which waiting items are served: each client gets the same share of the time, whatever it asks for.

A client is a path, here of its network and its own mark. Networks share the time equally, then the clients of a network
share its part, so opening more connections or inventing more marks gains nothing against other networks. Time is
predicted (the cost of an item): the order depends on no clock.

This is fair queueing by start times (Goyal et al., 1996) with the virtual time of WF2Q+ (Bennett and Zhang, 1997): the
next item is that of the share that has had least, and a share that comes back has had at least as much as virtual time
says, so that being idle saves up nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, Protocol, TypeVar


class Priced(Protocol):
    """An item with a predicted service time, in any unit; positive."""

    @property
    def cost(self) -> float:
        """The predicted service time."""


Item = TypeVar("Item", bound=Priced)
Path = tuple[str, ...]


class FairQueue(Generic[Item]):
    """Items that wait, by client. All clients have paths of the same length."""

    def __init__(self) -> None:
        self.waiting = 0
        self._had = 0.0  # service so far, in the virtual time of the queue around
        self._now = 0.0  # virtual time: service so far for each share that waited for it
        self._items: deque[Item] = deque()  # of a client
        self._shares: dict[str, FairQueue[Item]] = {}  # of the networks, or of the clients of one

    def put(self, path: Path, item: Item) -> None:
        """Append an item to those of a client."""
        self.waiting += 1
        if not path:
            self._items.append(item)
            return
        share = self._shares.get(path[0])
        if share is None:
            # A share that has had no more than a new one would have had is forgotten.
            self._shares = {
                name: known for name, known in self._shares.items() if known.waiting or known._had > self._now
            }
            share = self._shares[path[0]] = FairQueue()
        if not share.waiting:
            share._had = max(share._had, self._now)
        share.put(path[1:], item)

    def take(self, fits: Callable[[Item], bool]) -> Item | None:
        """Remove the item whose turn it is; None if it does not fit, or nothing waits."""
        if not self._shares:
            if not self._items or not fits(self._items[0]):
                return None
            self.waiting -= 1
            return self._items.popleft()
        open_shares = [share for share in self._shares.values() if share.waiting]
        if not open_shares:
            return None
        share = min(open_shares, key=lambda share: share._had)
        item = share.take(fits)
        if item is not None:
            self.waiting -= 1
            self._now = max(self._now, share._had) + item.cost / len(open_shares)
            share._had += item.cost
        return item

    def heads(self) -> Iterator[Item]:
        """The item of each client that waits longest."""
        yield from islice(self._items, 1)
        for share in self._shares.values():
            yield from share.heads()

    def drop(self, path: Path, unwanted: Callable[[Item], bool]) -> int:
        """Remove items of a client; how many there were."""
        if path:
            share = self._shares.get(path[0])
            count = share.drop(path[1:], unwanted) if share is not None else 0
        else:
            kept = deque(item for item in self._items if not unwanted(item))
            count, self._items = len(self._items) - len(kept), kept
        self.waiting -= count
        return count
