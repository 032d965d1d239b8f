"""`onnxsmith fleet run plan.toml`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.commands.fleet._options import refuse_wrong_options
from onnxsmith.cli.commands.fleet._page import every_cell_flag, page_option, refuse, with_page


@dataclass(frozen=True)
class Run(Command):
    """Run each model of a plan with each setting, and show the results.

    If the model, the steps and the versions of a cell did not change, its stored result is used. A crash, an exceeded
    time limit and a lack of memory count as results. The exit status is 0 if all cells are done, else 1; with --since,
    it is 1 if a cell is worse than in that run. It is 2 if the run was stopped; --resume continues it.
    """

    name = "fleet run"
    usual_line = "onnxsmith fleet run plan.toml"
    examples = (
        ("Show what became worse since an earlier run", "onnxsmith fleet run plan.toml --name today --since yesterday"),
        ("Run a third of the cells, on one of three machines", "onnxsmith fleet run plan.toml --shard 1/3"),
    )

    plan: str = argument("the plan, a TOML file", metavar="PLAN")
    name_: str = option("name of the run; default: the plan's name and the time", default="", name="name")
    since: str = option("compare with this stored run", default="", metavar="RUN")
    resume: bool = flag("continue the latest run of the plan, under its name")
    again: tuple[str, ...] = option(
        "compute cells with this outcome again: failed, crashed, timeout, …, or all; repeatable",
        default=(),
        metavar="OUTCOME",
    )
    workers: int = option("cells that run at the same time; default: the number of cores", default=0)
    engine: str = option("what runs the cells: local or dask", default="local", metavar="NAME")
    scheduler: str = option("address of a Dask scheduler: tcp://host:8786", default="", metavar="ADDRESS")
    shard: str = option("run one part of the cells: 3/20", default="", metavar="N/COUNT")
    store: str = option(
        "where results are stored: an SQLite file, a folder/ or an fsspec address; default: the plan's "
        "store, else fleet.sqlite",
        default="",
        metavar="ADDRESS",
    )
    page: str = page_option()
    every_cell: bool = every_cell_flag()

    def refuse(self) -> None:
        refuse(self.page, every=self.every_cell)

    def run(self) -> Report:
        from onnxsmith.fleet import verbs
        from onnxsmith.fleet.shards import read

        settings = verbs.Settings(
            store=self.store,
            name=self.name_,
            since=self.since,
            resume=self.resume,
            again=self.again,
            engine="dask" if self.scheduler else self.engine,
            workers=self.workers,
            scheduler=self.scheduler,
            shard=read(self.shard),
        )
        refuse_wrong_options(self.plan)
        report = verbs.run(self.plan, settings)
        return with_page(report, self.page, self.plan, self.store, every=self.every_cell)
