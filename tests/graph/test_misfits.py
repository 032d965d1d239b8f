"""A node that is no node of its operator, with an attribute of another type or without an operand, is not converted to
another opset, and says why."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest
from onnx import AttributeProto, helper

from onnxsmith.graph.structure import schema
from onnxsmith.graph.surgery.lowering import lowered
from onnxsmith.graph.surgery.lowerings.base import lowerings
from onnxsmith.graph.surgery.raising import raised
from onnxsmith.graph.surgery.raisings.base import raisings

OTHER = {AttributeProto.INT: "text", AttributeProto.STRING: 7}
CHANGED = sorted({*raisings(), *lowerings()})


def model(op_type: str, opset: int, operands: int, *, wrong: bool) -> ir.Model:
    form = schema.find(op_type, "", opset)
    assert form is not None
    names = {name: OTHER.get(int(kind), 7) for name, kind in form.attributes.items()} if wrong else {}
    node = helper.make_node(op_type, ["x"] * operands, ["y"], **names)
    port = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    made = helper.make_model(
        helper.make_graph([node], "g", [port], [result]), opset_imports=[helper.make_opsetid("", opset)]
    )
    return ir.from_proto(made)


@pytest.mark.parametrize(("op_type", "since"), CHANGED)
@pytest.mark.parametrize(("operands", "wrong"), [(0, False), (0, True), (1, True)])
def test_a_node_that_does_not_fit_its_operator(op_type: str, since: int, operands: int, wrong: bool) -> None:
    for opset, target in ((since - 1, since), (since, since - 1)):
        if schema.find(op_type, "", opset) is not None:
            made = model(op_type, opset, operands, wrong=wrong)
            raised(made, target) if target > opset else lowered(made, target)


def test_the_reason_names_the_attribute() -> None:
    _, errors = raised(model("Cast", 1, 1, wrong=True), 6)
    assert errors == ["Cast -> y: its attribute `to` is INT, not STRING"]
