"""Valid models whose inputs need structure: indices, offsets, boxes, matrices, lengths, trip counts, flags, texts.

Each stands with inputs that a person would give, which prove that onnxruntime runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

HEAD = '<ir_version: 10, opset_import: ["": 20, "ai.onnx.ml": 4, "com.microsoft": 1]>\n'


@dataclass(frozen=True)
class Structured:
    """A model as ONNX text, and one input that it takes."""

    text: str
    hand: Mapping[str, Any] = field(repr=False)


def model(body: str, *, head: str = HEAD, **hand: Any) -> Structured:
    """A model of one graph, with an input by hand."""
    return Structured(head + body, hand)


def f(*shape: int) -> Any:
    """Normal float32 numbers."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def i(*values: Any) -> Any:
    """An array of int64."""
    return np.array(values[0] if len(values) == 1 else values, np.int64)


def table(rows: int, columns: int, name: str = "table") -> str:
    """The text of an initializer."""
    numbers = ", ".join(f"{number % 7 - 3}.5" for number in range(rows * columns))
    return f"float[{rows},{columns}] {name} = {{{numbers}}}"
