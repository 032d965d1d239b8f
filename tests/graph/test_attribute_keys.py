"""Keys of attributes: what each of the three strengths holds equal."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import attribute_keys


def _tensor(array: object) -> ir.Attr:
    return ir.AttrTensor("a", ir.tensor(np.asarray(array, np.float32)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(ir.AttrFloat32("a", 0.1), ir.AttrFloat32("b", float(np.float32(0.1))), id="rounded as in a file"),
        pytest.param(ir.AttrInt64s("a", [1, 2]), ir.AttrInt64s("a", (1, 2)), id="list and tuple"),
        pytest.param(_tensor([1, 2]), _tensor([1, 2]), id="tensors"),
        pytest.param(
            ir.RefAttr("a", "p", ir.AttributeType.INT), ir.RefAttr("b", "p", ir.AttributeType.INT), id="references"
        ),
        pytest.param(
            ir.AttrTensor("a", ir.StringTensor([b"x"], shape=ir.Shape([1]))),
            ir.AttrTensor("a", ir.tensor(["x"])),
            id="texts",
        ),
    ],
)
def test_equal(one: ir.Attr, other: ir.Attr) -> None:
    assert attribute_keys.exact(one) == attribute_keys.exact(other)
    assert attribute_keys.value(one) == attribute_keys.value(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(ir.AttrFloat32("a", 0.0), ir.AttrFloat32("a", -0.0), id="signs of zero"),
        pytest.param(ir.AttrInt64("a", 1), ir.AttrFloat32("a", 1.0), id="types"),
        pytest.param(ir.AttrInt64("a", 1), ir.AttrInt64s("a", [1]), id="number and list"),
        pytest.param(_tensor([1, 2]), _tensor([[1, 2]]), id="shapes"),
        pytest.param(_tensor([0.0]), _tensor([-0.0]), id="bits of a tensor"),
        pytest.param(
            ir.RefAttr("a", "p", ir.AttributeType.INT), ir.RefAttr("a", "q", ir.AttributeType.INT), id="references"
        ),
        pytest.param(
            ir.AttrGraph("a", ir.Graph([], [], nodes=[])), ir.AttrGraph("a", ir.Graph([], [], nodes=[])), id="bodies"
        ),
    ],
)
def test_unequal(one: ir.Attr, other: ir.Attr) -> None:
    assert attribute_keys.exact(one) != attribute_keys.exact(other)
    assert attribute_keys.value(one) != attribute_keys.value(other)


def test_only_the_value_takes_all_nans_for_one() -> None:
    one, other = ir.AttrFloat32s("a", [float("nan"), 1.0]), ir.AttrFloat32s("a", [-float("nan"), 1.0])
    assert attribute_keys.value(one) == attribute_keys.value(other)
    assert attribute_keys.exact(one) != attribute_keys.exact(other)


def test_literals() -> None:
    one, other = ir.node("Relu", [], {"x": 1, "y": [1.0]}), ir.node("Relu", [], {"y": [1.0], "x": 1})
    assert attribute_keys.literals(one) == attribute_keys.literals(other)
    assert attribute_keys.literals(ir.node("Relu", [])) != attribute_keys.literals(one)
    for attribute in (_tensor([1]), ir.RefAttr("a", "p", ir.AttributeType.INT)):
        assert attribute_keys.literals(ir.Node("", "Relu", [], [attribute])) is None


def _body(text: str, zero: str = "0.0") -> object:
    model = from_text(f"""<ir_version: 10, opset_import: ["": 20]> g (bool c, float[2] x) => (y) {{
        y = If (c) <then_branch = t () => (float[2] p) <float z = {{{zero}}}> {{ {text} }},
                    else_branch = e () => (float[2] q) {{ q = Identity(x) }}> }}""")
    return attribute_keys.of_body(model.graph)


def test_bodies() -> None:
    """Operators, attributes, names and stored tensors count, in nested bodies, too; declared types do not."""
    same = _body("p = LeakyRelu<alpha = 0.5>(x)")
    assert same == _body("p = LeakyRelu<alpha = 0.5>(x)")
    assert same != _body("p = LeakyRelu<alpha = 0.25>(x)")
    assert same != _body("p = Elu<alpha = 0.5>(x)")
    assert same != _body("r = LeakyRelu<alpha = 0.5>(x)\n p = Identity(r)")
    assert _body("p = Add(x, z)") == _body("p = Add(x, z)")
    assert _body("p = Add(x, z)") != _body("p = Add(x, z)", "-0.0")
