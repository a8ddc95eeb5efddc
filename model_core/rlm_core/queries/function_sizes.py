"""The sizes of a function's inputs at which its cost is wanted, and where each comes from.

The first source that gives a size counts: a comment of the file, the settings, what was recorded while measuring, and
the calls in the project.
Input: the comments of a file, the settings for it, and what was measured of a unit. Output: a value and a source for
each size that the facts of the function depend on, and the text of the function at these sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from rlm_core.cost.at_sizes import depends_on_nothing, facts_at, sizes_of
from rlm_core.cost.input_names import input_names
from rlm_core.cost.wait_lengths import WaitLengths
from rlm_core.types import Anchor, CodeText, SizeSpread, SizeValue, Unit, WorkFacts

from .size_comments import SizeComments

_METRICS = ("latency", "memory")
_Size = TypeVar("_Size")


@dataclass(frozen=True, slots=True)
class SizeRules:
    """The settings about the functions of one file: sizes by name and by function, and the lengths of waits.

    Each size comes with the key of the settings that gives it. A function's own entry takes precedence.
    """

    by_name: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    by_function: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    wait_lengths: WaitLengths = field(default_factory=dict)

    def of(self, module: str, qualname: str) -> dict[str, SizeValue]:
        """The sizes for a function of a module, which may be empty where it is not known."""
        given = {name: SizeValue(name, value, "settings", rule) for name, (value, rule) in self.by_name.items()}
        for key in (qualname, f"{module}.{qualname}"):
            of_function = self.by_function.get(key, {})
            given |= {name: SizeValue(name, value, "settings", key) for name, value in of_function.items()}
        return given


NO_RULES = SizeRules()


Given = Mapping[str, SizeValue]
NOTHING_GIVEN: Given = {}


def given_sizes(comments: SizeComments, place: int, rules: SizeRules, module: str, unit: Unit) -> Given:
    """The sizes that comments and settings give a function of a file, whatever its cost depends on."""
    if unit.kind != "function":
        return NOTHING_GIVEN
    of_unit = comments.of_units.get(place, {})
    if not (rules.by_name or rules.by_function or comments.of_file or of_unit):
        return NOTHING_GIVEN
    return {**rules.of(module, unit.qualname), **comments.of_file, **of_unit}


def spellings(name: str) -> tuple[str, ...]:
    """The names under which the size of an input may be known, as a user writes it or a measurement records it.

    The length of an array is its first axis, and the mean length inside its second one; of a frame it is the rows. The
    number of elements has the name of the array.
    """
    base, _, last = name.rpartition(".")
    if name.endswith("[]"):
        return name, f"{name.removesuffix('[]')}.1"
    if last in ("0", "size") and base:
        return name, base
    return (name, f"{name}.0", f"{name}.rows") if not last.isdigit() else (name,)


def is_size_of(written: str, inputs: Iterable[str]) -> bool:
    """Return whether a name is that of the size of one of some inputs."""
    return any(written in spellings(name) for name in inputs)


def found_size(name: str, known: Mapping[str, _Size], *, of_values: bool = False) -> tuple[str, _Size] | None:
    """The size of an input among known sizes, with its name there.

    ``of_values`` are sizes that values have: of an array with axes, the size with its own name counts the elements.
    """
    names = spellings(name)
    if of_values and f"{name}.0" in known:
        names = names[1:]
    return next(((spelt, known[spelt]) for spelt in names if spelt in known), None)


def known_sizes(names: Iterable[str], given: Given, measured: Sequence[Anchor] = ()) -> tuple[SizeValue, ...]:
    """The values of the sizes of inputs, each from the first source that has it; those that none has are left out."""
    recorded = recorded_sizes(measured)
    written = {name: size for name, size in given.items() if size.source != "calls"}
    in_calls = {name: size for name, size in given.items() if size.source == "calls"}
    found: dict[str, SizeValue] = {}
    for name in dict.fromkeys(names):
        size: SizeValue | None = None
        if (of_source := found_size(name, written)) is not None:
            size = of_source[1]
        elif (of_record := found_size(name, recorded, of_values=True)) is not None:
            size = SizeValue(of_record[0], of_record[1].median, "recorded")
        elif (of_call := found_size(name, in_calls, of_values=True)) is not None:
            size = of_call[1]
        if size is not None:
            found.setdefault(size.name, size)
    return tuple(found.values())


def recorded_sizes(measured: Sequence[Anchor]) -> dict[str, SizeSpread]:
    """The sizes that were recorded while a unit was measured, by name."""
    return {name: spread for anchor in reversed(measured) for name, spread in anchor.cost.sizes}


def inputs_of(text: str, work: WorkFacts | None) -> dict[str, str]:
    """The input behind each size of a function's facts, by the name that the facts have; others are left out."""
    names = sizes_of(work) if work is not None else {}
    if not names:
        return {}
    inputs = input_names(text, is_function=True)
    return {name: known for name in names if (known := inputs.of(name)) is not None}


