"""Constants in every form, sparse tensors, and weights in other files."""

# ruff: noqa: E501 — models in ONNX text, a line each

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from judging.odd.base import Odd, X, affine, floats, model, text, value, weight


def models() -> Iterator[Odd]:
    yield from _constants()
    yield from _sparse()
    yield from _encodings()
    yield from _external()


def _constants() -> Iterator[Odd]:
    for name, declared, attribute in (
        ("value_int", "int64 y", "value_int = 5"),
        ("value_ints", "int64[3] y", "value_ints = [1, 2, 3]"),
        ("value_float", "float y", "value_float = 0.5"),
        ("value_floats", "float[2] y", "value_floats = [0.5, -1.0]"),
        ("value_string", "string y", 'value_string = "a"'),
        ("value_strings", "string[2] y", 'value_strings = ["a", ""]'),
        ("value_tensor", "int32[2] y", "value = int32[2] {1, 2}"),
        ("value_bool", "bool[2] y", "value = bool[2] {1, 0}"),
        ("value_double", "double[1] y", "value = double[1] {1.5}"),
    ):
        made = f"g (float[N,3] x) => (float[N,3] r, {declared}) {{ r = Relu(x) y = Constant<{attribute}>() }}"
        yield text(f"constant_{name}", made, X)
    for operator in ("value_int = 1", "value_ints = [1]"):
        yield text(
            f"constant_read_{operator.split()[0]}",
            f"g (float[N,3] x) => (float[N,3] y) {{ c = Constant<{operator}>() f = CastLike(c, x) y = Add(x, f) }}",
            X,
        )
    yield text(
        "constant_empty",
        "g (float[N,3] x) => (float[N,3] y) { c = Constant<value = int64[0] {}>() k = Constant<value_int = 0>() y = Identity(x) }",
        X,
    )
    node = helper.make_node("Constant", [], ["c"], value=weight("named", floats(3)))
    yield Odd(
        "constant_named_tensor",
        model([node, helper.make_node("Add", ["x", "c"], ["y"])], [value("x")], [value("y")]),
        X,
    )
    node = helper.make_node("ConstantOfShape", ["s"], ["y"], value=helper.make_tensor("v", TensorProto.INT64, [1], [7]))
    shape = weight("s", np.array([2, 0], np.int64))
    yield Odd("constant_of_shape_empty", model([node], [value("x")], [value("y", None, TensorProto.INT64)], [shape]), X)


def _coo(name: str, dense: np.ndarray, *, flat: bool = True) -> onnx.SparseTensorProto:
    at = np.argwhere(dense)
    values = dense[tuple(at.T)]
    where = np.ravel_multi_index(tuple(at.T), dense.shape) if flat else at
    return helper.make_sparse_tensor(
        numpy_helper.from_array(values, name),
        numpy_helper.from_array(np.asarray(where, np.int64), f"{name}_at"),
        list(dense.shape),
    )


def _sparse() -> Iterator[Odd]:
    dense = np.where(np.eye(3, 4) > 0, floats(3, 4), np.float32(0))
    for flat, ir in itertools.product((True, False), (5, 8, 10)):
        made = affine(ir=ir, opset=11)
        del made.graph.initializer[0]
        made.graph.sparse_initializer.append(_coo("w", dense, flat=flat))
        yield Odd(f"sparse_initializer_{'flat' if flat else 'pairs'}_{ir}", made, X)
    made = affine()
    del made.graph.initializer[0]
    made.graph.sparse_initializer.append(_coo("w", np.zeros((3, 4), np.float32)))
    yield Odd("sparse_initializer_empty", made, X)
    made = affine()
    made.graph.sparse_initializer.append(_coo("unused", dense))
    yield Odd("sparse_initializer_unused", made, X)
    made = affine()
    del made.graph.initializer[0]
    made.graph.sparse_initializer.append(_coo("w", dense))
    made.graph.output.append(value("w", (3, 4)))
    yield Odd("sparse_initializer_is_output", made, X)
    for dtype in (np.float16, np.float64, np.int64, np.int8):
        nodes = [
            helper.make_node("CastLike", ["x", "w"], ["c"]),
            helper.make_node("MatMul" if dtype != np.int8 else "Add", ["c", "w"], ["y"]),
        ]
        eye = np.eye(3).astype(dtype)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        made = model(nodes, [value("x", (3, 3))], [value("y", None, kind)])
        made.graph.sparse_initializer.append(_coo("w", eye))
        yield Odd(f"sparse_{np.dtype(dtype).name}", made, {"x": floats(3, 3)})
    node = helper.make_node("Constant", [], ["w"])
    node.attribute.append(helper.make_attribute("sparse_value", _coo("w", dense)))
    made = affine()
    del made.graph.initializer[0]
    made.graph.node.insert(0, node)
    yield Odd("constant_sparse_value", made, X)


