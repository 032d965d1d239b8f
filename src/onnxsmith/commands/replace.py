"""`onnxsmith replace MODEL FIND BY -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.commands._editing import Editing, step
from onnxsmith.options import argument, flag

if TYPE_CHECKING:
    from onnxsmith.editing.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Replace(Editing):
    """Replace every match of a pattern by other operators.

    A pattern is ONNX text with variables, "Mul(x, Sigmoid(x))", or a file with such text.
    """

    name = "replace"

    find: str = argument("the pattern to find: text, or a file", metavar="FIND")
    by: str = argument("the operators that take its place: text, or a file", metavar="BY")
    changes: bool = flag("the outputs change on purpose, so do not compare them")

    def steps(self) -> Iterable[Step]:
        yield step("replace", find=_text(self.find), by=_text(self.by), changes=self.changes)


def _text(given: str) -> str:
    """The text, or the content of the file of this name."""
    from pathlib import Path

    return Path(given).read_text(encoding="utf-8") if "(" not in given and Path(given).is_file() else given
