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

    old: str = argument("the name now; for a node also a table, '{ gives = \"y\" }'", metavar="OLD")
    new: str = argument("the new name", metavar="NEW")
    kind: str = option("what OLD is: tensor, node or dim (a symbolic dimension)", default="tensor", metavar="KIND")

    def steps(self) -> Iterable[Step]:
        old = _table(self.old) if self.kind == "node" and self.old.lstrip().startswith("{") else self.old
        yield step("rename", **{self.kind: old}, to=self.new)


def _table(text: str) -> object:
    import tomllib

    from onnxsmith.problem import problem

    try:
        return tomllib.loads(f"selector = {text}")["selector"]
    except tomllib.TOMLDecodeError as error:
        raise problem(
            "edit/selector",
            f"{text!r} is no table",
            why=str(error),
            fix="""write it as in a patch file: '{ name = "relu", op = "Relu" }'""",
        ) from error
