"""Sizes to ask a Triton kernel at when its file names none: one table, by what the kernel's arguments are called.

The sizes are those of one layer of a language model of 7 billion parameters on a batch that fills a GPU. An argument
that the kernel loads from or stores to is a pointer, whatever it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from rlm_core.source.parsed import ParsedSource, name_text

from .literals import arguments_of, value_of
from .sizes import read_sizes

# Asked as | size | what an argument may be called, in lower case.
_TABLE = """
n_elements|4194304|n_elements num_elements numel nelements n_element total_elements xnumel size length
M|4096|m rows n_rows num_rows nrows num_tokens n_tokens total_tokens
N|4096|n cols n_cols num_cols ncols c d dim hidden_dim embed_dim rnumel r0_numel ynumel
hidden_size|4096|h hidden hidden_size
K|4096|k
batch|4|b z batch bsz batch_size bs
num_heads|32|num_heads n_heads nheads num_q_heads num_query_heads q_heads hq
seq_len|2048|t s l n_ctx seq seq_len seqlen seq_len_q seqlen_q max_seqlen_q
kv_len|2048|kv_len seq_len_k seqlen_k max_seqlen_k n_ctx_k
head_dim|128|head_dim head_size hdim d_head block_dmodel
vocab_size|32000|v vocab vocab_size
intermediate_size|11008|intermediate_size intermediate_dim ffn_dim
num_experts|8|e num_experts n_experts
"""
DTYPE = "fp16"
_ROWS = [line.split("|") for line in _TABLE.strip().splitlines()]
DEFAULTS: Mapping[str, str] = {name: size for name, size, _ in _ROWS} | {"dtype": DTYPE}
_MEANINGS = {spelling: name for name, _, spellings in _ROWS for spelling in (name.lower(), *spellings.split())}
_ATTENTION = frozenset({"seq_len", "kv_len", "head_dim"})
_ACCESS = re.compile(r"(?:\w+\.)*(?:load|store|atomic_\w+|make_block_ptr|make_tensor_(?:ptr|descriptor)|advance)")
_FLAG = re.compile(r"(?:is|has|use|with|enable|do|block|num_(?:warps|stages))(?:_|\Z)|causal|stage|dtype", re.I)
_POINTER = re.compile(r"(?:.*_)?(?:ptr|ptrs|desc)\d*", re.I)


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a kernel's text says about its sizes.

    ``accesses`` tells whether it loads or stores at all. ``sizes`` are the arguments that are no pointers, in order;
    ``fixed`` those that the kernel itself sets to a number; ``keys`` those that it is tuned for.
    """

    accesses: bool
    sizes: tuple[str, ...]
    fixed: Mapping[str, int]
    keys: tuple[str, ...]


def default_workload(kernel: Kernel, chosen: Mapping[str, str]) -> dict[str, str]:
    """A workload for a kernel by the names of its arguments, empty when they tell nothing.

    ``chosen`` sizes, by the name of an argument or of the table's entry, go before the table's own.
    """
    if not kernel.accesses:
        # A function that other kernels call is never launched by itself.
        return {}
    given = {name.lower(): size for name, size in chosen.items()}
    found: dict[str, str] = {}
    has_strides = any("stride" in name.lower() for name in kernel.sizes)
    meanings = {name: meaning_of(name, kernel.sizes) for name in kernel.sizes}
    if {"k", "v", "t"} <= {name.lower() for name in kernel.sizes}:
        # Linear attention calls its head widths so.
        meanings |= {name: "head_dim" for name in kernel.sizes if name.lower() in ("k", "v")}
    for name, meaning in meanings.items():
        size = str(kernel.fixed.get(name, "")) or given.get(name.lower())
        if size is None and meaning is not None:
            size = given.get(meaning.lower(), DEFAULTS[meaning])
        if size is not None:
            found[asked_as(name, meaning)] = size
    told = [name for name, meaning in meanings.items() if meaning is not None]
    if not told and not found:
        # What a kernel is tuned for are its sizes, under whatever name.
        keys = [name for name in kernel.keys if name in kernel.sizes and not _FLAG.match(name)]
        found = {meaning: DEFAULTS[meaning] for meaning, _ in zip(("M", "N", "K"), keys, strict=False)}
    if told == ["n"] and not has_strides:
        size = str(kernel.fixed.get("n", "")) or given.get("n") or given.get("n_elements") or DEFAULTS["n_elements"]
        found = {"n_elements": size} | {name: value for name, value in found.items() if name != "n"}
    elif told and {meanings[name] for name in told} <= {"N", "hidden_size"} and has_strides:
        # The kernel reads one row; how many there are is told by the grid alone.
        found = {"M": given.get("m", DEFAULTS["M"])} | found
    if not any(value[0].isdigit() for value in found.values()):
        return {}
    return found | {"dtype": given.get("dtype", DTYPE)}


