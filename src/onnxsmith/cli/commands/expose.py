"""`onnxsmith expose MODEL TENSOR… -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument, option
from onnxsmith.cli.commands._edit_options import Editing, selectors, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Expose(Editing):
    """Make intermediate tensors outputs of the model, with their dtype and shape."""

    name = "expose"

    tensor: tuple[str, ...] = argument(
        "a tensor, a name with *, or a table: '{ producer = \"relu\" }'; repeatable", metavar="TENSOR"
    )
    called: str = option("the name of the output, for a single tensor", default="", metavar="NAME")

    def steps(self) -> Iterable[Step]:
        yield step("expose", tensor=selectors(self.tensor), name=self.called)
