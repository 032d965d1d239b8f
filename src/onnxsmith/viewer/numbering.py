"""Numbers the nodes, values, types, modules and source lines of a model, and writes them as columns of a scene."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Generic, TypeVar

import onnx_ir as ir

from onnxsmith.base.seams.metadata import meta
from onnxsmith.graph.reading import exact_text
from onnxsmith.graph.reading.exact_text import attribute_text
from onnxsmith.graph.reading.scopes import Scope, scopes
from onnxsmith.graph.reading.weights import constant, is_constant
from onnxsmith.graph.structure import captures, provenance, schema, walk
from onnxsmith.graph.structure.walk import node_label
from onnxsmith.viewer import scene
from onnxsmith.viewer.scene import COMPUTED, CONSTANT, GRAPH_INPUT, GRAPH_OUTPUT

_T = TypeVar("_T")
_LONGEST = 2000
"""Limits the characters of an attribute or of a line of code. A choice: nobody reads more in a panel."""


@dataclass(eq=False)
class Part:
    """Holds a graph of the model: its nodes by number, the values and the nodes that each node reads, and the node that
    computes each value. The lists are in the order of the graph."""

    scope: Scope
    nodes: list[int] = field(default_factory=list)
    held: list[ir.Node] = field(default_factory=list)
    reads: list[list[int]] = field(default_factory=list)
    made: dict[int, int] = field(default_factory=dict)

    def sources(self) -> list[list[int]]:
        """Returns the nodes that each node reads from, by their numbers in the graph."""
        return [[self.made[value] for value in read if value in self.made] for read in self.reads]


class Numbering:
    """Makes the columns of one model. `model` is the model of the scene, still without rooms."""

    def __init__(self, source: ir.Model, model: scene.Model) -> None:
        self.model = model
        self.values: dict[ir.Value, int] = {}
        self.nodes: dict[ir.Node, int] = {}
        self.stored: list[tuple[int, ir.TensorProtocol | None]] = []
        """Lists constants, each after the number of its value."""
        self.parts: list[Part] = []
        self._types: _Interned[str] = _Interned()
        self._ops: _Interned[tuple[str, str]] = _Interned()
        self._modules: _Interned[tuple[str, str]] = _Interned()
        self._sources: _Interned[tuple[str, int, str]] = _Interned()
        self._traces: dict[str, int] = {}
        self._defaults: dict[tuple[str, str, int | None], list[tuple[str, str, int]]] = {}
        for scope in scopes(source):
            self._part(scope)
        for value in source.graph.outputs:
            if self.model.values.kind[self.values[value]] == COMPUTED:
                self.model.values.kind[self.values[value]] = GRAPH_OUTPUT
        self.model.types = list(self._types)
        self.model.ops = [
            {
                "type": type_,
                "domain": domain,
                "family": family(type_),
                "doc": operator_doc(type_, domain),
                **_roles(type_, domain, source.opset_imports.get(domain)),
            }
            for domain, type_ in self._ops
        ]
        self.model.modules = [{"path": path, "type": kind} for path, kind in self._modules]
        self.model.sources = [{"file": file, "line": line, "text": text} for file, line, text in self._sources]

    def _part(self, scope: Scope) -> None:
        part = Part(scope)
        for value in scope.graph.inputs:
            if value.is_initializer():
                self._constant(value, value.const_value)
            else:
                self._value(value, GRAPH_INPUT, -1)
        for value in scope.graph.initializers.values():
            self._constant(value, value.const_value)
        for node in scope.graph:
            tensor = constant(node) if is_constant(node) else None
            if tensor is not None:
                self._constant(node.outputs[0], tensor)
            else:
                self._node(part, node)
        for value in scope.graph.outputs:
            self._undefined(value, GRAPH_OUTPUT)
        self.parts.append(part)

    def _undefined(self, value: ir.Value, kind: int = GRAPH_INPUT) -> None:
        """Numbers a value that no node of a broken graph computes. The value is shown like a graph input if a node
        reads it, and like a graph output if the graph returns it."""
        if value not in self.values and captures.is_undefined(value):
            self._value(value, kind, -1, meta(value).get(OPENED, "nothing makes it"))

    def _node(self, part: Part, node: ir.Node) -> None:
        number, columns = len(self.nodes), self.model.nodes
        self.nodes[node] = number
        for value in node.outputs:
            if value.name:
                part.made[self._value(value, COMPUTED, number)] = len(part.nodes)
        read = captures.reads(node) if node.attributes else dict.fromkeys(v for v in node.inputs if v is not None)
        for value in read:
            self._undefined(value)
        known = (self.values.get(value) for value in read)
        part.nodes.append(number)
        part.held.append(node)
        part.reads.append([one for one in known if one is not None and self.model.values.kind[one] != CONSTANT])
        captured = [self.values[value] for value in read if value not in node.inputs and value in self.values]
        if captured:
            self.model.captured[number] = captured
        columns.name.append(node_label(node))
        if node.doc_string and not provenance.trace_of(node):
            self.model.docs[number] = node.doc_string[:_LONGEST]
        columns.op.append(self._ops.of((node.domain, node.op_type)))
        columns.room.append(0)
        columns.module.append(self._module(node) if node.metadata_props else -1)
        columns.source.append(self._source(node) if node.metadata_props or node.doc_string else -1)
        columns.inputs.append([-1 if value is None else self.values.get(value, -1) for value in node.inputs])
        columns.outputs.append([self.values[value] for value in node.outputs if value.name])
        columns.attributes.append(self._attributes(node, part.scope))
        columns.bodies.append([])

    def _value(self, value: ir.Value, kind: int, producer: int, kind_text: str | None = None) -> int:
        number, columns = len(self.values), self.model.values
        self.values[value] = number
        columns.name.append(value.name or "")
        columns.type.append(self._types.of(value_type(value) if kind_text is None else kind_text))
        columns.producer.append(producer)
        columns.kind.append(kind)
        return number

    def _constant(self, value: ir.Value, tensor: ir.TensorProtocol | None) -> None:
        if value not in self.values:
            text = tensor_type(tensor) if tensor is not None else None
            self.stored.append((self._value(value, CONSTANT, -1, text), tensor))

    def _module(self, node: ir.Node) -> int:
        paths, kinds = provenance.calls(node)
        inner = next((at for at in reversed(range(len(paths))) if paths[at]), -1)
        return self._modules.of((paths[inner], kinds[inner])) if inner >= 0 else -1

    def _source(self, node: ir.Node) -> int:
        trace = provenance.trace_of(node)
        if trace not in self._traces:
            file, _, line = provenance.user_line(trace).rpartition(":")
            found = (file, int(line), provenance.code_of(trace)[:_LONGEST]) if file else None
            self._traces[trace] = self._sources.of(found) if found is not None else -1
        return self._traces[trace]

    def _attributes(self, node: ir.Node, scope: Scope) -> list[tuple[str, str, int]]:
        key = node.op_type, node.domain, scope.version(node.domain)
        if key not in self._defaults:
            self._defaults[key] = _defaults(*key)
        own = [
            (one.name, attribute_shown(one)[:_LONGEST], 0)
            for one in node.attributes.values()
            if one.is_ref() or not walk.holds_subgraphs(one)
        ]
        given = node.attributes
        return [*own, *(row for row in self._defaults[key] if row[0] not in given)]


def _roles(op_type: str, domain: str, version: int | None) -> dict[str, list[str]]:
    """Returns the formal names of an operator's inputs and outputs. The name of a variadic parameter, always the last,
    ends in `…`."""
    found = schema.find(op_type, domain, version) if version is not None else None
    if found is None:
        return {}
    sides = {"inputs": found.inputs, "outputs": found.outputs}
    return {side: [one.name + "…" * one.variadic for one in known] for side, known in sides.items()}


def _defaults(op_type: str, domain: str, version: int | None) -> list[tuple[str, str, int]]:
    found = schema.find(op_type, domain, version) if version is not None else None
    if found is None:
        return []
    return [(name, attribute_shown(one), 1) for name, one in found.defaults.items() if one is not None]


class _Interned(Generic[_T]):
    """Gives equal things the same number, from 0 on."""

    def __init__(self) -> None:
        self._numbers: dict[_T, int] = {}

    def of(self, one: _T) -> int:
        return self._numbers.setdefault(one, len(self._numbers))

    def __iter__(self) -> Iterator[_T]:
        return iter(self._numbers)


# Writes attributes for the page: a number that stands for a dtype is written with its name.

_DTYPES = {"to", "dtype", "output_dtype", "output_datatype", "stash_type", "precision", "softmax_precision"}
"""Names the attributes whose values are numbers of `TensorProto.DataType` in the ONNX specification."""


def attribute_shown(attribute: ir.Attr) -> str:
    """Returns the value of an attribute as text: `FLOAT (1)` for the `to` of a Cast."""
    text = attribute_text(attribute)
    if attribute.name not in _DTYPES or attribute.is_ref() or attribute.type != ir.AttributeType.INT:
        return text
    try:
        return f"{ir.DataType(attribute.as_int()).name} ({text})"
    except ValueError:  # no dtype has this number
        return text


# The families of operators, which the page colours.

_MEMBERS = {
    "product": "Conv ConvInteger ConvTranspose DeformConv Einsum Gemm MatMul MatMulInteger QLinearConv QLinearMatMul"
    " Attention MultiHeadAttention GroupQueryAttention FusedMatMul MatMulNBits FusedConv LSTM GRU RNN FusedGemm",
    "activation": "Celu Clip Elu Gelu FastGelu HardSigmoid HardSwish LeakyRelu LogSoftmax Mish PRelu Relu Selu Sigmoid"
    " Softmax Softplus Softsign Swish Tanh ThresholdedRelu Hardmax Shrink QuickGelu BiasGelu",
    "normalization": "BatchNormalization GroupNormalization InstanceNormalization LayerNormalization LpNormalization"
    " LRN MeanVarianceNormalization RMSNormalization SimplifiedLayerNormalization SkipLayerNormalization",
    "shape": "Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Pad Reshape Resize Scatter"
    " ScatterElements ScatterND Shape Size Slice SpaceToDepth Split Squeeze Tile Transpose Unsqueeze Upsample Compress"
    " CenterCropPad Col2Im ReverseSequence Trilu GridSample AffineGrid RoiAlign TensorScatter RotaryEmbedding",
    "reduction": "ArgMax ArgMin AveragePool CumSum CumProd GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool"
    " ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum"
    " ReduceSumSquare TopK NonMaxSuppression MaxRoiPool Unique",
    "quantizer": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    "control": "If Loop Scan SequenceMap SequenceAt SequenceConstruct SequenceEmpty SequenceInsert SequenceErase"
    " SequenceLength SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement",
    "constant": "Constant ConstantOfShape EyeLike RandomNormal RandomNormalLike RandomUniform RandomUniformLike Range"
    " Bernoulli Multinomial OneHot",
    "elementwise": "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor"
    " Cast CastLike Ceil Cos Cosh Div Dropout Equal Erf Exp Floor Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual"
    " Log Max Mean Min Mod Mul Neg Not Or Pow Reciprocal Round Sign Sin Sinh Sqrt Sub Sum Tan Where Xor",
}
_FAMILY = {op: family for family, names in _MEMBERS.items() for op in names.split()}
_PAGES = {"": "onnx__", "ai.onnx": "onnx__", "ai.onnx.ml": "onnx_aionnxml_"}


def family(op_type: str) -> str:
    """Returns the family of an operator, by its name in any domain; "other" if the operator has no family."""
    return _FAMILY.get(op_type, "other")


@cache
def operator_doc(op_type: str, domain: str) -> str:
    """Returns the address of the operator's page in ONNX's documentation; "" for operators of other domains."""
    page = _PAGES.get(domain)
    return f"https://onnx.ai/onnx/operators/{page}{op_type}.html" if page and op_type.isidentifier() else ""


OPENED = "onnxsmith.opened"
"""Is the key of a value's `meta` for a text about the cycle that was opened at this value."""
Early = tuple[ir.Node, ir.Node]
"""Holds a node, and the later node whose result it reads."""


