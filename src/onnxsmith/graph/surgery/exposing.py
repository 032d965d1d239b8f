"""Makes copies of a model whose intermediate tensors are outputs: tensors of the main graph, of branches and of bodies.

A branch or body computes a tensor each time it runs. `nested_outputs.py` brings these values out as a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx_ir as ir

from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.graph.files.sharing import share_weights
from onnxsmith.graph.shapes import symbols
from onnxsmith.graph.shapes.declared_dims import agree
from onnxsmith.graph.shapes.dims import written
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import Dim
from onnxsmith.graph.structure.tensor_paths import Place, find, places
from onnxsmith.graph.surgery import nested_outputs, nested_plan, opset_conversion
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.graph.surgery.nested_plan import Carriage

Which = Iterable[str] | Callable[[Place], bool]
"""Holds names of tensors, or is a function that chooses among the computed tensors."""


@dataclass(frozen=True)
class Outlet:
    """One requested tensor, and where an exposed model gives it.

    `given` says where its value is: in the output named `output` of the exposed model, in an input of the graph
    (`feed`), or in an initializer (`constant`). `path` are the bodies around the tensor, the outermost first. Inside a
    body the value is a list with one array for each computation of the tensor, in order. A Scan, or a Loop of an old
    opset, stacks these arrays; the first `axes` axes then count them. `dtype` (ONNX's name), `kind` and `shape`
    describe a single value, with symbols for sizes that are not fixed. `widened` is the dtype of the output if lists
    cannot hold `dtype`."""

    name: str
    given: Literal["output", "feed", "constant"]
    output: str
    path: tuple[str, ...]
    dtype: str
    shape: tuple[Dim | None, ...] | None
    kind: str = "tensor"
    axes: int = 0
    widened: str = ""
    operator: str = ""
    node: str = ""

    @property
    def repeated(self) -> bool:
        """Whether the value is a list, because a branch or body computes it."""
        return bool(self.path) and self.given == "output"


@dataclass(frozen=True)
class Exposed:
    """A model with additional outputs. `refused` has the reason for each requested tensor that cannot be given."""

    model: ir.Model
    outlets: Mapping[str, Outlet]
    refused: Mapping[str, str]
    constants: Mapping[str, ir.TensorProtocol]

    def value(self, name: str, outputs: Mapping[str, Any], feeds: Mapping[str, Any]) -> Any:
        """Returns the tensor's value from the `outputs` of the exposed model for `feeds`: an array, a list of arrays
        for a sequence, None for an absent optional. For a tensor in a body: a list of arrays, empty if it was never
        computed."""
        outlet = self.outlets[name]
        if outlet.given == "constant" or (outlet.given == "feed" and name not in feeds):
            return self.constants[name].numpy() if name in self.constants else None
        if outlet.given == "feed":
            return feeds[name]
        value = outputs[outlet.output]
        return _listed(outlet, value) if outlet.repeated else value


def expose(model: ir.Model, names: Which) -> Exposed:
    """Makes a copy of `model`, weights shared, whose outputs are the model's outputs and then the requested tensors.

    A bare name that several bodies use means all these tensors; `body/…/name` means one of them. Tensors inside
    functions are named `call/name`. Use `Exposing` to make several copies.

    Raises:
        OnnxsmithError: `model/unknown-tensor`, with similar names.
    """
    exposing = Exposing(model)
    return exposing.expose(exposing.choose(names))


class Exposing:
    """Makes exposed copies of one model, whose shapes are inferred only once.

    `places` are its tensors by full name. `outlets` tells how each can be given. If the functions could not be inlined,
    `trouble` says why, and the tensors inside functions are not among the places.
    """

    def __init__(self, model: ir.Model) -> None:
        self._model, self.trouble = inlined(model)
        shaped = cloned(self._model)
        Inference(shaped)
        mine = places(self._model)
        self.places = {place.name: place for place in mine}
        self._known = {a.name: b.value for a, b in zip(mine, places(shaped), strict=True)}
        for place in mine:
            if self._known[place.name].type is None:
                self._known[place.name].type = place.value.type
        self.outlets = {place.name: _outlet(place, self._known[place.name]) for place in mine}
        dims = (dim.value for value in shaped.graph.inputs for dim in value.shape or () if not isinstance(dim, int))
        self._open = frozenset(name for dim in dims if dim for name in symbols.names(dim))

    def choose(self, names: Which) -> list[str]:
        """Returns the full names of the requested tensors. A function in `names` chooses among the tensors that nodes
        compute.

        Raises:
            OnnxsmithError: `model/unknown-tensor`.
        """
        if callable(names):
            return [place.name for place in self.places.values() if place.kind == "node" and names(place)]
        return [place.name for place in find(self.places.values(), list(names))]

    def refusals(self, names: Iterable[str]) -> dict[str, str]:
        """Returns the names of the tensors that cannot be given, with the reasons."""
        plans = {name: self._plan(name, sizes=False) for name in names}
        return {name: plan for name, plan in plans.items() if isinstance(plan, str)}

    def expose(self, names: Iterable[str], *, sizes: bool = False) -> Exposed:
        """Makes a copy with these tensors as outputs. With `sizes`, the outputs are their shapes, as int64 tensors."""
        with no_collection():
            return self._exposed(list(dict.fromkeys(names)), sizes)

    def _exposed(self, asked: list[str], sizes: bool) -> Exposed:
        plans = {name: self._plan(name, sizes=sizes) for name in asked}
        refused = {name: plan for name, plan in plans.items() if isinstance(plan, str)}
        copy = cloned(self._model)
        own = {place.name: place for place in places(copy)}
        wanted = {own[name]: plan for name, plan in plans.items() if isinstance(plan, Carriage)}
        outputs = set(copy.graph.outputs)
        free = Names(copy)
        outlets = {name: self.outlets[name] for name in asked if name not in refused}
        for place, given in nested_outputs.give_out(copy, wanted, free, opset_conversion.of(copy)).items():
            value, plan = given.value, wanted[place]
            if place.bodies or sizes:
                value.name = free.free(place.name)
            if value not in outputs:
                copy.graph.outputs.append(value)
                if not sizes:
                    _declare(value, self._known[place.name], given.axes)
            widened = plan.dtype.name.lower() if plan.widened and plan.dtype is not None else ""
            outlets[place.name] = replace(
                outlets[place.name], output=value.name or "", axes=given.axes, widened=widened
            )
        constants = {name: tensor for name in outlets if (tensor := self.places[name].constant()) is not None}
        return Exposed(copy, outlets, refused, constants)

    def share_weights(self, data: Path) -> None:
        """Makes later copies refer to one data file; see `sharing.share_weights`."""
        share_weights(self._model, data)

    def _plan(self, name: str, *, sizes: bool) -> Carriage | str | None:
        """Returns how to bring the tensor out, or the reason why this is impossible, or None for a value that is known
        without a run."""
        if self.outlets[name].given != "output":
            return None
        return nested_plan.plan(
            self.places[name], self._known[name], opset_conversion.of(self._model), self._open, sizes=sizes
        )


def _outlet(place: Place, known: ir.Value) -> Outlet:
    given: Literal["output", "feed", "constant"] = "output"
    if place.kind in ("input", "constant"):
        given = "feed" if place.kind == "input" else "constant"
    shape, node = known.shape, place.value.producer()
    return Outlet(
        name=place.name,
        given=given,
        output="",
        path=place.path,
        dtype="undefined" if known.dtype is None else known.dtype.name.lower(),
        shape=None if shape is None else written(shape),
        kind=nested_plan.kind_of(known.type),
        operator="" if node is None else walk.op_name(node),
        node="" if node is None else walk.node_label(node),
    )


def _declare(value: ir.Value, known: ir.Value, axes: int) -> None:
    """Declares the type of a new output, and those of its sizes that are numbers. A declaration in the file stays
    unless it contradicts them. Symbols are left out, because a runtime may assume that equal symbols mean equal
    sizes."""
    if value.type is None:
        value.type = known.type
    if known.shape is None or not isinstance(value.type, ir.TensorType):
        return
    shape = ir.Shape([*[None] * axes, *(dim if isinstance(dim, int) else None for dim in known.shape)])
    if value.shape is None or not agree(value.shape, shape):
        value.shape = shape


def _listed(outlet: Outlet, value: Any) -> list[Any]:
    """Returns a list with one array for each computation of the tensor."""
    if isinstance(value, list) and outlet.axes:
        found = [item for stack in value for item in _unstacked(stack, outlet.axes)]
    else:
        found = list(value) if isinstance(value, list) else _unstacked(np.asarray(value), outlet.axes)
    if not outlet.widened:
        return found
    own = ir.DataType[outlet.dtype.upper()].numpy()
    return [np.asarray(item).astype(own) for item in found]


def _unstacked(stack: Any, axes: int) -> list[Any]:
    counted = stack.shape[:axes]
    return list(stack.reshape(math.prod(counted), *stack.shape[axes:]))
