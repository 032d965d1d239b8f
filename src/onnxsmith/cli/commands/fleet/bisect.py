"""`onnxsmith fleet bisect plan.toml MODEL --package onnxruntime --good 1.31.0 --bad 1.32.0`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.commands.fleet._options import refuse_wrong_options


@dataclass(frozen=True)
class Bisect(Command):
    """Find the version of a package at which the result of a cell became worse, or better.

    Makes an environment with uv for each version that it tries. Halves the range of versions until two neighbouring
    versions have different results. --good and --bad are the two ends of the range; either may be the older version.
    """

    name = "fleet bisect"
    usual_line = "onnxsmith fleet bisect plan.toml net --package onnxruntime --good 1.31.0 --bad 1.32.0"

    plan: str = argument("the plan, a TOML file", metavar="PLAN")
    model: str = argument("the model, by its name in the table of the run", metavar="NAME")
    package: str = option("the package whose versions are tried", default="onnxruntime", metavar="NAME")
    good: str = option("a version with which the cell has the expected result", default="", metavar="VERSION")
    bad: str = option("a version with which the cell has a worse result", default="", metavar="VERSION")
    versions: str = option("the versions to try, instead of those of the package index: 1.31.0,1.31.1", default="")
    setting: str = option("the setting of the cell, if there are several", default="")
    environment: str = option("the environment whose other packages stay the same", default="")
    store: str = option(
        "where results are stored: an SQLite file, a folder/ or an fsspec address", default="", metavar="ADDRESS"
    )

    def run(self) -> Report:
        from onnxsmith.fleet.bisect import bisect

        refuse_wrong_options(self.plan)
        return bisect(
            self.plan,
            self.model,
            self.package,
            good=self.good,
            bad=self.bad,
            versions=[version.strip() for version in self.versions.split(",") if version.strip()],
            setting=self.setting,
            environment=self.environment,
            store=self.store,
        )
