"""Adds up the costs of a graph's nodes by group, branches and bodies included: operations, parameters, bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.graph.reading.weights import Held, held, is_constant
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.walk import node_label, op_name
from onnxsmith.viewer.inspection.costs.cost_sizes import Sizes, Sum, trips
from onnxsmith.viewer.inspection.mac_rules.base import Dims, dims, rule_of
from onnxsmith.viewer.inspection.tables import SMALLEST

Path = tuple[str, ...]
"""Lists the steps to a group: ("layers", "0", "conv")."""

_DEEPEST = 12
"""Limits the steps of a path; deeper modules count in their ancestor of this depth. A choice that bounds the cost of
odd names."""


def grouping(nodes: Iterable[ir.Node]) -> tuple[str, str, Callable[[ir.Node], Path]]:
    """Returns how to group: `module`, `scope` or `operator`, the separator of a path's steps, and the function for the
    path of a node.

    Modules come from the nodes' metadata, into which torch's exporter writes them. A scope is the part of a node's name
    before the last `/` (`/layer1/conv/Conv`). Scopes are used if at least half of the names have one.
    """
    found = list(nodes)
    if any(provenance.module_of(node) for node in found):
        return "module", ".", lambda node: tuple(provenance.module_of(node).split(".")[:_DEEPEST])
    if 2 * sum("/" in (node.name or "").strip("/") for node in found) >= max(len(found), 1):
        return "scope", "/", _scope
    return "operator", "", lambda node: (op_name(node),)


def _scope(node: ir.Node) -> Path:
    steps = [step for step in (node.name or "").split("/") if step]
    return tuple(steps[:-1][:_DEEPEST]) or ("",)


_ELEMENTWISE = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Celu Clip Cos
    Cosh Div Dropout Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu
    Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu RotaryEmbedding Round Selu
    Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Where Xor
    com.microsoft::BiasGelu com.microsoft::FastGelu com.microsoft::Gelu com.microsoft::QuickGelu
    com.microsoft::RotaryEmbedding com.microsoft::QLinearAdd com.microsoft::QLinearMul com.microsoft::QLinearLeakyRelu
    com.microsoft::QLinearSigmoid
"""
_OVER_AXES = """
    ArgMax ArgMin AveragePool BatchNormalization CumProd CumSum GlobalAveragePool GlobalLpPool GlobalMaxPool
    GroupNormalization Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax LpNormalization LpPool MaxPool
    MeanVarianceNormalization RMSNormalization ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
    ReduceMin ReduceProd ReduceSum ReduceSumSquare Softmax TopK
    com.microsoft::QLinearAveragePool com.microsoft::QLinearGlobalAveragePool com.microsoft::QLinearSoftmax
    com.microsoft::SkipLayerNormalization com.microsoft::SkipSimplifiedLayerNormalization
    com.microsoft::EmbedLayerNormalization SimplifiedLayerNormalization
"""
_MOVES = """
    BitCast Cast CastLike CenterCropPad Compress Concat ConcatFromSequence Constant ConstantOfShape DepthToSpace
    DequantizeLinear DynamicQuantizeLinear Expand EyeLike Flatten Gather GatherElements GatherND Identity MaxUnpool
    NonZero OneHot Optional OptionalGetElement OptionalHasElement Pad QuantizeLinear Range Reshape ReverseSequence
    Scatter ScatterElements ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert
    SequenceLength Shape Size Slice SpaceToDepth Split SplitToSequence Squeeze TensorScatter Tile Transpose Trilu Unique
    Unsqueeze com.microsoft::QuantizeLinear com.microsoft::DequantizeLinear com.microsoft::QLinearConcat
"""
_DRAWS = """
    Bernoulli BlackmanWindow HammingWindow HannWindow Multinomial RandomNormal RandomNormalLike RandomUniform
    RandomUniformLike
"""
_WITHOUT = frozenset(f"{_ELEMENTWISE}{_OVER_AXES}{_MOVES}{_DRAWS}".split())


