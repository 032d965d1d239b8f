"""Makes a step of a text after a first call with images: it takes the state of that call, and the file reads no image.

The first call computes the images' features from `pixel_values` and puts them in the place of the text's image tokens.
The state after it has the form of the state after a text, so one file continues after both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from onnxsmith.base.problem import problem
from onnxsmith.exporter.pretrained.generation_calls import ALIKE, Asking, close, copied, main, untouched
from onnxsmith.exporter.pretrained.tasks import STATELESS

LIMIT = "reads no image: goes on from the state of a first call with it"
"""Says the limit of such a file in a headline."""
TEXTS = ("input_ids", "attention_mask")
"""Names the arguments that are not about images."""
_SAME = 1e-6
"""Limits the difference between two calls of one formula with the same tensors, relative to the largest number. It is a
few times the rounding of float32. A position that is wrong by one moves the logits of tiny random models by 1e-4 and
more."""
_NEW = (3, 4)
"""The new token is the first number; the second if the first one stands for an image."""


def goes_on_after(asked: Asking, first: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a step of one token after a call with the arguments `first`, which have images.

    The step has to give the results of one call with the whole text. This also holds after the attributes of the module
    were restored to those before the call with images, because a file does not hold them.

    Raises:
        OnnxsmithError: `export/no-state` if it does not.
    """
    text: torch.Tensor = first[asked.tokens]
    rows, count = text.shape
    token = next(one for one in _NEW if one != getattr(asked.module.config, "image_token_id", None))
    new = torch.full((rows, 1), token)
    longer = {name: _longer(value, name, text, new) for name, value in first.items()}

    def step(state: Any) -> dict[str, Any]:
        found = {asked.tokens: new, asked.state: copied(state)}
        if asked.mask != "none":
            seen = asked.fixed.length if asked.fixed else count + 1 if asked.mask == "all" else 1
            found["attention_mask"] = torch.ones(rows, seen, dtype=torch.int64)
        return found

    empty = {asked.state: asked.begun()} if asked.fixed else {}

    try:
        with torch.no_grad():
            with untouched(asked.module):
                whole = main(asked.module(**longer))[:, -1:]
                state = asked.module(**first, **empty, use_cache=True)[asked.result]
                own = main(asked.module(**step(state), use_cache=True))
            found = main(asked.module(**step(state), use_cache=True))
    except (RuntimeError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise _kept(asked.module, f"the step after a call with an image fails: {error}") from error
    if not close(own, whole, ALIKE):
        raise _kept(asked.module, "the step after a call with an image gives other numbers than the whole text")
    if not close(found, own, _SAME):
        raise _kept(
            asked.module, "the step after a call with an image needs what that call left in the module's attributes"
        )
    return step(state)


def _longer(value: Any, name: str, text: torch.Tensor, new: torch.Tensor) -> Any:
    """Returns an argument of the call with one more token. The new token has the kind 0 (text)."""
    if not isinstance(value, torch.Tensor) or value.shape != text.shape:
        return value
    more = new if value is text else torch.ones_like(new) if name == "attention_mask" else torch.zeros_like(new)
    return torch.cat([value, more.to(value.dtype)], 1)


def _kept(module: Any, why: str) -> Any:
    return problem(
        "export/no-state",
        f"after an image, {type(module).__name__} needs more than the tensors of its state",
        why=f"{why}. Models with positions of several axes (Qwen2-VL) keep there how many positions the image takes"[
            :600
        ],
        fix=STATELESS,
    )
