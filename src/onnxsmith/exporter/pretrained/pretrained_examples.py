"""Makes example inputs for a model of transformers, with the shapes and dtypes of its tokenizer or processor."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from onnxsmith.base.problem import problem
from onnxsmith.exporter.pretrained import generation_state
from onnxsmith.exporter.pretrained.called_parameters import inputs
from onnxsmith.exporter.pretrained.example_makers import MAKERS, Axes, part
from onnxsmith.exporter.pretrained.generation_calls import untouched
from onnxsmith.exporter.pretrained.image_continuation import TEXTS
from onnxsmith.exporter.pretrained.image_tokens import placed
from onnxsmith.exporter.pretrained.static_cache import fixed
from onnxsmith.exporter.pretrained.tasks import PAST

CACHE, PAST_INPUT = "cache", "past_key_values"
"""The argument and result of forward that hold keys and values, in transformers 5.24 and before it. Graphs use the
earlier name: the programs that run them look for it."""

_DISTRIBUTIONS = "gives the parameters of distributions, draws no values"
"""Of models whose forward takes the future values and whose `generate` draws them, one after the other."""
_COMPARED = {"pixel_values": "image", "input_features": "audio"}
"""The inputs with which a model compares texts, and what their batch is called."""


@dataclass(frozen=True)
class Examples:
    """Keyword arguments of forward, and the axes of each that are dynamic by default. `more` are further arguments,
    `limits` what the model cannot do with them."""

    kwargs: dict[str, Any]
    dynamic: dict[str, Axes]
    more: tuple[dict[str, Any], ...] = ()
    limits: tuple[str, ...] = ()


def examples(module: Any, config: Any, folder: Path, task: str) -> Examples:
    """Generates seeded inputs for a task. Axes have the usual names: `batch_size`, `sequence_length`, …

    Raises:
        OnnxsmithError: `export/no-inputs` if forward requires an input of an unknown kind.
    """
    torch.manual_seed(0)
    parameters = inspect.signature(module.forward).parameters
    wanted = inputs(module, config, folder)
    unknown = [name for name in wanted if name not in MAKERS]
    if unknown:
        raise problem(
            "export/no-inputs",
            f"example inputs of {type(module).__name__} are not known",
            where=", ".join(unknown),
            fix="export it by a factory that returns (module, (), {name: tensor})",
        )
    several = "pixel_attention_mask" in parameters  # the processor gives the images of a text an axis of their own
    made = {name: _shaped(name, *MAKERS[name](config, folder), task, several) for name in wanted}
    found = Examples({name: one[0] for name, one in made.items()}, {name: one[1] for name, one in made.items()})
    with untouched(module):
        found = _apart(module, replace(found, kwargs=placed(module, config, found.kwargs)))
    if "future_values" in wanted:
        found = replace(found, limits=(_DISTRIBUTIONS,))
    return _with_past(module, config, folder, found) if task.endswith(PAST) else found


def _shaped(name: str, tensor: torch.Tensor, axes: Axes, task: str, several: bool) -> tuple[torch.Tensor, Axes]:
    """The tensor with the axis that a task adds: several choices of an answer, or two images that are compared; or with
    an axis for the several images of a text, here one."""
    if task == "multiple-choice" and tensor.dim() == 2:
        return torch.stack([tensor, tensor, tensor], 1), {0: axes[0], 1: "num_choices", 2: axes[1]}
    if task == "keypoint-matching" and name == "pixel_values":
        return torch.stack([tensor, torch.flip(tensor, (-1,))], 1), {0: axes[0]}
    if several and name == "pixel_values" and tensor.dim() == 4:
        return tensor[:, None], {axis + (axis > 0): dim for axis, dim in axes.items()}
    return tensor, axes


def _apart(module: Any, found: Examples) -> Examples:
    """Gives texts and images (or sounds) different batch sizes if the model accepts that (CLIP compares each text with
    each image); calls the model to find out."""
    texts = [name for name in ("input_ids", "attention_mask") if name in found.kwargs]
    other = next((kind for name, kind in _COMPARED.items() if name in found.kwargs), None)
    if not texts or other is None:
        return found
    more = {name: torch.cat([found.kwargs[name], found.kwargs[name][:1]]) for name in texts}
    kwargs = found.kwargs | more
    try:
        with torch.no_grad():
            module(**kwargs)
    except (RuntimeError, ValueError, IndexError):
        return found
    dynamic = dict(found.dynamic)
    for name, axes in found.dynamic.items():
        dynamic[name] = {**axes, 0: "text_batch_size" if name in texts else f"{other}_batch_size"}
    return Examples(kwargs, dynamic)


def _with_past(module: Any, config: Any, folder: Path, found: Examples) -> Examples:
    """The inputs of a later call: new tokens, and the state that the calls before returned."""
    vocabulary = int(part(config, "decoder", "text_config").vocab_size)
    kwargs, first = found.kwargs, None
    if "pixel_values" in kwargs and "decoder_input_ids" not in kwargs:
        kwargs, first = {name: one for name, one in kwargs.items() if name in TEXTS}, kwargs
    names, static = {CACHE: PAST_INPUT}, fixed(config, folder)
    made = generation_state.step(module, kwargs, found.dynamic, vocabulary, names, first=first, fixed=static)
    return Examples(made.kwargs, made.dynamic, made.more, made.limits)
