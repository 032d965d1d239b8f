"""Makes an ONNX model a side of a comparison by layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery.exposing import Exposing
from onnxsmith.graph.surgery.float64_reference import doubled
from onnxsmith.graph.surgery.graph_cuts import Cut, cut
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.graph.surgery.taken_branches import choices, take
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Array, Feeds, Options, Preparer, Session, Value
from onnxsmith.verification.by_layer.loop_divergence import Inner
from onnxsmith.verification.by_layer.side_outline import Outline, Step, Type, kind_of
from onnxsmith.verification.by_layer.tap import Tap, Values
from onnxsmith.verification.inputs.shapes import size_of
from onnxsmith.verification.inputs.size_proposals import Sizes, of_feed
from onnxsmith.verification.rounding import Rounding, quantises, roundings
from onnxsmith.verification.rounding_terms import MOVING
from onnxsmith.verification.value_comparison import is_float


class OnnxTap(Tap):
    """Gives access to the tensors of the main graph, with functions inlined, and of the branches that `feeds` take.
    Tensors inside a loop body count as part of the loop's node. One session returns all tensors of a request. The
    session is kept until a request for other tensors. The tap closes `preparer`. If `is_inferred`, the model's shapes
    are known, and are inferred again only if its graph changes."""

    def __init__(
        self,
        model: ir.Model,
        preparer: Preparer,
        options: Options,
        label: str,
        feeds: Feeds | None = None,
        *,
        is_inferred: bool = False,
    ) -> None:
        self.label = label
        self._preparer, self._options = preparer, options
        flat, said = inlined(model)
        self.notes = (said,) if said else ()
        if feeds is not None:
            self.notes += self._follow(flat, feeds)
        known = is_inferred and not model.functions and not self.notes
        self.model = flat if known else inferred(flat)[0]
        self.signature = signature(self.model)
        self.quantises = quantises(self.model)
        self.outline = _outline(self.model)
        self._prepared: tuple[Any, Session, dict[str, str]] | None = None

    def _follow(self, model: ir.Model, feeds: Feeds) -> tuple[str, ...]:
        """Inlines the branches that the input takes, also branches inside other branches, one level at a time."""
        count = 0
        for _ in range(_LEVELS):
            found = choices(model)
            asked = [value.name or "" for value in found.values() if value.producer() is not None]
            values: dict[str, Value] = dict(feeds)
            if asked:
                made = cut(model, (), dict.fromkeys(asked))
                session = self._preparer.prepare(made.model, self._options)
                own = {port.name for port in session.signature.inputs}
                values |= session.run({name: value for name, value in feeds.items() if name in own})
            taken = {node: _truth(value, values) for node, value in found.items()}
            known = {node: truth for node, truth in taken.items() if truth is not None}
            if not known:
                break
            take(model, known)
            count += len(known)
        return (f"{count} branches were opened, those that this input takes",) if count else ()

    def values(self, feeds: Feeds, names: Collection[str]) -> Values:
        return self.forced(feeds, {}, names)

    def forced(self, feeds: Feeds, given: Mapping[str, Value], names: Collection[str]) -> Values:
        session, inputs = self._session(given, tuple(names))
        own = {port.name for port in session.signature.inputs}
        handed = {name: value for name, value in feeds.items() if name in own}
        handed |= {inputs[name]: self._like(name, value) for name, value in given.items() if name in inputs}
        return session.run(handed)

    def edited(self, feeds: Feeds, names: Sequence[str], edit: Callable[[ir.Model], None]) -> Values:
        """Returns the values of `names` in a copy of the graph that `edit` changes. Raises the errors of `edit` and of
        the runtime."""
        made = self._cut({}, names)
        edit(made.model)
        self._prepared = None
        session = self._preparer.prepare(made.model, self._options)
        own = {port.name for port in session.signature.inputs}
        return session.run({name: value for name, value in feeds.items() if name in own})

    def _session(self, given: Mapping[str, Value], names: tuple[str, ...]) -> tuple[Session, dict[str, str]]:
        key = (
            frozenset(
                (name, np.shape(value) if isinstance(value, np.ndarray) else None) for name, value in given.items()
            ),
            names,
        )
        if self._prepared is None or self._prepared[0] != key:
            self._prepared = None
            made = self._cut(given, names)
            session = self._preparer.prepare(made.model, self._options)
            self._prepared = key, session, made.inputs
        return self._prepared[1], self._prepared[2]

    def _cut(self, given: Mapping[str, Value], names: Sequence[str]) -> Cut:
        """Cuts the graph at the given tensors, which become inputs with their actual shapes. The file's shapes may be
        missing after a runtime's own operator, or wrong if a fault changed them."""
        made = cut(self.model, given.keys(), names)
        ports = {value.name: value for value in made.model.graph.inputs}
        for name, port in made.inputs.items():
            value = given[name]
            if isinstance(value, np.ndarray) and value.dtype.kind not in "OUS":
                if ports[port].type is None:
                    ports[port].type = ir.TensorType(ir.DataType.from_numpy(value.dtype))
                ports[port].shape = ir.Shape(value.shape)
        for node in made.model.graph:  # shapes that a tool wrote may be wrong for these inputs; runtimes trust them
            for inner in node.outputs:
                inner.shape = None
        return made

    def _like(self, name: str, value: Value) -> Value:
        """Converts a value of the other side to this side's dtype: one side may have float16 where the other has
        float32."""
        dtype = self._dtypes.get(name)
        if dtype is None or not isinstance(value, np.ndarray) or value.dtype == dtype:
            return value
        return value.astype(dtype)

    @cached_property
    def _dtypes(self) -> dict[str, Any]:
        made = (value for node in self.model.graph for value in node.outputs)
        return {value.name or "": value.dtype.numpy() for value in made if value.dtype is not None}

    def exact(self, feeds: Feeds, given: Mapping[str, Value], name: str) -> Value:
        made = self._cut(given, [name])
        handed: dict[str, Value] = {made.inputs[key]: value for key, value in given.items() if key in made.inputs}
        own = {value.name for value in made.model.graph.inputs}
        handed |= {key: value for key, value in feeds.items() if key in own}
        try:
            with self._in_double.prepare(doubled(made.model)) as session:
                return session.run({key: _wide(value) for key, value in handed.items()})[name]
        except OnnxsmithError:
            return None

    def expect_exact(self) -> None:
        self._in_double.expect()

    @cached_property
    def _in_double(self) -> Preparer:
        return runtimes.get("reference").preparer()

    def inside(self, feeds: Feeds, given: Mapping[str, Value], name: str) -> Sequence[Inner]:
        made = self._cut(given, [name])
        if not any(walk.subgraphs(node) for node in made.model.graph):
            return ()
        own = {value.name for value in made.model.graph.inputs}
        handed = {key: value for key, value in feeds.items() if key in own}
        handed |= {made.inputs[key]: self._like(key, value) for key, value in given.items() if key in made.inputs}
        exposing = Exposing(made.model)
        names = [place.name for place in exposing.places.values() if place.path and place.kind == "node"]
        self._prepared = None  # the preparer closes a session before it makes another one
        try:
            exposed = exposing.expose(self._affordable(exposing, names, handed))
            outputs = self._preparer.prepare(exposed.model, self._options).run(handed)
        except OnnxsmithError:  # the runtime cannot expose so many tensors of a body: only the node is named
            return ()
        called = {place.value: place.name for place in exposing.places.values()}
        read = {
            place.name: tuple(called.get(value, "") if value else "" for value in node.inputs)
            for place in exposing.places.values()
            if (node := place.value.producer()) is not None
        }
        return [
            Inner(one.name, one.operator, one.node, one.path, exposed.value(one.name, outputs, handed), read[one.name])
            for one in exposed.outlets.values()
        ]

    def _affordable(self, exposing: Exposing, names: Sequence[str], feeds: Feeds) -> list[str]:
        """Returns the first tensors in bodies that fit into memory, counted over all iterations."""
        sized = exposing.expose(names, sizes=True)
        outputs = self._preparer.prepare(sized.model, self._options).run(feeds)
        kept, held = [], 0
        for name in sized.outlets:
            shapes = sized.value(name, outputs, feeds)
            held += _WIDEST * sum(math.prod(shape.tolist()) for shape in shapes)
            if held > _INSIDE:
                break
            kept.append(name)
        return kept

    def roundings(self, cuts: Collection[str], names: Collection[str]) -> Mapping[str, Rounding]:
        fuses = self._options.optimization != "disable"
        return roundings(self.model, names=frozenset(names), cuts=frozenset(cuts), scales=self.scales, fuses=fuses)

    def weights(self, step: Step) -> list[Array]:
        known = self._nodes.get(step.outputs[0]) if step.outputs else None
        queue = _read(known) if known is not None else []
        found: dict[ir.Value, Array] = {}
        while queue:
            value = queue.pop()
            maker = value.producer()
            if value.const_value is not None and not value.is_graph_input():
                found[value] = value.const_value.numpy()
            elif maker is not None and maker.op_type == "Constant" and "value" in maker.attributes:
                found[value] = maker.attributes["value"].as_tensor().numpy()
            elif maker is not None and value.name not in self.outline.moving and len(found) < _MOST_WEIGHTS:
                queue += _read(maker)
        return [array for array in found.values() if is_float(array)]

    @cached_property
    def _nodes(self) -> dict[str, ir.Node]:
        return {value.name or "": node for node in self.model.graph for value in node.outputs}

    def nbytes(self, feeds: Feeds) -> Mapping[str, int]:
        known = of_feed(self.signature, feeds)
        found = {}
        for node in self.model.graph:
            for value in node.outputs:
                count = _count(value, known)
                if count is not None and value.dtype not in (None, ir.DataType.STRING):
                    assert value.dtype is not None
                    found[value.name or ""] = math.ceil(count * value.dtype.itemsize)
        return found

    def close(self) -> None:
        self._preparer.close()
        self._prepared = None
        if "_in_double" in self.__dict__:
            self._in_double.close()


