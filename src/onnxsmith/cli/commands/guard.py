"""`onnxsmith guard models/*.onnx`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Guard(Command):
    """Check whether model and weight files may be committed, without running them.

    A model has to be valid and complete, with its data in its folder. No file may be too large, or a pickle.
    No node may run in training mode, and no text may name a user's folder. The exit status is 1 if a file fails.
    """

    name = "guard"
    usual_line = "onnxsmith guard models/*.onnx"
    examples = (("Also require simplified models", "onnxsmith guard models/*.onnx --simplified"),)

    files: tuple[str, ...] = argument("models and files with weights", default=(), metavar="FILE…")
    max_size: str = option(
        "largest size of a file or data file: 500KB, 100MB, 2GB in units of 1000; 500KiB, 100MiB in units of 1024; 0 "
        "for no limit",
        default="100MB",
        metavar="SIZE",
    )
    simplified: bool = flag("also require that the models are simplified")

    def run(self) -> Report:
        from onnxsmith.gate.guard import guard

        return guard(self.files, max_size=self.max_size, simplified=self.simplified)
