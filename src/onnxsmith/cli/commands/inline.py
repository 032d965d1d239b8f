"""`onnxsmith inline MODEL -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import option
from onnxsmith.cli.commands._edit_options import Editing, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Inline(Editing):
    """Replace the calls of local functions by their bodies."""

    name = "inline"

    function: str = option("only this function, domain::Name", default="", metavar="NAME")

    def steps(self) -> Iterable[Step]:
        yield step("inline", function=self.function)
