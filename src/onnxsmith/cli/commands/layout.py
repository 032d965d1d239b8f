"""`onnxsmith layout MODEL --input x=NHWC -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import option
from onnxsmith.cli.commands._edit_options import Editing, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Layout(Editing):
    """Change the layout of inputs and outputs, from NCHW to NHWC or back, or to any order of the axes."""

    name = "layout"

    input: tuple[str, ...] = option(
        "the new layout of a graph input, x=NHWC (from NCHW), x=NCHW (from NHWC), x=0,2,3,1 (axes); repeatable",
        default=(),
        metavar="NAME=LAYOUT",
    )
    graph_output: tuple[str, ...] = option(
        "the new layout of a graph output; repeatable", default=(), metavar="NAME=LAYOUT"
    )
    sample: tuple[str, ...] = option(
        "additional inputs to verify on, in the layout of MODEL: inputs.npz, x=array.npy; repeatable",
        default=(),
        metavar="SPEC",
    )

    def samples(self) -> tuple[str, ...]:
        return self.sample

    def steps(self) -> Iterable[Step]:
        from onnxsmith.base.problem import problem

        asked = [("input", one) for one in self.input] + [("output", one) for one in self.graph_output]
        if not asked:
            raise problem("edit/layout", "no layout was given", fix="add --input NAME=NHWC")
        for port, text in asked:
            name, _, layout = text.rpartition("=")
            if not name or not layout:
                option = "--input" if port == "input" else "--graph-output"
                raise problem("edit/layout", f"{text!r} is no layout of a port", fix=f"write {option} x=NHWC")
            yield step("layout", **{port: name, "to": layout})
