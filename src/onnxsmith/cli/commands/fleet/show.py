"""`onnxsmith fleet show plan.toml`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.commands.fleet._page import every_cell_flag, page_option, refuse, with_page


@dataclass(frozen=True)
class Show(Command):
    """Show the table of a run from the store, and what changed since another run."""

    name = "fleet show"
    usual_line = "onnxsmith fleet show plan.toml"
    examples = (("As a page", "onnxsmith fleet show plan.toml --page matrix.html"),)

    plan: str = argument("the plan, or the store", metavar="PLAN")
    name_: str = option("name of the run; default: the latest", default="", name="name")
    since: str = option("compare with this stored run", default="", metavar="RUN")
    store: str = option(
        "where results are stored: an SQLite file, a folder/ or an fsspec address", default="", metavar="ADDRESS"
    )
    page: str = page_option()
    every_cell: bool = every_cell_flag()

    def refuse(self) -> None:
        refuse(self.page, every=self.every_cell)

    def run(self) -> Report:
        from onnxsmith.fleet import verbs

        report = verbs.show(self.plan, self.store, self.name_, self.since)
        return with_page(report, self.page, self.plan, self.store, every=self.every_cell)
