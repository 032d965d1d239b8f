"""timm: classifiers of many families and a pyramid of features."""

from __future__ import annotations

from typing import Any

import timm
import torch

from packages.case import Case, fixed_image, image


def cases() -> list[Case]:
    """Convolutional networks and those that take any size with dynamic height and width, the others with the batch."""
    free = ("resnet10t", "mobilenetv3_small_050", "convnext_atto", "ghostnet_050", "mambaout_femto")
    return [
        *(image(name, lambda name=name: _made(name)) for name in free),
        image("features-resnet10t", lambda: _made("resnet10t", features_only=True)),
        image("vit-dynamic", lambda: _made("vit_tiny_patch16_224", img_size=64, depth=2, dynamic_img_size=True)),
        fixed_image("vit", lambda: _made("vit_tiny_patch16_224", img_size=64, depth=2)),
        fixed_image("swin", lambda: _made("swin_tiny_patch4_window7_224", img_size=56, depths=(1, 1, 1, 1)), 56),
        fixed_image("maxvit", lambda: _made("maxvit_rmlp_pico_rw_256", img_size=64)),
        fixed_image("mixer", lambda: _made("mixer_s32_224", img_size=64)),
        fixed_image("levit", lambda: _made("levit_128s"), 224),
        fixed_image("eva02", lambda: _made("eva02_tiny_patch14_224", img_size=56, depth=2), 56),
        image("xcit", lambda: _made("xcit_nano_12_p16_224", depth=2)),
    ]


def _made(name: str, **more: Any) -> torch.nn.Module:
    if "features_only" not in more:
        more["num_classes"] = 10
    model: torch.nn.Module = timm.create_model(name, pretrained=False, **more)
    return model
