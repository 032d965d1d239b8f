"""Makes one example input of a model of transformers, by the name of forward's parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from onnxsmith.base import user_files
from onnxsmith.graph.structure.dim_ranges import Range

_BATCH, _LENGTH, _NEW, _PIXELS, _SAMPLES = 2, 8, 3, 224, 16000
"""The examples have these sizes. A choice: small and different from each other. 224 pixels and 16000 samples (1 s at 16
kHz) are the usual sizes of image and speech models."""
_SECONDS = 10
"""A sound has these seconds if CLAP's processor is not saved. It is the processor's default, with 48000 samples a
second and a frame for each 480."""
_TEXT = {0: "batch_size", 1: "sequence_length"}

Axes = dict[int, str]
Made = tuple[torch.Tensor, Axes]


def _tokens(config: Any, folder: Path) -> Made:
    text = part(config, "text_config")
    return torch.randint(3, max(int(text.vocab_size), 5), (_BATCH, _LENGTH)), _TEXT


def _ones(config: Any, folder: Path) -> Made:
    return torch.ones(_BATCH, _LENGTH, dtype=torch.int64), _TEXT


def _types(config: Any, folder: Path) -> Made:
    columns = getattr(config, "type_vocab_sizes", None)  # a model of tables: one column for each kind of type
    return torch.zeros(_BATCH, _LENGTH, *([len(columns)] if columns else []), dtype=torch.int64), _TEXT


def _boxes(config: Any, folder: Path) -> Made:
    corners = torch.randint(0, 100, (_BATCH, _LENGTH, 2, 2)).sort(dim=2).values
    return corners.reshape(_BATCH, _LENGTH, 4), _TEXT


def _decoder_tokens(config: Any, folder: Path) -> Made:
    text = part(config, "decoder", "text_config")
    found = torch.randint(3, max(int(text.vocab_size), 5), (_BATCH, _NEW + 1))
    return found, {0: "batch_size", 1: "decoder_sequence_length"}


def _pictures(config: Any, folder: Path) -> Made:
    vision = part(config, "vision_config", "encoder")
    if hasattr(vision, "spatial_merge_size") and hasattr(vision, "temporal_patch_size"):
        return _patches(vision)
    processor = read(folder / "preprocessor_config.json")
    height, width = _picture_size(_sized(config, vision), processor)
    shape = [_BATCH, int(getattr(vision, "num_channels", 3) or 3), height, width]
    if hasattr(vision, "num_frames"):
        shape.insert(1, int(vision.num_frames))
    size = processor.get("size")
    varies = isinstance(size, Mapping) and "longest_edge" in size  # the processor keeps the shape of the picture
    return torch.randn(shape), {0: "batch_size", 2: "height", 3: "width"} if varies else {0: "batch_size"}


def _patches(vision: Any) -> Made:
    """Makes Qwen's layout: the patches of all images, one below the other, each twice for two frames of a video."""
    channels = int(getattr(vision, "in_channels", getattr(vision, "in_chans", 3)))
    width = channels * int(vision.temporal_patch_size) * int(vision.patch_size) ** 2
    return torch.randn(int(_grid_of(vision).prod(1).sum()), width), {}


def _grid_of(vision: Any) -> torch.Tensor:
    """Returns frames, rows and columns of patches for each image; two by four tokens of the text."""
    side = int(vision.spatial_merge_size)
    return torch.tensor([[1, 2 * side, 4 * side]] * _BATCH)


def _grid(config: Any, folder: Path) -> Made:
    return _grid_of(config.vision_config), {}


def _sized(config: Any, vision: Any) -> Any:
    """Returns the part of the configuration with the size of an image: the part for images, for their backbone, or for
    prompts, whose points lie in the image."""
    backbone, prompts = getattr(vision, "backbone_config", None), getattr(config, "prompt_encoder_config", None)
    parts = (one for one in (vision, backbone, prompts) if getattr(one, "image_size", None) is not None)
    return next(parts, vision)


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


_WIDEST = 4
"""Limits how many times longer than its other side a picture is that a processor gets. A choice: a panorama."""