def meaning_of(name: str, beside: tuple[str, ...] = ()) -> str | None:
    """The entry of the table that an argument called ``name`` stands for, ``beside`` others; None for none."""
    meaning = _MEANINGS.get(name.lower())
    if meaning == "hidden_size" and name.lower() == "h" and any(_MEANINGS.get(n.lower()) in _ATTENTION for n in beside):
        return "num_heads"
    return meaning


def asked_as(name: str, meaning: str | None) -> str:
    """What a size is called in a workload: as its argument where the model knows that name."""
    if meaning is None or meaning == "num_heads":
        return meaning or name
    if meaning == "head_dim" and len(name) == 1:
        return meaning
    return name if any(read_sizes({name: "2"}).named.values()) else meaning


@lru_cache(maxsize=1024)
def read_kernel(text: str, name: str) -> Kernel:
    """What the kernel called ``name`` in a unit's text says about its sizes."""
    root = ParsedSource(text.encode("utf-8", "replace"), "python").root
    node = next((node for node in _below(root, "function_definition") if _name(node) == name), None)
    if node is None:
        return Kernel(False, (), {}, ())
    parameters = [_parameter(child) for child in (_field(node, "parameters") or node).named_children]
    values: dict[str, list[Node]] = {}
    for assignment in _below(node, "assignment"):
        left, right = _field(assignment, "left"), _field(assignment, "right")
        if left is not None and right is not None and left.type == "identifier":
            values.setdefault(name_text(left), []).append(right)
    pointers = _pointers(node, values)
    if "Q" in pointers:
        # Attention may hand the other two on to a function that loads from them.
        pointers |= {"K", "V"}
    sizes = [one for one in parameters if one and one not in pointers and not _POINTER.fullmatch(one)]
    fixed = {one: number for one in sizes if (number := _only_number(values.get(one, ()))) is not None}
    return Kernel(bool(pointers), tuple(sizes), fixed, tuple(_keys(node)))


def _pointers(kernel: Node, values: Mapping[str, list[Node]]) -> set[str]:
    """The names whose addresses a kernel loads from or stores to, followed through its assignments."""
    queue = [name for call in _below(kernel, "call") for name in _addressed(call)]
    reached: set[str] = set()
    while queue:
        name = queue.pop()
        if name not in reached:
            reached.add(name)
            queue += [base for value in values.get(name, ()) if (base := _leftmost(value)) is not None]
    return reached


def _addressed(call: Node) -> Iterator[str]:
    """The names whose addresses a call takes: its first argument's or its ``base``'s, or those of its descriptor."""
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
            told = value_of(named.get("key") or (plain[1] if len(plain) > 1 else None), {})
        except ValueError:
            continue
        yield from (name for name in told if isinstance(name, str))


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


def _name(node: Node) -> str:
    return name_text(node.child_by_field_name("name"))


def _below(root: Node, kind: str) -> Iterator[Node]:
    """All nodes of a type below a node, in source order."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == kind:
            yield node
        stack += reversed(node.named_children)