def input_names_of(text: str, work: WorkFacts | None, measured: Sequence[Anchor] = ()) -> list[str]:
    """The sizes that what is known of a function's cost depends on: its facts, and what was measured by size."""
    names = dict.fromkeys(inputs_of(text, work).values())
    for anchor in measured:
        names |= dict.fromkeys(name for calls in anchor.cost.sized for name in calls.sizes)
    return list(names)


def with_sizes(code: CodeText, sizes: Mapping[str, float], also: Iterable[str] = ()) -> CodeText:
    """A function with the sizes that a question names in place of those known; a text that depends on none as it is.

    ``also`` are inputs of a text that it is compared with.
    """
    if code.basis != "call":
        return code
    names = [*input_names_of(code.text, code.work, code.measured), *also]
    asked = [SizeValue(name, value) for name, value in sizes.items() if is_size_of(name, names)]
    return replace(code, sizes=replaced(code.sizes, asked, names)) if asked else code


def replaced(known: Sequence[SizeValue], asked: Sequence[SizeValue], inputs: Iterable[str]) -> tuple[SizeValue, ...]:
    """Known sizes of inputs with those that are asked about in their place, whatever they are called."""
    taken = {
        spelt for name in inputs if any(size.name in spellings(name) for size in asked) for spelt in spellings(name)
    }
    return (*(size for size in known if size.name not in taken), *asked)


def analysis_sizes(code: CodeText, sizes: Sequence[SizeValue]) -> dict[str, float]:
    """The values of sizes by the names that the facts of a function have for them."""
    known = {size.name: size for size in sizes}
    found = {name: _value_of(behind, known) for name, behind in inputs_of(code.text, code.work).items()}
    return {name: size.value for name, size in found.items() if size is not None}


def input_sizes(code: CodeText) -> dict[str, float]:
    """The values of the sizes of a text that its facts depend on, by input."""
    known = {size.name: size for size in code.sizes}
    found = {behind: _value_of(behind, known) for behind in inputs_of(code.text, code.work).values()}
    return {behind: size.value for behind, size in found.items() if size is not None}


def used_sizes(code: CodeText) -> tuple[SizeValue, ...]:
    """The sizes of a text that its facts depend on."""
    known = {size.name: size for size in code.sizes}
    used = {_value_of(behind, known) for behind in inputs_of(code.text, code.work).values()}
    return tuple(size for size in code.sizes if size in used)


def _value_of(name: str, known: Mapping[str, SizeValue]) -> SizeValue | None:
    """The known size of an input; one that was recorded, or that a call has, under its name may be that of elements."""
    exact = known.get(name)
    found = found_size(name, known, of_values=exact is not None and exact.source in ("recorded", "calls"))
    return found[1] if found is not None else None


def text_at(code: CodeText, sizes: Sequence[SizeValue]) -> CodeText | None:
    """A text as if it fixed these sizes, without measurements; None where its facts depend on none of them."""
    values = analysis_sizes(code, sizes)
    if code.work is None or not values:
        return None
    return replace(code, work=facts_at(code.work, values), measured=(), sizes=())


def pair_at(before: CodeText, after: CodeText) -> tuple[CodeText, CodeText] | None:
    """Two texts at the sizes of the second; None where not both fix everything but these."""
    if not after.sizes or after.basis != "call":
        return None
    texts = []
    for code in (before, after):
        at_sizes = text_at(code, after.sizes) or replace(code, measured=(), sizes=())
        if at_sizes.work is None or not all(depends_on_nothing(at_sizes.work, metric) for metric in _METRICS):
            return None
        texts.append(at_sizes)
    return texts[0], texts[1]
