"""`onnxsmith fleet list plan.toml`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.commands.fleet._options import refuse_wrong_options


@dataclass(frozen=True)
class List(Command):
    """Print one shell command for each cell of a plan.

    Each command computes one cell and stores its result. The list is for schedulers that read commands.
    """

    name = "fleet list"
    usual_line = "onnxsmith fleet list plan.toml"

    plan: str = argument("the plan, a TOML file", metavar="PLAN")
    output: str = option(
        "also write the commands to this file, one per line", short="-o", default="", metavar="FILE", writes=True
    )
    store: str = option(
        "where results are stored: an SQLite file, a folder/ or an fsspec address", default="", metavar="ADDRESS"
    )

    def run(self) -> Report:
        from onnxsmith.base.report.parts.fleet import CellCommand, CellCommands
        from onnxsmith.base.report.verdict import Verdict
        from onnxsmith.base.words import several
        from onnxsmith.fleet import text_file, verbs

        refuse_wrong_options(self.plan)
        cells = verbs.listed(self.plan, self.store)
        if self.output:
            text_file.write(self.output, [command for _, command in cells])
        part = CellCommands(tuple(CellCommand(*cell.place, cell.key, command) for cell, command in cells))
        return Report("fleet list", Verdict.DONE, (part,), headline=several(len(cells), "cell"))
