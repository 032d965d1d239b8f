"""kornia: feature detection and description, matching, super-resolution, filters, geometry and colour."""

from __future__ import annotations

from typing import Any

import kornia
import torch
from kornia import color, enhance, feature, filters, geometry
from kornia.feature.xfeat import XFeatModel
from kornia.models.dexined import DexiNed
from kornia.models.rrdbnet import RRDBNet
from kornia.models.small_sr import SmallSRNet
from kornia.models.tiny_vit import TinyViT
from kornia.models.yunet.model import YuNet

from packages.case import BATCH, Case, fixed_image, image

_MATCHES = {"left": (20, 15, 32), "right": (24, 12, 40)}


def cases() -> list[Case]:
    """Images with batch, height and width; patches with their number; descriptors with theirs."""
    return [
        *(
            _patches(name, build)
            for name, build in (
                ("hardnet", lambda: feature.HardNet(pretrained=False)),
                ("sosnet", lambda: feature.SOSNet(pretrained=False)),
                ("hynet", lambda: feature.HyNet(pretrained=False)),
                ("tfeat", lambda: feature.TFeat(pretrained=False)),
                ("sift-descriptor", lambda: feature.SIFTDescriptor(32)),
            )
        ),
        image("keynet", lambda: feature.KeyNet(pretrained=False), channels=1),
        image("xfeat", lambda: XFeatModel()),
        image("harris", lambda: feature.CornerHarris(0.04), channels=1),
        Case(
            "match-mnn",
            lambda: feature.DescriptorMatcher("mnn"),
            lambda left, right: (torch.randn(left, 16), torch.randn(right, 16)),
            ({0: "left"}, {0: "right"}),
            _MATCHES,
        ),
        Case(
            "match-smnn",
            lambda: feature.DescriptorMatcher("smnn", 0.95),
            lambda left, right: (torch.randn(left, 16), torch.randn(right, 16)),
            ({0: "left"}, {0: "right"}),
            _MATCHES,
        ),
        Case(
            "lightglue",
            _LightGlue,
            lambda left, right: (
                torch.rand(1, left, 2) * 64,
                torch.randn(1, left, 128),
                torch.rand(1, right, 2) * 64,
                torch.randn(1, right, 128),
            ),
            ({1: "left"}, {1: "left"}, {1: "right"}, {1: "right"}),
            _MATCHES,
        ),
        image("small-sr", lambda: SmallSRNet(2, pretrained=False), 24, 8, 1),
        image("real-esrgan", lambda: RRDBNet(3, 3, scale=4, num_feat=8, num_block=2, num_grow_ch=4), 16, 8),
        fixed_image(
            "tiny-vit",
            lambda: TinyViT(
                img_size=64,
                num_classes=10,
                embed_dims=(16, 32, 48, 64),
                depths=(1, 1, 2, 1),
                num_heads=(1, 2, 3, 4),
                window_sizes=(8, 8, 4, 2),
            ),
        ),
        image("yunet", lambda: YuNet("test", pretrained=False), 64, 32),
        image("dexined", lambda: DexiNed(pretrained=False)),
        image("canny", lambda: filters.Canny(), 32, 8),
        image(
            "filters",
            lambda: torch.nn.Sequential(
                filters.GaussianBlur2d((5, 5), (1.5, 1.5)), filters.Sobel(), filters.MedianBlur((3, 3))
            ),
            32,
            8,
        ),
        image("colour", lambda: torch.nn.Sequential(color.RgbToHsv(), color.HsvToRgb(), color.RgbToLab()), 24, 8),
        image(
            "augmentation",
            lambda: torch.nn.Sequential(
                enhance.Normalize(torch.tensor([0.5] * 3), torch.tensor([0.2] * 3)),
                geometry.Resize((32, 32)),
                geometry.Hflip(),
            ),
            48,
            16,
        ),
        Case(
            "warp",
            _Warp,
            lambda batch, height, width: (
                torch.rand(batch, 3, height, width),
                torch.eye(3) + 0.02 * torch.rand(batch, 3, 3),
            ),
            ({0: "batch", 2: "height", 3: "width"}, {0: "batch"}),
            {**BATCH, "height": (32, 40, 48), "width": (32, 40, 48)},
        ),
    ]


def _patches(name: str, build: Any) -> Case:
    return Case(
        name, build, lambda patches: (torch.rand(patches, 1, 32, 32),), ({0: "patches"},), {"patches": (5, 1, 12)}
    )


class _LightGlue(torch.nn.Module):
    """LightGlue for features of DISK, with all its layers for each pair of images, as in an exported file."""

    def __init__(self) -> None:
        super().__init__()
        self.matcher = feature.LightGlue(
            None, input_dim=128, descriptor_dim=32, n_layers=2, num_heads=2, depth_confidence=-1, width_confidence=-1
        )

    def forward(self, points0: Any, descriptors0: Any, points1: Any, descriptors1: Any) -> Any:
        size = torch.tensor([[64, 64]])
        found = self.matcher(
            {
                "image0": {"keypoints": points0, "descriptors": descriptors0, "image_size": size},
                "image1": {"keypoints": points1, "descriptors": descriptors1, "image_size": size},
            }
        )
        return found["matches0"], found["matching_scores0"]


class _Warp(torch.nn.Module):
    """Straightens images by homographies."""

    def forward(self, images: torch.Tensor, homographies: torch.Tensor) -> torch.Tensor:
        warped: torch.Tensor = kornia.geometry.warp_perspective(images, homographies, (32, 32))
        return warped
