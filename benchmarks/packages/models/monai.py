"""monai: segmentation of volumes and slices, classifiers, autoencoders, diffusion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from monai.networks import nets

from packages.case import BATCH, Case, fixed_image, image

_VOLUME = {0: "batch", 2: "depth", 3: "height", 4: "width"}


def cases() -> list[Case]:
    """Volumes and slices with all their sizes, networks with learned positions with the batch."""
    two: dict[str, Any] = {"spatial_dims": 2, "in_channels": 1, "out_channels": 2}
    three: dict[str, Any] = {**two, "spatial_dims": 3}
    return [
        _slices("unet", lambda: nets.UNet(**two, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)),
        _volumes("unet-3d", lambda: nets.UNet(**three, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)),
        _volumes("segresnet", lambda: nets.SegResNet(**three, init_filters=8, blocks_down=(1, 1, 1), blocks_up=(1, 1))),
        _slices(
            "dynunet",
            lambda: nets.DynUNet(
                **two, kernel_size=[3, 3, 3], strides=[1, 2, 2], upsample_kernel_size=[2, 2], filters=[4, 8, 16]
            ),
        ),
        _slices("attention-unet", lambda: nets.AttentionUnet(**two, channels=(4, 8, 16), strides=(2, 2))),
        _slices("basic-unet", lambda: nets.BasicUNet(**two, features=(4, 4, 8, 8, 16, 4))),
        _slices(
            "highresnet",
            lambda: nets.HighResNet(
                **two,
                layer_params=(
                    {"name": "conv_0", "n_features": 4, "kernel_size": 3},
                    {"name": "res_1", "n_features": 4, "kernels": (3, 3), "repeat": 1},
                    {"name": "res_2", "n_features": 8, "kernels": (3, 3), "repeat": 1},
                    {"name": "conv_1", "n_features": 8, "kernel_size": 1},
                    {"name": "conv_2", "kernel_size": 1},
                ),
            ),
        ),
        _volumes(
            "mednext",
            lambda: nets.MedNeXt(
                **three,
                init_filters=4,
                kernel_size=3,
                blocks_down=(1, 1, 1, 1),
                blocks_bottleneck=1,
                blocks_up=(1, 1, 1, 1),
            ),
            32,
        ),
        Case(
            "unetr",
            lambda: nets.UNETR(1, 2, (32, 32), feature_size=4, hidden_size=24, mlp_dim=32, num_heads=3, spatial_dims=2),
            lambda batch: (torch.rand(batch, 1, 32, 32),),
            ({0: "batch"},),
            BATCH,
        ),
        Case(
            "swin-unetr",
            lambda: nets.SwinUNETR(1, 2, depths=(1, 1, 1, 1), num_heads=(1, 2, 2, 4), feature_size=12, spatial_dims=2),
            lambda batch: (torch.rand(batch, 1, 64, 64),),
            ({0: "batch"},),
            BATCH,
        ),
        _slices("densenet", lambda: nets.DenseNet(**two, init_features=8, growth_rate=4, block_config=(2, 2))),
        fixed_image(
            "vit",
            lambda: nets.ViT(
                1, 32, 8, hidden_size=24, mlp_dim=32, num_layers=2, num_heads=3, classification=True, spatial_dims=2
            ),
            32,
            1,
        ),
        _slices(
            "autoencoder-kl",
            lambda: _Reconstruct(
                nets.AutoencoderKL(
                    **{**two, "out_channels": 1},
                    num_res_blocks=(1, 1),
                    channels=(8, 8),
                    attention_levels=(False, True),
                    norm_num_groups=4,
                )
            ),
        ),
        Case(
            "diffusion-unet",
            lambda: nets.DiffusionModelUNet(
                **{**two, "out_channels": 1},
                num_res_blocks=(1, 1),
                channels=(8, 8),
                attention_levels=(False, True),
                norm_num_groups=4,
                num_head_channels=4,
            ),
            lambda batch, height, width: (torch.rand(batch, 1, height, width), torch.randint(0, 999, (batch,))),
            ({0: "batch", 2: "height", 3: "width"}, {0: "batch"}),
            {**BATCH, "height": (16, 24, 32), "width": (16, 24, 32)},
        ),
    ]


def _slices(name: str, build: Callable[[], torch.nn.Module]) -> Case:
    return image(name, build, 32, 16, 1)


def _volumes(name: str, build: Callable[[], torch.nn.Module], size: int = 16) -> Case:
    sizes = {**BATCH, **dict.fromkeys(("depth", "height", "width"), (size, size + 16, size + 32))}
    return Case(
        name,
        build,
        lambda batch, depth, height, width: (torch.rand(batch, 1, depth, height, width),),
        (_VOLUME,),
        sizes,
    )


class _Reconstruct(torch.nn.Module):
    """Without the sampling in between, which is random."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.model.decode(self.model.encode(x)[0])
        return found
