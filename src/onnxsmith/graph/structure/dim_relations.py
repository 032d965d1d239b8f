"""Keeps in a file's metadata which names of input dimensions follow from others: `past` is `32 - seq`.

The file declares the name, because readers match axes by names. The relation says which sizes the model takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import onnx_ir as ir

from onnxsmith.base import user_files

KEY = "onnxsmith.dims"
"""Names the metadata property of the model: a JSON object from the name to the expression."""


def relations(model: ir.Model) -> dict[str, str]:
    """Returns the expression of each name that follows from other names; empty for metadata that cannot be read."""
    try:
        found = user_files.parse_json(model.metadata_props.get(KEY, "{}"))
    except ValueError:
        return {}
    return {name: str(expression) for name, expression in found.items()} if isinstance(found, dict) else {}


def record(model: ir.Model, found: Mapping[str, str]) -> None:
    """Writes the relations in place of those that the model has."""
    model.metadata_props.pop(KEY, None)
    if found:
        model.metadata_props[KEY] = json.dumps(dict(found))


def rename(model: ir.Model, renamed: Callable[[str], str]) -> None:
    """Renames the dimensions in the relations."""
    record(model, {renamed(name): renamed(expression) for name, expression in relations(model).items()})
