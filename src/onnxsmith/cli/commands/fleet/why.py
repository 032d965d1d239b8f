"""`onnxsmith fleet why plan.toml MODEL`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.commands.fleet._options import refuse_wrong_options


@dataclass(frozen=True)
class Why(Command):
    """Run one cell of a plan again here, and show everything that its steps report."""

    name = "fleet why"
    usual_line = "onnxsmith fleet why plan.toml net"

    plan: str = argument("the plan, a TOML file", metavar="PLAN")
    model: str = argument("the model, by its name in the table of the run", metavar="NAME")
    setting: str = option("the setting of the cell, if there are several", default="")
    environment: str = option("the environment of the cell, if there are several", default="")

    def run(self) -> Report:
        from onnxsmith.fleet import one_cell

        refuse_wrong_options(self.plan)
        return one_cell.why(self.plan, self.model, self.setting, self.environment)
