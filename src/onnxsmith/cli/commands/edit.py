"""`onnxsmith edit MODEL PATCH -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands._edit_options import Editing

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Edit(Editing):
    """Apply the steps of a patch file to a model, all or none.

    Compares what no step changes on purpose with the original. Writes the file if that is equal and the model runs.
    Without arguments it lists the steps.
    """

    name = "edit"

    model: str = argument("the .onnx file", metavar="MODEL", default="")
    patch: str = argument("the patch file, TOML with [[step]] tables", metavar="PATCH", default="")

    def steps(self) -> Iterable[Step]:
        from onnxsmith.editor import patch

        return patch.read(self.patch)

    def run(self) -> Report:
        if self.patch:
            return super().run()
        from onnxsmith.base.problem import problem
        from onnxsmith.base.report.parts.edits import StepList
        from onnxsmith.editor import patch

        if self.model:
            raise problem(
                "edit/no-patch",
                "no patch file was given",
                where=self.model,
                fix="add the path of a .toml file with [[step]] tables",
            )
        return Report(self.name, Verdict.DONE, (StepList(tuple(patch.described())),), headline="")
