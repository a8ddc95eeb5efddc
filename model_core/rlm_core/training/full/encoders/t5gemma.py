"""The encoders of T5Gemma (arXiv 2504.06225) and T5Gemma 2, loaded through transformers.

Frozen, with low-rank adapters (LoRA, arXiv 2106.09685) or trained in full. A frozen or adapted encoder is saved as the
name of its base, the commit, a fingerprint of its weights and the adapters; a full one with all its weights.

How a checkpoint becomes a module is in :mod:`.pretrained`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from rlm_core.errors import ModelError

from . import pretrained
from .base import Ids, TextEncoder, Tokens, crop
from .pretrained import PRECISIONS, T5GemmaSettings

_FOLDER = "base"  # of a fully trained encoder: configuration and tokenizer


class T5GemmaEncoder(TextEncoder):
    """A pretrained text encoder.

    Args:
        settings: what to load and train.
        folder: a saved fully trained encoder, whose weights come by :meth:`load_weights`; None: load the base.

    Raises:
        ModelError: the base cannot be had, does not fit this transformers, or says nothing about its text.
    """

    kind = "t5gemma"

    def __init__(self, settings: T5GemmaSettings, folder: Path | None = None) -> None:
        super().__init__()
        checkpoint = (
            pretrained.Checkpoint(str(folder), folder, None)
            if folder
            else pretrained.find_checkpoint(settings.base, settings.revision)
        )
        data = pretrained.read_config(checkpoint)
        transformers = pretrained.need("transformers")
        config, module = pretrained.empty(transformers, checkpoint, data, settings)
        limit = getattr(module.config, "encoder", module.config).max_position_embeddings
        if settings.max_tokens > limit:
            raise ModelError(f"{checkpoint.name}: reads {limit} tokens; set max_tokens to {limit} or less")
        if folder:
            module.load_state_dict({n: torch.zeros(w.shape) for n, w in module.named_parameters()}, assign=True)
        else:
            weights, mark = pretrained.weights(checkpoint, module, _dtype(settings), transformers.__version__)
            if settings.fingerprint not in ("", mark):
                raise ModelError(
                    f"{checkpoint.name}: not the weights that the model was trained on (fingerprint {mark}, not "
                    f"{settings.fingerprint}); put the former checkpoint there, or change `base` in encoder.json"
                )
            module.load_state_dict(weights, assign=True)
            settings = replace(settings, base=checkpoint.name, revision=checkpoint.revision, fingerprint=mark)
        self.settings, self._config = settings, config
        self._tokenizer = pretrained.tokenizer(transformers, checkpoint)
        self.width = int(getattr(module.config, "encoder", module.config).hidden_size)
        self.max_tokens = settings.max_tokens
        self.pad_id = int(self._tokenizer.pad_token_id or 0)
        self.module: nn.Module = module
        self.trained = frozenset()
        self.eval()
        if not folder:
            pretrained.check_signal(self, f"{checkpoint.name} with transformers {transformers.__version__}")
        module.requires_grad_(settings.mode == "full")
        if settings.mode == "lora":
            pretrained.adapt(module, settings)
        self.trained = frozenset(name for name, weight in self.named_parameters() if weight.requires_grad)

    def tokenize(self, texts: Sequence[str]) -> Tokens:
        """See :meth:`TextEncoder.tokenize`; the checkpoint's own tokenizer, with its start and end tokens."""
        rows = self._tokenizer([text or "\n" for text in texts], verbose=False)["input_ids"] if texts else []
        cut = _start if self.settings.regress_lm else crop
        pairs = [cut(row or [self.pad_id], self.max_tokens) for row in rows]
        return Tokens([ids for ids, _ in pairs], [lost for _, lost in pairs])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """See :meth:`TextEncoder.forward`."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and bool(self.trained)):
            states: Tensor = self.module(input_ids=ids, attention_mask=mask).last_hidden_state
        return states.float()

    def train(self, mode: bool = True) -> Self:
        """A frozen encoder stays in evaluation mode."""
        return super().train(mode and bool(self.trained))

    def resize_vocabulary(self, rows: int) -> None:
        """Set the number of rows of a fully trained encoder's embedding; :meth:`load_weights` fills them.

        Raises:
            ModelError: the tokenizer has more ids.
        """
        embedding = self.module.get_input_embeddings()  # type: ignore[operator]
        if rows == len(embedding.weight):
            return
        if rows < len(self._tokenizer):
            raise ModelError(
                f"the embedding has {rows} rows, the tokenizer of {self.settings.base} {len(self._tokenizer)} ids; "
                "give the T5Gemma model that it was trained from"
            )
        embedding.weight = nn.Parameter(embedding.weight.new_zeros(rows, self.width))
        embedding.num_embeddings = rows
        text = getattr(self._config.encoder, "text_config", self._config.encoder)
        for part in (text, self._config.decoder, self._config):  # transformers wants the same everywhere
            part.vocab_size = rows

    def recompute(self, on: bool) -> None:
        """See :meth:`TextEncoder.recompute`."""
        # Releases from 5 on call it activation checkpointing.
        name = "activation" if hasattr(self.module, "activation_checkpointing_enable") else "gradient"
        if on:
            getattr(self.module, f"{name}_checkpointing_enable")({"use_reentrant": False})
        else:
            getattr(self.module, f"{name}_checkpointing_disable")()

    def to_json(self) -> dict[str, Any]:
        """See :meth:`TextEncoder.to_json`."""
        return {"kind": self.kind, **asdict(self.settings)}

    @classmethod
    def from_json(cls, data: dict[str, Any], folder: Path) -> Self:
        """See :meth:`TextEncoder.from_json`."""
        settings = T5GemmaSettings(**{name: value for name, value in data.items() if name != "kind"})
        return cls(settings, folder / _FOLDER if settings.mode == "full" else None)

    def save_files(self, folder: Path) -> None:
        """See :meth:`TextEncoder.save_files`."""
        if self.settings.mode == "full":
            self._config.save_pretrained(folder / _FOLDER)
            self._tokenizer.save_pretrained(folder / _FOLDER)


def _start(ids: Sequence[int], length: int) -> tuple[Ids, int]:
    """The start of a text within ``length`` ids, and the number of ids that are lost."""
    return np.array(ids[:length], np.int64), max(len(ids) - length, 0)


def _dtype(settings: T5GemmaSettings) -> torch.dtype:
    if settings.precision != "auto":
        return PRECISIONS[settings.precision]
    gpu = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return torch.bfloat16 if gpu and settings.mode != "full" else torch.float32
