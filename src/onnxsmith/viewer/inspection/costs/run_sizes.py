"""Finds sizes that inference does not know: runs the model, and reads the shapes of the tensors that have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.structure.signature import is_symbol, signature
from onnxsmith.graph.surgery.exposing import Exposing

_MOST_BYTES = 1 << 30
"""Limits the bytes of weights of a model that is run for its sizes. A choice: the run holds them in memory."""
_SEEDS = (0, 1)
"""Two inputs with other elements: a size that differs between them follows from the elements, not from the sizes."""


@dataclass(frozen=True)
class Found:
    """The sizes of symbols that are no dimensions of inputs, and the shapes of tensors, by name, of which inference
    knows no shape."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def run_sizes(model: ir.Model, given: Mapping[str, int]) -> Found:
    """Returns what inference does not know, as two runs of the model at the `given` sizes of the inputs give it. A size
    that depends on elements of the inputs is left out, and so are all if the model cannot be run here. `model` has
    inferred shapes."""
    interface = signature(model)
    inputs = {dim for port in interface.inputs for dim in port.shape or () if isinstance(dim, str)}
    places: dict[str, tuple[str, int]] = {}
    shapeless: list[str] = []
    for node in model.graph:
        for value in node.outputs:
            if not value.name or isinstance(value.type, ir.SequenceType | ir.OptionalType):
                continue
            texts = [dim.value if isinstance(dim, ir.SymbolicDim) else str(dim) for dim in value.shape or ()]
            if value.shape is None or None in texts:
                shapeless.append(value.name)
            for axis, text in enumerate(texts):
                is_open = text and not text.isdigit() and is_symbol(text)
                if text and is_open and text not in inputs and text not in given:
                    places.setdefault(text, (value.name, axis))
    if not (places or shapeless) or _bytes(model) > _MOST_BYTES:
        return Found()
    from onnxsmith.verification.inputs.generate import Generator  # few models have such sizes
    from onnxsmith.verification.run import run

    try:
        exposed = Exposing(model).expose([*(name for name, _ in places.values()), *shapeless], sizes=True)
        generator = Generator.for_model(model).under(interface)
        wanted = {name: size for name, size in given.items() if name in inputs}
        found = []
        for seed in _SEEDS:
            feeds = generator.feed(wanted, seed=seed).values
            outputs = run(exposed.model, feeds).outputs
            found.append(
                {
                    name: tuple(int(one) for one in np.asarray(exposed.value(name, outputs, feeds)))
                    for name in exposed.outlets
                    if exposed.outlets[name].given == "output"
                }
            )
    except OnnxsmithError:
        return Found()
    first, second = found
    sizes = {
        dim: first[name][axis]
        for dim, (name, axis) in places.items()
        if name in first and first[name][axis] == second[name][axis]
    }
    shapes = {name: first[name] for name in shapeless if name in first and first[name] == second[name]}
    return Found(sizes, shapes)


def _bytes(model: ir.Model) -> int:
    return sum(one.const_value.nbytes for one in model.graph.initializers.values() if one.const_value is not None)
