"""`onnxsmith extract MODEL --from TENSOR --to TENSOR -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import option
from onnxsmith.cli.commands._edit_options import Editing, selectors, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Extract(Editing):
    """Cut out the part of a model between tensors, and verify it in its place in the model."""

    name = "extract"

    start: tuple[str, ...] = option(
        "a tensor that the part reads, or a table: '{ producer = \"relu\" }'; repeatable; default: graph inputs",
        default=(),
        name="from_",
        metavar="TENSOR",
    )
    end: tuple[str, ...] = option(
        "a tensor that the part gives, or a table; repeatable; default: graph outputs",
        default=(),
        name="to",
        metavar="TENSOR",
    )

    def steps(self) -> Iterable[Step]:
        yield step("extract", **{"from": selectors(self.start), "to": selectors(self.end)})