def in_order(graph: ir.Graph) -> tuple[list[Early], list[list[ir.Node]]]:
    """Sorts a graph in place and opens its cycles: the first node of a cycle, in the order of the file, reads a new
    value without a producer. Returns the nodes that stood too early, and the cycles."""
    nodes = list(graph)
    place = {node: at for at, node in enumerate(nodes)}
    needs = [_makers(node, place) for node in nodes]
    early = [(nodes[at], nodes[max(own)]) for at, own in enumerate(needs) if own and max(own) >= at]
    if not early:
        return [], []
    readers: dict[int, list[int]] = {}
    for at, own in enumerate(needs):
        for one in own:
            readers.setdefault(one, []).append(at)
    left, order, cycles = set(place.values()), [], []
    ready = [at for at, own in enumerate(needs) if not own]
    while left:
        if not ready:
            cycle = _cycle(needs, left)
            cycles.append([nodes[at] for at in cycle])
            first, maker = cycle[0], cycle[-1]
            _open(nodes[first], nodes[maker])
            needs[first].discard(maker)
            readers[maker].remove(first)
            if not needs[first] & left:
                heapq.heappush(ready, first)
            continue
        done = heapq.heappop(ready)
        left.discard(done)
        order.append(done)
        for reader in readers.get(done, ()):
            if reader in left and not needs[reader] & left:
                heapq.heappush(ready, reader)
    graph.remove(nodes)
    graph.extend(nodes[at] for at in order)
    inside = {node for cycle in cycles for node in cycle}
    return [(node, maker) for node, maker in early if node not in inside], cycles


