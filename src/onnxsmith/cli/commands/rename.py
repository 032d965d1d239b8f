"""`onnxsmith rename MODEL OLD NEW -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument, option
from onnxsmith.cli.commands._edit_options import Editing, selector, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Rename(Editing):
    """Rename a tensor, a graph input or output, a node, or a symbolic dimension."""

    name = "rename"

    old: str = argument(
        "the present name, or a table: '{ gives = \"y\" }' for a node, '{ producer = \"relu\" }' for a tensor",
        metavar="OLD",
    )
    new: str = argument("the new name", metavar="NEW")
    kind: str = option("what OLD is: tensor, node or dim (a symbolic dimension)", default="tensor", metavar="KIND")

    def steps(self) -> Iterable[Step]:
        old = selector(self.old) if self.kind != "dim" else self.old
        yield step("rename", **{self.kind: old}, to=self.new)