_INSIDE = 2**28
"""Limits the bytes of tensors in bodies that are held at once. A choice: 256 MiB."""
_WIDEST = 8
"""Counts the bytes of an element of the widest usual dtype (float64, int64)."""
_MOST_WEIGHTS = 256
"""Limits the constants of one step that are collected. A choice."""
_LEVELS = 16
"""Limits the levels of nested branches that are followed. A choice."""


def _truth(value: ir.Value, values: Mapping[str, Value]) -> bool | None:
    held = values.get(value.name or "")
    if held is None and value.const_value is not None:
        held = value.const_value.numpy()
    return bool(held.ravel()[0]) if isinstance(held, np.ndarray) and held.size == 1 else None


def _count(value: ir.Value, sizes: Sizes) -> int | None:
    """Counts the elements of a value; None if its shape does not follow from the inputs."""
    count = 1
    for dim in value.shape if value.shape is not None else (None,):
        size = dim if isinstance(dim, int) else _evaluated(dim, sizes)
        if size is None:
            return None
        count *= size
    return count


def _evaluated(dim: Any, sizes: Sizes) -> int | None:
    try:
        return size_of(dim.value, sizes)
    except (OnnxsmithError, AttributeError, TypeError):
        return None


def _wide(value: Value) -> Value:
    if isinstance(value, np.ndarray) and is_float(value) and value.dtype.kind != "c":
        return value.astype(np.float64)
    return value


