"""torchao: models that `quantize_` has quantised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torchao import quantization
from torchao.quantization import quantize_

from packages.case import BATCH, Case

_STEP = 2e-2
"""Tolerance where activations are quantised too: a value beside the border of two steps may fall to either side, and a
step is 1/127 of the largest value."""


def cases() -> list[Case]:
    """A perceptron and a BERT, each quantised in five ways; batch and length are dynamic."""
    group = quantization.PerGroup(32)
    ways: tuple[tuple[str, Callable[[], Any], float], ...] = (
        ("int8-weights", lambda: quantization.Int8WeightOnlyConfig(), _STEP),
        ("int8-dynamic", lambda: quantization.Int8DynamicActivationInt8WeightConfig(), _STEP),
        ("int4-weights", lambda: quantization.IntxWeightOnlyConfig(torch.int4, group), _STEP),
        ("int8-int4", lambda: quantization.Int8DynamicActivationIntxWeightConfig(torch.int4, group), _STEP),
        ("float8-weights", lambda: quantization.Float8WeightOnlyConfig(), 1e-3),
    )
    return [
        case
        for name, way, tolerance in ways
        for case in (_perceptron(name, way, tolerance), _bert(name, way, tolerance))
    ]


def _quantised(model: torch.nn.Module, config: Any) -> torch.nn.Module:
    quantize_(model, config)
    return model


def _perceptron(name: str, way: Callable[[], Any], tolerance: float) -> Case:
    def build() -> torch.nn.Module:
        layers = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.Linear(96, 32))
        return _quantised(layers, way())

    return Case(f"mlp-{name}", build, lambda batch: (torch.randn(batch, 64),), ({0: "batch"},), BATCH, tolerance)


def _bert(name: str, way: Callable[[], Any], tolerance: float) -> Case:
    def build() -> torch.nn.Module:
        config = transformers.BertConfig(
            vocab_size=99,
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=4,
            intermediate_size=96,
            max_position_embeddings=64,
        )
        return _quantised(transformers.BertModel(config, add_pooling_layer=False), way())

    def inputs(batch: int, length: int) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.randint(3, 99, (batch, length))}

    axes = {"input_ids": {0: "batch", 1: "length"}}
    return Case(f"bert-{name}", build, inputs, axes, {**BATCH, "length": (9, 7, 16)}, tolerance)
