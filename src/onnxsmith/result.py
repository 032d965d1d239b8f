"""What a Python call gets: the report that the command line would show, and the model itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.report.base import Report


@dataclass(frozen=True)
class Result:
    """The answer of a verb.

    `model` is the graph that it made, or None for verbs that make none or did not succeed; `path` is where it was
    written; `outputs` are arrays by name, for `run`.
    """

    report: Report
    model: ir.Model | None = None
    path: Path | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether it was done (and verified, where the verb verifies)."""
        return self.report.verdict.exit_code == 0
