"""Writes the file in an older IR version."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.structure import versions
from onnxsmith.graph.structure.model_copy import cloned

_USUAL = (10, 9, 8, 7, 4, 3)
"""IR versions in the order of trial, the least change first. 5 and 6 are missing: the releases that read them read 7 as
well."""


class OlderIrVersion(Fix):
    """The IR version says which features of the file format a reader must know. Exporters write the newest version."""

    rank = 5

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        least = versions.least_ir(model, oldest=_USUAL[-1])
        for version in _USUAL:
            if max(least, 8 if model.functions else 0) <= version < (model.ir_version or 0):
                made = cloned(model)
                made.ir_version = version
                yield f"IR version {version}", made
