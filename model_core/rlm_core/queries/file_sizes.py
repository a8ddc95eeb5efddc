"""The sizes that are known of the units of a file: from comments, from settings, from calls, and of kernels.

What fails leaves the units without these sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core.boundary import each, guarded
from rlm_core.cost.scope import ModuleScope
from rlm_core.source.directives import find_directives
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Unit

from .call_sizes import CallSizes, FileCallSizes
from .function_sizes import NO_RULES, NOTHING_GIVEN, Given, SizeRules
from .size_comments import NO_COMMENTS, SizeComments, read_size_comments

if TYPE_CHECKING:
    from .kernel_sizes import UnitSizes

DefaultSizes = Callable[[Path | None], Mapping[str, str]]
SizeRulesOf = Callable[[Path | None], SizeRules]
SizesInCalls = Callable[[Unit, bool], tuple[Given, bool]]
"""Gives the sizes that calls fix for a unit, only those that are known already if asked so; and whether they hold."""


class FileSizes:
    """Looks sizes up; see :class:`.analysis.Analyser` for ``default_sizes`` and ``size_rules``.

    ``call_sizes`` reads the calls of a project; None where they give no sizes.
    """

    def __init__(
        self, default_sizes: DefaultSizes | None, size_rules: SizeRulesOf | None, call_sizes: CallSizes | None
    ) -> None:
        self._default_sizes: DefaultSizes = default_sizes or (lambda path: {})
        self._size_rules: SizeRulesOf = size_rules or (lambda path: NO_RULES)
        self._call_sizes = call_sizes

    def refresh(self) -> None:
        """Look at the calls of projects again."""
        if self._call_sizes is not None:
            self._call_sizes.refresh()

    def given(self, parsed: ParsedSource, units: Sequence[Unit], path: Path | None) -> tuple[SizeComments, SizeRules]:
        """Return what comments and settings say about the sizes of the functions of a file."""
        nothing: tuple[SizeComments, SizeRules] = NO_COMMENTS, NO_RULES
        return guarded(
            f"the sizes of functions in {path or 'a text'}",
            lambda: (read_size_comments(find_directives(parsed), units), self._size_rules(path)),
            lambda error: nothing,
        )

    def in_calls(self, path: Path | None, scope: ModuleScope, context: int) -> SizesInCalls | None:
        """Return what gives the sizes that calls fix for the units of a file."""
        if self._call_sizes is None:
            return None
        calls = self._call_sizes
        what = f"the calls of functions in {path or 'a text'}"
        nothing: tuple[Given, bool] = NOTHING_GIVEN, True

        def of_file() -> FileCallSizes | None:
            return calls.of_file(path, scope, context)

        found = guarded(what, of_file, lambda error: None)

        def of_unit(unit: Unit, only_known: bool) -> tuple[Given, bool]:
            assert found is not None, "checked below"
            return found.known(unit) if only_known else (found.of(unit), True)

        if found is None:
            return None
        return lambda unit, only_known: guarded(what, lambda: of_unit(unit, only_known), lambda error: nothing)

    def of_kernels(self, parsed: ParsedSource, units: list[Unit], path: Path | None) -> Mapping[Unit, UnitSizes]:
        """The sizes of kernels and modules, as far as they are known."""
        if not units:
            return {}
        # Imported for the first kernel or module: it imports numpy, which the server's start must not.
        from .kernel_sizes import sizes_of

        def sizes(some: Sequence[Unit]) -> list[UnitSizes | None]:
            of_some = sizes_of(parsed, some, self._default_sizes(path)).units
            return [of_some.get(unit) for unit in some]

        found = each(f"the sizes of a unit in {path or 'a text'}", units, sizes, lambda unit, error: None)
        return {unit: of_unit for unit, of_unit in zip(units, found, strict=True) if of_unit is not None}
