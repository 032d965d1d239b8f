"""Compares the declared shapes of outputs with the shapes that runs give, and corrects them in a model.

A runtime does not refuse a wrong shape: it computes another one, and a reader of the file believes the declaration.
Dtypes are not compared here, because runtimes refuse a file whose outputs have another dtype.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.report.parts.verification import Misdeclared, Verification
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.shapes.symbolic_inference import inferred_outputs
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Port, Signature, is_symbol
from onnxsmith.verification.inputs.size_proposals import of_feed

_KEPT = 8
"""Limits the runs of one output that are kept as examples. A choice: they only have to tell sizes that change from
sizes that do not."""


class Declarations:
    """Collects the outputs whose declared shapes the runs contradict."""

    def __init__(self, interface: Signature) -> None:
        self._interface = interface
        self._wrong: dict[str, Misdeclared] = {}

    def add(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Compares the shapes of one run. A name that no input binds has the size at which the run first shows it."""
        sizes = of_feed(self._interface, inputs)
        bound = dict(sizes)
        for port in self._interface.outputs:
            value = outputs.get(port.name)
            if port.kind != "tensor" or port.shape is None or not isinstance(value, np.ndarray):
                continue
            shape = tuple(int(size) for size in value.shape)
            axes = _contradicted(port.shape, shape, bound)
            if axes is None or axes:
                self._note(port, shape, axes, sizes)

    def _note(self, port: Port, shape: tuple[int, ...], axes: tuple[int, ...] | None, sizes: Mapping[str, int]) -> None:
        before = self._wrong.get(port.name, Misdeclared(port.name, str(port), ()))
        both = None if axes is None or before.axes is None else tuple(sorted({*before.axes, *axes}))
        examples = (*before.examples, (dict(sizes), shape))[:_KEPT]
        self._wrong[port.name] = replace(before, axes=both, examples=examples)

    def wrong(self) -> tuple[Misdeclared, ...]:
        """Returns the outputs whose declarations are wrong."""
        return tuple(self._wrong.values())


def _contradicted(
    declared: Sequence[int | str], shape: tuple[int, ...], bound: dict[str, int]
) -> tuple[int, ...] | None:
    """Returns the axes with another size than declared; None if the rank differs. Adds names without a size to
    `bound`."""
    if len(declared) != len(shape):
        return None
    wrong = []
    for axis, (dim, size) in enumerate(zip(declared, shape, strict=True)):
        expected = dims.evaluate(dim, bound)
        if expected is None and isinstance(dim, str) and is_symbol(dim):
            bound[dim] = size
        elif expected is not None and expected != size:
            wrong.append(axis)
    return tuple(wrong)


def settled(part: Verification, *models: ir.Model) -> Verification:
    """Corrects the outputs that the runs of a verification contradict, in each of the models. Returns the part with a
    clause for the headline on each; the same part if there are none, and then no model is changed."""
    clauses: dict[str, None] = {}
    for model in models:
        clauses |= dict.fromkeys(corrected(model, part.misdeclared))
    return replace(part, untried=(*part.untried, *clauses)) if clauses else part


def corrected(model: ir.Model, wrong: Sequence[Misdeclared]) -> list[str]:
    """Declares outputs as inference finds them, as far as the runs agree with it, and leaves other wrong sizes open.
    Removes the shapes of intermediate values, because they come from the same source and no run has compared them.
    Returns a clause on each output."""
    if not wrong:
        return []
    known = inferred_outputs(model)
    values = {value.name: value for value in model.graph.outputs}
    said = []
    for one in wrong:
        value = values.get(one.name)
        if value is None or value.shape is None:
            continue
        value.shape = _right(one, value.shape, known.get(one.name))
        _, shape = one.examples[0]
        said.append(f"{one.name} was declared as {one.declared} and is {list(shape)}: declared as {value.shape} now")
    if said:
        for node in walk.all_nodes(model):
            for value in node.outputs:
                if not value.is_graph_output():
                    value.shape = None
    return said


def _right(one: Misdeclared, declared: ir.Shape, known: ir.Shape | None) -> ir.Shape:
    _, first = one.examples[0]
    found = dims.written(known) if known is not None and len(known) == len(first) else (None,) * len(first)
    kept = dims.written(declared) if one.axes is not None else (None,) * len(first)
    axes = range(len(first)) if one.axes is None else one.axes
    sizes = {
        axis: found[axis] if all(dims.evaluate(found[axis], at) == shape[axis] for at, shape in one.examples) else None
        for axis in axes
    }
    return ir.Shape([sizes.get(axis, dim) for axis, dim in enumerate(kept)])
