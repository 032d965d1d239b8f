"""Changes models as a generator of hostile files would: field by field, by the description that protobuf has."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import AttributeProto, ModelProto, TensorProto

FORGED = "FORGED-LINE"
"""Begins what a text would write as a line of its own, if its line breaks were printed."""
NOT_UTF8 = "@@NO-UTF8@@"
"""Stands for bytes that are no text; `serialized` writes them."""
LARGE = 10_000_000
"""The characters of the longest texts."""
TEXTS = (
    "", " ", ".", "/", "../canary.txt", "a/../../canary.txt", "\0", "nul\0inside", f"x\n{FORGED} done\n", "\r\n",
    "\x1b[2J\x1b]0;t\x07", "\x7f\x08\x9b2J", "\u202e\u2066\u200b\u2028", "\U000e0041", "x" * 5_000, "%s%n{0}{x.y}",
    "[bold]name[/bold]", "`id`$(id)", "'; drop table rows; --", "<script>alert(1)</script>", "-o", "--help", "x", "y",
    "\U0001d569", NOT_UTF8, "nan", "1e999", "NULL", "__class__", "\\", '"', "a" * 300 + ".onnx",
)  # fmt: skip
INTEGERS = (0, -1, 1, 2, 3, 7, 127, 255, 2**31 - 1, -(2**31), 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3.4e38)
DEEP = (3, 20, 40, 90, 400)
_WHOLE = {FieldDescriptor.CPPTYPE_INT32: 31, FieldDescriptor.CPPTYPE_INT64: 63, FieldDescriptor.CPPTYPE_ENUM: 31}
_UNSIGNED = {FieldDescriptor.CPPTYPE_UINT32: 32, FieldDescriptor.CPPTYPE_UINT64: 64}

Draw = random.Random


def serialized(model: ModelProto) -> bytes:
    """Returns the bytes of a model, with `NOT_UTF8` replaced."""
    content: bytes = model.SerializeToString()
    return content.replace(NOT_UTF8.encode(), b"\xff\xfe\x80\xc3(NO\xc0\xaf8")


def text(draw: Draw) -> str:
    """Returns a hostile text, seldom one of 10 MB."""
    return "z" * LARGE if draw.random() < 0.01 else draw.choice(TEXTS)


def messages(message: Message) -> Iterator[Message]:
    """Yields the message and all inside it, however deep."""
    left = [message]
    while left:
        yield (one := left.pop())
        for field, value in one.ListFields():
            if field.message_type is not None:
                left += value if field.is_repeated else (value,)


def any_field(model: ModelProto, draw: Draw) -> str:
    """Changes, removes, repeats or exchanges a value of any field; each kind of message is as likely."""
    kinds: dict[str, list[Message]] = {}
    for one in messages(model):
        kinds.setdefault(one.DESCRIPTOR.name, []).append(one)
    kind = draw.choice(sorted(kinds))
    message = draw.choice(kinds[kind])
    field = draw.choice(message.DESCRIPTOR.fields)
    change = _repeated if field.is_repeated else _single
    return f"{kind}.{field.name}: {change(message, field, kinds, draw)}"


def _repeated(message: Message, field: FieldDescriptor, kinds: dict[str, list[Message]], draw: Draw) -> str:
    values = getattr(message, field.name)
    what = draw.choice(("remove", "repeat", "swap", "clear", "add", "add", "replace"))
    if what in ("remove", "repeat", "swap", "replace") and not len(values):
        what = "add"
    place = draw.randrange(len(values)) if len(values) else 0
    if what == "clear":
        message.ClearField(field.name)
    elif what == "remove":
        del values[place]
    elif what == "repeat":
        values.extend([values[place]] * draw.choice((1, 2, 50)))
    elif what == "swap":
        order = list(values)
        draw.shuffle(order)
        copies = [one.__deepcopy__({}) if isinstance(one, Message) else one for one in order]
        message.ClearField(field.name)
        getattr(message, field.name).extend(copies)
    elif field.message_type is not None:
        target = values.add() if what == "add" else values[place]
        source = draw.choice([None, *kinds.get(field.message_type.name, [])])
        copy = source.__deepcopy__({}) if source is not None else type(target)()
        target.CopyFrom(copy)
    elif what == "add":
        values.extend([_value(field, draw)] * draw.choice((1, 1, 3, 100)))
    else:
        values[place] = _value(field, draw)
    return what


def _single(message: Message, field: FieldDescriptor, kinds: dict[str, list[Message]], draw: Draw) -> str:
    if field.message_type is None:
        if draw.random() < 0.2:
            message.ClearField(field.name)
            return "clear"
        value = _value(field, draw)
        setattr(message, field.name, value)
        return repr(value)[:60]
    source = draw.choice([None, *kinds.get(field.message_type.name, [])])
    copy = source.__deepcopy__({}) if source is not None else None
    message.ClearField(field.name)
    if copy is not None:
        getattr(message, field.name).CopyFrom(copy)
    return "clear" if copy is None else "exchange"


def _value(field: FieldDescriptor, draw: Draw) -> Any:
    if field.enum_type is not None:
        return draw.choice(field.enum_type.values).number
    if field.cpp_type in _WHOLE:
        most = _WHOLE[field.cpp_type]
        return draw.choice([one for one in INTEGERS if -(2**most) <= one < 2**most])
    if field.cpp_type in _UNSIGNED:
        return draw.choice([one for one in INTEGERS if 0 <= one < 2 ** _UNSIGNED[field.cpp_type]])
    if field.cpp_type != FieldDescriptor.CPPTYPE_STRING:
        return draw.choice(FLOATS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return draw.choice((b"", b"\0", b"\xff" * 7, bytes(1000), text(draw).encode()))
    return text(draw)


def _of(model: ModelProto, name: str) -> list[Any]:
    return [one for one in messages(model) if one.DESCRIPTOR.name == name]


def tensor(model: ModelProto, draw: Draw) -> str:
    """Gives a tensor dimensions, a type or values that do not go together."""
    one = draw.choice(_of(model, "TensorProto") or [model.graph.initializer.add(name="x")])
    what = draw.choice(("dims", "type", "shorter", "longer", "both", "segment"))
    if what == "dims":
        one.dims[:] = draw.choice(([-1], [2**62, 4], [2**31, 2**31], [0], [2**40], [1] * 70, [*one.dims, -3], [3, 0]))
    elif what == "type":
        one.data_type = draw.choice((0, -1, 8, 14, 15, 16, 17, 21, 22, 23, 24, 99, 2**31 - 1))
    elif what == "shorter":
        one.raw_data = one.raw_data[: draw.randrange(len(one.raw_data) + 1)]
    elif what == "longer":
        one.raw_data = one.raw_data + bytes(draw.choice((1, 3, 4096)))
    elif what == "both":
        one.float_data.extend([1.0, 2.0])
        one.int64_data.append(2**63 - 1)
        one.string_data.append(b"\xff\x00")
    else:
        one.segment.begin, one.segment.end = draw.choice(((-1, 2**62), (5, 1)))
    return f"tensor {one.name[:40]!r}: {what} {list(one.dims)[:4]} type {one.data_type}"


def name(model: ModelProto, draw: Draw) -> str:
    """Gives a tensor or a node a hostile name, everywhere or at one place, or the name of another."""
    names = sorted({one for node in _of(model, "NodeProto") for one in (*node.input, *node.output) if one})
    old = draw.choice(names or [""])
    new = text(draw) if draw.random() < 0.7 else draw.choice(names or [""])
    everywhere = draw.random() < 0.6
    for message in messages(model):
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_STRING and (everywhere or draw.random() < 0.3):
                if field.is_repeated:
                    value[:] = [new if one == old else one for one in value]
                elif value == old:
                    setattr(message, field.name, new)
    return f"name {old[:40]!r} is {new[:40]!r}" + ("" if everywhere else " at some places")


def attribute(model: ModelProto, draw: Draw) -> str:
    """Exchanges the type of an attribute, its value, or its name with that of another."""
    found = _of(model, "AttributeProto")
    if not found:
        found = [draw.choice(_of(model, "NodeProto") or [model.graph.node.add()]).attribute.add(name="axis")]
    one, other = draw.choice(found), draw.choice(found)
    what = draw.choice(("type", "value", "name", "reference"))
    if what == "type":
        one.type = draw.choice(AttributeProto.AttributeType.values())
    elif what == "value":
        copy = AttributeProto()
        copy.CopyFrom(other)
        copy.name = one.name
        one.CopyFrom(copy)
    elif what == "name":
        one.name = draw.choice((other.name, text(draw)))
    else:
        one.ref_attr_name = draw.choice(("nothing", one.name, text(draw)))
    return f"attribute {one.name[:40]!r}: {what}"


def edge(model: ModelProto, draw: Draw) -> str:
    """Makes a cycle, reads a tensor that is not there, or gives a tensor twice."""
    nodes = _of(model, "NodeProto") or [model.graph.node.add(op_type="Relu")]
    one, other = draw.choice(nodes), draw.choice(nodes)
    what = draw.choice(("cycle", "missing", "twice", "empty", "itself", "operator"))
    if what == "cycle" and one.input and other.output:
        one.input[0] = other.output[0]
    elif what == "missing":
        one.input.append("nothing")
    elif what == "twice" and one.output:
        other.output.append(one.output[0])
    elif what == "empty":
        one.output[:] = [""] * len(one.output)
    elif what == "operator":
        one.op_type, one.domain = draw.choice((other.op_type, text(draw))), draw.choice(("", one.domain, text(draw)))
    elif one.output:
        one.input[:] = one.output
    return f"{what} at {one.op_type[:40]!r}"


def external(model: ModelProto, draw: Draw) -> str:
    """Stores a tensor in another file: outside, past its end, or without a length."""
    one = draw.choice(_of(model, "TensorProto") or [model.graph.initializer.add(name="w", data_type=1, dims=[4])])
    one.ClearField("raw_data")
    one.data_location = TensorProto.EXTERNAL
    where = draw.choice((
        "../canary.data", "/etc/passwd", "a/../../canary.data", "link.data", "photos", "weights.data", "net.onnx",
        "/dev/zero", "/proc/self/environ", "", "C:\\Windows\\win.ini", "..\\canary.data", text(draw),
    ))  # fmt: skip
    values = {"location": where, "offset": draw.choice(("0", "-1", "99999999", str(2**63), "x", "1e3", "0x10"))}
    values["length"] = draw.choice(("16", "-1", str(2**62), "", "٣", "9" * 5000))
    del one.external_data[:]
    for key in draw.sample(sorted(values), draw.choice((1, 2, 3, 3))):
        one.external_data.add(key=key, value=values[key])
    return f"external data at {where[:40]!r}, {values['offset']}, {values['length'][:20]}"


def version(model: ModelProto, draw: Draw) -> str:
    """Gives the model other versions: of the format, or of an operator set."""
    if draw.random() < 0.3:
        model.ir_version = draw.choice((0, -1, 1, 2, 3, 12, 13, 99, 2**40))
        return f"IR version {model.ir_version}"
    kind = draw.choice(("change", "clear", "add"))
    if kind == "clear":
        del model.opset_import[:]
    elif kind == "add" or not model.opset_import:
        model.opset_import.add(domain=draw.choice(("", "ai.onnx", "ai.onnx.ml", text(draw))), version=1)
    if model.opset_import:
        draw.choice(model.opset_import).version = draw.choice((0, -1, 1, 6, 12, 26, 27, 99, 2**40, -(2**63)))
    return "opsets " + ", ".join(f"{one.domain[:20]!r} {one.version}" for one in model.opset_import)


def function(model: ModelProto, draw: Draw) -> str:
    """Adds functions that call themselves or each other, or that would expand to very many nodes."""
    what = draw.choice(("itself", "each other", "very many", "twice"))
    count = {"itself": 1, "each other": 2, "very many": 40, "twice": 1}[what]
    for n in range(count):
        callee = {"itself": "F0", "each other": f"F{1 - n}", "very many": f"F{n + 1}", "twice": "Relu"}[what]
        for _ in range(2 if what == "twice" else 1):
            one = model.functions.add(name=f"F{n}", domain="d", input=["a"], output=["b"])
            one.opset_import.add(domain="", version=20)
            one.opset_import.add(domain="d", version=1)
            last = what == "twice" or (what == "very many" and n == count - 1)
            inner = {"op_type": "Relu" if last else callee, "domain": "" if last else "d"}
            one.node.add(input=["a"], output=["c"], **inner)
            one.node.add(input=["c"], output=["b"], **inner)
    model.opset_import.add(domain="d", version=1)
    for node in draw.sample(list(model.graph.node), min(1, len(model.graph.node))):
        node.op_type, node.domain = "F0", "d"
        del node.input[1:], node.attribute[:]
    return f"functions: {what}"


def nesting(model: ModelProto, draw: Draw) -> str:
    """Adds branches inside each other, or a type that has types inside."""
    depth, what = draw.choice(DEEP), draw.choice(("graph", "type", "size"))
    if what == "graph":
        inner = onnx.NodeProto(op_type="Relu", input=["x"], output=["t0"])
        for n in range(depth):
            outer = onnx.NodeProto(op_type="If", input=["c"], output=[f"t{n + 1}"])
            for side in ("then_branch", "else_branch"):
                graph = outer.attribute.add(name=side, type=AttributeProto.GRAPH).g
                graph.name = side
                if side == "then_branch" or n < 5:
                    graph.node.add().CopyFrom(inner)
                graph.output.add(name=f"t{n}" if graph.node else "x")
            inner = outer
        model.graph.node.add().CopyFrom(inner)
    elif what == "type":
        kind = model.graph.input.add(name="deep").type
        for n in range(depth):
            kind = kind.sequence_type.elem_type if n % 2 else kind.optional_type.elem_type
        kind.tensor_type.elem_type = 1
    else:
        for one in _of(model, "Dimension")[:1]:
            one.dim_param = draw.choice(("(" * depth + "n" + ")" * depth, "+".join(["n"] * depth), "-" * depth + "n"))
    return f"nesting of a {what}, {depth} deep"


CHANGES: tuple[Callable[[ModelProto, Draw], str], ...] = (
    any_field, any_field, any_field, any_field, tensor, name, name, name, attribute, edge, external, version, function,
    nesting,
)  # fmt: skip
"""The changes, the more frequent ones several times: another name leaves most models valid."""


def mutated(content: bytes, draw: Draw) -> tuple[bytes, str]:
    """Returns the bytes of a model after one to three changes, and what they are."""
    model = onnx.ModelProto.FromString(content)
    told = []
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        change = draw.choice(CHANGES)
        try:
            told.append(change(model, draw))
        except (ValueError, TypeError, OverflowError) as error:  # protobuf itself refuses the value
            told.append(f"{change.__name__} refused: {error}"[:80])
    return serialized(model), "; ".join(told)
