"""Replaces random numbers by the same fixed numbers in both models, so that everything else can be compared.

Two runs of a model that draws random numbers differ, even with a `seed` attribute: onnxruntime continues one stream
from run to run. So each draw is replaced by nodes that compute a fixed sequence from the same operands and attributes.
This includes draws in branches, loop bodies and functions. The sequence fills the interval evenly and has the requested
mean and spread. Corresponding draws of the two models get the same sequence. Different draws get different sequences,
so a model that uses one draw twice still differs from a model that draws twice.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.graph.surgery.node_insertion import Inserter, release

_OLDEST = 9
"""Names the first opset with ConstantOfShape and NonZero, by which a sequence is computed."""
_MOST_WRITTEN = 2**16
"""Limits the elements of a sequence that is stored as a constant, below opset 9. A choice: 256 KiB of float32."""
_PERIOD = 8191
"""Sets the period of the sequences: a prime (2^13 - 1) whose square fits a 32-bit integer, the widest type of some
runtimes."""
_FLOAT, _INT32, _INT64, _BOOL = (
    int(one) for one in (ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.BOOL)
)


def nodes(model: ir.Model) -> list[ir.Node]:
    """Returns the nodes that draw random numbers, seeded or not, including each `Dropout` that may be in training
    mode."""
    return [node for node in walk.all_nodes(model) if draws(node)]


def draws(node: ir.Node) -> bool:
    """Whether the node draws random numbers."""
    if node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type != "Dropout":
        return node.op_type in walk.RANDOM
    training = node.inputs[2] if len(node.inputs) > 2 else None
    if training is None:
        return False
    known = facts.constant(training)
    return known is None or bool(np.any(known))


@dataclass(frozen=True)
class Fixed:
    """Holds two models with fixed numbers, a note on the replaced nodes, and a clause on the parts that could not be
    tried."""

    pair: tuple[ir.Model, ir.Model]
    note: str
    untried: str


class _TooOldError(Exception):
    """Says that the opset lacks the operators that compute a sequence."""


def fixed(reference: ir.Model, candidate: ir.Model) -> Fixed | None:
    """Returns copies of both models with fixed numbers and shared weights; None if the opset of a model is too old."""
    ours, theirs = _plain(reference), _plain(candidate)
    keys = _keys(nodes(ours), nodes(theirs))
    counts = Counter(node.op_type for node in nodes(ours))
    alike = len(set(keys.values())) == 1 and counts.total() > 1
    try:
        for model in (ours, theirs):
            _replace(model, keys)
    except _TooOldError:
        return None
    names = ", ".join(f"{count} {op_type}" for op_type, count in counts.items())
    note = f"random numbers were replaced by fixed ones in both models: {names}"
    return Fixed(
        (ours, theirs), note, ("models that draw their random numbers independently were not compared") if alike else ""
    )


def _plain(model: ir.Model) -> ir.Model:
    """Returns a copy of the model. Functions are inlined if a function passes its own attributes to a draw."""
    handed = any(attribute.is_ref() for node in nodes(model) for attribute in node.attributes.values())
    copy = inlined(model)[0] if handed else cloned(model)
    for value in walk.initializers(copy):
        if value.type is None and value.const_value is not None:  # the file may leave the declared type out
            value.type = ir.TensorType(value.const_value.dtype)
    return inferred(copy)[0]


def _owners(model: ir.Model) -> Iterator[tuple[ir.Graph | ir.Function, Mapping[str, int]]]:
    yield model.graph, model.opset_imports
    for function in model.functions.values():
        yield function, {**model.opset_imports, **function.opset_imports}


def _keys(ours: Sequence[ir.Node], theirs: Sequence[ir.Node]) -> dict[ir.Node, int]:
    """Returns a key for each draw, equal for corresponding draws. Draws correspond by node name, or else by result
    name, if these names are unique in both models. Otherwise they correspond by order, if both models have the same
    operators. If not, all draws share one key."""
    for label in (_name, _result):
        names, others = Counter(map(label, ours)), Counter(map(label, theirs))
        if all(name and count == 1 and names[name] == 1 for name, count in others.items()):
            return {node: _hash(label(node), node) for node in (*ours, *theirs)}
    if [node.op_type for node in ours] == [node.op_type for node in theirs]:
        return {node: _hash(str(place), node) for side in (ours, theirs) for place, node in enumerate(side)}
    return {node: _hash("", node) for node in (*ours, *theirs)}


def _name(node: ir.Node) -> str:
    return node.name or ""


def _result(node: ir.Node) -> str:
    return node.outputs[0].name or ""


def _hash(text: str, node: ir.Node) -> int:
    attribute = node.attributes.get("seed")
    seed = "" if attribute is None else float(attribute.value)  # Dropout has an integer, the others a float
    return zlib.crc32(f"{text} {seed}".encode()) % (_PERIOD - 2) + 1


def _replace(model: ir.Model, keys: Mapping[ir.Node, int]) -> None:
    for owner, imports in _owners(model):
        version = imports.get("", imports.get("ai.onnx", 0))
        for graph in (owner, *walk.nested(owner)):
            for node in [node for node in graph if node in keys]:
                _stand_in(_Writer(node, "fixed", version), node, keys[node])


def _stand_in(write: _Writer, node: ir.Node, key: int) -> None:
    made = _WRITTEN[node.op_type](write, node, key)
    like = node.inputs[0] if node.inputs else None
    write.replace(made)
    if like is not None and like.is_initializer():
        release(like)  # it was read for its shape only


class _Writer(Inserter):
    """Inserts the nodes that compute a sequence in front of a draw."""

    def remainder(self, value: ir.Value, by: ir.Value) -> ir.Value:
        return self.op("Sub", value, self.op("Mul", by, self.op("Div", value, by)))

    def shape(self, value: ir.Value) -> Sequence[int] | ir.Value:
        """Returns the sizes of a tensor: numbers if all are static, else the result of a Shape node."""
        known = value.shape
        if known is not None and all(isinstance(size, int) for size in known):
            return [size for size in known if isinstance(size, int)]
        return self.op("Shape", value)

    def uniform(self, shape: Sequence[int] | ir.Value, key: int) -> ir.Value:
        """Writes floats between 0 and 1. Their shape is static, or is held by a tensor."""
        if self.opset < _OLDEST:
            if isinstance(shape, ir.Value) or math.prod(shape) > _MOST_WRITTEN:
                raise _TooOldError
            written = (np.arange(math.prod(shape)) % _PERIOD * key + key // 2) % _PERIOD
            return self.constant(((written + 0.5) / _PERIOD).reshape(shape), np.float32)
        shape = shape if isinstance(shape, ir.Value) else self.constant(shape)
        ones = self.op("ConstantOfShape", shape, value=ir.tensor(np.array([1], np.int64)))
        places = self.op(
            "Reshape", self.op("NonZero", self.op("Reshape", ones, self.constant([-1]))), self.constant([-1])
        )
        period = self.constant(_PERIOD)
        steps = self.op("Mul", self.remainder(places, period), self.constant(key))
        drawn = self.remainder(self.op("Add", steps, self.constant(key // 2)), period)
        half = self.op("Add", self.op("Cast", drawn, to=_FLOAT), self.constant(0.5, np.float32))
        flat = self.op("Div", half, self.constant(_PERIOD, np.float32))
        return self.op("Reshape", flat, shape, **({"allowzero": 1} if self.opset >= 14 else {}))

    def typed(self, value: ir.Value, node: ir.Node, like: ir.Value | None = None) -> ir.Value:
        """Casts the value to the dtype of the node's attribute, else to the dtype of the operand `like`."""
        if "dtype" in node.attributes:
            return self.op("Cast", value, to=node.attributes.get_int("dtype"))
        if like is None:
            return value
        dtype = like.const_value.dtype if like.const_value is not None else like.dtype
        if dtype is not None:
            return self.op("Cast", value, to=int(dtype))
        return self.op("CastLike", value, like) if self.opset >= 15 else value


