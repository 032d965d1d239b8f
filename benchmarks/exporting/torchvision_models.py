"""Models of torchvision with random weights: a small member of every family of classifiers, segmenters and detectors.

    python -m pip install --no-deps --target FOLDER torchvision==0.28.0
    PYTHONPATH=FOLDER python benchmarks/export.py --suites torchvision_models

Without `--no-deps` pip replaces torch's CPU build. In a folder of its own it is not seen by transformers, which imports
it where it finds it, and fails where its library does not load.

Batch, height and width are dynamic where the model takes other sizes in eager mode. A detector takes a list of one
image: as `NAME` at one size, as `NAME-sizes` with height and width dynamic.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from exporting.suite import Call
from exporting.torchvision_operators import torchvision

_CLASSES = 3
_BATCH = {0: "batch"}
_IMAGE = {0: "batch", 2: "height", 3: "width"}


@dataclass(frozen=True)
class _Case:
    make: Callable[[Any], torch.nn.Module]
    """torchvision.models → model."""
    sizes: tuple[tuple[int, int, int], ...]
    """Batch, height, width: the example, then others."""
    axes: dict[int, str]
    list_of_images: bool = False


def _named(name: str, **more: Any) -> Callable[[Any], torch.nn.Module]:
    return lambda models: models.get_model(name, weights=None, num_classes=_CLASSES, **more)


def _cases() -> dict[str, _Case]:
    return {**_classifiers(), **_transformers(), **_segmenters(), **_detectors()}


def _classifiers() -> dict[str, _Case]:
    sizes = ((2, 64, 64), (3, 96, 64))
    plain = (
        "resnet18", "resnext50_32x4d", "densenet121", "mobilenet_v2", "mobilenet_v3_small",
        "mobilenet_v3_large", "mnasnet0_5", "shufflenet_v2_x0_5", "squeezenet1_0", "squeezenet1_1", "efficientnet_b0",
        "efficientnet_v2_s", "regnet_x_400mf", "regnet_y_400mf", "convnext_tiny",
    )  # fmt: skip
    made = {name: _Case(_named(name), sizes, _IMAGE) for name in plain}
    large = ((2, 96, 96), (3, 128, 96))
    made |= {name: _Case(_named(name), large, _IMAGE) for name in ("alexnet", "vgg11_bn")}
    made["googlenet"] = _Case(_named("googlenet", init_weights=False), large, _IMAGE)
    made["inception_v3"] = _Case(_named("inception_v3", init_weights=False), large, _IMAGE)
    return made


def _transformers() -> dict[str, _Case]:
    """Smaller than those that have a name."""
    vit = {"patch_size": 8, "num_layers": 2, "num_heads": 4, "hidden_dim": 32, "mlp_dim": 64}
    swin = {"patch_size": [4, 4], "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": [4, 4]}
    maxvit = {
        "input_size": (64, 64), "stem_channels": 8, "partition_size": 2, "block_channels": [8, 16, 16, 16],
        "block_layers": [1, 1, 1, 1], "head_dim": 8, "stochastic_depth_prob": 0.0,
    }  # fmt: skip

    def second(models: Any) -> torch.nn.Module:
        parts = models.swin_transformer
        return parts.SwinTransformer(
            **swin, num_classes=_CLASSES, block=parts.SwinTransformerBlockV2, downsample_layer=parts.PatchMergingV2
        )  # type: ignore[no-any-return]

    return {
        "vit": _Case(
            lambda m: m.VisionTransformer(32, **vit, num_classes=_CLASSES), ((2, 32, 32), (3, 32, 32)), _BATCH
        ),
        "swin": _Case(lambda m: m.SwinTransformer(**swin, num_classes=_CLASSES), ((2, 32, 32), (3, 32, 32)), _BATCH),
        "swin-sizes": _Case(
            lambda m: m.SwinTransformer(**swin, num_classes=_CLASSES), ((2, 32, 32), (3, 48, 64)), _IMAGE
        ),
        "swin_v2": _Case(second, ((2, 32, 32), (3, 32, 32)), _BATCH),
        "swin_v2-sizes": _Case(second, ((2, 32, 32), (3, 48, 64)), _IMAGE),
        "maxvit": _Case(lambda m: m.MaxVit(**maxvit, num_classes=_CLASSES), ((2, 64, 64), (3, 64, 64)), _BATCH),
    }


def _segmenters() -> dict[str, _Case]:
    sizes = ((2, 64, 64), (3, 96, 64))
    names = (
        "fcn_resnet50", "deeplabv3_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large",
    )  # fmt: skip
    return {name: _Case(_named(name, weights_backbone=None), sizes, _IMAGE) for name in names}


def _detectors() -> dict[str, _Case]:
    """At most 96 pixels wide, which is enough for every level of a pyramid, and with few boxes at every step."""
    small = {"weights_backbone": None, "min_size": 64, "max_size": 96}
    two = {
        **small, "rpn_pre_nms_top_n_test": 40, "rpn_post_nms_top_n_test": 20, "box_detections_per_img": 10,
        "box_score_thresh": 0.01,
    }  # fmt: skip
    one = {"weights_backbone": None, "topk_candidates": 20, "detections_per_img": 10, "score_thresh": 0.01}
    kinds: dict[str, dict[str, Any]] = {
        "fasterrcnn_mobilenet_v3_large_320_fpn": two,
        "fasterrcnn_resnet50_fpn_v2": two,
        "maskrcnn_resnet50_fpn": two,
        "keypointrcnn_resnet50_fpn": {**two, "num_keypoints": 4},
        "retinanet_resnet50_fpn": {**small, **one},
        "fcos_resnet50_fpn": {**small, **one},
        "ssd300_vgg16": one,
        "ssdlite320_mobilenet_v3_large": one,
    }
    made = {}
    for name, more in kinds.items():
        make = _named(name, **more)
        made[name] = _Case(make, ((1, 64, 80),), {}, list_of_images=True)
        made[f"{name}-sizes"] = _Case(make, ((1, 64, 80), (1, 72, 70)), {1: "height", 2: "width"}, list_of_images=True)
    return made


def names() -> list[str]:
    """Every model; none, and why, where torchvision is not installed."""
    try:
        torchvision()
    except ModuleNotFoundError as error:
        print(f"torchvision_models is left out: {error}", file=sys.stderr)
        return []
    return list(_cases())


def model(name: str) -> torch.nn.Module:
    """A model with random weights, the same every time. Its statistics are those of a few images: with those that a
    layer starts with, what an image is about fades or grows from layer to layer."""
    case = _cases()[name]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = case.make(torchvision().models).eval()
    with torch.no_grad():
        for parameter in found.parameters():  # what starts as one number everywhere hides what is done with it
            if parameter.numel() > 1 and (parameter == parameter.flatten()[0]).all():
                parameter.add_(torch.randn_like(parameter) * 0.05)
    _settle(found, _given(case, (4, *case.sizes[0][1:])))
    return found


def _settle(module: torch.nn.Module, args: tuple[Any, ...]) -> None:
    """Gives every batch norm the mean and the variance of what comes to it, layer by layer in one call."""

    def hook(layer: Any, given: tuple[torch.Tensor, ...]) -> None:
        x = given[0].transpose(0, 1).flatten(1)
        layer.running_mean.copy_(x.mean(1))
        layer.running_var.copy_(x.var(1, correction=0) + 0.01)

    handles = [one.register_forward_pre_hook(hook) for one in module.modules() if hasattr(one, "running_var")]
    with torch.no_grad():
        module(*args)
    for handle in handles:
        handle.remove()


def _given(case: _Case, size: tuple[int, int, int]) -> tuple[Any, ...]:
    batch, height, width = size
    torch.manual_seed(height * 1000 + width)
    images = torch.rand(batch, 3, height, width)
    return (list(images),) if case.list_of_images else (images,)


def calls(name: str) -> Iterator[Call]:
    """One call, with every axis dynamic that the case names."""
    case = _cases()[name]
    module = model(name)
    first, *others = [_given(case, size) for size in case.sizes]
    with torch.no_grad():
        for args in (first, *others):
            module(*args)
    yield Call("0", module, first, {}, {0: case.axes}, [(args, {}) for args in others])
