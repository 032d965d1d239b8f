"""segment-anything: the image encoder, and what its own export script exports: prompts and mask decoder."""

from __future__ import annotations

from typing import Any

import torch
from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, Sam, TwoWayTransformer
from segment_anything.utils.onnx import SamOnnxModel

from packages.case import Case, fixed_image


def cases() -> list[Case]:
    """A small SAM for images of 256 pixels; as in its script, the number of points is dynamic."""
    return [
        fixed_image("encoder", lambda: _sam().image_encoder, 256),
        _decoder("decoder", return_single_mask=False),
        _decoder("decoder-single", return_single_mask=True),
        _decoder("decoder-metrics", return_single_mask=True, return_extra_metrics=True, use_stability_score=True),
    ]


def _sam() -> Any:
    return Sam(
        image_encoder=ImageEncoderViT(
            depth=2,
            embed_dim=48,
            img_size=256,
            num_heads=2,
            patch_size=16,
            use_rel_pos=True,
            global_attn_indexes=(1,),
            window_size=7,
            out_chans=32,
        ),
        prompt_encoder=PromptEncoder(
            embed_dim=32, image_embedding_size=(16, 16), input_image_size=(256, 256), mask_in_chans=8
        ),
        mask_decoder=MaskDecoder(
            num_multimask_outputs=3,
            transformer=TwoWayTransformer(depth=2, embedding_dim=32, mlp_dim=64, num_heads=2),
            transformer_dim=32,
            iou_head_depth=2,
            iou_head_hidden_dim=32,
        ),
    ).eval()


def _decoder(name: str, **options: bool) -> Case:
    def inputs(points: int) -> dict[str, torch.Tensor]:
        return {
            "image_embeddings": torch.randn(1, 32, 16, 16),
            "point_coords": torch.randint(0, 256, (1, points, 2)).float(),
            "point_labels": torch.randint(0, 4, (1, points)).float(),
            "mask_input": torch.randn(1, 1, 64, 64),
            "has_mask_input": torch.tensor([1.0]),
            "orig_im_size": torch.tensor([150.0, 225.0]),
        }

    axes: dict[str, Any] = {name: {} for name in inputs(2)}
    axes |= {"point_coords": {1: "points"}, "point_labels": {1: "points"}}
    return Case(name, lambda: SamOnnxModel(_sam(), **options), inputs, axes, {"points": (5, 2, 9)})
