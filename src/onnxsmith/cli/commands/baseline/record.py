"""`onnxsmith baseline record models/*.onnx`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.baseline._options import Recording


@dataclass(frozen=True)
class Record(Recording):
    """Record models in a baseline: inputs, outputs, interface, nodes, sizes, times and targets.

    An unchanged model keeps its entry. A changed model is refused: `onnxsmith baseline accept` records it, with a
    reason.
    Models that cannot be recorded are listed, and the exit status is 2; the others are recorded.
    """

    name = "baseline record"
    usual_line = "onnxsmith baseline record models/*.onnx"
    examples = (
        ("Record no times, because others also use the machine", "onnxsmith baseline record models/*.onnx --no-time"),
    )

    def run(self) -> Report:
        from onnxsmith.gate.baselines import verbs

        return verbs.record(self.models, self.file, self.settings())
