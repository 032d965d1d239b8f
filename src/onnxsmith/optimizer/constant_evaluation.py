"""Computes nodes with constant inputs. Nodes that only move data or have an exact result are computed here, all others
at once in a child process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.tensor_keys import DERIVED
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Outputs

_TIME_LIMIT = 60.0
"""Seconds for one batch. A choice: a constant that takes longer is not worth folding."""
_MOST_RUNS = 64
"""The most runs for one model. A choice: enough to isolate a few failing nodes by halving batches."""


class Evaluation:
    """Computes batches of nodes on one runtime, without its optimisations. A batch that fails, crashes or takes longer
    than a minute is halved until each failing node is alone. Such a node is refused, with the reason."""

    def __init__(self, model: ir.Model, runtime: str, refuse: Callable[[ir.Node, str], None]) -> None:
        self._model = model
        self._runtime = runtime
        self._refuse = refuse
        self._runs = 0

    def results(
        self, nodes: Sequence[ir.Node], known: Mapping[ir.Value, ir.TensorProtocol] | None = None
    ) -> dict[ir.Value, ir.TensorProtocol]:
        """Returns the results of `nodes` that other nodes read, if they follow from constants and `known` values."""
        known = dict(known or {})
        inside = set(nodes)
        nodes = _needed(nodes, inside)
        found = _here(nodes, known)
        computable = [node for node in _computable(nodes, known) if node.outputs[0] not in found]
        # a small result that only other nodes of the batch read is not returned, as in a run
        found = {value: held for value, held in found.items() if is_lazy(held) or _is_wanted(value, inside)}
        wanted = [value for node in computable for value in node.outputs if _is_wanted(value, inside)]
        if not wanted:
            return found
        self._runs += 1
        if self._runs > _MOST_RUNS:
            for node in computable:
                self._refuse(node, "too many operators failed before, so the rest was not tried")
            return found
        try:
            outputs = _run(_batch(self._model, computable, wanted, known), self._runtime or runtimes.default())
        except OnnxsmithError as error:
            if len(computable) == 1:
                self._refuse(computable[0], f"the node cannot be computed here: {error.problem.what}")
                return found
            middle = len(computable) // 2
            first = self.results(computable[:middle], known)
            return found | first | self.results(computable[middle:], {**known, **first})
        return found | {value: _tensor(outputs[f"v{index}"], value) for index, value in enumerate(wanted)}


def _needed(nodes: Sequence[ir.Node], inside: Set[ir.Node]) -> list[ir.Node]:
    """Returns the nodes, in order, that a wanted result depends on. The others have lost their readers."""
    needed: set[ir.Node] = set()
    for node in reversed(nodes):
        if node in needed or any(_is_wanted(value, inside) for value in node.outputs):
            needed.add(node)
            makers = (value.producer() for value in node.inputs if value is not None)
            needed.update(maker for maker in makers if maker is not None and maker in inside)
    return [node for node in nodes if node in needed]


def _here(nodes: Iterable[ir.Node], known: dict[ir.Value, ir.TensorProtocol]) -> dict[ir.Value, ir.TensorProtocol]:
    """Computes the results that need no runtime, adds them to `known` and returns them. These are results of nodes that
    only move or reshape constants, and of small exact arithmetic."""
    found: dict[ir.Value, ir.TensorProtocol] = {}
    for node in nodes:
        operands = [None if value is None else _held(value, known) for value in node.inputs]
        if not operands or operands[0] is None:
            continue
        result = moved(node, operands[0])
        result = computed(node, operands) if result is None else result
        if result is not None:
            found[node.outputs[0]] = known[node.outputs[0]] = result
    return found


def _held(value: ir.Value, known: Mapping[ir.Value, ir.TensorProtocol]) -> ir.TensorProtocol | None:
    return known[value] if value in known else const_tensor(value)


def _computable(nodes: Iterable[ir.Node], known: Mapping[ir.Value, ir.TensorProtocol]) -> list[ir.Node]:
    """Returns the nodes, in order, whose inputs are all available."""
    made: set[ir.Value] = set()
    computable = []
    for node in nodes:
        if all(v is None or facts.is_constant(v) or v in known or v in made for v in node.inputs):
            made.update(node.outputs)
            computable.append(node)
    return computable


def _is_wanted(value: ir.Value, inside: Set[ir.Node]) -> bool:
    """Whether the value is a graph output, or nodes outside the batch read it."""
    return value.is_graph_output() or any(use.node not in inside for use in value.uses())


def _batch(
    model: ir.Model,
    nodes: Sequence[ir.Node],
    wanted: Sequence[ir.Value],
    known: Mapping[ir.Value, ir.TensorProtocol],
) -> ir.Model:
    """Makes a model without inputs that computes `wanted`, named `v0`, `v1`, …; weights are shared, not copied."""
    new: dict[ir.Value, ir.Value] = {}
    initializers: list[ir.Value] = []
    copies: list[ir.Node] = []
    for node in nodes:
        for value in node.inputs:
            if value is None or value in new:
                continue
            tensor = known.get(value)
            tensor = const_tensor(value) if tensor is None else tensor
            assert tensor is not None
            new[value] = _initializer(tensor, f"c{len(initializers)}")
            initializers.append(new[value])
        inputs = [None if value is None else new[value] for value in node.inputs]
        copy = ir.Node("", node.op_type, inputs, node.attributes.values(), num_outputs=len(node.outputs))
        for index, (mine, theirs) in enumerate(zip(copy.outputs, node.outputs, strict=True)):
            mine.name = f"n{len(copies)}_{index}" if theirs.name else ""
            new[theirs] = mine
        copies.append(copy)
    for index, value in enumerate(wanted):
        new[value].name, new[value].type, new[value].shape = f"v{index}", value.type, value.shape
    graph = ir.Graph(
        [],
        [new[value] for value in wanted],
        nodes=copies,
        initializers=initializers,
        opset_imports={"": model.graph.opset_imports.get("", 1)},
        name="constants",
    )
    return ir.Model(graph, ir_version=model.ir_version)


def _initializer(tensor: ir.TensorProtocol, name: str) -> ir.Value:
    own = ir.LazyTensor(lambda: tensor, dtype=tensor.dtype, shape=shape(tensor), name=name)
    return ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=shape(tensor), const_value=own)


def shape(tensor: ir.TensorProtocol) -> ir.Shape:
    return ir.Shape(tensor.shape.numpy())


def _run(model: ir.Model, runtime: str) -> Outputs:
    options = Options(optimization="disable", time_limit=_TIME_LIMIT)
    with runtimes.get(runtime).prepare(model, options) as session:
        return session.run({})


def _tensor(found: object, value: ir.Value) -> ir.TensorProtocol:
    array = np.asarray(found)
    return ir.Tensor(np.ascontiguousarray(array).reshape(array.shape), name=value.name)


# Moves and reshapes constants without a runtime: small ones at once, large ones when the file is written.

_LARGE = 1 << 20
"""Constants of at least this many bytes are moved lazily. A choice: smaller copies in memory are cheap."""
_RESHAPES = frozenset(("Flatten", "Reshape", "Squeeze", "Unsqueeze"))
_MOVING = _RESHAPES | {"Transpose"}


def moved(node: ir.Node, tensor: ir.TensorProtocol) -> ir.TensorProtocol | None:
    """Returns the node's result for a constant. The result for a large constant is computed when it is read. Returns
    None for other operators, dtypes of less than a byte, and unknown shapes."""
    if node.op_type not in _MOVING or tensor.dtype.bitwidth < 8 or tensor.dtype == ir.DataType.STRING:
        return None
    result = node.outputs[0]
    if node.op_type in _RESHAPES:
        if result.shape is None or not result.shape.is_static():
            return None
        shape = tuple(result.shape.numpy())
        return _moved(tensor, None, shape) if math.prod(shape) == tensor.size else None
    perm, sizes = _perm(node, len(tensor.shape)), tensor.shape.numpy()
    return None if perm is None else _moved(tensor, perm, tuple(sizes[axis] for axis in perm))


def is_lazy(tensor: ir.TensorProtocol) -> bool:
    """Whether the tensor is computed when it is read."""
    return DERIVED in tensor.meta


def _perm(node: ir.Node, rank: int) -> list[int] | None:
    """Returns the permutation of the axes; None if it is unknown or invalid."""
    given = node.attributes.get("perm")
    if given is None:
        return list(reversed(range(rank)))
    perm = None if given.is_ref() else list(given.as_ints())
    return perm if perm is not None and sorted(perm) == list(range(rank)) else None


def _moved(tensor: ir.TensorProtocol, perm: list[int] | None, shape: tuple[int, ...]) -> ir.TensorProtocol:
    def read() -> ir.TensorProtocol:
        array = tensor.numpy() if perm is None else np.transpose(tensor.numpy(), perm)
        return ir.Tensor(np.array(array.reshape(shape), order="C"), dtype=tensor.dtype, name=tensor.name)

    if tensor.nbytes < _LARGE:
        return read()
    lazy = ir.LazyTensor(read, dtype=tensor.dtype, shape=ir.Shape(shape), name=tensor.name)
    lazy.meta[DERIVED] = True
    return lazy


# Computes small constants without a runtime, if the standard determines every bit of the result.
# Starting a runtime takes longer than simplifying most models, and many models have only a few numbers to compute:
# the root of a head's size, a cast. Operations that IEEE 754 rounds correctly, and operations without arithmetic,
# give the same result in every runtime. All other operations are left to a runtime.

Array = npt.NDArray[Any]

_MOST = 1 << 16
"""Bytes of the largest operand and result. A choice: for larger ones, starting a runtime costs less than the
arithmetic."""
_FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
_NUMBERS = (*_FLOATS, ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL)


def computed(node: ir.Node, operands: Sequence[ir.TensorProtocol | None]) -> ir.TensorProtocol | None:
    """Returns the result of a node with these operands. Returns None if it is left to a runtime: for other operators
    and dtypes, large tensors, attributes of older opsets, NaN results (whose bits the standard does not fix) and
    conversions out of range."""
    rule, dtype = _RULES.get(node.op_type), node.outputs[0].dtype
    given = [one for one in operands if one is not None]
    if rule is None or dtype not in _NUMBERS or len(given) != len(operands) or not given:
        return None
    if any(one.dtype not in _NUMBERS or one.nbytes > _MOST for one in given):
        return None
    if any(name not in ("to", "saturate") for name in node.attributes):
        return None
    with np.errstate(all="ignore"):
        found = rule([one.numpy() for one in given], dtype)
    if found is None or found.nbytes > _MOST or found.dtype != dtype.numpy():
        return None
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        return None
    return ir.Tensor(np.array(found, order="C"))


def _arithmetic(operation: Callable[[Array, Array], Array]) -> Callable[[Sequence[Array], ir.DataType], Array | None]:
    """Returns a function that computes the operation on floats, which IEEE 754 rounds correctly. It returns None for
    integers, which may overflow."""

    def rule(operands: Sequence[Array], dtype: ir.DataType) -> Array | None:
        if len(operands) != 2 or dtype not in _FLOATS or any(one.dtype != dtype.numpy() for one in operands):
            return None
        return np.asarray(operation(*operands)) if _broadcast_bytes(operands) <= _MOST else None

    return rule


def _broadcast_bytes(operands: Sequence[Array]) -> int:
    try:
        shape = np.broadcast_shapes(*(one.shape for one in operands))
    except ValueError:
        return _MOST + 1
    return int(np.prod(shape, dtype=np.float64)) * operands[0].itemsize


def _sqrt(operands: Sequence[Array], dtype: ir.DataType) -> Array | None:
    """Returns the square root, which IEEE 754 rounds correctly."""
    same = len(operands) == 1 and dtype in _FLOATS and operands[0].dtype == dtype.numpy()
    return np.asarray(np.sqrt(operands[0])) if same else None


def _cast(operands: Sequence[Array], dtype: ir.DataType) -> Array | None:
    """Casts a float to an integer that can hold it, rounding towards zero, or a number to a float, rounding to
    nearest."""
    source, kind = operands[0], dtype.numpy()
    if kind.kind == "i" and source.size:
        limits = np.iinfo(kind)
        fits = np.isfinite(source) & (source >= limits.min) & (source <= limits.max // 2)
        if not fits.all():
            return None
    return np.asarray(source != 0) if kind.kind == "b" else source.astype(kind)


def _expand(operands: Sequence[Array], _: ir.DataType) -> Array | None:
    if len(operands) != 2 or operands[1].ndim != 1 or operands[1].dtype != np.int64 or (operands[1] < 0).any():
        return None
    sizes = tuple(operands[1].tolist())
    wide = np.broadcast_to(np.zeros((), operands[0].dtype), sizes)  # a view, which takes no memory
    return np.broadcast_arrays(operands[0], wide)[0] if _broadcast_bytes([operands[0], wide]) <= _MOST else None


_RULES: dict[str, Callable[[Sequence[Array], ir.DataType], Array | None]] = {
    "Add": _arithmetic(np.add),
    "Cast": _cast,
    "CastLike": _cast,
    "Div": _arithmetic(np.divide),
    "Expand": _expand,
    "Mul": _arithmetic(np.multiply),
    "Sqrt": _sqrt,
    "Sub": _arithmetic(np.subtract),
}
