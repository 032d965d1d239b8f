"""The return value of a Python call: the report that the command line would show, and the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.report.base import Report

_FRAME = (
    '<iframe srcdoc="{}" sandbox="allow-scripts allow-downloads allow-popups" '
    'style="width:100%;height:640px;border:1px solid #8884" title="onnxsmith view"></iframe>'
)
"""A frame as high as most of a screen. Its sandbox keeps the page from reaching anything in the notebook."""


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
    page: str = field(default="", repr=False)

    @property
    def ok(self) -> bool:
        """Whether the verb succeeded, verification included."""
        return self.report.verdict.exit_code == 0

    def _repr_html_(self) -> str | None:
        """Returns the page in a frame, for a notebook; None if there is no page, so that the notebook shows the usual
        text."""
        if not self.page:
            return None
        return _FRAME.format(self.page.replace("&", "&amp;").replace('"', "&quot;"))
