"""Networks of transformers, made small by configuration: random weights, two layers, the real structure of a layer.

Beside them a few of torch alone (`plain.py`), for what transformers' do not have.

Each entry is a function without arguments that gives a `Network`; its name is the name of the model. Nothing is
downloaded. Weights come from `torch.manual_seed(0)`, so that two runs on one machine build the same network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf
from torch import nn

from models import plain

BATCH, SEQUENCE, SIDE = 2, 16, 64
"""Sizes of the example inputs: pictures are BATCH x 3 x SIDE x SIDE floats, texts BATCH x SEQUENCE int64."""

TEXT = {"input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "sequence"}}
BATCH_OF_PICTURES = {"pixel_values": {0: "batch"}}
PICTURES = {"pixel_values": {0: "batch", 2: "height", 3: "width"}}


@dataclass(frozen=True)
class Network:
    """A module, its example inputs by name (in the order of `forward`), and the axes that stay open when asked."""

    module: nn.Module
    inputs: dict[str, torch.Tensor]
    dynamic: dict[str, dict[int, str]]


class Text(nn.Module):
    """Takes ids and their mask (both int64, batch x sequence); gives the first output of the model."""

    def __init__(self, model: nn.Module, **options: Any) -> None:
        super().__init__()
        self.model = model
        self.options = options

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask, **self.options)[0]


class Picture(nn.Module):
    """Takes float32 pictures (batch x 3 x height x width); gives the first `take` outputs of the model."""

    def __init__(self, model: nn.Module, take: int = 1) -> None:
        super().__init__()
        self.model = model
        self.take = take

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.model(pixel_values=pixel_values, return_dict=True).to_tuple()[: self.take])


class Sound(nn.Module):
    """Takes float32 sound in the form the model wants; gives the first output."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        return self.model(sound)[0]


class Pair(nn.Module):
    """An encoder and a decoder in one pass: ids and mask of the source, ids of the target."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, decoder_input_ids: torch.Tensor
    ) -> torch.Tensor:
        return self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            use_cache=False,
        )[0]


class Cached(nn.Module):
    """One step of a decoder of two layers: new ids, keys and values so far; gives logits, keys and values."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, k0: torch.Tensor, v0: torch.Tensor, k1: torch.Tensor, v1: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        cache = hf.DynamicCache([(k0, v0), (k1, v1)])
        out = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
        layers = [t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)]
        return (out.logits, *layers)


def ids() -> torch.Tensor:
    """Ids of tokens, below every vocabulary that is used here."""
    return torch.randint(3, 500, (BATCH, SEQUENCE))


def text(model: nn.Module, **options: Any) -> Network:
    """A network that reads tokens."""
    inputs = {"input_ids": ids(), "attention_mask": torch.ones(BATCH, SEQUENCE, dtype=torch.int64)}
    return Network(Text(model, **options), inputs, TEXT)


def pictures(model: nn.Module, dynamic: dict[str, dict[int, str]] = BATCH_OF_PICTURES, take: int = 1) -> Network:
    """A network that looks at pictures."""
    return Network(Picture(model, take), {"pixel_values": torch.randn(BATCH, 3, SIDE, SIDE)}, dynamic)


def pair(model: nn.Module) -> Network:
    """An encoder and a decoder."""
    inputs = {
        "input_ids": ids(),
        "attention_mask": torch.ones(BATCH, SEQUENCE, dtype=torch.int64),
        "decoder_input_ids": torch.randint(3, 500, (BATCH, 8)),
    }
    return Network(Pair(model), inputs, {**TEXT, "decoder_input_ids": {0: "batch", 1: "target"}})


def cached(model: nn.Module, heads: int, size: int) -> Network:
    """One step with what is cached: `heads` heads of `size` numbers for each token so far."""
    past = {name: torch.randn(BATCH, heads, SEQUENCE, size) for name in ("k0", "v0", "k1", "v1")}
    open_axes = {name: {0: "batch", 2: "past"} for name in past}
    inputs = {"input_ids": torch.randint(3, 500, (BATCH, 4)), **past}
    return Network(Cached(model), inputs, {"input_ids": {0: "batch", 1: "new"}, **open_axes})


