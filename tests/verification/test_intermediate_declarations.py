"""What a file declares for intermediate tensors, compared with what follows from its inputs."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.intermediate_declarations import correct_intermediates, wrong_intermediates

TEXT = """<ir_version: 8, opset_import: ["": 17]> g (float[n,4] x, int64[k] i) => (float[rows,4] y)
<int64[2] target = {-1, 4}> {
    a = Concat<axis = 0>(x, x)
    b = Relu(a)
    c = NonZero(b)
    d = Cast<to = 1>(c)
    e = Transpose(d)
    y = Gather<axis = 0>(b, i)
}"""


def model(name: str, dtype: ir.DataType, shape: list[int | str | None] | None) -> tuple[ir.Model, ir.Value]:
    made = from_text(TEXT)
    value = next(value for node in made.graph for value in node.outputs if value.name == name)
    value.type, value.shape = ir.TensorType(dtype), None if shape is None else ir.Shape(shape)
    return made, value


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "right"),
    [
        ("b", ir.DataType.FLOAT, [2, 4], ["2*n", 4]),  # a size that follows from a free one
        ("b", ir.DataType.FLOAT, ["n", 4], ["2*n", 4]),  # an expression over the same names
        ("b", ir.DataType.FLOAT, ["2*n", 5], ["2*n", 4]),  # another size
        ("b", ir.DataType.FLOAT, ["2*n", "n"], ["2*n", 4]),  # a free size that is fixed
        ("b", ir.DataType.FLOAT, ["2*n"], ["2*n", 4]),  # the rank
        ("b", ir.DataType.DOUBLE, ["2*n", 4], ["2*n", 4]),  # the dtype
        ("c", ir.DataType.INT64, [3, "n"], [2, None]),  # a name that inference made up stays open
    ],
)
def test_a_wrong_declaration_is_replaced(
    name: str, dtype: ir.DataType, shape: list[int | str | None], right: list[int | str | None]
) -> None:
    made, value = model(name, dtype, shape)
    assert wrong_intermediates(made) == "1 intermediate tensor is declared with a wrong shape or dtype"
    assert correct_intermediates(made).endswith("declared with a wrong shape or dtype, which was corrected")
    assert value.shape is not None
    assert [dim if isinstance(dim, int) else dim.value for dim in value.shape] == right
    assert value.dtype == (ir.DataType.INT64 if name == "c" else ir.DataType.FLOAT)
    assert correct_intermediates(made) == ""


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("b", ["2*n", 4]),
        ("b", ["n + n", 4]),
        ("b", ["rows", 4]),  # a name of its own may be equal in every run
        ("b", [None, 4]),
        ("b", None),
        ("c", [2, "found"]),
    ],
)
def test_a_right_or_open_declaration_stays(name: str, shape: list[int | str | None] | None) -> None:
    made, value = model(name, ir.DataType.INT64 if name == "c" else ir.DataType.FLOAT, shape)
    assert correct_intermediates(made) == ""
    assert (value.shape is None) == (shape is None)
    assert value.shape is None or [dim if isinstance(dim, int) else dim.value for dim in value.shape] == shape
