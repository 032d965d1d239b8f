"""Texts with places for an image: as many image tokens as the model makes features of one image."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from onnxsmith.base.problem import problem
from onnxsmith.base.seams.torch import trees as pytree

_OTHER = 3
"""The token in place of an image token that is drawn by chance; no special token of the usual tokenizers."""


def placed(module: Any, config: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with image tokens before each text, if the model replaces such tokens by the features of its
    images. How many there are is read off the model: it computes the features.

    Raises:
        OnnxsmithError: `export/no-inputs` if the model takes images of another kind.
    """
    token = getattr(config, "image_token_id", None)
    if token is None or "pixel_values" not in kwargs or not hasattr(module, "get_image_features"):
        return dict(kwargs)
    features = _features(module, {name: kwargs[name] for name in ("pixel_values", "image_grid_thw") if name in kwargs})
    leaves = [
        leaf for leaf in pytree.tree_leaves(getattr(features, "pooler_output", features)) if torch.is_tensor(leaf)
    ]
    text: torch.Tensor = kwargs["input_ids"]
    count = sum(leaf.numel() // leaf.shape[-1] for leaf in leaves if torch.is_tensor(leaf)) // text.shape[0]
    words = torch.where(text == token, _OTHER, text)
    ids = torch.cat([torch.full((text.shape[0], count), token), words], 1)
    found = {**kwargs, "input_ids": ids}
    if "attention_mask" in kwargs:
        found["attention_mask"] = torch.ones_like(ids)
    if "mm_token_type_ids" in inspect.signature(module.forward).parameters:
        found["mm_token_type_ids"] = (ids == token).to(torch.int64)
    return found


def _features(module: Any, images: Mapping[str, torch.Tensor]) -> Any:
    """What the model makes of its images.

    Raises:
        OnnxsmithError: `export/no-inputs` if it takes images of another kind.
    """
    try:
        with torch.no_grad():
            return module.get_image_features(**images)
    except Exception as error:
        raise problem(
            "export/no-inputs",
            f"example images of {type(module).__name__} are not known",
            where=", ".join(f"{name}: {list(one.shape)}" for name, one in images.items()),
            why=f"{type(error).__name__}: {error}"[:300],
            fix="export it by a factory that returns (module, (), {name: tensor})",
        ) from error
