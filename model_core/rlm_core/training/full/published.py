"""The models that the authors of arXiv 2509.26476 published, as full models with the same probabilities.

``akhauriyash/RLM-GemmaS-Code-v0`` and its like hold a T5Gemma whose decoder writes the 13 tokens of numbers:
``config.json`` with the model type ``regresslm``, ``model.safetensors``, the names of the number tokens in
``ieee_vocab.json`` and the text tokenizer in ``encoder_tokenizer``. The Python files next to them are neither fetched
nor run. Checkpoints of regress-lm itself (``.pt``) are in :mod:`.regress_lm`.

``config.json`` names a cap of attention scores that these models never had: their authors trained and ran them with
the fused attention of PyTorch, which leaves it out (transformers 4.53.2 and all releases up to 5.17 choose it for
T5Gemma; later ones do not and give other numbers).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor

from rlm_core.errors import ModelError
from rlm_core.inference.card import ModelCard
from rlm_core.inference.model_store import ModelOrigin

from . import store
from .decoder import t5gemma_config
from .encoders.gemma import TOKENIZER, GemmaTextEncoder
from .encoders.pretrained import Checkpoint, read_config, tensors
from .gemma import GemmaSizes
from .hub import CONFIG, KNOWN, MODEL_TYPE, CheckpointFormat
from .model import FullModel
from .numbers import NumberFormat
from .regress_lm import convert, ieee, p10, special_tokens, t5gemma_encoder
from .spaces import SPACES, Space

_ADVICE = "fetch the checkpoint again"
_TEXT_TOKENIZER = "encoder_tokenizer"
_MARKS = {"add_bos_token": ("bos_token", "<bos>", True), "add_eos_token": ("eos_token", "<eos>", False)}
# Parts of a layer by their names in transformers -> ours; norms are numbered in the order of use.
_PROJECTIONS = {"q_proj": "queries", "k_proj": "keys_values", "v_proj": "keys_values", "o_proj": "out"}
_PARTS = {"self_attn": "attention", "cross_attn": "cross_attention"}
_NORMS = {
    "encoder": ("pre_self_attn", "post_self_attn", "pre_feedforward", "post_feedforward"),
    "decoder": (
        "pre_self_attn",
        "post_self_attn",
        "pre_cross_attn",
        "post_cross_attn",
        "pre_feedforward",
        "post_feedforward",
    ),
}


def install(folder: Path, out: Path, name: str, origin: ModelOrigin, spaces: Sequence[Space] = SPACES) -> ModelCard:
    """Write the model in a folder as a model directory that can be served.

    Its intervals are uncalibrated until ``rlm-lsp model calibrate`` has seen measured rows.

    Args:
        folder: with the files of the model.
        out: the directory to write.
        name: of the installed model.
        origin: says whether it is a known model, too.
        spaces: what the model may be asked.

    Raises:
        ModelError: as :func:`read`, or the directory cannot be written.
    """
    known = KNOWN.get(origin.source)
    if known is not None and known.checkpoint is not None:
        model = read_known(folder / known.required[0], known.checkpoint)
    else:
        model = read(folder)
    return save(model, out, name, spaces, origin)


def read_known(path: Path, settings: CheckpointFormat) -> FullModel:
    """Read a checkpoint of regress-lm whose settings are known; the base of its encoder is fetched from the hub.

    Raises:
        ModelError: the base cannot be had, or the file is damaged or holds another model.
    """
    numbers = ieee(10, settings.exponent_digits, settings.mantissa_digits, special_tokens(settings.special))
    encoder = t5gemma_encoder(settings.encoder, settings.max_tokens)
    model = convert(path, numbers, encoder=encoder)
    if model.config.layers != settings.decoder_layers:
        raise ModelError(
            f"{path}: its decoder has {model.config.layers} layers, that of the published model "
            f"{settings.decoder_layers}; {_ADVICE}"
        )
    return model


def save(model: FullModel, out: Path, name: str, spaces: Sequence[Space], origin: ModelOrigin) -> ModelCard:
    """Write a converted model and what it may be asked.

    Raises:
        ModelError: the directory cannot be written.
    """
    trained = {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "origin": asdict(origin),
        store.SPACES: msgspec.to_builtins(tuple(spaces)),
    }
    checksum = store.Serving({}, {}, {}).write(out)
    return store.save(model, out, name, {**trained, **checksum})


def read(folder: Path) -> FullModel:
    """The model in a folder, in evaluation mode; texts longer than the window of its attention lose their end.

    Raises:
        ModelError: a file is missing or damaged, or the folder holds another model.
    """
    try:
        return _read(folder)
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:  # a value of another kind
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ModelError(f"{folder}: its files describe a model in an unknown form ({reason}); {_ADVICE}") from None


def _read(folder: Path) -> FullModel:
    checkpoint = Checkpoint(str(folder), folder, None)
    pickled = sorted(folder.glob("*.pt"))
    if pickled and not (folder / CONFIG).is_file():
        raise ModelError(
            f"{pickled[0]}: a checkpoint of regress-lm does not describe its numbers; run rlm-lsp model convert with "
            "the settings of its training"
        )
    config = read_config(checkpoint)
    if config.get("model_type") != MODEL_TYPE:
        raise ModelError(
            f"{folder / CONFIG}: model type {config.get('model_type')!r}, not {MODEL_TYPE}; name a published RLM"
        )
    backbone = config.get("backbone_config")
    if not isinstance(backbone, dict) or config.get("use_regression_head"):
        what = "a regression head" if isinstance(backbone, dict) else "no `backbone_config`"
        raise ModelError(f"{folder / CONFIG}: has {what}; only models that write numbers as tokens can be read")
    written = {part: GemmaSizes.of_transformers(_part(folder, backbone, part)) for part in ("encoder", "decoder")}
    sizes = {part: replace(own, attention_cap=None) for part, own in written.items()}
    numbers, order = _numbers(folder, config)
    weights = dict(_weights(checkpoint, sizes))
    for part, of_part in sizes.items():
        _check_sizes(folder, part, of_part, weights)
    embedding = _weight(folder, weights, "encoder.embed.weight")
    encoder = GemmaTextEncoder(sizes["encoder"], len(embedding), **_text_tokenizer(folder))
    model = FullModel(
        t5gemma_config(numbers, sizes["encoder"].width, sizes["decoder"], max(int(config.get("max_num_objs", 1)), 1)),
        encoder,
    )
    for name in ("decoder.embed.weight", "decoder.logits.weight"):
        rows = _weight(folder, weights, name)
        if len(rows) != len(order):
            raise ModelError(
                f"{folder}: its weights know {len(rows)} number tokens, its vocabulary {len(order)}; {_ADVICE}"
            )
        weights[name] = rows[order]
    for part, module in (("encoder", encoder), ("decoder", model.decoder)):
        own = {name.removeprefix(f"{part}."): rows for name, rows in weights.items() if name.startswith(f"{part}.")}
        expected = {name: weight.shape for name, weight in module.state_dict().items()}
        for name in sorted(own.keys() ^ expected.keys()):
            what = "has no" if name in expected else "has a strange"
            raise ModelError(f"{folder}: {what} `{part}.{name}` among its weights; {_ADVICE}")
        for name, shape in expected.items():
            if own[name].shape != shape:
                raise ModelError(
                    f"{folder}: `{part}.{name}` has the shape {tuple(own[name].shape)}, config.json says "
                    f"{tuple(shape)}; {_ADVICE}"
                )
        module.load_state_dict(own, assign=True)
    return model.eval()


def _part(folder: Path, backbone: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    found = backbone.get(part)
    if not isinstance(found, dict):
        raise ModelError(f"{folder / CONFIG}: `backbone_config` has no {part}; {_ADVICE}")
    return found


def _check_sizes(folder: Path, part: str, sizes: GemmaSizes, weights: Mapping[str, Tensor]) -> None:
    """Refuse sizes that the weights do not have before anything of these sizes is made."""
    found = {int(name.split(".")[2]) for name in weights if name.startswith(f"{part}.layers.")}
    same = found == set(range(len(found))) and len(found) == sizes.layers
    up = weights.get(f"{part}.layers.0.feed_forward.up.weight")
    queries = weights.get(f"{part}.layers.0.attention.queries.weight")
    if up is not None and queries is not None:
        same &= tuple(up.shape) == (2 * sizes.hidden, sizes.width)
        same &= tuple(queries.shape) == (sizes.heads * sizes.head_size, sizes.width)
    if not same:
        raise ModelError(f"{folder / CONFIG}: its sizes of the {part} are not those of the weights; {_ADVICE}")


def _numbers(folder: Path, config: Mapping[str, Any]) -> tuple[NumberFormat, Tensor]:
    """How numbers are written, and by our id of a token its id in the weights."""
    kind = str(config.get("decoder_tokenizer", "P10")).upper()
    try:
        if kind.startswith("IEEE"):
            numbers = ieee(
                int(config.get("ieee_base", 10)),
                int(config["ieee_exponent_digits"]),
                int(config["ieee_mantissa_digits"]),
            )
            # No cost is 0, the one value that is written with a leading zero.
            numbers = replace(numbers, leading_zero=False)
            path = folder / "ieee_vocab.json"
        else:
            numbers = p10(int(config.get("num_digits", 6)), int(config.get("exponent_range", 10)))
            path = folder / "p10_vocab.json"
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder / CONFIG}: the settings of its numbers are incomplete ({error})") from None
    ids = _vocabulary(path)
    if set(ids) != set(numbers.names) or sorted(ids.values()) != list(range(len(numbers.names))):
        raise ModelError(
            f"{path}: names {len(ids)} tokens that are not the {len(numbers.names)} of its number format in "
            f"config.json (for example {_example(ids, numbers)}); {_ADVICE}"
        )
    return numbers, torch.tensor([ids[name] for name in numbers.names])


def _vocabulary(path: Path) -> dict[str, int]:
    """Ids by token: the file is a mapping or a list, or has one of them under a name."""
    data = _json(path)
    while isinstance(data, dict) and not all(isinstance(value, int) for value in data.values()):
        inner = [value for value in data.values() if isinstance(value, dict | list)]
        if not inner:
            break
        data = inner[0]
    if isinstance(data, list) and all(isinstance(name, str) for name in data):
        return {name: index for index, name in enumerate(data)}
    if isinstance(data, dict) and all(isinstance(value, int) for value in data.values()):
        return {str(name): int(index) for name, index in data.items()}
    raise ModelError(f"{path}: not a vocabulary; {_ADVICE}")


def _example(ids: Mapping[str, int], numbers: NumberFormat) -> str:
    return repr(next(iter(sorted(set(ids) ^ set(numbers.names))), "repeated ids"))


def _text_tokenizer(folder: Path) -> dict[str, Any]:
    """Arguments of :class:`GemmaTextEncoder`."""
    path = folder / _TEXT_TOKENIZER / TOKENIZER
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {_ADVICE}") from None
    settings_path = path.with_name("tokenizer_config.json")
    settings = _json(settings_path) if settings_path.is_file() else {}
    names = []
    for switch, (key, default, usual) in _MARKS.items():
        token = settings.get(key, default)
        name = token.get("content", default) if isinstance(token, dict) else str(token)
        names.append(name if settings.get(switch, usual) else "")
    return {"tokenizer": content, "start": names[0], "end": names[1]}


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {_ADVICE}") from None
    except ValueError as error:
        raise ModelError(f"{path}: not JSON ({error}); {_ADVICE}") from None


def _weight(folder: Path, weights: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in weights:
        raise ModelError(f"{folder}: has no `{name}` among its weights; {_ADVICE}")
    return weights[name]


def _weights(checkpoint: Checkpoint, sizes: Mapping[str, GemmaSizes]) -> Iterator[tuple[str, Tensor]]:
    """All weights by our names; parts that we keep in one matrix are put together."""
    joined: dict[str, dict[str, Tensor]] = {}
    for full_name, read_tensor in tensors(checkpoint):
        name = full_name.removeprefix("model.").removeprefix("model.")
        if name == "final_logits_bias":  # zeros that the published code registers and never adds
            continue
        path = name.split(".")
        if name == "lm_head.out_proj.weight":
            yield "decoder.logits.weight", read_tensor().float()
        elif path[0] not in _NORMS or path[-1] != "weight":
            raise ModelError(f"{checkpoint.name}: `{full_name}` has no place in this layout; {_ADVICE}")
        elif path[1] == "embed_tokens":
            yield f"{path[0]}.embed.weight", read_tensor().float()
        elif path[1] == "norm":
            yield f"{path[0]}.norm.weight", read_tensor().float()
        else:
            own, part = _layer_name(checkpoint, full_name, path)
            if part:
                joined.setdefault(own, {})[part] = read_tensor().float()
            else:
                yield own, read_tensor().float()
    for own, parts in joined.items():
        wanted = ("gate_proj", "up_proj") if own.endswith("up.weight") else ("k_proj", "v_proj")
        if missing := [part for part in wanted if part not in parts]:
            raise ModelError(f"{checkpoint.name}: has no {missing[0]} of `{own}`; {_ADVICE}")
        yield own, torch.cat([parts[part] for part in wanted])


def _layer_name(checkpoint: Checkpoint, full_name: str, path: list[str]) -> tuple[str, str]:
    """Our name of a layer's weight, and which part of a joined matrix it is ("" for a whole one)."""
    stack, rest = path[0], path[3:-1]
    start = ".".join([stack, *path[1:3]])
    if len(rest) == 1 and rest[0].removesuffix("_layernorm") in _NORMS[stack]:
        return f"{start}.norms.{_NORMS[stack].index(rest[0].removesuffix('_layernorm'))}.weight", ""
    if len(rest) == 2 and rest[0] in _PARTS and rest[1] in _PROJECTIONS:
        part = rest[1] if rest[1] in ("k_proj", "v_proj") else ""
        return f"{start}.{_PARTS[rest[0]]}.{_PROJECTIONS[rest[1]]}.weight", part
    if len(rest) == 2 and rest[0] == "mlp" and rest[1] in ("gate_proj", "up_proj", "down_proj"):
        part = "" if rest[1] == "down_proj" else rest[1]
        return f"{start}.feed_forward.{'up' if part else 'down'}.weight", part
    raise ModelError(f"{checkpoint.name}: `{full_name}` has no place in this layout; {_ADVICE}")
