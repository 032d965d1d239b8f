"""`onnxsmith explain ID [MODEL]`."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from onnxsmith.base.options import argument
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command

_STDIN = "-"


@dataclass(frozen=True)
class Explain(Command):
    """Explain an error message of a checker, runtime, converter or exporter, or print the page of a problem or a rule.
    With MODEL, look up the node that the message names."""

    name = "explain"

    id: str = argument(
        "an error message, of any length; '-' reads it from standard input; or the id of a problem (model/truncated), "
        "a rule (fuse/conv-batchnorm) or a cause (tensorrt/if-shapes); 'all' lists the ids",
        metavar="ID",
    )
    model: str = argument("the .onnx file that the message is about", default="", metavar="MODEL")

    def run(self) -> Report:
        from onnxsmith.viewer.inspection.explain import explain

        text = sys.stdin.buffer.read().decode("utf-8", "replace") if self.id == _STDIN else self.id
        return explain(text.strip() if self.id == _STDIN else text, self.model or None)
