"""The arguments of a Triton kernel: which are sizes, and a default workload by their names.

An argument that the kernel loads from or stores to is a pointer, whatever its name. The default workload is for files
without sizes; the table of names and default sizes is in :mod:`.sizes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from rlm_core.source.parsed import ParsedSource, descendants, name_text

from .literals import arguments_of, value_of
from .sizes import DEFAULTS, default_name, workload_name

_ACCESS = re.compile(r"(?:\w+\.)*(?:load|store|atomic_\w+|make_block_ptr|make_tensor_(?:ptr|descriptor)|advance)")
_FLAG = re.compile(r"(?:is|has|use|with|enable|do|block|num_(?:warps|stages))(?:_|\Z)|causal|stage|dtype", re.I)
_KERNEL = re.compile(r"\bjit\b[^\n]{0,1000}\n(?:[ \t]*@[^\n]*\n){0,50}+[ \t]*def[ \t]+(\w+)")
_POINTER = re.compile(r"(?:.*_)?(?:ptr|ptrs|desc)\d*", re.I)


@dataclass(frozen=True, slots=True)
class KernelArguments:
    """The arguments of a kernel that are not pointers.

    ``accesses``: whether the kernel loads or stores at all; ``sizes``: their names, in order; ``fixed``: those that the
    kernel sets to a number; ``keys``: those that it is tuned for; ``parameters``: all arguments, in order.
    """

    accesses: bool
    sizes: tuple[str, ...]
    fixed: Mapping[str, int]
    keys: tuple[str, ...]
    parameters: tuple[str, ...] = ()

    @property
    def pointers(self) -> tuple[str, ...]:
        """The names of the pointers, in order."""
        return tuple(name for name in self.parameters if name and name not in self.sizes)


def default_workload(arguments: KernelArguments, chosen: Mapping[str, str]) -> dict[str, str]:
    """A workload for a kernel by the names of its arguments, empty when no name is known.

    ``chosen`` sizes, by the name of an argument or of the table's entry, take precedence over the table.
    """
    if not arguments.accesses:
        # A function that other kernels call is never launched.
        return {}
    given = {name.lower(): size for name, size in chosen.items()}
    workload: dict[str, str] = {}
    has_strides = any("stride" in name.lower() for name in arguments.sizes)
    defaults = {name: default_name(name, arguments.sizes) for name in arguments.sizes}
    if {"k", "v", "t"} <= {name.lower() for name in arguments.sizes}:
        # Linear attention uses these names for its head widths.
        defaults |= {name: "head_dim" for name in arguments.sizes if name.lower() in ("k", "v")}
    for name, default in defaults.items():
        size = str(arguments.fixed.get(name, "")) or given.get(name.lower())
        if size is None and default is not None:
            size = given.get(default.lower(), DEFAULTS[default])
        if size is not None:
            workload[workload_name(name, default)] = size
    known = [name for name, default in defaults.items() if default is not None]
    if not known and not workload:
        # The arguments that a kernel is tuned for are its sizes, under whatever name.
        keys = [name for name in arguments.keys if name in arguments.sizes and not _FLAG.match(name)]
        workload = {name: DEFAULTS[name] for name, _ in zip(("M", "N", "K"), keys, strict=False)}
    if known == ["n"] and not has_strides:
        size = str(arguments.fixed.get("n", "")) or given.get("n") or given.get("n_elements") or DEFAULTS["n_elements"]
        workload = {"n_elements": size} | {name: value for name, value in workload.items() if name != "n"}
    elif known and {defaults[name] for name in known} <= {"N", "hidden_size"} and has_strides:
        # The kernel reads one row; only the grid says how many rows there are.
        workload = {"M": given.get("m", DEFAULTS["M"])} | workload
    if not any(value[0].isdigit() for value in workload.values()):
        return {}
    return workload | {"dtype": given.get("dtype", DEFAULTS["dtype"])}


def example_sizes(text: str) -> str:
    """Sizes to write in a comment for the kernel of a unit's text, by the names of its pointers."""
    match = _KERNEL.search(text)
    pointers = kernel_arguments(text, match[1]).pointers if match is not None else ()
    return " ".join(f"{name}=4096x4096" for name in pointers[:3] or ("arg0",))


