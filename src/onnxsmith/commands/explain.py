"""`onnxsmith explain ID`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.commands.base import Command
from onnxsmith.options import argument
from onnxsmith.report.base import Report


@dataclass(frozen=True)
class Explain(Command):
    """Print the page of a rule or a problem, or explain a message of torch, onnx or a runtime."""

    name = "explain"

    id: str = argument(
        "the id of a problem (model/truncated) or a rule (fuse/conv-batchnorm), or a message; 'all' lists the ids",
        metavar="ID",
    )

    def run(self) -> Report:
        from onnxsmith.inspection.explain import explain

        return explain(self.id)
