"""Models of the transformers library, tiny and with random weights: made from a configuration, nothing is downloaded.

Batch, sequence, height and width are dynamic where the model takes other sizes in eager mode. Names that end in
`-past` are given a key-value cache and give one back.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from exporting.suite import Call

_BASE = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_labels": 3,
}
_LLAMA = {"num_key_value_heads": 2, "head_dim": 8}
_MOE = {
    **_LLAMA,
    "intermediate_size": 40,
    "hidden_size": 32,
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}
_SEQ2SEQ = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "num_labels": 3,
    "max_source_positions": 64,
    "max_target_positions": 64,
}
_T5 = {
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 37,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
    "num_experts": 4,
}
_VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "image_size": 32,
    "patch_size": 8,
    "num_labels": 3,
}
_WAV = {
    **_BASE,
    "conv_dim": (16, 16),
    "conv_stride": (4, 4),
    "conv_kernel": (8, 4),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "codevector_dim": 16,
}
_BACKBONE = {
    "model_type": "resnet",
    "num_channels": 3,
    "embedding_size": 8,
    "hidden_sizes": [8, 8, 16, 16],
    "depths": [1, 1, 1, 1],
    "out_features": ["stage4"],
}
_SWIN = {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 2], "num_heads": [2, 2], "window_size": 4}

Inputs = tuple[dict[str, torch.Tensor], dict[str, dict[int, str]]]
"""Keywords of forward, and the axes of each that stay dynamic."""


@dataclass(frozen=True)
class _Case:
    head: str
    type: str
    config: Mapping[str, Any]
    inputs: Callable[[int, int], Inputs]
    """Batch and a number that varies (length, or pixels) → inputs."""
    sizes: tuple[tuple[int, int], ...]
    past: bool = False
    noise: float = 0.05
    """What is added to the weights, times random numbers. Small weights let what an image is about fade from layer to
    layer, and a model that takes the best few of its boxes then takes them by their rounding errors."""


def _ids(batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, 99, (batch, length))


def _text(batch: int, length: int) -> Inputs:
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, -2:] = 0
    axes = {0: "batch", 1: "sequence"}
    return {"input_ids": _ids(batch, length), "attention_mask": mask}, {"input_ids": axes, "attention_mask": axes}


def _ids_only(batch: int, length: int) -> Inputs:
    return {"input_ids": _ids(batch, length)}, {"input_ids": {0: "batch", 1: "sequence"}}


def _pair(batch: int, length: int) -> Inputs:
    found, axes = _text(batch, length)
    found["decoder_input_ids"] = _ids(batch, length - 3)
    return found, {**axes, "decoder_input_ids": {0: "batch", 1: "decoder_sequence"}}


def _image(batch: int, pixels: int) -> Inputs:
    return {"pixel_values": torch.randn(batch, 3, pixels, pixels + 32)}, {
        "pixel_values": {0: "batch", 2: "height", 3: "width"}
    }


def _square(batch: int, pixels: int) -> Inputs:
    return {"pixel_values": torch.randn(batch, 3, pixels, pixels)}, {"pixel_values": {0: "batch"}}


def _wave(batch: int, length: int) -> Inputs:
    return {"input_values": torch.randn(batch, length * 100)}, {"input_values": {0: "batch", 1: "samples"}}


def _features(batch: int, length: int) -> Inputs:
    return {"input_features": torch.randn(batch, 8, 64), "decoder_input_ids": _ids(batch, length)}, {
        "input_features": {0: "batch"},
        "decoder_input_ids": {0: "batch", 1: "decoder_sequence"},
    }


def _spectrogram(batch: int, length: int) -> Inputs:
    return {"input_values": torch.randn(batch, length, 16)}, {"input_values": {0: "batch"}}


def _text_and_image(batch: int, length: int) -> Inputs:
    text, axes = _text(batch, length)
    return {**text, "pixel_values": torch.randn(batch, 3, 32, 32)}, {**axes, "pixel_values": {0: "batch"}}


def _clip(batch: int, length: int) -> Inputs:
    text, axes = _text(batch, length)
    named = {name: {0: "texts", 1: "sequence"} for name in axes}
    return {**text, "pixel_values": torch.randn(batch + 1, 3, 32, 32)}, {**named, "pixel_values": {0: "images"}}


def _series(batch: int, length: int) -> Inputs:
    return {"past_values": torch.randn(batch, length, 2)}, {"past_values": {0: "batch"}}


def _informer(batch: int, length: int) -> Inputs:
    found = {
        "past_values": torch.randn(batch, length),
        "past_time_features": torch.randn(batch, length, 1),
        "past_observed_mask": torch.ones(batch, length),
        "future_values": torch.randn(batch, 4),
        "future_time_features": torch.randn(batch, 4, 1),
    }
    return found, {name: {0: "batch"} for name in found}


def _layout(batch: int, length: int) -> Inputs:
    found, axes = _text(batch, length)
    found["bbox"] = torch.sort(torch.randint(0, 50, (batch, length, 2, 2)), dim=2).values.reshape(batch, length, 4)
    return found, {**axes, "bbox": {0: "batch", 1: "sequence"}}


_LENGTHS = ((2, 7), (3, 11), (1, 5))
_FIXED = ((2, 32), (3, 32))
_PIXELS = ((2, 64), (3, 96), (1, 64))
_MANY = {"num_labels": 3, "num_channels": 3}


def _of(head: str, type_: str, base: Mapping[str, Any], inputs: Any = _text, sizes: Any = _LENGTHS, **more: Any) -> Any:
    return _Case(f"AutoModel{head}", type_, {**base, **more}, inputs, sizes)


def _cases() -> dict[str, _Case]:
    return {**_encoders(), **_decoders(), **_sequences(), **_pictures(), **_sounds(), **_several()}


def _encoders() -> dict[str, _Case]:
    return {
        "bert": _of("", "bert", _BASE),
        "bert-classification": _of("ForSequenceClassification", "bert", _BASE),
        "bert-tokens": _of("ForTokenClassification", "bert", _BASE),
        "bert-questions": _of("ForQuestionAnswering", "bert", {**_BASE, "num_labels": 2}),
        "bert-mask": _of("ForMaskedLM", "bert", _BASE),
        "roberta": _of("ForMaskedLM", "roberta", _BASE),
        "camembert": _of("ForTokenClassification", "camembert", _BASE),
        "xlm-roberta": _of("ForSequenceClassification", "xlm-roberta", _BASE),
        "deberta": _of("", "deberta", _BASE, relative_attention=True, pos_att_type=["p2c", "c2p"]),
        "deberta-v2": _of(
            "ForSequenceClassification",
            "deberta-v2",
            _BASE,
            relative_attention=True,
            pos_att_type=["p2c", "c2p"],
            position_buckets=8,
            share_att_key=True,
            norm_rel_ebd="layer_norm",
        ),
        "albert": _of("ForMaskedLM", "albert", _BASE, embedding_size=16),
        "electra": _of("ForTokenClassification", "electra", _BASE, embedding_size=16),
        "mpnet": _of("", "mpnet", _BASE),
        "distilbert": _of(
            "ForSequenceClassification", "distilbert", _BASE, dim=32, n_layers=2, n_heads=4, hidden_dim=37
        ),
        "xlm": _of("", "xlm", _BASE, emb_dim=32, n_layers=2, n_heads=4, n_words=99),
        "convbert": _of("", "convbert", _BASE, embedding_size=16, conv_kernel_size=5),
        "funnel": _of(
            "ForSequenceClassification",
            "funnel",
            {k: v for k, v in _BASE.items() if k != "num_hidden_layers"},
            d_model=32,
            n_head=4,
            d_head=8,
            d_inner=37,
            block_sizes=[1, 1],
            num_decoder_layers=1,
        ),
        "mobilebert": _of("", "mobilebert", _BASE, intra_bottleneck_size=16, embedding_size=16, true_hidden_size=16),
        "squeezebert": _of(
            "",
            "squeezebert",
            _BASE,
            embedding_size=32,
            q_groups=2,
            k_groups=2,
            v_groups=2,
            post_attention_groups=1,
            intermediate_groups=1,
            output_groups=1,
        ),
        "roformer": _of("", "roformer", _BASE, embedding_size=32),
        "nystromformer": _of("", "nystromformer", _BASE, segment_means_seq_len=64),
        "fnet": _of("", "fnet", _BASE, inputs=_ids_only),
        "modernbert": _of("ForMaskedLM", "modernbert", _BASE),
        "ibert": _of("", "ibert", _BASE),
        "esm": _of("", "esm", _BASE, mask_token_id=3, position_embedding_type="rotary"),
        "layoutlm": _of("", "layoutlm", _BASE, inputs=_layout),
        "lilt": _of("", "lilt", {**_BASE, "hidden_size": 48}, inputs=_layout),
        "longformer": _of("", "longformer", _BASE, attention_window=4),
        "big-bird": _of("", "big_bird", _BASE, attention_type="original_full"),
        "xlnet": _of("", "xlnet", {"vocab_size": 99, "pad_token_id": 0}, d_model=32, n_layer=2, n_head=4, d_inner=37),
        "canine": _of(
            "",
            "canine",
            {**_BASE, "max_position_embeddings": 128},
            sizes=((2, 32), (3, 48)),
            local_transformer_stride=16,
            downsampling_rate=4,
            num_hash_buckets=64,
            upsampling_kernel_size=4,
        ),
    }


def _decoders() -> dict[str, _Case]:
    gpt2 = {**_BASE, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    plain = {
        "gpt2": ("gpt2", gpt2),
        "llama": ("llama", {**_BASE, **_LLAMA}),
        "mistral": ("mistral", {**_BASE, **_LLAMA}),
        "qwen2": ("qwen2", {**_BASE, **_LLAMA}),
        "qwen3": ("qwen3", {**_BASE, **_LLAMA}),
        "phi": ("phi", _BASE),
        "phi3": ("phi3", {**_BASE, **_LLAMA}),
        "gemma": ("gemma", {**_BASE, **_LLAMA}),
        "gemma2": ("gemma2", {**_BASE, **_LLAMA}),
        "gemma3": ("gemma3_text", {**_BASE, **_LLAMA}),
        "opt": ("opt", {**_BASE, "ffn_dim": 37, "word_embed_proj_dim": 32}),
        "bloom": ("bloom", {**_BASE, "n_layer": 2, "n_head": 4}),
        "falcon": ("falcon", _BASE),
        "gpt-neox": ("gpt_neox", _BASE),
        "gpt-neo": (
            "gpt_neo",
            {**_BASE, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
        ),
        "gptj": ("gptj", {**gpt2, "rotary_dim": 4}),
        "codegen": ("codegen", {**gpt2, "rotary_dim": 4}),
        "stablelm": ("stablelm", {**_BASE, "num_key_value_heads": 2}),
        "cohere": ("cohere", {**_BASE, **_LLAMA}),
        "olmo2": ("olmo2", {**_BASE, **_LLAMA}),
        "smollm3": ("smollm3", {**_BASE, **_LLAMA}),
        "granite": ("granite", {**_BASE, **_LLAMA}),
        "starcoder2": ("starcoder2", {**_BASE, **_LLAMA}),
        "mixtral": ("mixtral", {**_BASE, **_MOE}),
        "qwen2-moe": ("qwen2_moe", {**_BASE, **_MOE, "shared_expert_intermediate_size": 16, "decoder_sparse_step": 1}),
        "qwen3-moe": ("qwen3_moe", {**_BASE, **_MOE, "decoder_sparse_step": 1}),
        "olmoe": ("olmoe", {**_BASE, **_MOE}),
        "gpt-oss": ("gpt_oss", {**_BASE, **_MOE}),
        "deepseek-v3": (
            "deepseek_v3",
            {
                **_BASE,
                "n_routed_experts": 4,
                "num_experts_per_tok": 2,
                "n_group": 1,
                "topk_group": 1,
                "moe_intermediate_size": 16,
                "kv_lora_rank": 8,
                "q_lora_rank": 8,
                "qk_rope_head_dim": 8,
                "qk_nope_head_dim": 8,
                "v_head_dim": 8,
                "first_k_dense_replace": 1,
            },
        ),
    }
    made = {name: _of("ForCausalLM", type_, base) for name, (type_, base) in plain.items()}
    made["mamba"] = _of("ForCausalLM", "mamba", _BASE, inputs=_ids_only, state_size=8)
    made["mamba2"] = _of(
        "ForCausalLM",
        "mamba2",
        _BASE,
        inputs=_ids_only,
        state_size=8,
        num_heads=8,
        head_dim=8,
        n_groups=2,
        chunk_size=4,
    )
    made["rwkv"] = _of("ForCausalLM", "rwkv", _BASE, inputs=_ids_only, attention_hidden_size=32)
    made["llama-classification"] = _of("ForSequenceClassification", "llama", {**_BASE, **_LLAMA})
    for name in (
        "gpt2",
        "llama",
        "mistral",
        "qwen3",
        "phi",
        "gemma2",
        "gemma3",
        "opt",
        "bloom",
        "falcon",
        "gpt-neo",
        "mixtral",
    ):
        case = made[name]
        made[f"{name}-past"] = _Case(case.head, case.type, case.config, _text, ((2, 6), (3, 9), (1, 4)), past=True)
    return made


def _sequences() -> dict[str, _Case]:
    lengths = ((2, 7), (3, 11), (1, 6))
    to_sequence = "ForSeq2SeqLM"
    made = {
        name: _of(to_sequence, type_, base, inputs=_pair, sizes=lengths)
        for name, type_, base in (
            ("t5", "t5", _T5),
            ("mt5", "mt5", _T5),
            ("longt5", "longt5", {**_T5, "local_radius": 4}),
            (
                "switch-transformers",
                "switch_transformers",
                {
                    **_T5,
                    "num_sparse_encoder_layers": 1,
                    "num_sparse_decoder_layers": 1,
                    "expert_capacity": 32,
                    "num_experts": 4,
                },
            ),
            ("bart", "bart", _SEQ2SEQ),
            ("marian", "marian", _SEQ2SEQ),
            ("pegasus", "pegasus", _SEQ2SEQ),
            ("mbart", "mbart", _SEQ2SEQ),
            ("m2m-100", "m2m_100", _SEQ2SEQ),
            ("blenderbot", "blenderbot", _SEQ2SEQ),
            (
                "led",
                "led",
                {
                    **_SEQ2SEQ,
                    "attention_window": 4,
                    "max_encoder_position_embeddings": 64,
                    "max_decoder_position_embeddings": 64,
                },
            ),
        )
    }
    made["bart-encoder"] = _of("", "bart", _SEQ2SEQ, inputs=_pair, sizes=lengths)
    return made


def _pictures() -> dict[str, _Case]:
    classes = "ForImageClassification"
    conv = {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1], "num_channels": 3, "num_labels": 3}
    detr = {
        "use_timm_backbone": False,
        "use_pretrained_backbone": False,
        "backbone": None,
        "backbone_config": _BACKBONE,
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "num_queries": 5,
        "num_labels": 3,
        "auxiliary_loss": False,
    }
    many = {**_BACKBONE, "out_features": ["stage2", "stage3", "stage4"], "out_indices": None}
    rt = {
        **detr,
        "backbone_config": {
            **many,
            "model_type": "rt_detr_resnet",
            "layer_type": "basic",
            "hidden_sizes": [8, 8, 16, 16],
        },
        "encoder_hidden_dim": 16,
        "encoder_in_channels": [8, 16, 16],
        "decoder_in_channels": [16, 16, 16],
        "num_feature_levels": 3,
        "decoder_n_points": 2,
        "num_denoising": 0,
        "hidden_expansion": 1.0,
        "feat_strides": [8, 16, 32],
        "eval_size": None,
        "anchor_image_size": None,
        "num_queries": 10,
    }
    return {
        "vit": _of(classes, "vit", _VIT, _square, _FIXED),
        "deit": _of(classes, "deit", {**_VIT, "architectures": ["DeiTForImageClassification"]}, _square, _FIXED),
        "beit": _of(classes, "beit", _VIT, _square, _FIXED),
        "dinov2": _of(classes, "dinov2", _VIT, _image, ((2, 32), (3, 48))),
        "vit-mae": _of("", "vit_msn", _VIT, _square, _FIXED),
        "swin": _of(classes, "swin", {**_SWIN, "num_labels": 3}, _image, ((2, 32), (3, 48))),
        "swinv2": _of(classes, "swinv2", {**_SWIN, "num_labels": 3}, _square, _FIXED),
        "convnext": _of(classes, "convnext", conv, _image, _PIXELS),
        "convnextv2": _of(classes, "convnextv2", conv, _image, _PIXELS),
        "resnet": _of(classes, "resnet", {**conv, "embedding_size": 8}, _image, _PIXELS),
        "regnet": _of(classes, "regnet", {**conv, "embedding_size": 8, "groups_width": 4}, _image, _PIXELS),
        "bit": _of(
            classes,
            "bit",
            {**conv, "embedding_size": 8, "num_groups": 2, "layer_type": "preactivation"},
            _image,
            _PIXELS,
        ),
        "mobilenet-v1": _of(classes, "mobilenet_v1", {**_MANY, "depth_multiplier": 0.25}, _image, _PIXELS),
        "mobilenet-v2": _of(classes, "mobilenet_v2", {**_MANY, "depth_multiplier": 0.25}, _image, _PIXELS),
        "efficientnet": _of(
            classes,
            "efficientnet",
            {**_MANY, "hidden_dim": 320, "width_coefficient": 0.25, "depth_coefficient": 0.3},
            _image,
            _PIXELS,
        ),
        "poolformer": _of(classes, "poolformer", {**conv, "hidden_sizes": [8, 8, 16, 16]}, _image, _PIXELS),
        "levit": _of(
            classes,
            "levit",
            {
                "image_size": 64,
                "hidden_sizes": [16, 16, 16],
                "num_attention_heads": [2, 2, 2],
                "depths": [1, 1, 1],
                "key_dim": [8, 8, 8],
                "num_labels": 3,
                "architectures": ["LevitForImageClassification"],
            },
            _square,
            ((2, 64), (3, 64)),
        ),
        "mobilevit": _of(
            classes,
            "mobilevit",
            {
                "hidden_sizes": [16, 24, 32],
                "neck_hidden_sizes": [8, 8, 16, 16, 16, 16, 32],
                "num_labels": 3,
                "image_size": 64,
            },
            _square,
            ((2, 64), (3, 64)),
        ),
        "pvt": _of(
            classes,
            "pvt",
            {
                "image_size": 64,
                "hidden_sizes": [8, 8, 16, 16],
                "depths": [1, 1, 1, 1],
                "num_attention_heads": [1, 1, 2, 2],
                "num_labels": 3,
            },
            _square,
            ((2, 64), (3, 64)),
        ),
        "focalnet": _of(
            classes,
            "focalnet",
            {
                "image_size": 32,
                "embed_dim": 16,
                "depths": [1, 1],
                "patch_size": 2,
                "focal_levels": [2, 2],
                "focal_windows": [3, 3],
                "num_labels": 3,
            },
            _square,
            _FIXED,
        ),
        "segformer": _of(
            "ForSemanticSegmentation",
            "segformer",
            {
                "hidden_sizes": [8, 8, 16, 16],
                "num_labels": 3,
                "depths": [1, 1, 1, 1],
                "decoder_hidden_size": 16,
                "num_attention_heads": [1, 1, 2, 2],
            },
            _image,
            _PIXELS,
        ),
        "mobilenet-v2-segmentation": _of(
            "ForSemanticSegmentation",
            "mobilenet_v2",
            {**_MANY, "depth_multiplier": 0.25, "output_stride": 16},
            _image,
            _PIXELS,
        ),
        "dpt": _of(
            "ForDepthEstimation",
            "dpt",
            {
                **_VIT,
                "image_size": 32,
                "num_hidden_layers": 4,
                "backbone_out_indices": [0, 1, 2, 3],
                "neck_hidden_sizes": [8, 8, 8, 8],
                "fusion_hidden_size": 8,
                "is_hybrid": False,
            },
            _square,
            _FIXED,
        ),
        "swin2sr": _of(
            "ForImageToImage",
            "swin2sr",
            {"image_size": 32, "patch_size": 1, "embed_dim": 16, "depths": [1], "num_heads": [2], "window_size": 4},
            _square,
            ((1, 16), (2, 16)),
        ),
        "detr": _of("ForObjectDetection", "detr", detr, _image, _PIXELS),
        "conditional-detr": _of("ForObjectDetection", "conditional_detr", detr, _image, _PIXELS),
        "deformable-detr": _of(
            "ForObjectDetection",
            "deformable_detr",
            {**detr, "backbone_config": many, "d_model": 32, "num_feature_levels": 3},
            _image,
            _PIXELS,
        ),
        "yolos": _of(
            "ForObjectDetection",
            "yolos",
            {**_VIT, "image_size": [32, 32], "num_detection_tokens": 4, "use_mid_position_embeddings": False},
            _square,
            _FIXED,
        ),
        "rt-detr": replace(_of("ForObjectDetection", "rt_detr", rt, _image, _PIXELS), noise=0.2),
        "d-fine": replace(
            _of("ForObjectDetection", "d_fine", {**rt, "decoder_n_points": [2, 2, 2]}, _image, _PIXELS), noise=0.2
        ),
        "videomae": _of("", "videomae", {**_VIT, "num_frames": 4, "image_size": 16}, _video, ((2, 16), (3, 16))),
    }


def _video(batch: int, pixels: int) -> Inputs:
    return {"pixel_values": torch.randn(batch, 4, 3, pixels, pixels)}, {"pixel_values": {0: "batch"}}


def _sounds() -> dict[str, _Case]:
    whisper = {**_SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 32, "suppress_tokens": None}
    lengths = ((2, 8), (3, 12))
    return {
        "wav2vec2": _of("ForCTC", "wav2vec2", _WAV, _wave, lengths),
        "wav2vec2-classification": _of("ForAudioClassification", "wav2vec2", _WAV, _wave, lengths),
        "hubert": _of("", "hubert", _WAV, _wave, lengths),
        "wavlm": _of("", "wavlm", _WAV, _wave, lengths),
        "sew": _of("", "sew", {**_WAV, "squeeze_factor": 2}, _wave, lengths),
        "whisper": _of("ForSpeechSeq2Seq", "whisper", whisper, _features, ((2, 5), (3, 7))),
        "ast": _of(
            "ForAudioClassification",
            "audio-spectrogram-transformer",
            {**_VIT, "num_mel_bins": 16, "max_length": 24, "patch_size": 4, "time_stride": 4, "frequency_stride": 4},
            _spectrogram,
            ((2, 24), (3, 24)),
        ),
    }


def _several() -> dict[str, _Case]:
    text, vision = {**_BASE, "projection_dim": 16}, {**_VIT, "projection_dim": 16}
    both = {"text_config": text, "vision_config": vision, "projection_dim": 16}
    series = {
        "prediction_length": 4,
        "context_length": 16,
        "num_input_channels": 2,
        "patch_length": 4,
        "patch_stride": 4,
        "d_model": 16,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "ffn_dim": 16,
    }
    informer = {
        "prediction_length": 4,
        "context_length": 12,
        "input_size": 1,
        "lags_sequence": [1, 2, 3],
        "d_model": 16,
        "num_time_features": 1,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
    }
    perceiver = {
        "num_latents": 8,
        "d_latents": 16,
        "d_model": 16,
        "num_blocks": 1,
        "num_self_attends_per_block": 1,
        "num_self_attention_heads": 2,
        "num_cross_attention_heads": 2,
        "vocab_size": 99,
        "max_position_embeddings": 16,
        "num_labels": 3,
    }
    return {
        "clip": _of("", "clip", both, _clip),
        "clip-text": _of("", "clip_text_model", text),
        "clip-vision": _of("", "clip_vision_model", vision, _square, _FIXED),
        "siglip": _of("", "siglip", both, _clip),
        "blip": _of("", "blip", both, _text_and_image),
        "chinese-clip": _of("", "chinese_clip", both, _clip),
        "vilt": _of("", "vilt", {**_BASE, **_VIT}, _text_and_image),
        "data2vec-text": _of("", "data2vec-text", _BASE),
        "groupvit": _of(
            "",
            "groupvit",
            {
                **both,
                "vision_config": {**vision, "depths": [1, 1], "num_group_tokens": [4, 0], "num_output_groups": [4, 4]},
            },
            _clip,
        ),
        "perceiver": _of("ForMaskedLM", "perceiver", perceiver, _perceiver, ((2, 16), (3, 16))),
        "patchtst": _of("", "patchtst", series, _series, ((2, 16), (3, 16))),
        "patchtsmixer": _of("", "patchtsmixer", series, _series, ((2, 16), (3, 16))),
        "informer": _of("", "informer", informer, _informer, ((2, 15), (3, 15))),
        "time-series-transformer": _of("", "time_series_transformer", informer, _informer, ((2, 15), (3, 15))),
        "autoformer": _of("", "autoformer", {**informer, "label_length": 4}, _informer, ((2, 15), (3, 15))),
        "decision-transformer": _of(
            "",
            "decision_transformer",
            {"state_dim": 5, "act_dim": 3, "hidden_size": 16, "n_layer": 1, "n_head": 2, "max_ep_len": 20},
            _decisions,
            ((2, 4), (3, 6)),
        ),
    }


def _perceiver(batch: int, length: int) -> Inputs:
    return {"inputs": _ids(batch, length)}, {"inputs": {0: "batch"}}


def _decisions(batch: int, length: int) -> Inputs:
    found = {
        "states": torch.randn(batch, length, 5),
        "actions": torch.randn(batch, length, 3),
        "returns_to_go": torch.randn(batch, length, 1),
        "timesteps": torch.randint(0, 20, (batch, length)),
        "attention_mask": torch.ones(batch, length, dtype=torch.int64),
    }
    return found, {name: {0: "batch", 1: "sequence"} for name in found}


def names() -> list[str]:
    """Every model."""
    return list(_cases())


def model(name: str) -> torch.nn.Module:
    """A model with random weights, the same every time."""
    import transformers

    transformers.logging.set_verbosity_error()
    case = _cases()[name]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = transformers.AutoConfig.for_model(case.type, **case.config)
        config.use_cache = case.past
        found: torch.nn.Module = getattr(transformers, case.head).from_config(config).float().eval()
    with torch.no_grad():
        for parameter in found.parameters():  # what starts as 0 or 1 hides what is done with it
            parameter.add_(torch.randn_like(parameter) * case.noise)
    return found


def calls(name: str) -> Iterator[Call]:
    """One call, with every axis dynamic that the model takes at other sizes."""
    case = _cases()[name]
    module = model(name)
    given = [_given(module, case, *sizes) for sizes in case.sizes]
    (kwargs, axes), others = given[0], [((), found) for found, _ in given[1:]]
    leaves = [name for name, value in kwargs.items() for leaf in _tensors(value)]
    dynamic: dict[int, dict[int, str]] = {}
    counts: dict[str, int] = {}
    for index, leaf in enumerate(leaves):
        counts[leaf] = counts.get(leaf, -1) + 1
        dynamic[index] = dict(axes.get(leaf, {}))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found, _ in given:
            module(**copy.deepcopy(found))
    yield Call("0", module, (), kwargs, dynamic, others)


def _given(module: torch.nn.Module, case: _Case, batch: int, length: int) -> tuple[dict[str, Any], Any]:
    torch.manual_seed(batch * 100 + length)
    found, axes = case.inputs(batch, length)
    if not case.past:
        return dict(found), axes
    past = 4 + batch
    with torch.no_grad():
        cache = module(input_ids=_ids(batch, past), use_cache=True).past_key_values
    new = {"input_ids": _ids(batch, length), "attention_mask": torch.ones(batch, past + length, dtype=torch.int64)}
    new["attention_mask"][-1, :2] = 0
    named = {0: "batch", 1: "sequence"}
    return {**new, "past_key_values": cache}, {
        "input_ids": named,
        "attention_mask": {0: "batch", 1: "past_and_sequence"},
        "past_key_values": {0: "batch", 2: "past"},
    }


def _tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in a nest of containers, a cache's layer by layer."""
    if hasattr(value, "layers"):
        return [tensor for layer in value.layers for tensor in (layer.keys, layer.values)]
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