def _outline(model: ir.Model) -> Outline:
    graph = model.graph
    fixed = set(graph.initializers.values()) - set(graph.inputs)
    steps = []
    learned: dict[ir.Value, int] = {}
    """Counts the elements of weights, including weights computed from constants (dequantised, cast)."""
    for node in graph:
        if node.op_type == "Constant" and not node.domain:
            fixed.update(node.outputs)
            continue
        held = [(value, math.prod(_dims(value)) if value in fixed else learned.get(value)) for value in _read(node)]
        known = [count for _, count in held if count is not None]
        if held and len(known) == len(held):
            learned.update(dict.fromkeys(node.outputs, max(known)))
            known = []
        steps.append(_step(node, fixed, sum(known)))
    return Outline(
        tuple(steps),
        tuple(value.name or "" for value in graph.inputs),
        tuple(value.name or "" for value in graph.outputs),
        frozenset(value.name or "" for value in fixed),
        {value.name or "": _type(value) for value in (*graph.inputs, *(v for node in graph for v in node.outputs))},
    )


def _type(value: ir.Value) -> Type:
    shape = None if value.shape is None else tuple(dim if isinstance(dim, int) else None for dim in value.shape)
    return Type(kind_of(value.dtype.name.lower()) if value.dtype is not None else "", shape)


def _read(node: ir.Node) -> list[ir.Value]:
    return [value for value in node.inputs if value is not None]


def _step(node: ir.Node, fixed: Collection[ir.Value], weights: int) -> Step:
    known = provenance.of(node)
    read = _read(node)
    inner = [value for below in walk.inside(node) for value in below.inputs]
    given_out = [value for graph in walk.subgraphs(node) for value in graph.outputs]
    made = {value for below in walk.inside(node) for value in below.outputs}
    made |= {value for graph in walk.subgraphs(node) for value in (*graph.inputs, *graph.initializers.values())}
    captured = [value for value in (*inner, *given_out) if value is not None and value not in made]
    names = dict.fromkeys(value.name or "" for value in (*read, *captured) if value not in fixed)
    return Step(
        label=walk.node_label(node),
        op=walk.op_name(node),
        inputs=tuple(names),
        outputs=tuple(value.name or "" for value in node.outputs if value.name),
        key=_key(node, fixed),
        module=known.module,
        source=known.source,
        origin=provenance.fx_name(node),
        kind=known.op,
        moves=node.op_type in MOVING or node.op_type == "Cast",
        weights=weights,
    )


def _dims(value: ir.Value) -> list[int]:
    tensor = value.const_value
    return [dim for dim in (tensor.shape if tensor is not None else ()) if isinstance(dim, int)]


_LONG = 64
"""Limits the characters of an attribute that count in a node's key. A choice."""


def _key(node: ir.Node, fixed: Collection[ir.Value]) -> str:
    """Returns the node's attributes and the shapes of its weights, without the weights' values. Attributes and shapes
    distinguish nodes of the same operator."""
    texts = []
    for name, attribute in sorted(node.attributes.items()):
        if walk.holds_subgraphs(attribute):
            continue
        if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
            tensor = attribute.as_tensor()
            texts.append(f"{name}={tensor.dtype}{tensor.shape}")
        else:
            texts.append(f"{name}={attribute.value}"[:_LONG])
    weights = [str(value.shape) if value in fixed else "" for value in node.inputs if value is not None]
    return ";".join((*texts, *weights))
