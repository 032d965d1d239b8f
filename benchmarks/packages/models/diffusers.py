"""diffusers: U-Nets, transformers, autoencoders, ControlNet: the parts of a pipeline that are exported one by one."""

from __future__ import annotations

from typing import Any

import diffusers
import torch

from packages.case import BATCH, Case, image

_SIDES = {"height": (16, 24, 32), "width": (16, 24, 32)}
_IMAGE = {0: "batch", 2: "height", 3: "width"}
_BLOCKS = {"block_out_channels": (8, 16), "norm_num_groups": 4}
_TEXT_UNET = {
    **_BLOCKS,
    "layers_per_block": 1,
    "in_channels": 4,
    "cross_attention_dim": 12,
    "attention_head_dim": 4,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
}
_UP = ("UpBlock2D", "CrossAttnUpBlock2D")


def cases() -> list[Case]:
    """Latents with batch, height and width; text with its length."""
    return [
        _conditioned(
            "unet-condition", lambda: diffusers.UNet2DConditionModel(**_TEXT_UNET, up_block_types=_UP, out_channels=4)
        ),
        _conditioned(
            "controlnet",
            lambda: diffusers.ControlNetModel(**_TEXT_UNET, conditioning_embedding_out_channels=(8, 8)),
            hint=True,
        ),
        _timed(
            "unet",
            lambda: diffusers.UNet2DModel(
                in_channels=3,
                out_channels=3,
                layers_per_block=1,
                **_BLOCKS,
                attention_head_dim=4,
                down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            ),
            3,
        ),
        _timed(
            "dit",
            lambda: diffusers.DiTTransformer2DModel(
                num_attention_heads=2,
                attention_head_dim=8,
                in_channels=4,
                num_layers=2,
                sample_size=16,
                patch_size=2,
                num_embeds_ada_norm=10,
                norm_num_groups=4,
            ),
            4,
            labels=True,
        ),
        image("vae-encoder", lambda: _Encoder(_kl()), 32, 16),
        image("vae-decoder", lambda: _Decoder(_kl()), 8, 4, channels=4),
        image(
            "vae-tiny",
            lambda: diffusers.AutoencoderTiny(
                encoder_block_out_channels=(8, 8, 8, 8), decoder_block_out_channels=(8, 8, 8, 8)
            ),
            32,
            16,
        ),
        image(
            "vq",
            lambda: diffusers.VQModel(
                block_out_channels=(8, 16),
                norm_num_groups=4,
                latent_channels=4,
                num_vq_embeddings=16,
                down_block_types=("DownEncoderBlock2D",) * 2,
                up_block_types=("UpDecoderBlock2D",) * 2,
            ),
            16,
            8,
        ),
        Case(
            "unet-1d",
            lambda: diffusers.UNet1DModel(
                block_out_channels=(32, 32, 64),
                in_channels=2,
                out_channels=2,
                layers_per_block=1,
                sample_size=64,
                extra_in_channels=64,
            ),
            lambda batch, samples: (torch.randn(batch, 2, samples), torch.randint(0, 999, (batch,))),
            ({0: "batch", 2: "samples"}, {0: "batch"}),
            {**BATCH, "samples": (64, 96, 128)},
        ),
        _sd3(),
        _flux(),
        Case(
            "prior",
            lambda: diffusers.PriorTransformer(
                num_attention_heads=2, attention_head_dim=8, num_layers=2, embedding_dim=12, num_embeddings=7
            ),
            lambda batch: {
                "hidden_states": torch.randn(batch, 12),
                "timestep": torch.randint(0, 999, (batch,)),
                "proj_embedding": torch.randn(batch, 12),
                "encoder_hidden_states": torch.randn(batch, 7, 12),
            },
            {key: {0: "batch"} for key in ("hidden_states", "timestep", "proj_embedding", "encoder_hidden_states")},
            BATCH,
        ),
    ]