def without_products(node: ir.Node) -> bool:
    """Whether the operator counts as 0 multiply-accumulates: it works element by element, reduces, normalises or pools
    along axes, moves data, or draws numbers. This is the convention of torch.utils.flop_counter, which counts only
    matrix products, convolutions and attention. For a node with a body, the operators in the body decide.

    Operators that interpolate (Resize, GridSample, RoiAlign) do not count as 0; the report names them as not counted.
    """
    return op_name(node) in _WITHOUT or walk.has_subgraphs(node)


@dataclass
class Group:
    """Holds the costs of the nodes of one group. `activations` are bits."""

    nodes: int = 0
    macs: Sum = field(default_factory=Sum)
    activations: Sum = field(default_factory=Sum)

    def merge(self, other: Group) -> None:
        """Adds the costs of other nodes."""
        self.nodes += other.nodes
        self.macs.merge(other.macs)
        self.activations.merge(other.activations)


@dataclass
class Tally:
    """Holds the costs of some nodes, by group, and counts of operators."""

    groups: dict[Path, Group] = field(default_factory=dict)
    counted: int = 0
    uncounted: Counter[str] = field(default_factory=Counter)
    unknown_shape: Counter[str] = field(default_factory=Counter)
    without_macs: Counter[str] = field(default_factory=Counter)
    unsized: int = 0
    assumptions: list[str] = field(default_factory=list)

    def total(self) -> Group:
        """Returns the costs of all groups together."""
        whole = Group()
        for group in self.groups.values():
            whole.merge(group)
        return whole

    def merge(self, other: Tally) -> None:
        """Adds the costs of other nodes."""
        for path, group in other.groups.items():
            self.groups.setdefault(path, Group()).merge(group)
        self.counted += other.counted
        self.note(other)

    def note(self, other: Tally) -> None:
        """Adds the remarks on operators of other nodes that are not counted, without the costs of these nodes."""
        self.uncounted += other.uncounted
        self.unknown_shape += other.unknown_shape
        self.without_macs += other.without_macs
        self.unsized += other.unsized
        self.assumptions += other.assumptions


class Tallying:
    """Adds up the costs of graphs. Needs the group of each node, and the sizes by which it chooses between branches."""

    def __init__(self, path_of: Callable[[ir.Node], Path], sizes: Sizes) -> None:
        self._path_of, self._sizes = path_of, sizes

    def tally(self, graph: ir.Graph, times: Dims = ()) -> Tally:
        """Returns the costs of a graph whose nodes run `times` (a product). Tensors of a body count once, because each
        run can reuse their memory."""
        found = Tally()
        for node in graph:
            self._add(found, node, times)
            bodies = list(walk.named_subgraphs(node))
            if node.op_type == "If" and not node.domain:
                self._choose(found, node, bodies, times)
                continue
            for _, body in bodies:
                runs, assumed = trips(node, body)
                found.merge(self.tally(body, (*times, runs)))
                found.assumptions += [assumed] if assumed else []
        return found

    def _add(self, found: Tally, node: ir.Node, times: Dims) -> None:
        if is_constant(node):
            return
        group = found.groups.setdefault(self._path_of(node), Group())
        group.nodes += 1
        for value in node.outputs:
            bits = bits_of(value)
            if bits is not None:
                group.activations.add(bits)
            elif value.name:
                found.unsized += 1
        rule = rule_of(node)
        if rule is None:
            (found.without_macs if without_products(node) else found.uncounted)[op_name(node)] += 1
            return
        products = rule.products(node)
        if products is None:
            found.unknown_shape[op_name(node)] += 1
            return
        found.counted += 1
        for product in products:
            group.macs.add((*product, *times))

    def _choose(self, found: Tally, node: ir.Node, branches: list[tuple[str, ir.Graph]], times: Dims) -> None:
        """Adds the branch with the most multiply-accumulates at the sizes; among equals, the branch with the most
        bytes. Also notes the operators of the other branch that are not counted."""
        tallies = [(name, self.tally(branch, times)) for name, branch in branches]
        if not tallies:
            return
        best = max(tallies, key=lambda item: self._weigh(item[1]))
        for name, one in tallies:
            if one is best[1]:
                found.merge(one)
            else:
                found.note(one)
            if one is best[1] and len({self._weigh(other) for _, other in tallies}) > 1:
                found.assumptions.append(
                    f"If {node_label(node)}: only {name} was counted, the larger branch at these sizes"
                )

    def _weigh(self, tally: Tally) -> tuple[int, int]:
        whole = tally.total()
        return whole.macs.at(self._sizes), whole.activations.at(self._sizes)


