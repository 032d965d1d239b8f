"""torchvision: classifiers, segmentation, detection, optical flow, video, and its operators in a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torchvision import models, ops, transforms

from packages.case import BATCH, Case, fixed_image, image, lively

_SIDES = {"height": (64, 96, 128), "width": (64, 96, 128)}


def cases() -> list[Case]:
    """Detectors take a list of one image, at any size."""
    return [
        *(
            image(name, lambda name=name: _made(name))
            for name in (
                "resnet18",
                "mobilenet_v3_small",
                "squeezenet1_1",
            )
        ),
        fixed_image("vit_b_16-small", _vit),
        fixed_image("swin_t-small", _swin),
        image("lraspp_mobilenet_v3_large", lambda: _segments("lraspp_mobilenet_v3_large")),
        image("deeplabv3_mobilenet_v3_large", lambda: _segments("deeplabv3_mobilenet_v3_large")),
        image("fpn", _pyramid),
        *(
            _detector(name, build)
            for name, build in (
                ("ssdlite320_mobilenet_v3_large", _ssd),
                ("fasterrcnn_mobilenet_v3_large_320_fpn", _faster_rcnn),
                ("retinanet_resnet50_fpn", _retinanet),
            )
        ),
        Case(
            "raft_small",
            lambda: models.optical_flow.raft_small(weights=None),
            lambda batch: (torch.rand(batch, 3, 128, 128), torch.rand(batch, 3, 128, 128)),
            ({0: "batch"},) * 2,
            BATCH,
        ),
        Case(
            "r3d_18-small",
            _video,
            lambda batch, frames: (torch.rand(batch, 3, frames, 32, 32),),
            ({0: "batch", 2: "frames"},),
            {**BATCH, "frames": (8, 12, 16)},
        ),
        image(
            "preprocessing",
            lambda: torch.nn.Sequential(
                transforms.Resize((48, 48), antialias=True),
                transforms.CenterCrop(40),
                transforms.Normalize([0.5] * 3, [0.2] * 3),
            ),
        ),
        Case(
            "nms",
            _Selected,
            lambda boxes: (_boxes(boxes), torch.rand(boxes)),
            ({0: "boxes"}, {0: "boxes"}),
            {"boxes": (20, 7, 50)},
        ),
        Case(
            "roi_align",
            _Pooled,
            lambda boxes, height, width: (torch.rand(1, 4, height, width), _boxes(boxes)),
            ({2: "height", 3: "width"}, {0: "boxes"}),
            {"boxes": (6, 2, 11), "height": (32, 40, 48), "width": (32, 40, 48)},
        ),
    ]


def _made(name: str) -> torch.nn.Module:
    return models.get_model(name, weights=None, num_classes=10)


def _vit() -> torch.nn.Module:
    return models.VisionTransformer(64, 16, num_layers=2, num_heads=3, hidden_dim=96, mlp_dim=192, num_classes=10)


def _swin() -> torch.nn.Module:
    return models.SwinTransformer([4, 4], 24, [1, 1], [2, 4], [7, 7], num_classes=10)


def _segments(name: str) -> torch.nn.Module:
    return models.get_model(name, weights=None, weights_backbone=None, num_classes=5)


def _pyramid() -> torch.nn.Module:
    return models.detection.backbone_utils.resnet_fpn_backbone(backbone_name="resnet18", weights=None)


def _detector(name: str, build: Callable[[str], torch.nn.Module]) -> Case:
    return Case(
        name,
        lambda: build(name),
        lambda height, width: ([torch.rand(3, height, width)],),
        ([{1: "height", 2: "width"}],),
        _SIDES,
    )


def _drawn(name: str, **more: Any) -> torch.nn.Module:
    return models.get_model(name, weights=None, weights_backbone=None, num_classes=5, **more)


def _ssd(name: str) -> torch.nn.Module:
    """With torchvision's own draw every score is 0.2, whatever the image: which boxes the SSD keeps is then up to
    rounding, and in float64 PyTorch keeps others. Here the scores are apart; of 300 boxes some would still be as good
    as others, so that ten are kept."""
    model: Any = lively(_drawn(name, topk_candidates=10, detections_per_img=10))
    for level in model.head.classification_head.module_list:
        level[-1].weight.data *= 0.2  # else most scores are 1
    return model


def _faster_rcnn(name: str) -> torch.nn.Module:
    """With torchvision's own draw every score is 0.20662255, so that the boxes are up to rounding, as in `_ssd`."""
    model: Any = lively(_drawn(name, rpn_post_nms_top_n_test=10, box_detections_per_img=10))
    for layer, size in (  # the features are some hundreds large: the layers behind them get scores between 0 and 1
        (model.rpn.head.cls_logits, 0.005),
        (model.rpn.head.bbox_pred, 0.0005),
        (model.roi_heads.box_predictor.cls_score, 0.01),
        (model.roi_heads.box_predictor.bbox_pred, 0.002),
    ):
        layer.weight.data *= size
    return model


def _retinanet(name: str) -> torch.nn.Module:
    """With torchvision's own draw no score reaches the threshold: there is no box, whatever a file computes
    before."""
    model: Any = lively(_drawn(name, topk_candidates=10, detections_per_img=10))
    model.head.classification_head.cls_logits.bias.data *= 0
    model.head.classification_head.cls_logits.weight.data *= 0.001  # the features are a thousand large
    model.head.regression_head.bbox_reg.weight.data *= 0.0001
    return model


def _video() -> torch.nn.Module:
    return models.video.r3d_18(weights=None, num_classes=10)


def _boxes(count: int) -> torch.Tensor:
    corners = torch.rand(count, 2) * 20
    return torch.cat([corners, corners + 1 + torch.rand(count, 2) * 8], 1)


class _Selected(torch.nn.Module):
    def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> Any:
        keep = ops.nms(boxes, scores, 0.5)
        return boxes[keep], scores[keep]


class _Pooled(torch.nn.Module):
    def forward(self, features: torch.Tensor, boxes: torch.Tensor) -> Any:
        return ops.roi_align(features, [boxes], (5, 5), spatial_scale=1.0, sampling_ratio=2)
