"""`onnxsmith rename MODEL OLD NEW -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.commands._editing import Editing, step
from onnxsmith.options import argument, option

if TYPE_CHECKING:
    from onnxsmith.editing.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Rename(Editing):
    """Rename a tensor, a graph input or output, a node, or a symbolic dimension."""

    name = "rename"

    old: str = argument("the name now", metavar="OLD")
    new: str = argument("the new name", metavar="NEW")
    kind: str = option("what OLD is: tensor, node or dim (a symbolic dimension)", default="tensor", metavar="KIND")

    def steps(self) -> Iterable[Step]:
        yield step("rename", **{self.kind: self.old}, to=self.new)
