"""The return value of a Python call: the report that the command line would show, and the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.report.base import Report


@dataclass(frozen=True)
class Result:
    """The result of a verb.

    `model` is the new graph, or None if the verb makes no graph or failed. `path` is the written file. `outputs` are
    arrays by name, for `run`.
    """

    report: Report
    model: ir.Model | None = None
    path: Path | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the verb succeeded, verification included."""
        return self.report.verdict.exit_code == 0
