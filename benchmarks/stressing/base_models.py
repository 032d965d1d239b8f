"""Small valid models of different kinds, with the ports that the usual lines name where the kind allows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEAD = '<ir_version: 10, opset_import: ["": 20]>'
PORTS = "g (float[batch,3,8,8] x) => (float[batch,{}] y)"
NET = f"""{HEAD}
{PORTS.format(4)} {{
[node_conv] c = Conv <pads = [1, 1, 1, 1]> (x, w)
[node_norm] n = BatchNormalization(c, scale, bias, mean, var)
[node_relu] relu = Relu(n)
[node_mean] m = ReduceMean <keepdims = 0> (relu, axes)
[node_linear] y = Gemm(m, fc, fb) }}"""


def _weights(**more: np.ndarray) -> list[TensorProto]:
    draw = np.random.default_rng(0)
    values = {
        "w": draw.normal(size=(8, 3, 3, 3)),
        "scale": np.ones(8),
        "bias": np.zeros(8),
        "mean": np.full(8, 0.1),
        "var": np.ones(8),
        "fc": draw.normal(size=(8, 4)) * 20,
        "fb": np.zeros(4),
    }
    held = {name: value.astype(np.float32) for name, value in values.items()} | {"axes": np.array([2, 3])} | more
    return [numpy_helper.from_array(value, name) for name, value in held.items()]


def net() -> onnx.ModelProto:
    """A convolution, a normalisation and a linear layer."""
    model = onnx.parser.parse_model(NET)
    model.graph.initializer.extend(_weights())
    return model


def external() -> onnx.ModelProto:
    """`net` with its floats in `weights.data`; `write` writes them."""
    model, offset = net(), 0
    for one in _floats(model):
        for key, value in (("location", "weights.data"), ("offset", offset), ("length", len(one.raw_data))):
            one.external_data.add(key=key, value=str(value))
        offset += len(one.raw_data)
        one.data_location = TensorProto.EXTERNAL
        one.ClearField("raw_data")
    return model


def _floats(model: onnx.ModelProto) -> list[TensorProto]:
    return [one for one in model.graph.initializer if one.data_type == TensorProto.FLOAT]


def quantized() -> onnx.ModelProto:
    """Integers of 8 and 4 bits."""
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21]>
{PORTS.format(4)}
<float s = {{0.05}}, int8 z = {{0}}, int4 z4 = {{0}}, float s4 = {{0.5}}> {{
q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) k = DequantizeLinear(w8, s, z)
c = Conv <pads = [1, 1, 1, 1]> (d, k) relu = Relu(c) m = ReduceMean <keepdims = 0> (relu, axes)
v = DequantizeLinear(fc4, s4, z4) y = MatMul(m, v) }}""")
    held = {"w8": np.arange(216, dtype=np.int8).reshape(8, 3, 3, 3), "axes": np.array([2, 3])}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in held.items())
    model.graph.initializer.append(helper.make_tensor("fc4", TensorProto.INT4, [8, 4], [1, -2, 3, 4] * 8))
    return model


def control() -> onnx.ModelProto:
    """If in If, and a Loop."""
    return onnx.parser.parse_model(
        f"""{HEAD}
{PORTS.format("3,8,8")} <int64 four = {{4}}, bool yes = {{1}}, float zero = {{0}}> {{
relu = Relu(x) s = ReduceSum <keepdims = 0> (relu) c = Greater(s, zero)
h = If (c) <
 then_branch = t () => (float[batch,3,8,8] a) {{
  a = If (c) < then_branch = tt () => (float[batch,3,8,8] b) {{ b = Neg(relu) }},
              else_branch = te () => (float[batch,3,8,8] e) {{ e = Identity(x) }} > }},
 else_branch = o () => (float[batch,3,8,8] f) {{ f = Exp(zero) g0 = Add(f, x) f2 = Identity(g0) }} >
y = Loop (four, yes, h) < body = l (int64 i, bool go, float[batch,3,8,8] v) => (bool on, float[batch,3,8,8] u) {{
 on = Identity(go) u = Add(v, x) }} > }}""".replace("=> (float[batch,3,8,8] f) { f", "=> (float[batch,3,8,8] f2) { f")
    )


def functions() -> onnx.ModelProto:
    """Functions in functions, with attributes."""
    return onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 20, "my": 1]>
g (float[batch,3,8,8] x) => (float[batch,3,8,8] y) { relu = my.Act <alpha: float = 0.2> (x) y = my.Twice(relu) }
<domain: "my", opset_import: ["": 20]> Act <alpha> (a) => (b) { b = LeakyRelu <alpha: float = @alpha> (a) }
<domain: "my", opset_import: ["": 20, "my": 1]> Twice (a) => (b) { c = my.Act <alpha: float = 0.5> (a) b = Add(c, c) }""")


def dims() -> onnx.ModelProto:
    """Sizes that are computed, and names of dimensions with operators."""
    return onnx.parser.parse_model(
        f"""{HEAD}
