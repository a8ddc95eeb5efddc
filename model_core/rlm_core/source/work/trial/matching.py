"""The patterns of ``match`` in a trial run."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .expressions import Expressions
from .library import TYPES, LibraryFunction
from .names import Names
from .objects import Class, Instance
from .values import MAPPINGS, Refused, compare, weigh


class Matching(Expressions):
    """Says whether values fit patterns, and binds their names."""

    def fits(self, pattern: ast.pattern, value: Any, names: Names) -> bool:
        """Whether a value fits a pattern."""
        self.budget.spend()
        match pattern:
            case ast.MatchValue():
                return compare(ast.Eq, value, self.value(pattern.value, names), self.budget)
            case ast.MatchSingleton():
                return value is pattern.value
            case ast.MatchAs():
                if pattern.pattern is not None and not self.fits(pattern.pattern, value, names):
                    return False
                if pattern.name is not None:
                    names.bind(pattern.name, value)
                return True
            case ast.MatchOr():
                return any(self.fits(part, value, names) for part in pattern.patterns)
            case ast.MatchSequence():
                return self._fits_sequence(pattern.patterns, value, names)
            case ast.MatchMapping():
                return self._fits_mapping(pattern, value, names)
            case ast.MatchClass():
                return self._fits_class(pattern, value, names)
        raise Refused

    def _fits_sequence(self, patterns: Sequence[ast.pattern], value: Any, names: Names) -> bool:
        if type(value) not in (list, tuple) and not (type(value) is Instance and value.kind.is_tuple):
            return False
        items = list(value)
        self.budget.spend(len(items))
        star = next((at for at, part in enumerate(patterns) if isinstance(part, ast.MatchStar)), None)
        if star is None:
            return len(items) == len(patterns) and self._all_fit(patterns, items, names)
        after = len(patterns) - star - 1
        if len(items) < len(patterns) - 1:
            return False
        name = patterns[star].name  # type: ignore[attr-defined]
        if not self._all_fit(patterns[:star], items[:star], names):
            return False
        if not self._all_fit(patterns[star + 1 :], items[len(items) - after :], names):
            return False
        if name is not None:
            names.bind(name, items[star : len(items) - after])
        return True

    def _all_fit(self, patterns: Sequence[ast.pattern], items: Sequence[Any], names: Names) -> bool:
        return all(self.fits(part, item, names) for part, item in zip(patterns, items, strict=True))

    def _fits_mapping(self, pattern: ast.MatchMapping, value: Any, names: Names) -> bool:
        if type(value) not in MAPPINGS:
            return False
        keys = [self.value(key, names) for key in pattern.keys]
        weigh(keys, self.budget)
        if any(key not in value for key in keys):
            return False
        if not self._all_fit(pattern.patterns, [value[key] for key in keys], names):
            return False
        if pattern.rest is not None:
            names.bind(pattern.rest, {key: item for key, item in value.items() if key not in keys})
        return True

    def _fits_class(self, pattern: ast.MatchClass, value: Any, names: Names) -> bool:
        kind = self.value(pattern.cls, names)
        if isinstance(kind, LibraryFunction) and not pattern.kwd_attrs and len(pattern.patterns) <= 1:
            found = TYPES.get(kind.dotted)
            if found is None:
                raise Refused
            return isinstance(value, found) and self._all_fit(pattern.patterns, [value] * len(pattern.patterns), names)
        if not isinstance(kind, Class):
            raise Refused
        if not isinstance(value, Instance) or not value.kind.is_a(kind):
            return False
        fields = [*list(kind.fields)[: len(pattern.patterns)], *pattern.kwd_attrs]
        patterns = [*pattern.patterns, *pattern.kwd_patterns]
        if len(fields) != len(patterns):
            raise TypeError(kind.name)
        return all(
            name in value.values and self.fits(part, value.values[name], names)
            for name, part in zip(fields, patterns, strict=True)
        )
