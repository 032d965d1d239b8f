"""Makes example inputs for a model of transformers, with the shapes and dtypes of its tokenizer or processor."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from onnxsmith.base.problem import problem
from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.base.seams.torch.randomness import seeded
from onnxsmith.exporter.pretrained import generation_state
from onnxsmith.exporter.pretrained.example_makers import MAKERS, Axes, part, read
from onnxsmith.exporter.pretrained.generation_calls import untouched
from onnxsmith.exporter.pretrained.image_continuation import TEXTS
from onnxsmith.exporter.pretrained.static_cache import fixed
from onnxsmith.exporter.pretrained.tasks import PAST

CACHE, PAST_INPUT = "cache", "past_key_values"
"""The argument and result of forward that hold keys and values have these names, in transformers 5.24 and before it.
Graphs use the earlier name: the programs that run them look for it."""

_DISTRIBUTIONS = "gives the parameters of distributions, draws no values"
"""Says the limit of models whose forward takes the future values and whose `generate` draws them one by one."""
_COMPARED = {"pixel_values": "image", "input_features": "audio"}
"""Maps the inputs with which a model compares texts to the name of their batch dimension."""


@dataclass(frozen=True)
class Examples:
    """Keyword arguments of forward, and the axes of each that are dynamic by default. `more` are further arguments;
    `limits` are clauses on what the file cannot do."""

    kwargs: dict[str, Any]
    dynamic: dict[str, Axes]
    more: tuple[dict[str, Any], ...] = ()
    limits: tuple[str, ...] = ()


@seeded()
def examples(module: Any, config: Any, folder: Path, task: str) -> Examples:
    """Generates seeded inputs for a task. Axes have the usual names: `batch_size`, `sequence_length`, …

    Raises:
        OnnxsmithError: `export/no-inputs` if forward requires an input of an unknown kind.
    """
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
    """Returns the tensor with the axis that a task adds, for several answers to choose from or for two compared images;
    or with an axis for the several images of a text, here one image."""
    if task == "multiple-choice" and tensor.dim() == 2:
        return torch.stack([tensor, tensor, tensor], 1), {0: axes[0], 1: "num_choices", 2: axes[1]}
    if task == "keypoint-matching" and name == "pixel_values":
        return torch.stack([tensor, torch.flip(tensor, (-1,))], 1), {0: axes[0]}
    if several and name == "pixel_values" and tensor.dim() == 4:
        return tensor[:, None], {axis + (axis > 0): dim for axis, dim in axes.items()}
    return tensor, axes


def _apart(module: Any, found: Examples) -> Examples:
    """Gives texts and images (or sounds) different batch sizes, if a call shows that the model accepts them: CLIP
    compares each text with each image."""
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
    """Returns the inputs of a later call: new tokens, and the state that earlier calls returned."""
    vocabulary = int(part(config, "decoder", "text_config").vocab_size)
    kwargs, first = found.kwargs, None
    if "pixel_values" in kwargs and "decoder_input_ids" not in kwargs:
        kwargs, first = {name: one for name, one in kwargs.items() if name in TEXTS}, kwargs
    names, static = {CACHE: PAST_INPUT}, fixed(config, folder)
    made = generation_state.step(module, kwargs, found.dynamic, vocabulary, names, first=first, fixed=static)
    return Examples(made.kwargs, made.dynamic, made.more, made.limits)


# Puts image tokens into texts: as many as the model computes features of one image.

_OTHER = 3
"""This token replaces an image token drawn by chance. It is no special token of the usual tokenizers."""


def placed(module: Any, config: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments with image tokens before each text, if the model replaces such tokens by features of its
    images. The model computes the features to show how many there are.

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
    """Returns the features that the model computes of its images.

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


# Chooses the parameters of forward with which a model of transformers is called.


def inputs(module: Any, config: Any, folder: Path) -> list[str]:
    """Returns the names of the inputs, in the order of forward's parameters: those that the tokenizer or processor
    produces, and those that forward requires."""
    parameters = inspect.signature(module.forward).parameters
    main = module.main_input_name
    names = {main, *_of_texts(config, folder, main), *_of_time_series(config, main), *_of_sounds(config)}
    if main == "input_ids" and (
        hasattr(config, "vision_config") or config.model_type.startswith(("layoutlmv", "vilt"))
    ):
        names |= {"pixel_values", "image_grid_thw"}
    if main == "pixel_values" and hasattr(config, "text_config"):
        names |= {"input_ids", "attention_mask"}
    if getattr(getattr(config, "backbone_config", None), "num_experts", 1) > 1:
        names.add("dataset_index")
    if "input_points" in parameters:
        names |= {"input_points", "input_labels"}
    if getattr(config, "is_encoder_decoder", False):
        names |= {"decoder_input_ids", "decoder_input_values"}
    return [name for name in parameters if name in names | _required(parameters)]


def _required(parameters: Mapping[str, inspect.Parameter]) -> set[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {one.name for one in parameters.values() if one.default is one.empty and one.kind in kinds}


def _of_texts(config: Any, folder: Path, main: str) -> Iterator[str]:
    if main != "input_ids":
        return
    yield from ("attention_mask", "bbox")
    listed = read(folder / "tokenizer_config.json").get("model_input_names")
    two = (getattr(config, "type_vocab_size", 0) or 0) > 1
    if "token_type_ids" in listed if listed else two:
        yield "token_type_ids"


def _of_time_series(config: Any, main: str) -> Iterator[str]:
    """Yields the inputs of a model that predicts distributions; other models have no time features."""
    if main != "past_values" or not hasattr(config, "num_time_features"):
        return
    yield from ("past_time_features", "past_observed_mask", "future_values", "future_time_features")
    for kind in ("static_categorical_features", "static_real_features"):
        if getattr(config, f"num_{kind}", 0):
            yield kind


def _of_sounds(config: Any) -> Iterator[str]:
    """Yields the sounds with which texts are compared, as spectrograms."""
    audio: Any = getattr(config, "audio_config", None)
    if hasattr(audio, "spec_size"):
        yield "input_features"
        if audio.enable_fusion:
            yield "is_longer"
