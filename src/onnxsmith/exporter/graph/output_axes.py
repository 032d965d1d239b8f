"""Names the axes of a graph's outputs: by the axes of its inputs where they follow from them, else as the user does."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.graph.shapes import dims
from onnxsmith.graph.shapes.symbolic_inference import inferred_outputs
from onnxsmith.graph.surgery.names import rename_symbols

Dim = int | str | None


def name(model: ir.Model, asked: Mapping[str, Mapping[int, str]]) -> None:
    """Replaces the names that an exporter made up for output axes, such as `Reshape20_dim_1`. An axis whose size
    inference finds gets this size, or the expression of the inputs' axes. Another axis gets the name that the user
    `asked` for (output, axis, name), unless an input has that name: the sizes may differ."""
    known = {dim for value in model.graph.inputs if value.shape is not None for dim in dims.written(value.shape)}
    inputs = {one for dim in known if isinstance(dim, str) for one in (dim, *dims.names_in(dim))}
    shapes = {value: dims.written(value.shape) for value in model.graph.outputs if value.shape is not None}
    if not any(_is_made_up(dim, inputs) for shape in shapes.values() for dim in shape):
        return
    found = {output: dims.written(shape) for output, shape in inferred_outputs(model).items()}
    renamed: dict[str, str] = {}
    for value, shape in shapes.items():
        better = found.get(value.name or "")
        own: list[Dim] = list(shape)
        for axis, dim in enumerate(shape):
            if not _is_made_up(dim, inputs):
                continue
            if better is not None and len(better) == len(shape) and not _is_made_up(better[axis], inputs):
                own[axis] = better[axis]
            elif (wanted := asked.get(value.name or "", {}).get(axis, "")) and wanted not in inputs:
                if isinstance(dim, str):
                    renamed.setdefault(dim, wanted)
                else:
                    own[axis] = wanted
        value.shape = ir.Shape(own)
    rename_symbols(model, renamed)


def _is_made_up(dim: Dim, inputs: set[str]) -> bool:
    """Whether a dimension is no size, and no name or expression of the inputs' dimensions."""
    if dim is None:
        return True
    if isinstance(dim, int) or dim in inputs:
        return False
    names = dims.names_in(dim)
    return not names or not inputs.issuperset(names)
