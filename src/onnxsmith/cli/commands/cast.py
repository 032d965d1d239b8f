"""`onnxsmith cast MODEL DTYPE -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument, option
from onnxsmith.cli.commands._edit_options import Editing, selectors, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Cast(Editing):
    """Store weights in a narrower float dtype, with a Cast behind each."""

    name = "cast"

    to: str = argument("bfloat16, float16, float8e4m3fn, …", metavar="DTYPE")
    tensor: tuple[str, ...] = option(
        "an initializer, or a name with *; repeatable; default: all float ones with two dimensions or more",
        default=(),
        metavar="TENSOR",
    )

    def steps(self) -> Iterable[Step]:
        yield step("cast", to=self.to, tensor=selectors(self.tensor))
