"""Writes the file in an older IR version."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.checking.fixes.base import Fix
from onnxsmith.model.graph.copying import cloned

_OLDEST = 8
"""What follows is refused by no reader: version 8 is of 2021, and has all that a graph without sparse types needs."""


class OlderIrVersion(Fix):
    """The IR version says which features of the file format a reader must know. Exporters write the newest."""

    rank = 5

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        for version in (10, _OLDEST):
            if (model.ir_version or 0) > version and not (model.functions and version < _OLDEST):
                made = cloned(model)
                made.ir_version = version
                yield f"IR version {version}", made
