"""Compares the declared shapes and dtypes of outputs with those that runs give, and corrects them in a model.

A runtime does not refuse a wrong shape: it computes another one, and a reader of the file believes the declaration.
onnxruntime refuses a file whose outputs have another dtype; other runtimes compute it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.report.parts.verification import Misdeclared, Verification
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.shapes.symbolic_inference import inferred_alone
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Port, Signature, is_symbol
from onnxsmith.runtimes._dtypes import name_of
from onnxsmith.verification.inputs.size_proposals import of_feed

_KEPT = 8
"""Limits the runs of one output that are kept as examples. A choice: they only have to tell sizes that change from
sizes that do not."""


class Declarations:
    """Collects the outputs whose declared shapes or dtypes the runs contradict."""

    def __init__(self, interface: Signature) -> None:
        self._interface = interface
        self._wrong: dict[str, Misdeclared] = {}

    def add(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Compares the shapes and dtypes of one run. A name that no input binds has the size at which the run first
        shows it."""
        sizes = of_feed(self._interface, inputs)
        bound = dict(sizes)
        for port in self._interface.outputs:
            value = outputs.get(port.name)
            if port.kind != "tensor" or not isinstance(value, np.ndarray):
                continue
            shape = tuple(int(size) for size in value.shape)
            axes = () if port.shape is None else _contradicted(port.shape, shape, bound)
            dtype = _dtype(value)
            is_other = dtype != port.dtype and port.dtype != "undefined"
            if axes is None or axes or is_other:
                self._note(port, Misdeclared("", "", axes, ((dict(sizes), shape),), dtype if is_other else ""))

    def _note(self, port: Port, seen: Misdeclared) -> None:
        """Adds what one run shows of an output."""
        before = self._wrong.get(port.name, Misdeclared(port.name, str(port), ()))
        both = None if seen.axes is None or before.axes is None else tuple(sorted({*before.axes, *seen.axes}))
        examples = (*before.examples, *seen.examples)[:_KEPT]
        self._wrong[port.name] = replace(before, axes=both, examples=examples, dtype=seen.dtype or before.dtype)

    def wrong(self) -> tuple[Misdeclared, ...]:
        """Returns the outputs whose declarations are wrong."""
        return tuple(self._wrong.values())


def _dtype(value: np.ndarray[Any, Any]) -> str:
    """Returns the ONNX name of an array's dtype."""
    return "string" if value.dtype.kind in "OUS" else name_of(value.dtype)


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
    return with_clauses(part, *clauses)


def with_clauses(part: Verification, *clauses: str) -> Verification:
    """Returns the part with clauses for the headline; empty ones are left out."""
    said = tuple(clause for clause in clauses if clause)
    return replace(part, untried=(*part.untried, *said), declared=(*part.declared, *said)) if said else part


def corrected(model: ir.Model, wrong: Sequence[Misdeclared]) -> list[str]:
    """Declares outputs as inference finds them, as far as the runs agree with it, and leaves other wrong sizes open. A
    dtype changes only if inference finds the dtype of the runs, because the runtime may be the one that errs. Removes
    the shapes of intermediate values, because they come from the same source and no run has compared them. Returns a
    clause on each output."""
    if not wrong:
        return []
    known = {value.name: value for value in inferred_alone(model).graph.outputs}
    values = {value.name: value for value in model.graph.outputs}
    said = []
    for one in wrong:
        value = values.get(one.name)
        if value is None:
            continue
        found = known.get(one.name)
        if value.shape is not None and (one.axes is None or one.axes):
            if not _has_one_rank(one):
                said.append(
                    f"{contradiction(one)}; the declared shape was not changed, because runs give different "
                    "numbers of axes"
                )
                continue
            value.shape = _right(one, value.shape, None if found is None else found.shape)
        if one.dtype and found is not None and found.dtype == ir.DataType[one.dtype.upper()]:
            value.type = ir.TensorType(found.dtype)
        said.append(_clause(one, value))
    if any(one.axes is None or one.axes for one in wrong):
        for node in walk.all_nodes(model):
            for value in node.outputs:
                if not value.is_graph_output():
                    value.shape = None
    return said


def contradiction(one: Misdeclared) -> str:
    """Says what the file declared, and what the first of the runs gave."""
    at, shape = one.examples[0]
    dims_said = one.declared.partition("[")[2]
    named = [name for name in at if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", dims_said)]
    sizes_of_run = ", ".join(f"{name} = {at[name]}" for name in named)
    was = f"{one.name} was declared as {one.declared}, but is {one.dtype}{list(shape)}"
    return f"{was} at {sizes_of_run}" if sizes_of_run else was


def _clause(one: Misdeclared, value: ir.Value) -> str:
    """Says what the file declared, what the runs gave, and what the file declares now."""
    was = contradiction(one)
    now = value.dtype.name.lower() if one.dtype and value.dtype is not None else ""
    if one.dtype and now != one.dtype:
        return f"{was}; the declared dtype {now} was not changed, because shape inference does not find {one.dtype}"
    sizes = dims.written(value.shape) if value.shape is not None else None
    said = f"[{','.join('?' if dim is None else str(dim) for dim in sizes)}]" if sizes is not None else ""
    return f"{was}; now declared as {now}{said}"


def _has_one_rank(one: Misdeclared) -> bool:
    """Whether the runs agree about the number of axes. A file has to declare one: the specification wants a shape."""
    return len({len(shape) for _, shape in one.examples}) == 1


def _right(one: Misdeclared, declared: ir.Shape, known: ir.Shape | None) -> ir.Shape:
    _, first = one.examples[0]
    found = dims.written(known) if known is not None and len(known) == len(first) else (None,) * len(first)
    kept = dims.written(declared) if one.axes is not None else (None,) * len(first)
    axes = range(len(first)) if one.axes is None else one.axes
    sizes = {axis: found[axis] if _holds(found[axis], axis, one) else _symbol(axis, one) for axis in axes}
    return ir.Shape([sizes.get(axis, dim) for axis, dim in enumerate(kept)])


def _holds(dim: int | str | None, axis: int, one: Misdeclared) -> bool:
    return all(dims.evaluate(dim, at) == shape[axis] for at, shape in one.examples)


def _symbol(axis: int, one: Misdeclared) -> str | None:
    """Returns the symbol whose size an axis has in each run, if it is the only one and had several sizes; else None."""
    names = [name for name in one.examples[0][0] if all(at.get(name) == shape[axis] for at, shape in one.examples)]
    varied = len({shape[axis] for _, shape in one.examples}) > 1
    return names[0] if varied and len(names) == 1 else None