g (float[batch,3,"h","2*h"] x) => (float[batch,"6*h*h"] y) <int64[1] one = {{-1}}, int64 zero = {{0}}, int64 ten = {{1}}> {{
relu = Relu(x) s = Shape(relu) b = Gather(s, zero) r = Range(zero, b, ten) e = Cast <to = 1> (r)
bs = Unsqueeze(b, z1) sh = Concat <axis = 0> (bs, one) f = Reshape(relu, sh)
e2 = Unsqueeze(e, o1) y = Add(f, e2) }}""".replace("int64 zero", "int64[1] z1 = {0}, int64[1] o1 = {1}, int64 zero")
    )


def strings() -> onnx.ModelProto:
    """Strings, and an operator of ai.onnx.ml."""
    return onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 20, "ai.onnx.ml": 3]>
g (string[batch] x) => (int64[batch] y) <string[1] more = {"!"}> {
relu = StringConcat(x, more)
y = ai.onnx.ml.LabelEncoder <keys_strings = ["a!", "b!"], values_int64s = [1, 2], default_int64 = 0> (relu) }""")


def sparse() -> onnx.ModelProto:
    """A sparse initializer, a sparse constant and floats of 16 and 8 bits."""
    model = onnx.parser.parse_model(f"""{HEAD}
{PORTS.format(4)} {{ relu = Relu(x) m = ReduceMean <keepdims = 0> (relu, axes) a = MatMul(m, co)
half = Cast <to = 10> (a) h = Add(half, h16) wide = Cast <to = 1> (h) y = Add(wide, sp) }}""")
    model.graph.initializer.append(numpy_helper.from_array(np.array([2, 3]), "axes"))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(4, np.float16), "h16"))
    model.graph.initializer.append(helper.make_tensor("unused8", TensorProto.FLOAT8E4M3FN, [2], b"\x01\x02", raw=True))
    model.graph.initializer.append(helper.make_tensor("unusedb", TensorProto.BFLOAT16, [1], b"\x80\x3f", raw=True))

    def made(name: str, shape: list[int]) -> onnx.SparseTensorProto:
        values = numpy_helper.from_array(np.array([1.0, 2.0], np.float32), name)
        return helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([0, 3]), f"{name}_at"), shape)

    model.graph.sparse_initializer.append(made("sp", [4]))
    model.graph.node.append(helper.make_node("Constant", [], ["co"], sparse_value=made("", [3, 4])))
    model.graph.node.insert(0, model.graph.node.pop())
    return model


def sequences() -> onnx.ModelProto:
    """Sequences and optional values among the ports."""
    return onnx.parser.parse_model(f"""{HEAD}
g (float[batch,3] x, seq(float[batch,3]) more, optional(float[batch,3]) o) => (float[n,3] y, seq(float[batch,3]) all)
<int64 zero = {{0}}> {{ relu = Relu(x) all = SequenceInsert(more, relu) first = SequenceAt(all, zero)
has = OptionalHasElement(o) s = SequenceConstruct(first, relu) y = ConcatFromSequence <axis = 0> (s) }}""")


def old() -> onnx.ModelProto:
    """Opset 7 and the format of version 3: weights are inputs too."""
    model = onnx.parser.parse_model("""<ir_version: 3, opset_import: ["": 7]>
g (float[1,3,8,8] x, float[8,3,3,3] w) => (float[1,8,1,1] y) {
c = Conv <pads = [1, 1, 1, 1]> (x, w) relu = Relu(c) d = Dropout <ratio = 0.5> (relu) y = GlobalAveragePool(d) }""")
    model.graph.initializer.extend(one for one in _weights() if one.name == "w")
    return model


def annotated() -> onnx.ModelProto:
    """`net` with metadata, training information, annotations and shapes of every tensor."""
    model = onnx.shape_inference.infer_shapes(net())
    model.metadata_props.add(key="author", value="nobody")
    model.training_info.add().algorithm.name = "step"
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'conv', 'conv2d']")
    model.graph.node[0].doc_string = "a convolution"
    note = model.graph.quantization_annotation.add(tensor_name="w")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    return model


KINDS: dict[str, Callable[[], onnx.ModelProto]] = {
    one.__name__: one
    for one in (net, external, quantized, control, functions, dims, strings, sparse, sequences, old, annotated)
}


def write(folder: Path) -> None:
    """Writes a file for each kind, and the weights of `external`."""
    folder.mkdir()
    for name, make in KINDS.items():
        onnx.save(make(), folder / f"{name}.onnx")
    (folder / "weights.data").write_bytes(b"".join(one.raw_data for one in _floats(net())))
