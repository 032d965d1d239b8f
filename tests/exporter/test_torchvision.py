"""Rewrites of torchvision's functions, on stand-ins for its files that say what those compute."""

from __future__ import annotations

import math
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.exporter.tracing.rewriting import rewriting


def nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    kept: list[int] = []
    for one in scores.argsort(descending=True).tolist():
        if all(overlap(boxes[one], boxes[other]) <= iou_threshold for other in kept):
            kept.append(one)
    return torch.tensor(kept, dtype=torch.int64)


def overlap(a: torch.Tensor, b: torch.Tensor) -> float:
    def area(box: torch.Tensor) -> torch.Tensor:
        return (box[2:] - box[:2]).clamp(min=0).prod()

    common = area(torch.cat([torch.maximum(a[:2], b[:2]), torch.minimum(a[2:], b[2:])]))
    return float(common / (area(a) + area(b) - common))


def batched_nms(boxes: torch.Tensor, scores: torch.Tensor, idxs: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    if boxes.numel() == 0:
        return torch.empty(0, dtype=torch.int64)
    apart = idxs.to(boxes) * (boxes.max() + 1)
    return nms(boxes + apart[:, None], scores, iou_threshold)


def expand_masks(masks: torch.Tensor, padding: int) -> tuple[torch.Tensor, float]:
    return nn.functional.pad(masks, (padding,) * 4), 1 + 2 * padding / masks.shape[-1]


def expand_boxes(boxes: torch.Tensor, scale: float) -> torch.Tensor:
    middle, half = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]) / 2 * scale
    return torch.cat([middle - half, middle + half], 1)


def paste_masks_in_image(masks: torch.Tensor, boxes: torch.Tensor, img_shape: Any, padding: int = 1) -> torch.Tensor:
    masks, scale = expand_masks(masks, padding)
    found = masks.new_zeros(len(masks), 1, *img_shape)
    for image, mask, box in zip(found, masks, expand_boxes(boxes, scale).long().tolist(), strict=True):
        size = (max(box[3] - box[1] + 1, 1), max(box[2] - box[0] + 1, 1))
        large = nn.functional.interpolate(mask[None], size=size, mode="bilinear", align_corners=False)[0, 0]
        for y in range(max(box[1], 0), min(box[3] + 1, img_shape[0])):
            for x in range(max(box[0], 0), min(box[2] + 1, img_shape[1])):
                image[0, y, x] = large[y - box[1], x - box[0]]
    return found


class GeneralizedRCNNTransform(nn.Module):
    def forward(self, *images: torch.Tensor) -> torch.Tensor:
        return self.batch_images([image * 2 for image in images])

    def batch_images(self, images: list[torch.Tensor], size_divisible: int = 32) -> torch.Tensor:
        sides = [max(image.shape[axis] for image in images) for axis in (1, 2)]
        height, width = (int(math.ceil(float(side) / size_divisible) * size_divisible) for side in sides)
        found = images[0].new_zeros(len(images), images[0].shape[0], height, width)
        for place, image in zip(found, images, strict=True):
            place[:, : image.shape[1], : image.shape[2]].copy_(image)
        return found


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes, heads = ModuleType("torchvision.ops.boxes"), ModuleType("torchvision.models.detection.roi_heads")
    transform = ModuleType("torchvision.models.detection.transform")
    vars(transform).update(GeneralizedRCNNTransform=GeneralizedRCNNTransform)
    vars(boxes).update(batched_nms=batched_nms)
    vars(heads).update(paste_masks_in_image=paste_masks_in_image)
    for module in (boxes, heads, transform):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(torch.ops, "torchvision", SimpleNamespace(nms=nms), raising=False)


@pytest.mark.usefixtures("library")
def test_boxes_of_each_class_are_apart_and_may_be_none() -> None:
    corners = torch.arange(12)[:, None] % 4 * torch.ones(2)
    boxes = torch.cat([corners, corners + 10], 1)
    scores, classes = torch.rand(12), torch.randint(0, 3, (12,))
    before = batched_nms.__code__
    wanted = batched_nms(boxes, scores, classes, 0.3)
    with rewriting(nn.Identity()):
        assert batched_nms.__code__ is not before
        assert torch.equal(batched_nms(boxes, scores, classes, 0.3), wanted)
        assert batched_nms(boxes[:0], scores[:0], classes[:0], 0.3).shape == (0,)
    assert batched_nms.__code__ is before
    assert 0 < len(wanted) < 12


class Pasted(nn.Module):
    def forward(self, masks: torch.Tensor, boxes: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
        return paste_masks_in_image(masks, boxes, image.shape[-2:])


BOXES = torch.tensor(
    [[5.0, 6, 9, 12], [0, 0, 19, 15], [10.2, 10.9, 11, 12], [-5, -3, 7, 9], [3, 3, 3, 3], [17, 9, 30, 40]]
)


@pytest.mark.usefixtures("library")
def test_masks_are_pasted_at_once() -> None:
    masks = torch.rand(6, 1, 7, 7)
    wanted = paste_masks_in_image(masks, BOXES, (16, 20))
    with rewriting(nn.Identity()):
        found = paste_masks_in_image(masks, BOXES, (16, 20))
    assert (found - wanted).abs().max() < 1e-6
    assert wanted.flatten(1).any(1).all()


@pytest.mark.usefixtures("library")
def test_masks_are_pasted_for_any_number_of_objects_and_any_image() -> None:
    dynamic = {"masks": {0: "objects"}, "boxes": {0: "objects"}, "image": {2: "height", 3: "width"}}
    args = (torch.rand(6, 1, 7, 7), BOXES, torch.rand(1, 3, 16, 20))
    assert onnxsmith.export(Pasted(), args, dynamic=dynamic, strategy="torch-export").ok


@pytest.mark.usefixtures("library")
def test_images_are_padded_to_sides_that_follow_the_sizes() -> None:
    before = GeneralizedRCNNTransform.batch_images.__code__
    images = (torch.rand(3, 40, 70), torch.rand(3, 64, 33))
    axes = ("images.0:1=a,2=b", "images.1:1=c,2=d")
    result = onnxsmith.export(GeneralizedRCNNTransform(), images, dynamic=list(axes), strategy="torch-export")
    assert result.ok
    assert GeneralizedRCNNTransform.batch_images.__code__ is before
