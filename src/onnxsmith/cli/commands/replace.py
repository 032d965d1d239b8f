"""`onnxsmith replace MODEL FIND BY -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument, flag, option
from onnxsmith.cli.commands._edit_options import Editing, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Replace(Editing):
    """Replace every match of a pattern by other operators.

    A pattern is ONNX text with variables, "Mul(x, Sigmoid(x))", or a file with such text. Without BY, FIND is a TOML
    file with [[replace]] tables.
    """

    name = "replace"

    find: str = argument("the pattern to find: text, or a file; or a TOML file of replacements", metavar="FIND")
    by: str = argument("the operators that take its place: text, or a file", metavar="BY", default="")
    count: int = option("the number of matches that there must be; default: any number", default=0, metavar="N")
    changes: bool = flag("the outputs change on purpose, so do not compare them")

    def steps(self) -> Iterable[Step]:
        from onnxsmith.base.problem import problem
        from onnxsmith.editor import patch

        if self.by:
            count = self.count or "all"
            return [step("replace", find=_text(self.find), by=_text(self.by), count=count, changes=self.changes)]
        if not self.find.endswith(".toml"):
            raise problem(
                "edit/no-replacement",
                "no replacement was given",
                where=self.find,
                fix="add the operators that take the place of the pattern, or give a .toml file of [[replace]] tables",
            )
        if self.count or self.changes:
            raise problem(
                "edit/no-replacement",
                "--count and --changes go with one pattern and its replacement",
                where=self.find,
                fix="write count = 2, changes = true in the tables of the file",
            )
        return patch.read(self.find)


def _text(given: str) -> str:
    """Returns the text, or the content of the file of this name."""
    from pathlib import Path

    return Path(given).read_text(encoding="utf-8") if "(" not in given and Path(given).is_file() else given