def _conditioned(name: str, build: Any, hint: bool = False) -> Case:
    def inputs(batch: int, height: int, width: int, length: int) -> dict[str, torch.Tensor]:
        found = {
            "sample": torch.randn(batch, 4, height, width),
            "timestep": torch.randint(0, 999, (batch,)),
            "encoder_hidden_states": torch.randn(batch, length, 12),
        }
        return {**found, "controlnet_cond": torch.rand(batch, 3, 2 * height, 2 * width)} if hint else found

    axes: dict[str, Any] = {
        "sample": _IMAGE,
        "timestep": {0: "batch"},
        "encoder_hidden_states": {0: "batch", 1: "length"},
    }
    if hint:
        axes["controlnet_cond"] = {0: "batch", 2: "hint_height", 3: "hint_width"}
    return Case(name, build, inputs, axes, {**BATCH, **_SIDES, "length": (7, 5, 12)})


def _timed(name: str, build: Any, channels: int, labels: bool = False) -> Case:
    def inputs(batch: int, height: int = 16, width: int = 16) -> dict[str, torch.Tensor]:
        first = "hidden_states" if labels else "sample"
        found = {first: torch.randn(batch, channels, height, width), "timestep": torch.randint(0, 999, (batch,))}
        return {**found, "class_labels": torch.randint(0, 10, (batch,))} if labels else found

    if labels:
        return Case(
            name, build, inputs, {key: {0: "batch"} for key in ("hidden_states", "timestep", "class_labels")}, BATCH
        )
    return Case(name, build, inputs, {"sample": _IMAGE, "timestep": {0: "batch"}}, {**BATCH, **_SIDES})


def _kl() -> Any:
    return diffusers.AutoencoderKL(
        block_out_channels=(8, 16),
        norm_num_groups=4,
        layers_per_block=1,
        latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )


class _Encoder(torch.nn.Module):
    def __init__(self, vae: Any) -> None:
        super().__init__()
        self.vae = vae

    def forward(self, sample: torch.Tensor) -> Any:
        return self.vae.encode(sample).latent_dist.mode()


class _Decoder(torch.nn.Module):
    def __init__(self, vae: Any) -> None:
        super().__init__()
        self.vae = vae

    def forward(self, latent: torch.Tensor) -> Any:
        return self.vae.decode(latent, return_dict=False)[0]


def _sd3() -> Case:
    def inputs(batch: int, height: int, width: int, length: int) -> dict[str, torch.Tensor]:
        return {
            "hidden_states": torch.randn(batch, 4, height, width),
            "encoder_hidden_states": torch.randn(batch, length, 12),
            "pooled_projections": torch.randn(batch, 16),
            "timestep": torch.randint(0, 999, (batch,)),
        }

    axes = {
        "hidden_states": _IMAGE,
        "encoder_hidden_states": {0: "batch", 1: "length"},
        "pooled_projections": {0: "batch"},
        "timestep": {0: "batch"},
    }
    return Case(
        "sd3-transformer",
        lambda: diffusers.SD3Transformer2DModel(
            sample_size=16,
            patch_size=2,
            in_channels=4,
            num_layers=2,
            attention_head_dim=8,
            num_attention_heads=2,
            joint_attention_dim=12,
            caption_projection_dim=16,
            pooled_projection_dim=16,
            out_channels=4,
            pos_embed_max_size=32,
        ),
        inputs,
        axes,
        {**BATCH, **_SIDES, "length": (7, 5, 12)},
    )


def _flux() -> Case:
    def inputs(batch: int, patches: int, length: int) -> dict[str, torch.Tensor]:
        return {
            "hidden_states": torch.randn(batch, patches, 4),
            "encoder_hidden_states": torch.randn(batch, length, 12),
            "pooled_projections": torch.randn(batch, 16),
            "timestep": torch.rand(batch),
            "img_ids": torch.randint(0, 8, (patches, 3)).float(),
            "txt_ids": torch.zeros(length, 3),
        }

    axes = {
        "hidden_states": {0: "batch", 1: "patches"},
        "encoder_hidden_states": {0: "batch", 1: "length"},
        "pooled_projections": {0: "batch"},
        "timestep": {0: "batch"},
        "img_ids": {0: "patches"},
        "txt_ids": {0: "length"},
    }
    return Case(
        "flux-transformer",
        lambda: diffusers.FluxTransformer2DModel(
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=12,
            pooled_projection_dim=16,
            axes_dims_rope=(4, 4, 8),
        ),
        inputs,
        axes,
        {**BATCH, "patches": (16, 24, 64), "length": (7, 5, 12)},
    )
