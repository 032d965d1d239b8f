"""`onnxsmith baseline drop m.onnx --reason TEXT`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.baseline._options import OfBaseline


@dataclass(frozen=True)
class Drop(OfBaseline):
    """Remove models from the baseline, with a reason that the baseline keeps. The model files are not changed."""

    name = "baseline drop"
    usual_line = 'onnxsmith baseline drop models/net.onnx --reason "replaced by new.onnx"'

    reason: str = option("why the models are removed", default="", metavar="TEXT")

    def run(self) -> Report:
        from onnxsmith.gate.baselines import verbs

        return verbs.drop(self.models, self.file, self.reason)
