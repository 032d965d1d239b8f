"""Which of forward's parameters a model of transformers is called with."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxsmith.exporter.pretrained.example_makers import read


def inputs(module: Any, config: Any, folder: Path) -> list[str]:
    """The names of the inputs, in the order of forward's parameters: what its tokenizer or processor gives, and what
    forward requires."""
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
    """What a model of distributions takes; the others have no time features."""
    if main != "past_values" or not hasattr(config, "num_time_features"):
        return
    yield from ("past_time_features", "past_observed_mask", "future_values", "future_time_features")
    for kind in ("static_categorical_features", "static_real_features"):
        if getattr(config, f"num_{kind}", 0):
            yield kind


def _of_sounds(config: Any) -> Iterator[str]:
    """The sounds with which texts are compared, as spectrograms."""
    audio: Any = getattr(config, "audio_config", None)
    if hasattr(audio, "spec_size"):
        yield "input_features"
        if audio.enable_fusion:
            yield "is_longer"
