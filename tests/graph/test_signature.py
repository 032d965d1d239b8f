"""What a model takes and gives, with a name for every dimension."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import Port, Signature, is_symbol, names_something, signature

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'


def of(inputs: str, outputs: str = "float y", more: str = "") -> Signature:
    return signature(from_text(f"{HEAD}g ({inputs}) => ({outputs}) {more} {{ y = Identity(x) }}"))


def with_dims(*dims: int | str | None, name: str = "x") -> Signature:
    """The signature of a model whose file says exactly these dimensions."""
    value = helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)
    graph = helper.make_graph(
        [helper.make_node("Abs", [name], ["y"])], "g", [value], [helper.make_value_info("y", onnx.TypeProto())]
    )
    return signature(load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)))


@pytest.mark.parametrize(
    ("dims", "shape"),
    [
        ((2, 3), (2, 3)),
        ((0,), (0,)),
        ((), ()),
        (("batch", "3*height"), ("batch", "3*height")),
        ((-1, -1), ("x.0", "x.1")),
        (("?", "-1", "", None), ("x.0", "x.1", "x.2", "x.3")),
        (("DynamicDimension.0",), ("DynamicDimension.0",)),
    ],
)
def test_every_dimension_has_a_size_or_a_name(dims: tuple[int | str | None, ...], shape: tuple[int | str, ...]) -> None:
    assert with_dims(*dims).inputs[0].shape == shape


def test_an_unknown_rank_has_no_shape() -> None:
    port = of("float[] x").inputs[0]
    assert (port.shape, str(port)) == (None, "float[?]")


@pytest.mark.parametrize(
    ("text", "dtype", "kind", "shown"),
    [
        ("float[2,n] x", "float", "tensor", "float[2,n]"),
        ("float x", "float", "tensor", "float[]"),
        ("bfloat16[1] x", "bfloat16", "tensor", "bfloat16[1]"),
        ("string[n] x", "string", "tensor", "string[n]"),
        ("seq(int64[n]) x", "int64", "sequence", "sequence(int64[n])"),
        ("optional(float[2]) x", "float", "optional", "optional(float[2])"),
        ("optional(seq(float[2])) x", "float", "optional", "optional(sequence(float[2]))"),
        ("sparse_tensor(float[2]) x", "float", "sparse", "sparse(float[2])"),
    ],
)
def test_the_kind_and_the_dtype_of_a_value_are_told(text: str, dtype: str, kind: str, shown: str) -> None:
    port = of(text).inputs[0]
    assert (port.dtype, port.kind, str(port)) == (dtype, kind, shown)


def test_a_value_without_a_type_is_undefined() -> None:
    assert with_dims(1).outputs[0].dtype == "undefined"


def test_inputs_and_outputs_keep_the_files_order() -> None:
    found = of("float x, int64 b, float a", "float y, float x")
    assert [port.name for port in found.inputs] == ["x", "b", "a"]
    assert [port.name for port in found.outputs] == ["y", "x"]


def test_an_input_with_an_initializer_is_not_required() -> None:
    found = of("float x, float w", more="<float w = {1}>")
    assert [(port.name, port.default) for port in found.inputs] == [("x", False), ("w", True)]
    assert [port.name for port in found.required()] == ["x"]


def test_an_initializer_that_is_no_input_is_none() -> None:
    assert [port.name for port in of("float x", more="<float w = {1}>").inputs] == ["x"]


@pytest.mark.parametrize(
    ("dim", "free"),
    [
        ("N", True),
        ("x.0", True),
        ("batch-size", True),
        ("DynamicDimension.0", True),
        ("unk__12", True),
        ("größe", True),
        ("2*N", False),
        ("N + 1", False),
        ("N-1", False),
        ("a - b", False),
        ("floor(h/2 - 1)", False),
        ("Max(1, N)", False),
        ("N%2", False),
    ],
)
def test_a_symbol_is_told_from_an_expression(dim: str, free: bool) -> None:
    assert is_symbol(dim) is free


@pytest.mark.parametrize(("dim", "named"), [("N", True), ("2*N", True), ("?", False), ("-1", False), ("", False)])
def test_a_dimension_without_a_letter_names_nothing(dim: str, named: bool) -> None:
    assert names_something(dim) is named


@pytest.mark.parametrize(
    ("shapes", "symbols"),
    [
        ([("b", 3), ("h", "b")], ("b", "h")),
        ([("b", "2*h"), ("h",)], ("b", "h")),
        ([("2*h",)], ("h",)),
        ([("floor(h/2 - 1) + 1", "Max(w_in, 1)")], ("h", "w_in")),
        ([("past + now", "batch-size")], ("past", "now", "batch-size")),
        ([(2, 3), None], ()),
    ],
)
def test_symbols_are_the_free_names_in_order(
    shapes: list[tuple[int | str, ...] | None], symbols: tuple[str, ...]
) -> None:
    inputs = tuple(Port(f"x{n}", "float", shape) for n, shape in enumerate(shapes))
    assert Signature(inputs, ()).symbols() == symbols


@pytest.mark.parametrize("name", ["input-ids", "a/b", "serving (default)", "x+1"])
def test_a_nameless_dimension_is_a_symbol_whatever_its_input_is_called(name: str) -> None:
    assert with_dims("?", 2, name=name).symbols() == (f"{name}.0",)


def test_symbols_of_defaults_are_not_asked_for() -> None:
    inputs = (Port("x", "float", ("n",)), Port("w", "float", ("m",), default=True))
    assert Signature(inputs, ()).symbols() == ("n",)


def test_a_model_built_in_memory_has_a_signature() -> None:
    value = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["n", None, 3]))
    graph = ir.Graph([value], [value], nodes=[], opset_imports={"": 20}, name="g")
    assert signature(ir.Model(graph, ir_version=10)).inputs == (Port("x", "float", ("n", "x.1", 3)),)