def _makers(node: ir.Node, place: Mapping[ir.Node, int]) -> set[int]:
    """Returns the positions of the nodes in the same graph that a node reads from."""
    makers = (value.producer() for value in captures.reads(node))
    return {place[maker] for maker in makers if maker is not None and maker in place}


def _cycle(needs: Sequence[set[int]], left: set[int]) -> list[int]:
    """Returns a cycle among the nodes `left`, in the direction of the values. The cycle starts with the node that is
    first in the file."""
    at = min(left)
    seen: dict[int, int] = {}
    while at not in seen:
        seen[at] = len(seen)
        at = min(needs[at] & left)
    found = list(seen)[seen[at] :][::-1]
    start = found.index(min(found))
    return [*found[start:], *found[:start]]


def _open(reader: ir.Node, maker: ir.Node) -> None:
    opened = {value: ir.Value(name=value.name) for value in maker.outputs}
    for value in opened.values():
        value.meta[OPENED] = f"{node_label(maker)} makes it below"
    captures.read_instead([reader], opened)


_PAGE = exact_text.Style({ir.DataType.FLOAT: "float32", ir.DataType.DOUBLE: "float64"}, ", ")
"""Names dtypes as numpy does."""


def value_type(value: ir.Value) -> str:
    """Returns the type of a value; "" if the type is unknown."""
    return exact_text.value_type(value, _PAGE)


def tensor_type(tensor: ir.TensorProtocol) -> str:
    """Returns the dtype and shape of a tensor."""
    return exact_text.tensor_type(tensor, _PAGE)
