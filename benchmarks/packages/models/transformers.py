"""transformers: encoders, a decoder, text to text, vision, speech and both together, tiny, by their configurations."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from packages.case import BATCH, Case, fixed_image, image

_SMALL = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_TEXT = {**BATCH, "length": (9, 7, 16)}
_TOKENS = {0: "batch", 1: "length"}


def cases() -> list[Case]:
    """Text with batch and length, images with the batch, speech with its length."""
    return [
        _text("bert-classification", "BertForSequenceClassification", num_labels=3),
        _text("distilbert-ner", "DistilBertForTokenClassification", dim=32, n_layers=2, n_heads=4, hidden_dim=37),
        _text("roberta-masked", "RobertaForMaskedLM", max_position_embeddings=80),
        _text("deberta-v2", "DebertaV2Model", relative_attention=True, pos_att_type=["p2c", "c2p"]),
        _text("mpnet", "MPNetModel", max_position_embeddings=80),
        _text("modernbert", "ModernBertModel", global_attn_every_n_layers=2, local_attention=8),
        _text("gpt2", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, use_cache=False),
        _text("llama", "LlamaForCausalLM", num_key_value_heads=2, use_cache=False),
        _text("qwen3", "Qwen3ForCausalLM", num_key_value_heads=2, head_dim=8, use_cache=False),
        _seq2seq(
            "t5",
            "T5ForConditionalGeneration",
            d_model=32,
            d_kv=8,
            d_ff=37,
            num_layers=2,
            num_heads=4,
            decoder_start_token_id=0,
        ),
        _seq2seq(
            "bart",
            "BartForConditionalGeneration",
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=37,
            decoder_ffn_dim=37,
        ),
        fixed_image("vit", lambda: _made("ViTForImageClassification", image_size=64, patch_size=16)),
        fixed_image("dinov2", lambda: _made("Dinov2Model", image_size=28, patch_size=14), 28),
        image(
            "segformer",
            lambda: _made(
                "SegformerForSemanticSegmentation",
                hidden_sizes=[8, 16, 32, 64],
                depths=[1, 1, 1, 1],
                num_attention_heads=[1, 2, 4, 8],
                decoder_hidden_size=16,
                num_labels=5,
            ),
        ),
        image(
            "mobilevit",
            lambda: _made(
                "MobileViTForImageClassification",
                hidden_sizes=[16, 24, 32],
                neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 48],
                initializer_range=0.3,  # with the default, the signal vanishes: the logits are 0 whatever the image
            ),
        ),
        Case(
            "clip",
            _clip,
            _clip_inputs,
            {
                "input_ids": {0: "texts", 1: "length"},
                "pixel_values": {0: "images"},
                "attention_mask": {0: "texts", 1: "length"},
            },
            {"texts": (2, 1, 3), "images": (3, 1, 2), "length": (9, 7, 16)},
        ),
        Case(
            "wav2vec2",
            lambda: _speech("Wav2Vec2ForCTC"),
            lambda batch, samples: (torch.randn(batch, samples),),
            ({0: "batch", 1: "samples"},),
            {**BATCH, "samples": (4000, 3000, 6400)},
        ),
        Case(
            "whisper",
            _whisper,
            lambda batch, length: {
                "input_features": torch.randn(batch, 16, 60),
                "decoder_input_ids": torch.randint(3, 99, (batch, length)),
            },
            {"input_features": {0: "batch"}, "decoder_input_ids": _TOKENS},
            _TEXT,
        ),
    ]


def _made(name: str, **more: Any) -> torch.nn.Module:
    kind: Any = getattr(transformers, name)
    config = kind.config_class(**{**_SMALL, **more})
    if hasattr(config, "use_cache") and "use_cache" in more:
        config.use_cache = more["use_cache"]
    model: torch.nn.Module = kind(config)
    return model


def _text(name: str, kind: str, **more: Any) -> Case:
    def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
        mask = torch.ones(batch, length, dtype=torch.long)
        mask[0, length - 2 :] = 0
        return {"input_ids": torch.randint(3, 99, (batch, length)), "attention_mask": mask}

    return Case(
        name, lambda: _made(kind, **more), inputs, dict.fromkeys(("input_ids", "attention_mask"), _TOKENS), _TEXT
    )


def _seq2seq(name: str, kind: str, **more: Any) -> Case:
    def build() -> torch.nn.Module:
        return _made(kind, use_cache=False, **more)

    def inputs(batch: int, length: int, targets: int) -> dict[str, torch.Tensor]:
        return {
            "input_ids": torch.randint(3, 99, (batch, length)),
            "attention_mask": torch.ones(batch, length, dtype=torch.long),
            "decoder_input_ids": torch.randint(3, 99, (batch, targets)),
        }

    axes = {"input_ids": _TOKENS, "attention_mask": _TOKENS, "decoder_input_ids": {0: "batch", 1: "targets"}}
    return Case(name, build, inputs, axes, {**_TEXT, "targets": (5, 3, 8)})


def _clip() -> torch.nn.Module:
    config = transformers.CLIPConfig(
        text_config=dict(_SMALL), vision_config={**_SMALL, "image_size": 32, "patch_size": 8}, projection_dim=16
    )
    return transformers.CLIPModel(config)


def _clip_inputs(texts: int, images: int, length: int) -> dict[str, torch.Tensor]:
    return {
        "input_ids": torch.randint(3, 99, (texts, length)),
        "pixel_values": torch.rand(images, 3, 32, 32),
        "attention_mask": torch.ones(texts, length, dtype=torch.long),
    }


def _speech(name: str) -> torch.nn.Module:
    return _made(
        name,
        conv_dim=(16, 16, 16),
        conv_stride=(5, 4, 4),
        conv_kernel=(10, 8, 8),
        num_feat_extract_layers=3,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
    )


def _whisper() -> torch.nn.Module:
    return _made(
        "WhisperForConditionalGeneration",
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=37,
        decoder_ffn_dim=37,
        num_mel_bins=16,
        max_source_positions=30,
        max_target_positions=64,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        use_cache=False,
    )
