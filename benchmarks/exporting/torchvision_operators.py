"""torchvision, with its operators in plain PyTorch where its own library does not load.

torchvision comes as a build for one build of torch, and there is none for torch's CPU build on the package index. What
its models need of the library are two operators, `nms` and `roi_align`; both are written here after their kernels, for
measuring only. Where the library loads, it is used.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import torch

_ALIGN = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_BACK = "Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_PS_BACK = _BACK.replace("float", "Tensor channel_mapping, float")
_SCALES = "float input_scale, int input_zero_point, float rois_scale, int rois_zero_point"
_CONV = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, "
    "SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
    "bool use_mask"
)
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align({_ALIGN}, int sampling_ratio, bool aligned) -> Tensor",
    f"qroi_align({_ALIGN.replace('rois,', f'rois, {_SCALES},')}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool({_ALIGN}) -> (Tensor, Tensor)",
    f"ps_roi_align({_ALIGN}, int sampling_ratio) -> (Tensor, Tensor)",
    f"ps_roi_pool({_ALIGN}) -> (Tensor, Tensor)",
    f"_roi_align_backward({_BACK}, {_SIZES}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_pool_backward({_BACK.replace('float', 'Tensor argmax, float')}, {_SIZES}) -> Tensor",
    f"_ps_roi_align_backward({_PS_BACK}, int sampling_ratio, {_SIZES}) -> Tensor",
    f"_ps_roi_pool_backward({_PS_BACK}, {_SIZES}) -> Tensor",
    f"deform_conv2d({_CONV}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, {_CONV}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",
    "_cuda_version() -> int",
)
_libraries: list[torch.library.Library] = []
"""What is defined lives as long as its library does."""


@cache
def torchvision() -> Any:
    """The package.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            "torchvision is not installed: how to install it is said in exporting/torchvision_models.py",
            name="torchvision",
        )
    if _loads(Path(next(iter(spec.submodule_search_locations)))):
        import torchvision as found

        return found
    library = torch.library.Library("torchvision", "DEF")
    for schema in _SCHEMAS:
        library.define(schema)
    library.impl("_cuda_version", lambda: -1, "CompositeExplicitAutograd")
    library.impl("nms", nms, "CPU")
    library.impl("roi_align", roi_align, "CPU")
    _libraries.append(library)
    with mock.patch.object(torch.ops, "load_library", return_value=None):
        import torchvision as found
    return found


def _loads(package: Path) -> bool:
    """Whether its library is one for this torch."""
    try:
        for path in (*package.glob("_C*.so"), *package.glob("_C*.pyd")):
            torch.ops.load_library(path)
            return True
    except OSError:
        return False
    return False


def nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Boxes [N, 4], scores [N] → numbers of those kept, by falling score."""
    order = scores.sort(stable=True, descending=True).indices
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    gone = torch.zeros(len(boxes), dtype=torch.bool)
    kept = []
    for one in order.tolist():
        if gone[one]:
            continue
        kept.append(one)
        low, high = torch.maximum(boxes[one, :2], boxes[:, :2]), torch.minimum(boxes[one, 2:], boxes[:, 2:])
        common = (high - low).clamp(min=0).prod(1)
        gone |= common / (areas[one] + areas - common) > iou_threshold
    return torch.tensor(kept, dtype=torch.int64)


def roi_align(
    x: torch.Tensor, rois: torch.Tensor, scale: float, height: int, width: int, samples: int, aligned: bool
) -> torch.Tensor:
    """Image [N, C, H, W], rois [K, 5] → [K, C, height, width]: means of bilinear samples in each bin."""
    found = x.new_zeros(len(rois), x.shape[1], height, width)
    for index, roi in enumerate(rois):
        image = x[int(roi[0])]
        left, top, right, bottom = (roi[1:] * scale - (0.5 if aligned else 0.0)).unbind()
        sizes = torch.stack([bottom - top, right - left])
        bins = (sizes if aligned else sizes.clamp(min=1)) / torch.tensor([height, width], dtype=x.dtype)
        counts = [samples if samples > 0 else int(size.ceil()) for size in bins]
        ys = _points(top, bins[0], height, counts[0])
        xs = _points(left, bins[1], width, counts[1])
        values = _bilinear(image, ys, xs).reshape(x.shape[1], height, counts[0], width, counts[1])
        found[index] = values.sum((2, 4)) / max(counts[0] * counts[1], 1)
    return found


def _points(start: torch.Tensor, size: torch.Tensor, bins: int, count: int) -> torch.Tensor:
    """Where is sampled along one axis, bin by bin."""
    steps = (torch.arange(count, dtype=size.dtype) + 0.5) * size / max(count, 1)
    return (start + torch.arange(bins, dtype=size.dtype)[:, None] * size + steps).reshape(-1)


def _bilinear(image: torch.Tensor, ys: torch.Tensor, xs: torch.Tensor) -> torch.Tensor:
    """Image [C, H, W] at every y and every x; 0 more than a pixel outside."""

    def along(at: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        inside = (at >= -1) & (at <= size)
        at = at.clamp(min=0)
        low = at.long().clamp(max=size - 1)
        part = torch.where(low >= size - 1, torch.zeros_like(at), at - low)
        return low, (low + 1).clamp(max=size - 1), part, inside

    y0, y1, v, y_inside = along(ys, image.shape[1])
    x0, x1, u, x_inside = along(xs, image.shape[2])
    top = image[:, y0][:, :, x0] * (1 - u) + image[:, y0][:, :, x1] * u
    below = image[:, y1][:, :, x0] * (1 - u) + image[:, y1][:, :, x1] * u
    mixed: torch.Tensor = top * (1 - v)[:, None] + below * v[:, None]
    return mixed * (y_inside[:, None] & x_inside).to(mixed.dtype)
