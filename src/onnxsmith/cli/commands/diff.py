"""`onnxsmith diff old.onnx new.onnx`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Diff(Command):
    """Show what changed from one model to another, node by node and in numbers.

    Nothing is run. Nodes are paired by what they compute, how they are used, and their weights, not by name. The exit
    status is 0 if the models are equal (up to names inside the graph and the order of the nodes) and 1 if they differ.
    """

    name = "diff"

    old: str = argument("an .onnx file, or ONNX text in .onnxtxt", metavar="OLD")
    new: str = argument("the model to compare with it", metavar="NEW")
    ignore: tuple[str, ...] = option(
        "ignore names (of inputs and outputs), weights, shapes (declared), metadata, doc or versions; repeatable",
        default=(),
        metavar="PART",
    )

    def shown(self) -> tuple[str, ...]:
        return (self.old, self.new)

    def run(self) -> Report:
        from onnxsmith.comparison.graphs.diff import diff

        return diff(self.old, self.new, ignore=self.ignore).report