def _encodings() -> Iterator[Odd]:
    """Values in typed fields, in raw bytes, of ranks and sizes at the edge."""
    for dtype, numbers in (
        (TensorProto.FLOAT, [1.0, 2.0]),
        (TensorProto.DOUBLE, [1.0, 2.0]),
        (TensorProto.FLOAT16, [1.0, 2.0]),
        (TensorProto.INT8, [1, -2]),
        (TensorProto.UINT8, [1, 2]),
        (TensorProto.INT16, [1, -2]),
        (TensorProto.UINT16, [1, 2]),
        (TensorProto.INT32, [1, -2]),
        (TensorProto.UINT32, [1, 2]),
        (TensorProto.INT64, [1, -2]),
        (TensorProto.UINT64, [1, 2]),
        (TensorProto.BOOL, [1, 0]),
        (TensorProto.BFLOAT16, [1.0, 2.0]),
        (TensorProto.FLOAT8E4M3FN, [1.0, 2.0]),
        (TensorProto.FLOAT8E5M2, [1.0, 2.0]),
        (TensorProto.INT4, [1, -2]),
        (TensorProto.UINT4, [1, 2]),
        (TensorProto.FLOAT4E2M1, [1.0, 2.0]),
    ):
        tensor = helper.make_tensor("w", dtype, [2], numbers)
        cast = helper.make_node("Cast", ["w"], ["c"], to=TensorProto.FLOAT)
        made = model(
            [cast, helper.make_node("Add", ["x", "c"], ["y"])],
            [value("x", ("N", 2))],
            [value("y", ("N", 2))],
            [tensor],
            ir=11,
            opset=23,
        )
        yield Odd(f"typed_{TensorProto.DataType.Name(dtype).lower()}", made, {"x": floats(3, 2)})
    for shape in ((), (1,), (0,), (2, 0, 3), (1, 1, 1, 1)):
        made = model(
            [helper.make_node("Identity", ["w"], ["y"])], [], [value("y", shape)], [weight("w", floats(*shape))]
        )
        yield Odd(f"initializer_shape_{'x'.join(map(str, shape)) or 'scalar'}", made, {})


def _external() -> Iterator[Odd]:
    matrix, bias = floats(3, 4), floats(4)
    blob = matrix.tobytes() + bias.tobytes()

    def referring(location: str, *places: tuple[int, int | None]) -> onnx.ModelProto:
        made = affine()
        for tensor, (offset, length) in zip(made.graph.initializer, places, strict=False):
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=location)
            if offset >= 0:
                tensor.external_data.add(key="offset", value=str(offset))
            if length is not None:
                tensor.external_data.add(key="length", value=str(length))
        return made

    whole = ((0, 48), (48, 16))
    yield Odd("external_one_file", referring("external_one_file.data", *whole), X, {"external_one_file.data": blob})
    yield Odd("external_no_length", referring("nolength.bin", (0, None), (48, None)), X, {"nolength.bin": blob})
    yield Odd("external_no_offset", referring("nooffset.bin", (-1, None)), X, {"nooffset.bin": matrix.tobytes()})
    yield Odd(
        "external_odd_offset",
        referring("odd.bin", (3, 48), (61, 16)),
        X,
        {"odd.bin": b"abc" + matrix.tobytes() + b"0123456789" + bias.tobytes() + b"end"},
    )
    yield Odd("external_overlap", referring("overlap.bin", (0, 48), (16, 16)), X, {"overlap.bin": matrix.tobytes()})
    yield Odd("external_subfolder", referring("sub/folder/w.bin", *whole), X, {"sub/folder/w.bin": blob})
    yield Odd("external_odd_name", referring("größe 😀 %20.bin", *whole), X, {"größe 😀 %20.bin": blob})
    yield Odd("external_dot_slash", referring("./dot.bin", *whole), X, {"dot.bin": blob})
    made = referring("keys.bin", *whole)
    made.graph.initializer[0].external_data.add(key="checksum", value="0" * 40)
    made.graph.initializer[0].external_data.add(key="prepacked_0", value="1")
    yield Odd("external_more_keys", made, X, {"keys.bin": blob})
    made = affine()
    weights = made.graph.initializer[0]
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="two.bin")
    made.graph.node.insert(0, helper.make_node("Constant", [], ["k"], value=weight("k", floats(4))))
    made.graph.node[-1].input[0] = "a"
    yield Odd("external_and_constant", made, X, {"two.bin": matrix.tobytes()})
    zero = model(
        [helper.make_node("Concat", ["x", "w"], ["y"], axis=0)], [value("x")], [value("y")], [weight("w", floats(0, 3))]
    )
    tensor = zero.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, entry in (("location", "zero.bin"), ("offset", "0"), ("length", "0")):
        tensor.external_data.add(key=key, value=entry)
    yield Odd("external_zero_bytes", zero, X, {"zero.bin": b"x"})
    for suffix in ("onnx.data", "weights", "bin.gz"):
        yield Odd(
            f"external_suffix_{suffix.replace('.', '_')}", referring(f"s.{suffix}", *whole), X, {f"s.{suffix}": blob}
        )
