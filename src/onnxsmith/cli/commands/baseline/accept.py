"""`onnxsmith baseline accept m.onnx --reason TEXT`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.baseline._options import Recording


@dataclass(frozen=True)
class Accept(Recording):
    """Record changed models again, with a reason that the baseline keeps."""

    name = "baseline accept"
    usual_line = 'onnxsmith baseline accept models/net.onnx --reason "trained on more data"'

    reason: str = option("why the change is accepted", default="", metavar="TEXT")

    def run(self) -> Report:
        from onnxsmith.gate.baselines import verbs

        return verbs.accept(self.models, self.file, self.reason, self.settings())
