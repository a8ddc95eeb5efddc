"""The templates by name, parsed. Each subject has a module with a text of templates.

A template starts with ``== name | time | memory | low-high``: predicted cost in nanoseconds and bytes as expressions
in the size ``n``, and the range of sizes (default 3 to 10**9). Its code follows: definitions, ``---``, statements and
``=> result``. ``~~ variant | time | memory`` starts another way to write the same. In the code, ``N`` is the size,
``$name`` a name, ``#2:9#`` a drawn number, ``«a¦b»`` a drawn choice, ``@e(x)`` and ``@c(x)`` a drawn expression or
condition of ``x``, and ``@w``, ``@text``, ``@number``, ``@flag`` words of a subject.
"""

from __future__ import annotations

import itertools

from ..template import Template, parse_templates
from . import algorithms, arrays, containers, formats, lazy, loops

TEMPLATES: dict[str, Template] = {
    template.name: template
    for template in itertools.chain.from_iterable(
        parse_templates(module.TEMPLATES) for module in (loops, lazy, containers, algorithms, formats, arrays)
    )
}
