"""Checkpoints in the layout of akhauriyash/RLM-GemmaS-Code-v0 with random weights, by transformers' own classes.

Names, shapes, vocabulary and file names are those of the published model; ``tiny`` has the same parts, smaller.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import safetensors.torch
import torch
import transformers
from torch import nn

from .encoders.checkpoints import write_tokenizer

NUMBER_TOKENS = ("<pad>", "<+>", "<->", *(f"<{digit}>" for digit in range(10)))
DIGITS = 2, 5
# T5Gemma-s: 8 layers of width 512 on both sides and 256,000 text tokens.
SIZES: dict[str, dict[str, Any]] = {
    "full": {
        "vocab_size": 256_000,
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "query_pre_attn_scalar": 64,
        "sliding_window": 4096,
        "max_position_embeddings": 8192,
    },
    "tiny": {
        "vocab_size": 330,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "query_pre_attn_scalar": 8,
        "sliding_window": 512,
        "max_position_embeddings": 1024,
    },
}
Size = Literal["tiny", "full"]


def reference(size: Size = "tiny", seed: int = 0, spread: float = 0.5) -> Any:
    """The T5Gemma of transformers with the head of a published RLM; ``spread`` makes its probabilities uneven."""
    torch.manual_seed(seed)
    # As fused attention does, which the published models were trained with.
    part = {**SIZES[size], "attn_logit_softcapping": None}
    config = transformers.T5GemmaConfig(
        encoder=transformers.T5GemmaModuleConfig(**part),
        decoder=transformers.T5GemmaModuleConfig(**part),
        vocab_size=SIZES[size]["vocab_size"],
        tie_word_embeddings=False,
    )
    model = transformers.T5GemmaForConditionalGeneration(config)
    width, count = SIZES[size]["hidden_size"], len(NUMBER_TOKENS)
    model.model.decoder.embed_tokens = nn.Embedding(count, width, padding_idx=0)
    model.lm_head.out_proj = nn.Linear(width, count, bias=False)
    with torch.no_grad():
        model.lm_head.out_proj.weight.normal_(0, spread)
        model.model.decoder.embed_tokens.weight.normal_(0, 1)
        for name, weight in model.named_parameters():
            if name.endswith("norm.weight"):
                weight.normal_(0, 0.1)
            elif name.endswith(("_proj.weight", "encoder.embed_tokens.weight")) and "lm_head" not in name:
                weight.normal_(0, 1.5 * weight.shape[-1] ** -0.5)
    model.register_buffer("final_logits_bias", torch.zeros(1, count))
    return model.eval()


def configuration(size: Size = "tiny", digits: tuple[int, int] = DIGITS) -> dict[str, Any]:
    """``config.json`` as a release of transformers before 5 wrote it; ``digits`` of exponent and mantissa."""
    part = {
        **SIZES[size],
        "model_type": "t5_gemma_module",
        "hidden_activation": "gelu_pytorch_tanh",
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "attention_bias": False,
    }
    return {
        "architectures": ["RegressLMForConditionalGeneration"],
        "auto_map": {"AutoModelForSeq2SeqLM": "modeling_regresslm.RegressLMForConditionalGeneration"},
        "model_type": "regresslm",
        "backbone_model_name": "google/t5gemma-s-s-prefixlm",
        "backbone_config": {"model_type": "t5gemma", "encoder": part, "decoder": {**part, "is_decoder": True}},
        "decoder_tokenizer": "IEEE",
        "decoder_vocab_size": len(NUMBER_TOKENS),
        "encoder_vocab_size": SIZES[size]["vocab_size"],
        "ieee_base": 10,
        "ieee_exponent_digits": digits[0],
        "ieee_mantissa_digits": digits[1],
        "num_tokens_per_obj": 2 + sum(digits),
        "max_num_objs": 1,
        "use_regression_head": False,
        "pad_token_id": 0,
        "decoder_start_token_id": 0,
        "transformers_version": "4.53.2",
    }


def write_checkpoint(folder: Path, size: Size = "tiny", model: Any = None, digits: tuple[int, int] = DIGITS) -> None:
    """Write all files of the layout; ``model`` is one that :func:`reference` made."""
    model = model or reference(size)
    folder.mkdir(parents=True, exist_ok=True)
    weights = {f"model.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})
    tokenizer = {"tokenizer_class": "IEEEFloatTokenizer", "auto_map": {"AutoTokenizer": ["tokenization_p10.X", None]}}
    for name, data in {
        "config.json": configuration(size, digits),
        "generation_config.json": {"max_new_tokens": 9, "decoder_start_token_id": 0},
        "ieee_vocab.json": {name: index for index, name in enumerate(NUMBER_TOKENS)},
        "tokenizer_config.json": tokenizer,
    }.items():
        (folder / name).write_text(json.dumps(data, indent=2), encoding="utf-8")
    write_tokenizer(folder / "encoder_tokenizer")
    settings = folder / "encoder_tokenizer" / "tokenizer_config.json"
    data = json.loads(settings.read_text(encoding="utf-8")) | {"add_bos_token": True, "add_eos_token": False}
    settings.write_text(json.dumps(data), encoding="utf-8")
