"""Makes example inputs for a model of transformers, with the shapes and dtypes of its tokenizer or processor."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from onnxsmith.exporter.pretrained.tasks import PAST
from onnxsmith.problem import problem

_BATCH, _LENGTH, _NEW, _PIXELS, _SAMPLES = 2, 8, 3, 224, 16000
"""Sizes of the examples; a choice: small and different from each other. 224 pixels and 16000 samples (1 s at 16 kHz)
are the usual sizes of image and speech models."""
_TEXT = {0: "batch_size", 1: "sequence_length"}
CACHE, PAST_INPUT = "cache", "past_key_values"
"""The argument and result of forward that hold keys and values, in transformers 5.24 and before it. Graphs use the
earlier name: the programs that run them look for it."""

Axes = dict[int, str]
Made = tuple[torch.Tensor, Axes]


@dataclass(frozen=True)
class Examples:
    """Keyword arguments of forward, and the axes of each that are dynamic by default."""

    kwargs: dict[str, Any]
    dynamic: dict[str, Axes]


def examples(module: Any, config: Any, folder: Path, task: str) -> Examples:
    """Generates seeded inputs for a task. Axes have the usual names: `batch_size`, `sequence_length`, …

    Raises:
        OnnxsmithError: `export/no-inputs` if forward requires an input of an unknown kind.
    """
    torch.manual_seed(0)
    parameters = inspect.signature(module.forward).parameters
    wanted = _wanted(module, config, folder, parameters)
    unknown = [name for name in wanted if name not in _MAKERS]
    if unknown:
        raise problem(
            "export/no-inputs",
            f"example inputs of {type(module).__name__} are not known",
            where=", ".join(unknown),
            fix="export it by a factory that returns (module, (), {name: tensor})",
        )
    made = {name: _MAKERS[name](config, folder) for name in wanted}
    found = Examples({name: one[0] for name, one in made.items()}, {name: one[1] for name, one in made.items()})
    found = _apart(module, found)
    return _with_past(module, found) if task.endswith(PAST) else found


def _wanted(module: Any, config: Any, folder: Path, parameters: Mapping[str, Any]) -> list[str]:
    main = module.main_input_name
    names = {main}
    if main == "input_ids":
        names.add("attention_mask")
        listed = _read(folder / "tokenizer_config.json").get("model_input_names")
        two = (getattr(config, "type_vocab_size", 0) or 0) > 1
        if "token_type_ids" in listed if listed else two:
            names.add("token_type_ids")
        if hasattr(config, "vision_config") or config.model_type.startswith(("layoutlmv", "vilt")):
            names.add("pixel_values")
        names.add("bbox")
    if main == "pixel_values" and hasattr(config, "text_config"):
        names |= {"input_ids", "attention_mask"}
    if getattr(config, "is_encoder_decoder", False):
        names.add("decoder_input_ids")
    return [name for name in parameters if name in names]


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


def _with_past(module: Any, found: Examples) -> Examples:
    """The inputs of the next call: new tokens, and the cache that the first call returned."""
    kwargs, dynamic = dict(found.kwargs), dict(found.dynamic)
    with torch.no_grad():
        result = module(**kwargs, use_cache=True)
    tokens = "decoder_input_ids" if "decoder_input_ids" in kwargs else "input_ids"
    if tokens == "decoder_input_ids":
        del kwargs[module.main_input_name], dynamic[module.main_input_name]
        encoded = {0: "batch_size", 1: "encoder_sequence_length"}
        kwargs["encoder_outputs"] = (result.encoder_last_hidden_state,)
        dynamic["encoder_outputs"] = encoded
        if "attention_mask" in kwargs:
            dynamic["attention_mask"] = encoded
    else:
        kwargs["attention_mask"] = torch.ones(_BATCH, _LENGTH + _NEW, dtype=torch.int64)
        dynamic["attention_mask"] = {0: "batch_size", 1: "past_sequence_length + sequence_length"}
    kwargs[tokens] = kwargs[tokens][:, :_NEW]
    renamed = CACHE in inspect.signature(module.forward).parameters
    kwargs[CACHE if renamed else PAST_INPUT] = cache = result[CACHE] if renamed else result[PAST_INPUT]
    return Examples(kwargs, {**dynamic, **_cache_axes(cache)})


def _cache_axes(cache: Any) -> dict[str, Axes]:
    """The dynamic axes of keys and values, [batch, heads, steps, features]. Cross-attention has the encoder's
    length."""
    own = {0: "batch_size", 2: "past_sequence_length"}
    if not hasattr(cache, "cross_attention_cache"):
        return {PAST_INPUT: own}
    return {
        f"{PAST_INPUT}.self_attention_cache": own,
        f"{PAST_INPUT}.cross_attention_cache": {0: "batch_size", 2: "encoder_sequence_length"},
    }


def _tokens(config: Any, folder: Path) -> Made:
    text = _part(config, "text_config")
    return torch.randint(3, max(int(text.vocab_size), 5), (_BATCH, _LENGTH)), _TEXT


def _ones(config: Any, folder: Path) -> Made:
    return torch.ones(_BATCH, _LENGTH, dtype=torch.int64), _TEXT


def _zeros(config: Any, folder: Path) -> Made:
    return torch.zeros(_BATCH, _LENGTH, dtype=torch.int64), _TEXT


def _boxes(config: Any, folder: Path) -> Made:
    corners = torch.randint(0, 100, (_BATCH, _LENGTH, 2, 2)).sort(dim=2).values
    return corners.reshape(_BATCH, _LENGTH, 4), _TEXT


def _decoder_tokens(config: Any, folder: Path) -> Made:
    text = _part(config, "decoder", "text_config")
    found = torch.randint(3, max(int(text.vocab_size), 5), (_BATCH, _NEW + 1))
    return found, {0: "batch_size", 1: "decoder_sequence_length"}


def _pictures(config: Any, folder: Path) -> Made:
    vision = _part(config, "vision_config", "encoder")
    processor = _read(folder / "preprocessor_config.json")
    height, width = _picture_size(vision, processor)
    shape = [_BATCH, int(getattr(vision, "num_channels", 3) or 3), height, width]
    if hasattr(vision, "num_frames"):
        shape.insert(1, int(vision.num_frames))
    size = processor.get("size")
    varies = isinstance(size, Mapping) and "longest_edge" in size  # the processor keeps the shape of the picture
    return torch.randn(shape), {0: "batch_size", 2: "height", 3: "width"} if varies else {0: "batch_size"}


def _picture_size(config: Any, processor: Mapping[str, Any]) -> tuple[int, int]:
    for size in (processor.get("crop_size"), processor.get("size"), getattr(config, "image_size", None)):
        if isinstance(size, int):
            return size, size
        if isinstance(size, Mapping) and "height" in size:
            return int(size["height"]), int(size["width"])
        if isinstance(size, Mapping) and "shortest_edge" in size:
            return int(size["shortest_edge"]), int(size["shortest_edge"])
        if isinstance(size, list | tuple):
            return int(size[0]), int(size[-1])
    return _PIXELS, _PIXELS


def _wave(config: Any, folder: Path) -> Made:
    if hasattr(config, "num_mel_bins"):
        frames = int(getattr(config, "max_length", 1024))
        return torch.randn(_BATCH, frames, int(config.num_mel_bins)), {0: "batch_size"}
    return torch.randn(_BATCH, _SAMPLES), {0: "batch_size", 1: "audio_sequence_length"}


def _features(config: Any, folder: Path) -> Made:
    if hasattr(config, "num_mel_bins") and hasattr(config, "max_source_positions"):
        # Whisper's layout: its encoder halves the number of frames.
        return torch.randn(_BATCH, int(config.num_mel_bins), 2 * int(config.max_source_positions)), {0: "batch_size"}
    sizes = ("num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel")
    bins = next((int(getattr(config, name)) for name in sizes if hasattr(config, name)), 80)
    bins *= int(getattr(config, "input_channels", 1))
    return torch.randn(_BATCH, 100, bins), {0: "batch_size", 1: "audio_sequence_length"}


_MAKERS: dict[str, Callable[[Any, Path], Made]] = {
    "input_ids": _tokens,
    "attention_mask": _ones,
    "token_type_ids": _zeros,
    "bbox": _boxes,
    "decoder_input_ids": _decoder_tokens,
    "pixel_values": _pictures,
    "input_values": _wave,
    "input_features": _features,
}


def _part(config: Any, *names: str) -> Any:
    """The first of these sub-configurations that exists, or else the configuration itself."""
    return next((part for name in names if (part := getattr(config, name, None)) is not None), config)


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
