"""`onnxsmith opset MODEL VERSION -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument
from onnxsmith.cli.commands._edit_options import Editing, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Opset(Editing):
    """Convert a model to another opset, up or down."""

    name = "opset"

    to: int = argument("the opset of the written file", metavar="OPSET")

    def steps(self) -> Iterable[Step]:
        yield step("opset", to=self.to)
