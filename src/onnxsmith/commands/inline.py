"""`onnxsmith inline MODEL -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.commands._editing import Editing, step
from onnxsmith.options import option

if TYPE_CHECKING:
    from onnxsmith.editing.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Inline(Editing):
    """Replace the calls of local functions by their bodies."""

    name = "inline"

    function: str = option("only this function, domain::Name", default="", metavar="NAME")

    def steps(self) -> Iterable[Step]:
        yield step("inline", function=self.function)
