"""Reads the metadata of a value without making an empty store for it.

onnx-ir makes the stores of a value when they are first read. In a model with many values, empty stores take as much
memory as the nodes. If a private name is gone, the stores are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from onnxsmith.base.seams.base import private

REACHES = ("onnx_ir:Value._metadata", "onnx_ir:Value._metadata_props")
_CAN = all(private(path) is not None for path in REACHES)
_NOTHING: Mapping[str, Any] = {}


def meta(value: ir.Value) -> Mapping[str, Any]:
    """Returns `value.meta` to read."""
    return (value._metadata or _NOTHING) if _CAN else value.meta


def metadata_props(value: ir.Value) -> Mapping[str, str]:
    """Returns `value.metadata_props` to read."""
    return (value._metadata_props or _NOTHING) if _CAN else value.metadata_props
