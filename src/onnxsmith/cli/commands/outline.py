"""`onnxsmith outline MODEL DOMAIN::NAME --find PATTERN -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument, option
from onnxsmith.cli.commands._edit_options import Editing, selectors, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Outline(Editing):
    """Make a local function of nodes, and call it in their place; the inverse of `inline`."""

    name = "outline"

    function: str = argument("the name of the function, domain::Name", metavar="FUNCTION")
    node: tuple[str, ...] = option(
        "a node that becomes a part of the function, layer1/* for several, or a table: '{ op = \"If\" }'; repeatable",
        default=(),
        metavar="NODE",
    )
    find: str = option("a pattern; each match becomes a call", default="", metavar="PATTERN")
    module: str = option("a torch module, or several alike (layers.*); each becomes a call", default="", metavar="PATH")

    def steps(self) -> Iterable[Step]:
        yield step("outline", to=self.function, node=selectors(self.node), find=self.find, module=self.module)
