"""Finds sizes that inference does not know: runs the model, and reads the shapes of the tensors that have them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery.exposing import Exposing

_MOST_BYTES = 1 << 30
"""Limits the bytes of weights of a model that is run for its sizes. A choice: the run holds them in memory."""
_SEEDS = (0, 1)
"""Two inputs with other elements: a size that differs between them follows from the elements, not from the sizes."""


def run_sizes(model: ir.Model, given: Mapping[str, int]) -> dict[str, int]:
    """Returns the sizes of symbols that are no dimensions of inputs, as two runs of the model at the `given` sizes of
    the inputs give them. A symbol whose size depends on elements of the inputs is left out, and so are all if the model
    cannot be run here. `model` has inferred shapes."""
    interface = signature(model)
    inputs = {dim for port in interface.inputs for dim in port.shape or () if isinstance(dim, str)}
    places: dict[str, tuple[str, int]] = {}
    for node in model.graph:
        for value in node.outputs:
            for axis, dim in enumerate(value.shape or ()):
                text = dim.value if isinstance(dim, ir.SymbolicDim) else None
                if text and value.name and text.isidentifier() and text not in inputs and text not in given:
                    places.setdefault(text, (value.name, axis))
    if not places or _bytes(model) > _MOST_BYTES:
        return {}
    from onnxsmith.verification.inputs.generate import Generator  # few models have such sizes
    from onnxsmith.verification.run import run

    try:
        exposed = Exposing(model).expose([name for name, _ in places.values()], sizes=True)
        generator = Generator.for_model(model).under(interface)
        wanted = {name: size for name, size in given.items() if name in inputs}
        found = []
        for seed in _SEEDS:
            feeds = generator.feed(wanted, seed=seed).values
            shapes = run(exposed.model, feeds).outputs
            found.append(
                {
                    dim: int(np.asarray(exposed.value(name, shapes, feeds))[axis])
                    for dim, (name, axis) in places.items()
                    if name in exposed.outlets
                }
            )
    except OnnxsmithError:
        return {}
    return {dim: size for dim, size in found[0].items() if found[1].get(dim) == size}


def _bytes(model: ir.Model) -> int:
    return sum(one.const_value.nbytes for one in model.graph.initializers.values() if one.const_value is not None)