SMALL: dict[str, Any] = {"vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE: dict[str, Any] = {**SMALL, "intermediate_size": 128}
GROUPED: dict[str, Any] = {**WIDE, "num_key_value_heads": 2}
EYES: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "image_size": SIDE,
    "patch_size": 16,
}
STACKED: dict[str, Any] = {
    "vocab_size": 1000,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
}


def _t5() -> hf.T5Config:
    return hf.T5Config(vocab_size=1000, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_decoder_layers=2, num_heads=4)


def _whisper() -> nn.Module:
    config = hf.WhisperConfig(**STACKED, num_mel_bins=16, max_source_positions=50, pad_token_id=0)
    return hf.WhisperModel(config).encoder


def _resnet_config(**more: Any) -> hf.ResNetConfig:
    return hf.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 64], depths=[1, 1, 2, 1], **more)


def _detr() -> nn.Module:
    config = hf.DetrConfig(
        **{key: value for key, value in STACKED.items() if key != "vocab_size"},
        backbone_config=_resnet_config(layer_type="basic", out_features=["stage4"]),
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        num_queries=10,
        num_labels=5,
    )
    return hf.DetrForObjectDetection(config)


def _gpt2() -> nn.Module:
    return hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=1000, n_positions=128, n_embd=64, n_layer=2, n_head=4))


def _llama() -> nn.Module:
    return hf.LlamaForCausalLM(hf.LlamaConfig(**GROUPED))


def _clip_text() -> nn.Module:
    return hf.CLIPTextModel(hf.CLIPTextConfig(**WIDE, eos_token_id=999, bos_token_id=998, pad_token_id=1))


def _distilbert() -> nn.Module:
    return hf.DistilBertModel(hf.DistilBertConfig(vocab_size=1000, dim=64, n_layers=2, n_heads=4, hidden_dim=128))


def _wav2vec2() -> nn.Module:
    return hf.Wav2Vec2Model(
        hf.Wav2Vec2Config(
            **WIDE,
            conv_dim=(32, 32, 32),
            conv_stride=(5, 2, 2),
            conv_kernel=(10, 3, 2),
            num_feat_extract_layers=3,
            num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=4,
        )
    )


def _deberta() -> nn.Module:
    return hf.DebertaV2Model(
        hf.DebertaV2Config(**WIDE, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=16)
    )


def _swin() -> nn.Module:
    return hf.SwinModel(
        hf.SwinConfig(image_size=SIDE, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
    )


def _segformer() -> nn.Module:
    return hf.SegformerForSemanticSegmentation(
        hf.SegformerConfig(
            depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 40, 64], num_attention_heads=[1, 2, 4, 4], decoder_hidden_size=64
        )
    )


def _bart() -> nn.Module:
    return hf.BartModel(hf.BartConfig(**STACKED, max_position_embeddings=128))


def _opt() -> nn.Module:
    return hf.OPTForCausalLM(hf.OPTConfig(**SMALL, ffn_dim=128, word_embed_proj_dim=64))


def _convnext() -> nn.Module:
    return hf.ConvNextModel(hf.ConvNextConfig(hidden_sizes=[16, 32, 64, 64], depths=[1, 1, 2, 1]))


def _yolos() -> nn.Module:
    config = hf.YolosConfig(**{**EYES, "image_size": [SIDE, SIDE]}, num_detection_tokens=10)
    return hf.YolosForObjectDetection(config)


def _recurrent(kind: type[nn.RNNBase]) -> Network:
    axes = {"x": {0: "batch", 1: "steps"}}
    return Network(plain.Recurrent(kind), {"x": torch.randn(BATCH, SEQUENCE, 16)}, axes)


def _graph() -> Network:
    inputs = {"x": torch.randn(10, 16), "edges": torch.randint(0, 10, (2, 30))}
    return Network(plain.Graph(), inputs, {"x": {0: "nodes"}, "edges": {1: "edges"}})


