"""Finds the node at which two operands do not fit together, and where their shapes come from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from onnxsmith.base.words import first_few
from onnxsmith.graph.files.external import in_memory
from onnxsmith.graph.structure import model_message, walk
from onnxsmith.graph.structure.model_copy import cloned

_NODE = re.compile(r"\(op_type:(\w+), node name: (.*?)\)(?=: |$)")
_NESTED = re.compile(r": (?:\[\w+\] )?Inference error\(s\): $")
_CLASH = re.compile(r"Incompatible dimensions|Can't merge shape info")
_KEEPING = frozenset(
    {"Abs", "Cast", "Ceil", "Clip", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"}
    | {"Identity", "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "Mish", "Neg", "Not", "Reciprocal", "Relu"}
    | {"Round", "Selu", "Sigmoid", "Sign", "Sin", "Softmax", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh"}
    | {"BatchNormalization", "InstanceNormalization"}
)
"""Lists operators whose result has the shape of their first operand."""
_BROADCASTING = frozenset(
    {"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less"}
    | {"LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"}
)
"""Lists operators each of whose operands broadcasts to the result."""
_SHOWN = 4
"""Limits the attributes that a sentence names. A choice."""

Shape = tuple[int | str | None, ...]


@dataclass(frozen=True)
class Clash:
    """Operands of a node that do not fit together. `why` names their shapes and where they come from. `place` names, in
    words, the node, weight or input whose shape does not fit the declared result; if the model does not tell, the node
    at which the operands meet. `item` is the name of that node or tensor."""

    why: str
    place: str
    item: str


def blamed(said: str) -> tuple[str, str, str]:
    """Returns the operator, the label and the message of the first error of onnx's strict inference, in the innermost
    graph. The errors after it often follow from it."""
    nodes = list(_NODE.finditer(said))
    for at, found in enumerate(nodes):
        end = nodes[at + 1].start() if at + 1 < len(nodes) else len(said)
        between = said[found.end() : end]
        if at + 1 == len(nodes) or not _NESTED.search(between):
            return found[1], found[2], between.removeprefix(": ").strip()
    return "", "", said


def clash(model: ir.Model, said: str) -> Clash | None:
    """Returns the clash that onnx's message reports; None if the message is about something else."""
    op_type, label, message = blamed(said)
    if not _CLASH.search(message) or (op_type != "Concat" and "Incompatible" not in message):
        return None
    copy = cloned(in_memory(model))
    for one in walk.all_nodes(copy):
        one.name = one.name or walk.node_label(one)
    try:
        proto = onnx.shape_inference.infer_shapes(model_message.of_model(copy), data_prop=True)
    except Exception:  # noqa: BLE001 — too large for a message, for example: onnx's own words stand
        return None
    shapes = dict(_shapes(proto))
    node = next((one for one in walk.all_nodes(copy) if one.name == label and one.op_type == op_type), None)
    operands = [value for value in node.inputs if value is not None] if node is not None else []
    known = [(value, shapes[value.name]) for value in operands if value.name in shapes]
    if node is None or len(known) < 2:
        return None
    named = [f"{value.name} {_text(shape)}, from {_source(value)[0]}" for value, shape in known]
    declared = shapes.get(node.outputs[0].name or "")
    odd = [one for one in known if declared is not None and not _fits(one[1], declared)]
    odd = odd if op_type in _BROADCASTING else []
    why = f"the operands of {op_type} {label} do not fit together: {'; '.join(named)}"
    if len(odd) == 1 and declared is not None:
        why += f". The result is declared as {_text(declared)}, but {odd[0][0].name} does not fit this"
    place, item = _source(odd[0][0])[1:] if len(odd) == 1 else (f"{op_type} {label}", label)
    return Clash(why, place, item.removeprefix("-> "))  # a nameless node is called after its result


def _shapes(proto: onnx.ModelProto) -> Iterator[tuple[str, Shape]]:
    def of(graph: onnx.GraphProto) -> Iterator[tuple[str, Shape]]:
        for one in (*graph.input, *graph.output, *graph.value_info):
            if one.type.tensor_type.HasField("shape"):
                dims = one.type.tensor_type.shape.dim
                yield one.name, tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims)
        yield from ((one.name, tuple(one.dims)) for one in graph.initializer)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield from of(attribute.g)

    yield from of(proto.graph)


def _source(value: ir.Value) -> tuple[str, str, str]:
    """Returns where a shape comes from, behind operators that keep the shape: in words with attributes, without them,
    and the name."""
    producer = value.producer()
    while producer is not None and producer.op_type in _KEEPING and producer.inputs and producer.inputs[0] is not None:
        value = producer.inputs[0]
        producer = value.producer()
    if producer is None:
        kind = "the weight" if value.is_initializer() else "the input"
        return f"{kind} {value.name}", f"{kind} {value.name}", value.name or ""
    shown = [f"{name}={_attribute(one)}" for name, one in producer.attributes.items() if _is_plain(one)]
    options = f" ({first_few(shown, _SHOWN)})" if shown else ""
    said = f"{producer.op_type} {producer.name}"
    return f"{said}{options}", said, producer.name or ""


def _is_plain(one: ir.Attr) -> bool:
    return one.type in (ir.AttributeType.INT, ir.AttributeType.INTS, ir.AttributeType.STRING)


def _attribute(one: ir.Attr) -> str:
    return str(list(one.value)) if one.type == ir.AttributeType.INTS else str(one.value)


def _fits(shape: Shape, result: Shape) -> bool:
    """Whether a tensor of this shape broadcasts to the shape of the result, as far as sizes are known."""
    if len(shape) > len(result):
        return False
    pairs = zip(reversed(shape), reversed(result), strict=False)
    known = ((size, whole) for size, whole in pairs if isinstance(size, int) and isinstance(whole, int))
    return all(size in (1, whole) for size, whole in known)


def _text(shape: Sequence[int | str | None]) -> str:
    return f"[{', '.join('?' if one is None else str(one) for one in shape)}]"
