"""`onnxsmith set-dim MODEL INPUT:AXIS=NAME… -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument
from onnxsmith.cli.commands._edit_options import Editing, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class SetDim(Editing):
    """Make dimensions of inputs symbolic, or fix them to a size."""

    name = "set-dim"

    dims: tuple[str, ...] = argument(
        'the dimensions: "x:0=batch,2=height" names them, x:0=1 or batch=1 gives a size', metavar="DIM"
    )

    def steps(self) -> Iterable[Step]:
        yield step("set_dim", dims=list(self.dims))
