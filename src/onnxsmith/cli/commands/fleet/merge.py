"""`onnxsmith fleet merge a.sqlite b.sqlite -o all.sqlite`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.commands.fleet._page import every_cell_flag, page_option, refuse, with_page


@dataclass(frozen=True)
class Merge(Command):
    """Merge the stores of several shards into one store, and show the latest run in it."""

    name = "fleet merge"
    usual_line = "onnxsmith fleet merge one.sqlite two.sqlite -o all.sqlite"

    stores: tuple[str, ...] = argument("the stores of the shards", metavar="STORE…")
    output: str = option("the store to write to; it may exist", default="fleet.sqlite", short="-o", metavar="ADDRESS")
    page: str = page_option()
    every_cell: bool = every_cell_flag()

    def refuse(self) -> None:
        refuse(self.page, every=self.every_cell)

    def run(self) -> Report:
        from onnxsmith.fleet.merging import merge

        report = merge(self.stores, self.output)
        return with_page(report, self.page, self.output, "", every=self.every_cell)