def _random(write: _Writer, node: ir.Node, key: int) -> list[ir.Value]:
    like = node.inputs[0] if node.op_type.endswith("Like") else None
    uniform = write.uniform(node.attributes.get_ints("shape") if like is None else write.shape(like), key)
    get = node.attributes.get_float
    if "Normal" in node.op_type:
        start, span = get("mean", 0.0) - get("scale", 1.0) * 3**0.5, get("scale", 1.0) * 2 * 3**0.5
    else:
        start, span = get("low", 0.0), get("high", 1.0) - get("low", 0.0)
    spread = write.op("Mul", uniform, write.constant(span, np.float32))
    return [write.typed(write.op("Add", spread, write.constant(start, np.float32)), node, like)]


def _bernoulli(write: _Writer, node: ir.Node, key: int) -> list[ir.Value]:
    chances = node.inputs[0]
    assert chances is not None
    uniform = write.uniform(write.shape(chances), key)
    return [write.typed(write.op("Less", uniform, write.op("Cast", chances, to=_FLOAT)), node, chances)]


def _multinomial(write: _Writer, node: ir.Node, key: int) -> list[ir.Value]:
    """Writes the likeliest class, then the classes after it, so that the result depends on the unnormalised chances."""
    chances = node.inputs[0]
    count = node.attributes.get_int("sample_size", 1)
    likeliest = write.op("ArgMax", chances, axis=1, keepdims=1)
    steps = write.constant([[index * key % _PERIOD for index in range(count)]])
    classes = write.op("Gather", write.op("Shape", chances), write.constant(1))
    drawn = write.remainder(write.op("Add", likeliest, steps), classes)
    return [write.op("Cast", drawn, to=node.attributes.get_int("dtype", _INT32))]


def _dropout(write: _Writer, node: ir.Node, key: int) -> list[ir.Value]:
    data, ratio, training = node.inputs[0], node.inputs[1], node.inputs[2]
    assert data is not None
    share = write.constant(0.5, np.float32) if ratio is None else write.op("Cast", ratio, to=_FLOAT)
    dropped = write.op("Less", write.uniform(write.shape(data), key), share)
    kept = write.op("Not", write.op("And", dropped, training))
    one = write.constant(1, np.float32)
    scale = write.op(
        "Div", one, write.op("Sub", one, write.op("Where", training, share, write.constant(0, np.float32)))
    )
    factor = write.op("Mul", write.op("Cast", kept, to=_FLOAT), scale)
    return [write.op("Mul", data, write.typed(factor, node, data)), kept]


_WRITTEN = {
    "RandomNormal": _random,
    "RandomUniform": _random,
    "RandomNormalLike": _random,
    "RandomUniformLike": _random,
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
    "Dropout": _dropout,
}
