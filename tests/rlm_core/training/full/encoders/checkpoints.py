"""Tiny T5Gemma checkpoints with real tokenizers, written by transformers itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

CODE = [
    "def add(a, b):\n    return a + b\n",
    "for i in range(10):\n    total += i * i\n",
    "while queue:\n    node = queue.pop()\n    seen.add(node)\n",
    "class Point:\n    def __init__(self, x, y):\n        self.x, self.y = x, y\n",
]
_PART: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "sliding_window": 8,
    "max_position_embeddings": 512,
    "layer_types": ["sliding_attention", "full_attention"],
}
_VISION: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}


def write_tokenizer(folder: Path) -> None:
    """A byte-level BPE of 320 pieces that puts <bos> in front and <eos> behind."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CODE, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A <eos>", special_tokens=[("<bos>", 2), ("<eos>", 1)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", bos_token="<bos>", unk_token="<unk>"
    ).save_pretrained(folder)


def first(seed: int = 0, **changes: Any) -> Any:
    """A whole T5Gemma."""
    torch.manual_seed(seed)
    part = _PART | changes
    config = transformers.T5GemmaConfig(
        encoder=transformers.T5GemmaModuleConfig(**part),
        decoder=transformers.T5GemmaModuleConfig(**part),
        vocab_size=part["vocab_size"],
    )
    return transformers.T5GemmaForConditionalGeneration(config).eval()


def second(seed: int = 0) -> Any:
    """A whole T5Gemma 2, with its vision tower."""
    torch.manual_seed(seed)
    config = transformers.T5Gemma2Config(
        encoder=transformers.T5Gemma2EncoderConfig(
            text_config=transformers.T5Gemma2TextConfig(**_PART),
            vision_config=transformers.SiglipVisionConfig(**_VISION),
            boi_token_index=316,
            eoi_token_index=317,
            image_token_index=318,
            mm_tokens_per_image=4,
        ),
        decoder=transformers.T5Gemma2DecoderConfig(**_PART),
        image_token_index=318,
    )
    return transformers.T5Gemma2ForConditionalGeneration(config).eval()


def write(model: Any, folder: Path) -> Path:
    """A checkpoint as a user would have it."""
    model.save_pretrained(folder)
    write_tokenizer(folder)
    return folder
