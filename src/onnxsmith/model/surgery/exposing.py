"""Copies of a model that give tensors from its middle as outputs: any of its graph, its branches and its bodies.

What a branch or body computes, it computes as often as it runs. `nested_outputs.py` brings it out as a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx_ir as ir

from onnxsmith.memory import no_collection
from onnxsmith.model.files.sharing import share_weights
from onnxsmith.model.graph import walk
from onnxsmith.model.graph.copying import cloned
from onnxsmith.model.graph.fresh import Names
from onnxsmith.model.graph.signature import Dim
from onnxsmith.model.graph.tensor_paths import Place, find, places
from onnxsmith.model.shapes import symbols
from onnxsmith.model.shapes.declared_dims import agree
from onnxsmith.model.shapes.inference import Inference
from onnxsmith.model.surgery import nested_outputs, nested_plan, opset
from onnxsmith.model.surgery.inlining import inlined
from onnxsmith.model.surgery.nested_plan import Carriage

Which = Iterable[str] | Callable[[Place], bool]
"""Names of tensors, or what chooses among the computed ones."""


@dataclass(frozen=True)
class Outlet:
    """One asked tensor, and where an exposed model gives it.

    `given` says where its value is: `output` of the exposed model under the name `output`; `feed`, it is an input of
    the graph; `constant`, an initializer. `path` holds the bodies that it lies in, the outermost first; then its value
    is a list, one array for each time that it was computed, in order. Of what a Scan or an older Loop stacks, `axes`
    leading axes of each array count these times. `dtype` (ONNX's name), `kind` and `shape` are those of one value,
    symbols where sizes are not fixed. `widened` is the dtype in which it comes out where lists cannot hold its own.
    """

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
        """Whether the value is a list: it is computed in a branch or body."""
        return bool(self.path) and self.given == "output"


@dataclass(frozen=True)
class Exposed:
    """A model and what its further outputs are. `refused` says of each asked tensor that cannot be given, why."""

    model: ir.Model
    outlets: Mapping[str, Outlet]
    refused: Mapping[str, str]
    constants: Mapping[str, ir.TensorProtocol]

    def value(self, name: str, outputs: Mapping[str, Any], feeds: Mapping[str, Any]) -> Any:
        """The tensor's value, from what the exposed model gave for `feeds`: an array, a sequence as a list of arrays,
        None for an absent optional; of a tensor in a body a list of arrays, empty if it was never computed."""
        outlet = self.outlets[name]
        if outlet.given == "constant" or (outlet.given == "feed" and name not in feeds):
            return self.constants[name].numpy() if name in self.constants else None
        if outlet.given == "feed":
            return feeds[name]
        value = outputs[outlet.output]
        return _listed(outlet, value) if outlet.repeated else value


def expose(model: ir.Model, names: Which) -> Exposed:
    """A copy of `model`, weights shared, whose outputs are the model's and then the asked tensors.

    A name is a value's own; where tensors in different bodies share one it means all of them, and `body/…/name` one.
    Names of tensors inside functions are `call/name`. See `Exposing` for more than one copy.

    Raises:
        OnnxsmithError: `model/unknown-tensor`, with the names that come near.
    """
    exposing = Exposing(model)
    return exposing.expose(exposing.choose(names))


class Exposing:
    """Makes exposed copies of one model. Its shapes are inferred once.

    `places` are its tensors by full name, `outlets` what is known of each. `trouble` says why calls of functions were
    not taken apart, if so; then the tensors inside them are not among these.
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
        """The full names of what was asked for. A function chooses among what nodes compute.

        Raises:
            OnnxsmithError: `model/unknown-tensor`.
        """
        if callable(names):
            return [place.name for place in self.places.values() if place.kind == "node" and names(place)]
        return [place.name for place in find(self.places.values(), list(names))]

    def refusals(self, names: Iterable[str]) -> dict[str, str]:
        """Of these full names, those that cannot be given, and why."""
        plans = {name: self._plan(name, sizes=False) for name in names}
        return {name: plan for name, plan in plans.items() if isinstance(plan, str)}

    def expose(self, names: Iterable[str], *, sizes: bool = False) -> Exposed:
        """A copy that gives the tensors of these full names; with `sizes` their shapes in their place, as int64."""
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
        for place, given in nested_outputs.give_out(copy, wanted, free, opset.of(copy)).items():
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
        """Makes further copies refer to one data file, as `sharing.share_weights` says."""
        share_weights(self._model, data)

    def _plan(self, name: str, *, sizes: bool) -> Carriage | str | None:
        """How it comes out, why it does not, or None for what is known without a run."""
        if self.outlets[name].given != "output":
            return None
        return nested_plan.plan(self.places[name], self._known[name], opset.of(self._model), self._open, sizes=sizes)


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
        shape=None if shape is None else tuple(dim if isinstance(dim, int) else dim.value for dim in shape),
        kind=nested_plan.kind_of(known.type),
        operator="" if node is None else walk.op_name(node),
        node="" if node is None else walk.node_label(node),
    )


def _declare(value: ir.Value, known: ir.Value, axes: int) -> None:
    """Says the type of a new output, and its sizes as far as they are numbers. What the file declares stays if it can
    be true; symbols are left out because a runtime may take values whose symbols are equal to be of one size."""
    if value.type is None:
        value.type = known.type
    if known.shape is None or not isinstance(value.type, ir.TensorType):
        return
    shape = ir.Shape([*[None] * axes, *(dim if isinstance(dim, int) else None for dim in known.shape)])
    if value.shape is None or not agree(value.shape, shape):
        value.shape = shape


def _listed(outlet: Outlet, value: Any) -> list[Any]:
    """One array for each time that the tensor was computed."""
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
