"""What tells one failure from another: neither names nor numbers, nor what a file happens to declare."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import onnxsmith
from onnxsmith.base.problem import Problem
from onnxsmith.comparison.reduction.checks.base import mark
from tests.comparison.reduction.planted import Chain

SAID = 'In Node, ({node}, Softmax, "", -1) : ("{x}": tensor(float),) -> ("{y}"{type},) , Error Unrecognized {what}'


def said(node: str = '"n"', what: str = "attribute: axes", declared: str = "", y: str = "y") -> str:
    why = SAID.format(node=node, x="x", y=y, type=declared, what=what)
    return mark(Problem("runtime/failed", "onnxruntime refused or failed", why=why), frozenset({"n", "x", "y", "z"}))


def test_declared_types_make_no_difference() -> None:
    assert said() == said(declared=": tensor(float)") == said(node='"other"', y="z")


@pytest.mark.parametrize("what", ["attribute: axis", "operator"])
def test_another_error_does(what: str) -> None:
    assert said() != said(what=what)


@pytest.mark.parametrize("folder", ["/tmp/onnxsmith-ab12/", "C:\\Users\\a\\AppData\\Local\\Temp\\onnxsmith-cd34\\"])
def test_folders_make_no_difference(folder: str) -> None:
    marks = {
        mark(Problem("runtime/failed", "refused", why=f"Load model from {place}m.onnx failed: no"), frozenset())
        for place in (folder, folder.replace("onnxsmith-", "onnxsmith-x"))
    }
    assert marks == {"runtime/failed: refused Load model from / failed: no"}


def test_a_node_whose_output_is_declared_is_left_alone() -> None:
    chain = Chain()
    x = chain.add("Softmax", chain.through("x", 4), axes=[1])
    y = chain.add("Add", x, chain.add("Mul", x, x))
    model: onnx.ModelProto = chain.model(y, shape=(2, 4))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(y, TensorProto.FLOAT, [2, 4]))
    result = onnxsmith.reduce(model, check="refuses onnxruntime")
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Softmax"]
