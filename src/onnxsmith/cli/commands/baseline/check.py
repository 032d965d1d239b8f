"""`onnxsmith baseline check`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.baseline._options import Measuring


@dataclass(frozen=True)
class Check(Measuring):
    """Measure recorded models again on the recorded inputs, and name the cause of each change.

    Without MODEL, all recorded models are measured. A MODEL without an entry is reported, with the command that records
    it. The exit status is 1 if a model is worse than recorded, or if this cannot be decided.
    """

    name = "baseline check"
    usual_line = "onnxsmith baseline check"
    examples = (
        ("For CI: write what changed for a reviewer", "onnxsmith baseline check --no-time --report changes.md"),
    )

    allow: str = option("how much slower than recorded a model may be, beyond the noise", default="5%", metavar="SHARE")
    allow_size: str = option(
        "how much larger than recorded a file may be; default: 5% or 1 KiB, whichever is more",
        default="",
        metavar="SHARE",
    )

    def run(self) -> Report:
        from onnxsmith.deployment.benching.bench_options import share
        from onnxsmith.gate.baselines import verbs
        from onnxsmith.gate.baselines.settings import Settings

        settings = Settings(
            times=not self.no_time,
            seconds=self.seconds,
            allow=share(self.allow, "--allow 5%"),
            allow_size=share(self.allow_size, "--allow-size 5%") if self.allow_size else None,
        )
        return verbs.check(self.models, self.file, settings)
