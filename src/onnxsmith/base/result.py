"""The return value of a Python call: the report that the command line would show, and the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.report.base import Report
from onnxsmith.base.report.card import in_short, of_report, to_html


@dataclass(frozen=True)
class Result:
    """The result of a verb.

    `model` is the new graph, or None if the verb makes no graph or failed. `path` is the written file. `outputs` are
    arrays by name, for `run`. `page` is the HTML page of `view`, which a notebook shows in place.
    """

    report: Report
    model: ir.Model | None = None
    path: Path | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)
    page: str = ""

    @property
    def ok(self) -> bool:
        """Whether the verb succeeded, verification included."""
        return self.report.verdict.exit_code == 0

    def __repr__(self) -> str:
        return in_short("Result", self.report)

    def _repr_html_(self) -> str:
        """Returns the report as HTML for a notebook, and below it the page."""
        more = "" if self.model is None else "onnxsmith.view(result.model)"
        return to_html(of_report(self.report, more=more, page=self.page))
