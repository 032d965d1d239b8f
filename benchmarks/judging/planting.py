"""Faults that keep a graph valid: what exporters, converters and rewrites get wrong.

A planter changes an open model in place, at a place drawn from `rng`, and says what it did; `NoPlace` where the model
has none. What it leaves may be invalid or change nothing: `visible.py` finds that out by running it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import TensorProto, helper

from judging.graphs import FLOATS, Open, attribute, set_attribute

T = TypeVar("T")
Planter = Callable[[Open, np.random.Generator], str]
PLANTERS: dict[str, Planter] = {}


class NoPlace(Exception):  # noqa: N818 — an answer, not an error
    """The model has nothing that this fault could be planted in."""


def planter(group: str) -> Callable[[Planter], Planter]:
    """Registers a planter as GROUP/NAME."""

    def register(function: Planter) -> Planter:
        PLANTERS[f"{group}/{function.__name__.replace('_', '-')}"] = function
        return function

    return register


def pick(places: Sequence[T], rng: np.random.Generator) -> T:
    """One of the places."""
    if not places:
        raise NoPlace
    return places[int(rng.integers(0, len(places)))]


def name_of(node: onnx.NodeProto) -> str:
    """How a description calls a node."""
    return f"{node.op_type} {node.name or node.output[0]}"


# weights

COMPUTES = (
    "Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "RNN", "Mul", "Add", "Sub", "Div", "PRelu", "Einsum",
    "BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization",
    "SimplifiedLayerNormalization", "Gather", "FusedMatMul", "Attention", "Transpose", "Identity", "Cast",
)  # fmt: skip


def _weights(model: Open, least_rank: int = 1, least: int = 4) -> list[str]:
    found = []
    for name, tensor in model.constants.items():
        size = int(np.prod(tensor.dims)) if tensor.dims else 1
        floats = tensor.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
        read = any(node.op_type in COMPUTES for node in model.readers.get(name, []))
        if floats and read and size >= least and len(tensor.dims) >= least_rank:
            found.append(name)
    return found


@planter("weight")
def random_sign(model: Open, rng: np.random.Generator) -> str:
    """Each number of a tensor 1% up or down."""
    name = pick(_weights(model), rng)
    array = model.array(name).astype(np.float64)
    model.set(name, array * (1 + 0.01 * rng.choice([-1.0, 1.0], array.shape)))
    return f"{name}: each 1% up or down"


@planter("weight")
def scaled(model: Open, rng: np.random.Generator) -> str:
    """A tensor 1% larger."""
    name = pick(_weights(model), rng)
    model.set(name, model.array(name).astype(np.float64) * 1.01)
    return f"{name}: times 1.01"


@planter("weight")
def channel(model: Open, rng: np.random.Generator) -> str:
    """One channel of a tensor 1% larger."""
    name = pick(_weights(model, least_rank=2), rng)
    array = model.array(name).astype(np.float64)
    axis = int(rng.integers(0, 2)) if array.ndim == 2 else 0
    row = int(rng.integers(0, array.shape[axis]))
    array[(slice(None),) * axis + (row,)] *= 1.01
    model.set(name, array)
    return f"{name}: index {row} of axis {axis} times 1.01"


@planter("weight")
def bias_lost(model: Open, rng: np.random.Generator) -> str:
    """A bias of zeros."""
    biases = [
        node.input[2]
        for node in model.of("Conv", "ConvTranspose", "Gemm", "LayerNormalization", "InstanceNormalization")
        if len(node.input) > 2 and node.input[2] in model.constants
    ]
    name = pick([name for name in biases if model.array(name).dtype in FLOATS and np.any(model.array(name))], rng)
    model.set(name, np.zeros_like(model.array(name)))
    return f"{name}: zeros"


# wiring


@planter("wiring")
def swapped_operands(model: Open, rng: np.random.Generator) -> str:
    """The operands of an operation that does not commute."""
    pairs = [
        node for node in model.of("Sub", "Div", "Pow", "Less", "Greater", "LessOrEqual", "Mod") if _swappable(node)
    ]
    pairs += [node for node in model.of("MatMul") if _square(model, node)]
    node = pick(pairs, rng)
    node.input[0], node.input[1] = node.input[1], node.input[0]
    return f"{name_of(node)}: operands swapped"


def _swappable(node: onnx.NodeProto) -> bool:
    return len(node.input) == 2 and node.input[0] != node.input[1]


def _square(model: Open, node: onnx.NodeProto) -> bool:
    shape = model.shape(node.input[0])
    return shape is not None and len(shape) > 1 and shape == model.shape(node.input[1]) and shape[-1] == shape[-2]


@planter("wiring")
def swapped_parts(model: Open, rng: np.random.Generator) -> str:
    """Two parts of a Concat, or the branches of a Where."""
    node = pick([n for n in model.of("Concat", "Where") if len(set(n.input)) > 1 and _floats(model, n)], rng)
    first = 0 if node.op_type == "Concat" else 1
    node.input[first], node.input[first + 1] = node.input[first + 1], node.input[first]
    return f"{name_of(node)}: inputs {first} and {first + 1} swapped"


def _floats(model: Open, node: onnx.NodeProto) -> bool:
    return model.dtype(node.output[0]) in (TensorProto.FLOAT, TensorProto.FLOAT16)


@planter("wiring")
def axis(model: Open, rng: np.random.Generator) -> str:
    """An operation along another axis."""
    ops = "Softmax", "LogSoftmax", "Concat", "CumSum", "ArgMax", "ArgMin", "Hardmax", "LayerNormalization", "Split"
    kinds = [node for node in model.of(*ops) if (model.rank(node.input[0]) or 0) > 1]
    reduces = [n for n in model.nodes if n.op_type.startswith("Reduce") and (model.rank(n.input[0]) or 0) > 1]
    node = pick([*kinds, *reduces], rng)
    rank = model.rank(node.input[0]) or 2
    if node.op_type.startswith("Reduce") or node.op_type == "CumSum":
        return _other_axes(model, node, rank)
    default = 0 if node.op_type in ("ArgMax", "ArgMin", "Split") else -1
    old = attribute(node, "axis", default) % rank
    new = int(pick([one for one in range(rank) if one != old], rng))
    set_attribute(node, "axis", new)
    return f"{name_of(node)}: axis {new}, not {old}"


def _other_axes(model: Open, node: onnx.NodeProto, rank: int) -> str:
    held = node.input[1] if len(node.input) > 1 else ""
    old = model.array(held) if held else attribute(node, "axes")
    if old is None:
        raise NoPlace
    new = [(int(one) - 1) % rank for one in np.atleast_1d(old)]
    if held:
        array = np.array(new).reshape(np.shape(old))
        name = f"{held}_other_{node.output[0]}"
        model.model.graph.initializer.append(onnx.numpy_helper.from_array(array.astype(old.dtype), name))
        node.input[1] = name
    else:
        set_attribute(node, "axes", new)
    return f"{name_of(node)}: axes {new}"


@planter("wiring")
def permutation(model: Open, rng: np.random.Generator) -> str:
    """A Transpose that exchanges two more axes."""
    places = []
    for node in model.of("Transpose"):
        perm = list(attribute(node, "perm") or reversed(range(model.rank(node.input[0]) or 0)))
        places += [(node, perm, i) for i in range(len(perm) - 1)]
    node, perm, i = pick(places, rng)
    perm[i], perm[i + 1] = perm[i + 1], perm[i]
    set_attribute(node, "perm", perm)
    return f"{name_of(node)}: perm {perm}"


@planter("wiring")
def gather_index(model: Open, rng: np.random.Generator) -> str:
    """A Gather of the neighbour."""
    places = [n for n in model.of("Gather") if n.input[1] in model.constants and _floats(model, n)]
    node = pick(places, rng)
    _replace_constant(model, node, 1, model.array(node.input[1]) + int(rng.choice([-1, 1])))
    return f"{name_of(node)}: the index beside"


@planter("wiring")
def slice_off_by_one(model: Open, rng: np.random.Generator) -> str:
    """A Slice that begins and ends one place beside."""
    places = [n for n in model.of("Slice") if len(n.input) > 2 and n.input[1] in model.constants]
    node = pick([n for n in places if _floats(model, n)], rng)
    step = int(rng.choice([-1, 1]))
    _replace_constant(model, node, 1, model.array(node.input[1]) + step)
    ends = model.array(node.input[2])
    if ends is not None and np.all(np.abs(ends.astype(np.float64)) < 2**30):
        _replace_constant(model, node, 2, ends + step)
    return f"{name_of(node)}: {step:+d}"


def _replace_constant(model: Open, node: onnx.NodeProto, place: int, array: Any) -> None:
    """Another constant for this reader alone."""
    old = model.array(node.input[place])
    name = f"{node.input[place]}_for_{node.output[0]}"
    tensor = onnx.numpy_helper.from_array(np.asarray(array).astype(old.dtype).reshape(old.shape), name)
    model.insert_before(node, helper.make_node("Constant", [], [name], value=tensor))
    node.input[place] = name


# casts


@planter("cast")
def half(model: Open, rng: np.random.Generator) -> str:
    """A way through float16 that the faulty model has not."""
    return _detour(model, rng, TensorProto.FLOAT16)


@planter("cast")
def whole(model: Open, rng: np.random.Generator) -> str:
    """A way through int32, which cuts off fractions, that the faulty model has not."""
    return _detour(model, rng, TensorProto.INT32)


def _detour(model: Open, rng: np.random.Generator, to: int) -> str:
    """Written into the model; the pair is judged the other way round, so that the Casts are what was dropped."""
    places = [
        node for node in model.of("MatMul", "Conv", "Add", "Mul", "Gemm", "Softmax", "Relu", "Sigmoid", "Tanh")
        if node.input[0] not in model.constants and model.dtype(node.input[0]) == TensorProto.FLOAT
    ]  # fmt: skip
    node = pick(places, rng)
    source = node.input[0]
    there, back = f"{source}_there_{node.output[0]}", f"{source}_back_{node.output[0]}"
    made = [
        helper.make_node("Cast", [source], [there], name=f"{there}_cast", to=to),
        helper.make_node("Cast", [there], [back], name=f"{back}_cast", to=TensorProto.FLOAT),
    ]
    node.input[0] = back
    model.insert_before(node, *made)
    return f"{name_of(node)}: a Cast to {'float16' if to == TensorProto.FLOAT16 else 'int32'} and back dropped"


REVERSED = ("cast/half", "cast/whole")
"""What these planters write is the original, and what they were given the faulty model."""


# parameters


@planter("parameter")
def epsilon(model: Open, rng: np.random.Generator) -> str:
    """An epsilon ten times as large."""
    places: list[tuple[onnx.NodeProto, int]] = [
        (n, -1) for n in model.nodes if n.op_type.endswith("Normalization") and n.op_type not in ("LpNormalization",)
    ]
    for node in model.of("Add", "Max", "Clip"):
        held = [(i, model.array(name)) for i, name in enumerate(node.input) if name in model.constants]
        places += [(node, i) for i, a in held if a.size == 1 and a.dtype in FLOATS and 0 < float(a.item()) <= 1e-3]
    node, place = pick(places, rng)
    if place < 0:
        set_attribute(node, "epsilon", 10 * float(attribute(node, "epsilon", 1e-5)))
    else:
        _replace_constant(model, node, place, model.array(node.input[place]) * 10)
    return f"{name_of(node)}: epsilon times 10"


@planter("parameter")
def pad(model: Open, rng: np.random.Generator) -> str:
    """Padding moved by one to the other side, or another kind of it."""
    places = [node for node in model.of("Conv", "MaxPool", "AveragePool", "ConvTranspose") if _pads(node)]
    places += [node for node in model.of("Pad") if _floats(model, node)]
    node = pick(places, rng)
    if node.op_type == "Pad":
        mode = attribute(node, "mode", b"constant")
        set_attribute(node, "mode", "edge" if mode != b"edge" else "constant")
        return f"{name_of(node)}: mode, not {mode.decode()}"
    pads = _pads(node)
    half_ = len(pads) // 2
    at = int(pick([i for i in range(half_) if pads[i] or pads[i + half_]], rng))
    step = 1 if pads[at] else -1
    pads[at] -= step
    pads[at + half_] += step
    set_attribute(node, "pads", pads)
    return f"{name_of(node)}: pads {pads}"


def _pads(node: onnx.NodeProto) -> list[int]:
    pads = list(attribute(node, "pads", []))
    return pads if any(pads) and attribute(node, "auto_pad", b"NOTSET") == b"NOTSET" else []


@planter("parameter")
def dilation(model: Open, rng: np.random.Generator) -> str:
    """Kernel of 3 spread over 5, with padding that keeps the shape."""
    places = []
    for node in model.of("Conv"):
        kernel, pads = attribute(node, "kernel_shape") or [], list(attribute(node, "pads", []))
        shape = model.shape(node.input[1])
        kernel = list(kernel) or (list(shape[2:]) if shape else [])
        alone = all(one == 1 for one in attribute(node, "dilations", []))
        places += [(node, i) for i, one in enumerate(kernel) if one == 3 and pads and alone]
    node, at = pick(places, rng)
    pads = list(attribute(node, "pads"))
    rank = len(pads) // 2
    dilations = list(attribute(node, "dilations", [1] * rank))
    dilations[at] = 2
    pads[at] += 1
    pads[at + rank] += 1
    set_attribute(node, "dilations", dilations)
    set_attribute(node, "pads", pads)
    return f"{name_of(node)}: dilations {dilations}"


@planter("parameter")
def activation(model: Open, rng: np.random.Generator) -> str:
    """A slope, a bound or an approximation of an activation."""
    clips = [n for n in model.of("Clip") if _bound(model, n) is not None and _floats(model, n)]
    others = model.of(
        "LeakyRelu", "Elu", "HardSigmoid", "PRelu", "Gelu", "HardSwish", "Celu", "ThresholdedRelu", "Selu"
    )
    node = pick([*clips, *others], rng)
    if node.op_type == "Clip":
        place = _bound(model, node)
        assert place is not None
        _replace_constant(model, node, place, model.array(node.input[place]) * 0.9)
        return f"{name_of(node)}: bound {place} times 0.9"
    if node.op_type == "PRelu":
        if node.input[1] not in model.constants:
            raise NoPlace
        _replace_constant(model, node, 1, model.array(node.input[1]).astype(np.float64) * 1.1)
    elif node.op_type == "Gelu":
        known = attribute(node, "approximate", b"none")
        set_attribute(node, "approximate", "none" if known == b"tanh" else "tanh")
    elif node.op_type == "HardSwish":
        node.op_type = "Relu"
    else:
        default = {"LeakyRelu": 0.01, "HardSigmoid": 0.2, "Selu": 1.67326}.get(node.op_type, 1.0)
        set_attribute(node, "alpha", 1.1 * float(attribute(node, "alpha", default)))
    return f"{name_of(node)}: another parameter"


def _bound(model: Open, node: onnx.NodeProto) -> int | None:
    for place in (2, 1):
        array = model.array(node.input[place]) if place < len(node.input) and node.input[place] else None
        if array is not None and array.dtype in FLOATS and float(array.item()) != 0:
            return place
    return None


@planter("parameter")
def scale_lost(model: Open, rng: np.random.Generator) -> str:
    """A constant factor, such as that of attention, that is gone."""
    places = []
    for node in model.of("Mul", "Div"):
        for place in (0, 1) if node.op_type == "Mul" else (1,):
            array = model.array(node.input[place])
            other = node.input[1 - place]
            if array is not None and array.size == 1 and array.dtype in FLOATS and other not in model.constants:
                places.append((node, other))
    node, other = pick(places, rng)
    said = name_of(node)
    node.op_type = "Identity"
    del node.input[:], node.attribute[:]
    node.input.append(other)
    return f"{said}: gone"


@planter("parameter")
def rounding(model: Open, rng: np.random.Generator) -> str:
    """Floor in place of Ceil or Round, the nearest pixel from the other side, another place of pixels."""
    node = pick(model.of("Round", "Floor", "Ceil", "Resize"), rng)
    if node.op_type != "Resize":
        node.op_type = "Floor" if node.op_type != "Floor" else "Ceil"
        return f"{name_of(node)}: was rounded otherwise"
    known = attribute(node, "coordinate_transformation_mode", b"half_pixel")
    set_attribute(node, "coordinate_transformation_mode", "asymmetric" if known != b"asymmetric" else "half_pixel")
    return f"{name_of(node)}: coordinates, not {known.decode()}"


# quantization

QUANTIZES = ("QuantizeLinear", "DequantizeLinear")


def _integer_weights(model: Open) -> list[str]:
    found = []
    for name, tensor in model.constants.items():
        readers = {node.op_type for node in model.readers.get(name, [])}
        small = tensor.data_type in (TensorProto.INT8, TensorProto.UINT8)
        if small and len(tensor.dims) > 1 and readers & {"DequantizeLinear", "MatMulInteger", "ConvInteger"}:
            found.append(name)
    return found


@planter("quantization")
def weight_scaled(model: Open, rng: np.random.Generator) -> str:
    """Integers of a weight 3% further from their middle: 1 to 4 steps for the larger ones."""
    name = pick(_integer_weights(model), rng)
    array = model.array(name).astype(np.float64)
    limits = np.iinfo(model.array(name).dtype)
    middle = 0.0 if limits.min else 128.0
    model.set(name, np.clip(np.round(middle + 1.03 * (array - middle)), limits.min, limits.max))
    return f"{name}: times 1.03"


@planter("quantization")
def scale(model: Open, rng: np.random.Generator) -> str:
    """A scale 1% larger."""
    names = {n.input[1] for n in model.of(*QUANTIZES) if n.input[1] in model.constants}
    for node in model.of("Mul"):  # what quantize_dynamic multiplies sums by
        names |= {name for name in node.input if name in model.constants and "scale" in name}
    name = pick(sorted(names), rng)
    model.set(name, model.array(name).astype(np.float64) * 1.01)
    return f"{name}: times 1.01"


@planter("quantization")
def zero_point(model: Open, rng: np.random.Generator) -> str:
    """A zero point one step beside."""
    places = [(n, 2) for n in model.of(*QUANTIZES) if len(n.input) > 2 and n.input[2] in model.constants]
    places += [
        (n, 3) for n in model.of("MatMulInteger", "ConvInteger") if len(n.input) > 3 and n.input[3] in model.constants
    ]
    node, place = pick(places, rng)
    old = model.array(node.input[place])
    step = 1 if int(old.reshape(-1)[0]) < np.iinfo(old.dtype).max else -1
    _replace_constant(model, node, place, old.astype(np.int64) + step)
    return f"{name_of(node)}: zero point {step:+d}"
