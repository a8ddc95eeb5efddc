"""The configurations of networks of transformers that Qualcomm AI Hub measures, as their authors publish them.

Only sizes matter for the graph. A configuration with other sizes is noticed by its number of parameters.
"""

from __future__ import annotations

from typing import Any


def configuration(name: str) -> Any:
    """The configuration of a checkpoint.

    Raises:
        KeyError: it is not in the table.
    """
    import transformers as t

    if "opus-mt" in name:
        return _translation(t)
    if "whisper-" in name:
        width, layers, heads, more = _WHISPER[name.rpartition("whisper-")[2]]
        return _speech(t, width, layers, heads, **more)
    return {
        "LiheYoung/depth-anything-small-hf": lambda: _depth(t, [9, 10, 11, 12]),
        "SenseTime/deformable-detr": lambda: t.DeformableDetrConfig(**_backbone("resnet50")),
        "albert-base-v2": lambda: t.AlbertConfig(
            embedding_size=128,
            hidden_size=768,
            intermediate_size=3072,
            num_attention_heads=12,
            num_hidden_layers=12,
            vocab_size=30000,
        ),
        "depth-anything/Depth-Anything-V2-Small-hf": lambda: _depth(t, [3, 6, 9, 12]),
        "distilbert/distilbert-base-uncased": t.DistilBertConfig,
        "facebook/detr-resnet-101": lambda: t.DetrConfig(**_backbone("resnet101")),
        "facebook/detr-resnet-101-dc5": lambda: t.DetrConfig(**_backbone("resnet101", dilation=True)),
        "facebook/detr-resnet-50": lambda: t.DetrConfig(**_backbone("resnet50")),
        "facebook/detr-resnet-50-dc5": lambda: t.DetrConfig(**_backbone("resnet50", dilation=True)),
        "facebook/levit-128S": lambda: t.LevitConfig(
            depths=[2, 3, 4],
            drop_path_rate=0,
            hidden_sizes=[128, 256, 384],
            key_dim=[16, 16, 16],
            num_attention_heads=[4, 6, 8],
            num_labels=1000,
        ),
        "google-bert/bert-base-uncased": t.BertConfig,
        "google/electra-base-discriminator": lambda: t.ElectraConfig(
            embedding_size=768, hidden_size=768, intermediate_size=3072, num_attention_heads=12
        ),
        "google/mobilebert-uncased": t.MobileBertConfig,
        "microsoft/beit-base-patch16-224": lambda: t.BeitConfig(
            num_labels=1000, use_mask_token=False, use_relative_position_bias=True
        ),
        "microsoft/conditional-detr-resnet-50": lambda: t.ConditionalDetrConfig(**_backbone("resnet50")),
        "microsoft/trocr-small-stage1": lambda: _reading(t),
        "nvidia/segformer-b0-finetuned-ade-512-512": lambda: t.SegformerConfig(num_labels=150),
        "patrickvonplaten/wavlm-libri-clean-100h-base-plus": lambda: t.WavLMConfig(vocab_size=31),
    }[name]()


_WHISPER: dict[str, tuple[int, int, int, dict[str, int]]] = {
    "base": (512, 6, 8, {}),
    "large-v3-turbo": (1280, 32, 20, {"decoder_layers": 4, "num_mel_bins": 128, "vocab_size": 51866}),
    "small": (768, 12, 12, {}),
    "tiny": (384, 4, 6, {}),
}


def _backbone(name: str, *, dilation: bool = False) -> dict[str, Any]:
    options = {"out_indices": [1, 2, 3, 4]} | ({"output_stride": 16} if dilation else {})
    return {
        "backbone": name,
        "backbone_kwargs": options,
        "dilation": dilation,
        "num_labels": 91,
        "use_pretrained_backbone": False,
        "use_timm_backbone": True,
    }


def _speech(t: Any, width: int, layers: int, heads: int, **more: int) -> Any:
    usual = _encoder_and_decoder(width, layers, heads, 4 * width) | {"num_mel_bins": 80, "vocab_size": 51865}
    return t.WhisperConfig(**usual | more)


def _translation(t: Any) -> Any:
    return t.MarianConfig(
        activation_function="swish",
        decoder_start_token_id=65000,
        decoder_vocab_size=65001,
        max_position_embeddings=512,
        pad_token_id=65000,
        scale_embedding=True,
        vocab_size=65001,
        **_encoder_and_decoder(512, 6, 8, 2048),
    )


def _encoder_and_decoder(width: int, layers: int, heads: int, hidden: int) -> dict[str, int]:
    sides = {"attention_heads": heads, "ffn_dim": hidden, "layers": layers}
    return {"d_model": width} | {
        f"{side}_{key}": size for side in ("encoder", "decoder") for key, size in sides.items()
    }


def _depth(t: Any, layers: list[int]) -> Any:
    backbone = t.Dinov2Config(
        apply_layernorm=True,
        hidden_size=384,
        image_size=518,
        num_attention_heads=6,
        num_hidden_layers=12,
        out_indices=layers,
        patch_size=14,
        reshape_hidden_states=False,
    )
    return t.DepthAnythingConfig(
        backbone_config=backbone,
        fusion_hidden_size=64,
        neck_hidden_sizes=[48, 96, 192, 384],
        reassemble_hidden_size=384,
    )


def _reading(t: Any) -> Any:
    image = t.DeiTConfig(
        hidden_size=384, image_size=384, intermediate_size=1536, num_attention_heads=6, num_hidden_layers=12
    )
    text = t.TrOCRConfig(
        activation_function="relu",
        cross_attention_hidden_size=384,
        d_model=256,
        decoder_attention_heads=8,
        decoder_ffn_dim=1024,
        decoder_layers=6,
        layernorm_embedding=True,
        max_position_embeddings=512,
        scale_embedding=True,
        use_learned_position_embeddings=True,
        vocab_size=64044,
    )
    return t.VisionEncoderDecoderConfig.from_encoder_decoder_configs(image, text)