def ranges(folder: Path, example: torch.Tensor | None) -> dict[str, Range]:
    """Returns the heights and widths that the image processor makes: if it scales a picture until its longest edge has
    a size, no edge is longer, and the other edge follows from the shape of the picture. The ranges hold the example."""
    processor = read(folder / "preprocessor_config.json")
    size, most = processor.get("size"), None
    if isinstance(size, Mapping) and not processor.get("crop_size"):
        most = size.get("longest_edge")
    if not isinstance(most, int) or not isinstance(size, Mapping):
        return {}
    shortest = size.get("shortest_edge")
    least = min(most // _WIDEST, shortest) if isinstance(shortest, int) else most // _WIDEST
    held = [] if example is None else list(example.shape[-2:])
    return dict.fromkeys(("height", "width"), Range(max(min(least, *held, most), 1), max(most, *held, 1)))


def _wave(config: Any, folder: Path) -> Made:
    if hasattr(config, "num_mel_bins"):
        frames = int(getattr(config, "max_length", 1024))
        return torch.randn(_BATCH, frames, int(config.num_mel_bins)), {0: "batch_size"}
    return torch.randn(_BATCH, _SAMPLES), {0: "batch_size", 1: "audio_sequence_length"}


def _features(config: Any, folder: Path) -> Made:
    if hasattr(config, "num_mel_bins") and hasattr(config, "max_source_positions"):
        # Whisper's layout: its encoder halves the number of frames.
        return torch.randn(_BATCH, int(config.num_mel_bins), 2 * int(config.max_source_positions)), {0: "batch_size"}
    if hasattr(config, "audio_config") and hasattr(config.audio_config, "spec_size"):
        return _picture_of_sound(config.audio_config, read(folder / "preprocessor_config.json"))
    sizes = ("num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel")
    bins = next((int(getattr(config, name)) for name in sizes if hasattr(config, name)), 80)
    bins *= int(getattr(config, "input_channels", 1))
    return torch.randn(_BATCH, 100, bins), {0: "batch_size", 1: "audio_sequence_length"}


def _picture_of_sound(config: Any, processor: Mapping[str, Any]) -> Made:
    """Makes CLAP's layout: a spectrogram as an image, one for a sound, or four if parts of a long sound are joined. The
    processor sets the number of frames; the model stretches shorter spectrograms."""
    bins = int(config.num_mel_bins)
    widest = int(config.spec_size) * (int(config.spec_size) // bins)
    samples, hop = processor.get("nb_max_samples", _SECONDS * 48000), processor.get("hop_length", 480)
    frames = min(samples // hop + 1, widest)
    return torch.randn(_BATCH, 4 if config.enable_fusion else 1, frames, bins), {0: "batch_size"}


def _longer(config: Any, folder: Path) -> Made:
    return (torch.arange(_BATCH) % 2 == 0)[:, None], {0: "batch_size"}


def _datasets(config: Any, folder: Path) -> Made:
    return torch.arange(_BATCH) % int(config.backbone_config.num_experts), {0: "batch_size"}


def _points(config: Any, folder: Path) -> Made:
    axes = {0: "batch_size", 1: "point_batch_size", 2: "num_points"}
    return torch.randint(0, 100, (_BATCH, 2, _NEW, 2)).float(), axes


def _point_labels(config: Any, folder: Path) -> Made:
    axes = {0: "batch_size", 1: "point_batch_size", 2: "num_points"}
    return torch.randint(0, 2, (_BATCH, 2, _NEW)), axes


def _frames(config: Any, folder: Path) -> Made:
    found = torch.randn(_BATCH, _NEW + 1, int(config.num_mel_bins))
    return found, {0: "batch_size", 1: "decoder_sequence_length"}


def _series(length: Callable[[Any], int], width: Callable[[Any], int], make: Any) -> Callable[[Any, Path], Made]:
    """Makes steps of a time series; with the width 0, they have no last axis."""

    def made(config: Any, folder: Path) -> Made:
        last = width(config)
        return make(_BATCH, length(config), *([last] if last else [])), {0: "batch_size"}

    return made


def _context(config: Any) -> int:
    lags = getattr(config, "lags_sequence", None)
    return int(config.context_length) + (max(lags) if lags else 0)


def _values(config: Any) -> int:
    """Returns the number of series; 0 if the model takes a single series without an axis for it."""
    if hasattr(config, "num_input_channels"):
        return int(config.num_input_channels)
    size = int(getattr(config, "input_size", 1))
    return size if size > 1 else 0


def _prediction(config: Any) -> int:
    return int(config.prediction_length)


def _time_features(config: Any) -> int:
    return int(config.num_time_features) + int(getattr(config, "num_dynamic_real_features", 0))


def _categories(config: Any, folder: Path) -> Made:
    columns = [torch.randint(0, size, (_BATCH,)) for size in config.cardinality]
    return torch.stack(columns, 1), {0: "batch_size"}


def _static_features(config: Any, folder: Path) -> Made:
    return torch.randn(_BATCH, int(config.num_static_real_features)), {0: "batch_size"}


MAKERS: dict[str, Callable[[Any, Path], Made]] = {
    "input_ids": _tokens,
    "attention_mask": _ones,
    "token_type_ids": _types,
    "bbox": _boxes,
    "decoder_input_ids": _decoder_tokens,
    "pixel_values": _pictures,
    "input_values": _wave,
    "input_features": _features,
    "input_points": _points,
    "input_labels": _point_labels,
    "decoder_input_values": _frames,
    "past_values": _series(_context, _values, torch.randn),
    "image_grid_thw": _grid,
    "is_longer": _longer,
    "dataset_index": _datasets,
    "static_categorical_features": _categories,
    "static_real_features": _static_features,
    "past_observed_mask": _series(_context, _values, torch.ones),
    "past_time_features": _series(_context, _time_features, torch.randn),
    "future_values": _series(_prediction, _values, torch.randn),
    "future_time_features": _series(_prediction, _time_features, torch.randn),
}


def part(config: Any, *names: str) -> Any:
    """Returns the first of these sub-configurations that exists, or else the configuration itself."""
    return next((part for name in names if (part := getattr(config, name, None)) is not None), config)


def read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found: dict[str, Any] = user_files.parse_json(user_files.read_utf8(path))
    return found
