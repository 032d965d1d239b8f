"""Joins the ranges of sizes that an export is given: by `torch.export.Dim`, by `--dim`, and by a model's processor."""

from __future__ import annotations

from collections.abc import Mapping

from onnxsmith.base.problem import problem
from onnxsmith.base.words import pasted
from onnxsmith.exporter.inputs.module_program import Axes, Built, Limits
from onnxsmith.graph.shapes.dims import names_in
from onnxsmith.graph.structure import dim_ranges
from onnxsmith.graph.structure.dim_ranges import Range
from onnxsmith.verification.inputs.size_proposals import of_feed


def merged(limits: Limits, meant: Mapping[str, Range], given: dim_ranges.Asked, axes: Axes) -> Limits:
    """Returns the least and largest size of each dimension. A range of the user takes the place of the processor's, and
    narrows a `Dim`'s.

    Raises:
        OnnxsmithError: `input/size-range` if a range of the user has no size in common with the `Dim`'s.
    """
    named = {name for own in axes.values() for dim in own.values() for name in (dim, *names_in(dim))}
    found = {name: (one.least, one.most) for name, one in meant.items() if name in named}
    found |= limits
    for name, one in dim_ranges.read(given).items():
        if not isinstance(one, Range) or name not in named:
            continue
        own = Range(*limits.get(name, (0, None)))
        both = own.both(one)
        if both is None:
            raise problem(
                "input/size-range",
                f"the range {one} of {name!r} has no size in common with the range of its torch.export.Dim",
                why=f"the Dim has the range {own}",
                fix=f"--dim {pasted(name)}={own}",
            )
        found[name] = (both.least, both.most)
    return found


def refuse_example(given: dim_ranges.Asked, built: Built) -> None:
    """Refuses a range of the user that does not hold the example's size, because the example is compared too.

    Raises:
        OnnxsmithError: `input/size-range`.
    """
    sizes = of_feed(built.program.signature, built.example)
    for name, one in dim_ranges.read(given).items():
        size = sizes.get(name)
        if not isinstance(one, Range) or size is None or one.holds(size):
            continue
        wider = Range(min(one.least, size), None if one.most is None else max(one.most, size))
        raise problem(
            "input/size-range",
            f"{name!r} is {size} in the example, outside the range {one} from --dim",
            why="the export traces the module with the example, and compares the results on the example",
            fix=f"give an example whose size is in the range; or give a wider range: --dim {pasted(name)}={wider}",
        )
