"""Function bodies as small grammars, one per family; whole families are held out of training.

In a template ``«a¦b»`` is a choice, ``$ints`` a variable of that kind (``$ints:40`` of at most that size; an argument
or a literal), ``$item``, ``$text``, ``$number``, ``$other``, ``$flag`` words of the domain, ``#20:400#`` a size,
``@num(x)``, ``@cond(x)``, ``@str(s)``, ``@test(s)`` random arithmetic, comparison, text and text test on ``x``.
Helper functions are above ``---``; the last line ``=> value | kind`` defines the result.
"""

from __future__ import annotations

from .graphs import GRAPHS
from .numbers import NUMBERS
from .parsing import PARSING
from .records import RECORDS
from .sequences import SEQUENCES
from .structures import STRUCTURES
from .text import TEXT

FAMILIES: dict[str, str] = {**RECORDS, **TEXT, **PARSING, **NUMBERS, **SEQUENCES, **STRUCTURES, **GRAPHS}
