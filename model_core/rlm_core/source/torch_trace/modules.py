"""What every ``nn.Module`` of a source can do: its weights, and the methods that matter to a forward pass."""

from __future__ import annotations

from collections.abc import Callable

from .values import Container, Instance, Layer, Tensor, Value


def weights_of(value: Value, seen: set[int] | None = None, depth: int = 24) -> list[Tensor]:
    """The weights of a module and of all modules in it, each once."""
    seen = set() if seen is None else seen
    if id(value) in seen or depth == 0:
        return []
    seen.add(id(value))
    if isinstance(value, Tensor):
        return [value] if value.parameter else []
    inside: list[Value] = []
    if isinstance(value, Instance):
        inside = [*value.attributes.values(), value.base]
        inside = [item for item in inside if isinstance(item, (Instance, Layer, Container, Tensor))]
    elif isinstance(value, Container):
        inside = list(value.items.values())
    elif isinstance(value, Layer):
        inside = list(value.weights.values())
    return [weight for item in inside for weight in weights_of(item, seen, depth - 1)]


def _keep(target: Instance, name: str, value: Value = None, *_: Value, **__: Value) -> None:
    target.attributes[name] = value


METHODS: dict[str, Callable[..., Value]] = {
    "register_buffer": _keep,
    "register_parameter": _keep,
    "add_module": _keep,
    "parameters": weights_of,
    "named_parameters": lambda target: [("", weight) for weight in weights_of(target)],
    "children": lambda target: [
        value for value in target.attributes.values() if isinstance(value, (Instance, Layer, Container))
    ],
    "modules": lambda target: [],
}
