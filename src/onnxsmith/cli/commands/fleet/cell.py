"""`onnxsmith fleet cell plan.toml KEY`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.commands.fleet._options import refuse_wrong_options


@dataclass(frozen=True)
class Cell(Command):
    """Compute one cell of a plan, unless its result is already stored. `onnxsmith fleet list` prints the keys."""

    name = "fleet cell"
    usual_line = "onnxsmith fleet cell plan.toml KEY"

    plan: str = argument("the plan, a TOML file", metavar="PLAN")
    key: str = argument("the key of the cell", metavar="KEY")
    store: str = option(
        "where results are stored: an SQLite file, a folder/ or an fsspec address", default="", metavar="ADDRESS"
    )

    def run(self) -> Report:
        from onnxsmith.fleet import one_cell

        refuse_wrong_options(self.plan)
        return one_cell.compute(self.plan, self.key, self.store)