def _separable() -> Network:
    return Network(plain.Separable(), {"x": torch.rand(BATCH, 3, 32, 32)}, {"x": {0: "batch", 2: "height", 3: "width"}})


def _loop() -> Network:
    inputs = {"x": torch.randn(BATCH, 16), "count": torch.tensor(3)}
    return Network(plain.Loop(), inputs, {"x": {0: "batch"}})


ARCHITECTURES: dict[str, Callable[[], Network]] = {
    "albert": lambda: text(hf.AlbertModel(hf.AlbertConfig(**WIDE, embedding_size=32))),
    "bart": lambda: pair(_bart()),
    "bert": lambda: text(hf.BertModel(hf.BertConfig(**WIDE))),
    "branch": lambda: Network(plain.Branch(), {"x": torch.randn(BATCH, 16)}, {"x": {0: "batch"}}),
    "clip_text": lambda: text(_clip_text()),
    "clip_vision": lambda: pictures(hf.CLIPVisionModel(hf.CLIPVisionConfig(**EYES))),
    "convnext": lambda: pictures(_convnext(), PICTURES),
    "deberta_v2": lambda: text(_deberta()),
    "detr": lambda: pictures(_detr(), take=2),
    "dinov2": lambda: pictures(hf.Dinov2Model(hf.Dinov2Config(**{**EYES, "patch_size": 8}))),
    "distilbert": lambda: text(_distilbert()),
    "gemma": lambda: text(hf.GemmaForCausalLM(hf.GemmaConfig(**GROUPED, head_dim=16)), use_cache=False),
    "gpt2": lambda: text(_gpt2(), use_cache=False),
    "gpt2_cache": lambda: cached(_gpt2(), heads=4, size=16),
    "gpt_neox": lambda: text(hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**WIDE)), use_cache=False),
    "graph": _graph,
    "gru": lambda: _recurrent(nn.GRU),
    "llama": lambda: text(_llama(), use_cache=False),
    "llama_cache": lambda: cached(_llama(), heads=2, size=16),
    "loop": _loop,
    "lstm": lambda: _recurrent(nn.LSTM),
    "mistral": lambda: text(hf.MistralForCausalLM(hf.MistralConfig(**GROUPED)), use_cache=False),
    "mobilenet_v2": lambda: pictures(
        hf.MobileNetV2ForImageClassification(hf.MobileNetV2Config(depth_multiplier=0.35)), PICTURES
    ),
    "opt": lambda: text(_opt(), use_cache=False),
    "phi": lambda: text(hf.PhiForCausalLM(hf.PhiConfig(**WIDE)), use_cache=False),
    "qwen2": lambda: text(hf.Qwen2ForCausalLM(hf.Qwen2Config(**GROUPED)), use_cache=False),
    "resnet": lambda: pictures(hf.ResNetForImageClassification(_resnet_config()), PICTURES, take=1),
    "segformer": lambda: pictures(_segformer(), PICTURES),
    "separable": _separable,
    "swin": lambda: pictures(_swin()),
    "t5": lambda: pair(hf.T5Model(_t5())),
    "t5_encoder": lambda: text(hf.T5EncoderModel(_t5())),
    "vit": lambda: pictures(hf.ViTModel(hf.ViTConfig(**EYES))),
    "wav2vec2": lambda: Network(
        Sound(_wav2vec2()), {"sound": torch.randn(BATCH, 4000)}, {"sound": {0: "batch", 1: "samples"}}
    ),
    "whisper_encoder": lambda: Network(
        Sound(_whisper()), {"sound": torch.randn(BATCH, 16, 100)}, {"sound": {0: "batch"}}
    ),
    "yolos": lambda: pictures(_yolos(), take=2),
}


def build(name: str) -> Network:
    """The network of that name in eval mode, always with the same weights. Raises KeyError for an unknown name."""
    torch.manual_seed(0)
    network = ARCHITECTURES[name]()
    network.module.eval()
    return network