def bits_of(value: ir.Value) -> Dims | None:
    """Returns the product that is the number of bits of a tensor; None if its dtype or shape is unknown."""
    shape = dims(value)
    if shape is None or value.dtype is None or not isinstance(value.type, ir.TensorType):
        return None
    if value.dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED):
        return None
    return (*shape, value.dtype.bitwidth)


_BUFFERS = {
    "BatchNormalization": (3, 4),  # running mean and variance
    "QuantizeLinear": (1, 2),
    "DequantizeLinear": (1, 2),  # scale and zero point
    "QLinearConv": (1, 2, 4, 5, 6, 7),
    "QLinearMatMul": (1, 2, 4, 5, 6, 7),
    "Clip": (1, 2),
    "Pad": (1, 2),
    "Resize": (1, 2),
    "Upsample": (1,),
}
"""Maps operators to their stored operands that are no parameters."""
_INTEGER_BIAS = {"DequantizeLinear": 0, "QLinearConv": 8}
"""Maps operators to the operand whose int32 values are parameters."""


@dataclass
class Stored:
    """Counts the elements of parameters, and the bytes of all stored tensors."""

    parameters: int = 0
    bytes: int = 0


def stored(model: ir.Model, path_of: Callable[[ir.Node], Path]) -> dict[Path, Stored]:
    """Returns the parameters and bytes by group; () is the group for tensors that no node reads.

    Each tensor counts once, for its first reader in the order of the file. Parameters are float and complex tensors,
    and integers of at most 8 bits, which are quantised weights. Parameters are initializers, or constants of 16
    elements or more. Running statistics, scales, zero points and limits are no parameters.
    """
    tensors = {item.value: item for item in held(model) if not item.constant or _size(item) >= SMALLEST}
    found: dict[Path, Stored] = {}
    seen: set[int] = set()

    def note(item: Held, path: Path, *, parameter: bool) -> None:
        key = id(item.tensor) if item.tensor is not None else id(item.value)
        if key in seen:
            return
        seen.add(key)
        group = found.setdefault(path, Stored())
        group.bytes += 0 if item.tensor is None else item.tensor.nbytes
        group.parameters += _size(item) if parameter else 0

    for node in walk.all_nodes(model):
        for index, value in enumerate(node.inputs):
            item = None if value is None else tensors.get(value)
            if item is not None:
                note(item, path_of(node), parameter=_is_parameter(item, node, index))
    for item in tensors.values():
        note(item, (), parameter=_is_number(item))
    return found


def _is_parameter(item: Held, node: ir.Node, index: int) -> bool:
    if index in _BUFFERS.get(node.op_type, ()):
        return False
    return _is_number(item) or (_INTEGER_BIAS.get(node.op_type) == index and _dtype(item) == ir.DataType.INT32)


def _is_number(item: Held) -> bool:
    dtype = _dtype(item)
    if dtype is None or dtype in (ir.DataType.BOOL, ir.DataType.STRING, ir.DataType.UNDEFINED):
        return False
    return not dtype.is_integer() or dtype.bitwidth <= 8


def _dtype(item: Held) -> ir.DataType | None:
    return item.value.dtype if item.tensor is None else item.tensor.dtype


def _size(item: Held) -> int:
    if item.tensor is not None:
        return item.tensor.size
    dims: Iterable[object] = item.value.shape or ()
    size = 1
    for dim in dims:
        size *= dim if isinstance(dim, int) else 0
    return size