def kernel_names(text: str) -> list[str]:
    """The names of the kernels of a unit's text, in order."""
    return _KERNEL.findall(text)


@lru_cache(maxsize=1024)
def kernel_arguments(text: str, name: str) -> KernelArguments:
    """The arguments of the kernel called ``name`` in a unit's text."""
    root = ParsedSource(text.encode("utf-8", "replace"), "python").root
    functions = descendants(root, "function_definition")
    node = next((node for node in functions if name_text(_field(node, "name")) == name), None)
    if node is None:
        return KernelArguments(False, (), {}, ())
    parameters = [_parameter(child) for child in (_field(node, "parameters") or node).named_children]
    values: dict[str, list[Node]] = {}
    for assignment in descendants(node, "assignment"):
        left, right = _field(assignment, "left"), _field(assignment, "right")
        if left is not None and right is not None and left.type == "identifier":
            values.setdefault(name_text(left), []).append(right)
    pointers = _pointers(node, values)
    if "Q" in pointers:
        # Attention may pass the other two to a function that loads from them.
        pointers |= {"K", "V"}
    sizes = [size for size in parameters if size and size not in pointers and not _POINTER.fullmatch(size)]
    fixed = {size: number for size in sizes if (number := _only_number(values.get(size, ()))) is not None}
    return KernelArguments(bool(pointers), tuple(sizes), fixed, tuple(_keys(node)), tuple(parameters))


def _pointers(kernel: Node, values: Mapping[str, list[Node]]) -> set[str]:
    """The names whose addresses a kernel loads from or stores to, followed through its assignments."""
    queue = [name for call in descendants(kernel, "call") for name in _addressed(call)]
    reached: set[str] = set()
    while queue:
        name = queue.pop()
        if name not in reached:
            reached.add(name)
            queue += [base for value in values.get(name, ()) if (base := _leftmost(value)) is not None]
    return reached


def _addressed(call: Node) -> Iterator[str]:
    """The names whose addresses a call takes: of its first argument or ``base``, or of its descriptor."""
    function = _field(call, "function")
    if not _ACCESS.fullmatch(name_text(function)):
        return
    plain, named = arguments_of(call)
    for node in (named.get("base") or next(iter(plain), None), _field(function, "object")):
        name = _leftmost(node)
        if name is not None:
            yield name


def _leftmost(node: Node | None) -> str | None:
    while node is not None and node.type != "identifier":
        if node.type == "binary_operator" and name_text(_field(node, "operator")) in ("+", "-"):
            node = _field(node, "left")
        elif node.type == "parenthesized_expression":
            node = next(iter(node.named_children), None)
        elif node.type == "call" and name_text(_field(node, "function")).endswith(".to"):
            node = _field(_field(node, "function"), "object")
        else:
            return None
    return name_text(node) if node is not None else None


def _keys(kernel: Node) -> Iterator[str]:
    """The names in the ``key`` of ``triton.autotune``."""
    outer = kernel.parent
    for decorator in outer.children if outer is not None and outer.type == "decorated_definition" else ():
        call = decorator.named_children[0] if decorator.type == "decorator" and decorator.named_children else None
        if call is None or call.type != "call" or not name_text(_field(call, "function")).endswith("autotune"):
            continue
        plain, named = arguments_of(call)
        try:
            key = value_of(named.get("key") or (plain[1] if len(plain) > 1 else None), {})
        except ValueError:
            continue
        yield from (name for name in key if isinstance(name, str))


def _only_number(values: list[Node] | tuple[()]) -> int | None:
    """The number that all assignments of a name agree on."""
    try:
        numbers = {value_of(value, {}) for value in values}
    except (ValueError, TypeError):
        return None
    number = numbers.pop() if len(numbers) == 1 else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else None


def _parameter(node: Node) -> str:
    name = _field(node, "name") or node
    return name_text(name if name.type == "identifier" else next(iter(name.named_children), None))


def _field(node: Node | None, name: str) -> Node | None:
    return node.child_by_field_name(name) if node is not None else None
