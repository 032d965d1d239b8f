"""`onnxsmith verify-record FILE`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class VerifyRecord(Command):
    """Check a record that `--record` wrote: hash its files again, and run its command again.

    The outputs of the second run go into a temporary folder. The exit status is 0 if everything is as recorded, 1 if
    something differs, 2 if a file is missing or the command cannot run again. Running the command executes the Python
    files that the record names.
    """

    name = "verify-record"
    usual_line = "onnxsmith verify-record record.json"
    examples = (("Compare only the files", "onnxsmith verify-record record.json --no-replay"),)

    file: str = argument("the record", metavar="FILE")
    no_replay: bool = flag("compare the files only; run nothing")

    def run(self) -> Report:
        from onnxsmith.gate.records.verify_record import verify_record

        return verify_record(self.file, replay=not self.no_replay).report
