"""Makes example inputs for a model of transformers, with the shapes and dtypes of its tokenizer or processor."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from onnxsmith.exporter.pretrained import states
from onnxsmith.exporter.pretrained.image_tokens import placed
from onnxsmith.exporter.pretrained.makers import MAKERS, Axes, part, read
from onnxsmith.exporter.pretrained.tasks import PAST
from onnxsmith.problem import problem

CACHE, PAST_INPUT = "cache", "past_key_values"
"""The argument and result of forward that hold keys and values, in transformers 5.24 and before it. Graphs use the
earlier name: the programs that run them look for it."""


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
    wanted = _wanted(module, config, folder, parameters)
    unknown = [name for name in wanted if name not in MAKERS]
    if unknown:
        raise problem(
            "export/no-inputs",
            f"example inputs of {type(module).__name__} are not known",
            where=", ".join(unknown),
            fix="export it by a factory that returns (module, (), {name: tensor})",
        )
    made = {name: _shaped(name, *MAKERS[name](config, folder), task) for name in wanted}
    found = Examples({name: one[0] for name, one in made.items()}, {name: one[1] for name, one in made.items()})
    found = _apart(module, replace(found, kwargs=placed(module, config, found.kwargs)))
    return _with_past(module, config, found) if task.endswith(PAST) else found


def _wanted(module: Any, config: Any, folder: Path, parameters: Mapping[str, Any]) -> list[str]:
    main = module.main_input_name
    names = {main}
    if main == "input_ids":
        names.add("attention_mask")
        listed = read(folder / "tokenizer_config.json").get("model_input_names")
        two = (getattr(config, "type_vocab_size", 0) or 0) > 1
        if "token_type_ids" in listed if listed else two:
            names.add("token_type_ids")
        if hasattr(config, "vision_config") or config.model_type.startswith(("layoutlmv", "vilt")):
            names.add("pixel_values")
        names.add("bbox")
    if main == "past_values" and "past_time_features" in parameters:
        names |= {"past_time_features", "past_observed_mask", "future_values", "future_time_features"}
    if "input_points" in parameters:
        names |= {"input_points", "input_labels"}
    if main == "pixel_values" and hasattr(config, "text_config"):
        names |= {"input_ids", "attention_mask"}
    if getattr(config, "is_encoder_decoder", False):
        names |= {"decoder_input_ids", "decoder_input_values"}
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = {p.name for p in parameters.values() if p.default is p.empty and p.kind in kinds}
    return [name for name in parameters if name in names | needed]


def _shaped(name: str, tensor: torch.Tensor, axes: Axes, task: str) -> tuple[torch.Tensor, Axes]:
    """The tensor with the axis that a task adds: several choices of an answer, or two images that are compared."""
    if task == "multiple-choice" and tensor.dim() == 2:
        return torch.stack([tensor, tensor, tensor], 1), {0: axes[0], 1: "num_choices", 2: axes[1]}
    if task == "keypoint-matching" and name == "pixel_values":
        return torch.stack([tensor, torch.flip(tensor, (-1,))], 1), {0: axes[0]}
    return tensor, axes


def _apart(module: Any, found: Examples) -> Examples:
    """Gives texts and images different batch sizes if the model accepts that (CLIP compares each text with each image);
    calls the model to find out."""
    texts = [name for name in ("input_ids", "attention_mask") if name in found.kwargs]
    if not texts or "pixel_values" not in found.kwargs:
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
        dynamic[name] = {**axes, 0: "text_batch_size" if name in texts else "image_batch_size"}
    return Examples(kwargs, dynamic)


def _with_past(module: Any, config: Any, found: Examples) -> Examples:
    """The inputs of a later call: new tokens, and the state that the calls before returned."""
    vocabulary = int(part(config, "decoder", "text_config").vocab_size)
    made = states.step(module, found.kwargs, found.dynamic, vocabulary, {CACHE: PAST_INPUT})
    return Examples(made.kwargs, made.dynamic, made.more, made.limits)
