"""A result that differs after a conversion to another opset names the operators that changed with the opset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.result import Result
from onnxsmith.editor.edit import edited
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.graph.surgery.node_insertion import Inserter
from onnxsmith.graph.surgery.raisings.operators import GroupScales

NORM = """<ir_version: 8, opset_import: ["": 20]>
g (float[2,4,3] x) => (float[2,4,3] y) <float[2] s = {0.5, 2}, float[2] b = {1, -1}> {
    a = Neg(x)  [norm] y = GroupNormalization<num_groups = 2, epsilon = 0.5>(a, s, b) }
"""


def forgets_epsilon(change: GroupScales, node: ir.Node, write: Inserter) -> str:
    node.attributes.pop("epsilon")
    return RIGHT(change, node, write)


RIGHT = GroupScales.rewrite


@pytest.mark.parametrize(
    "command",
    [
        lambda file, out: edited(file, out, lambda m: m.opset(21)),
        lambda file, out: onnxsmith.simplify(file, out, opset=21),
    ],
    ids=["opset", "simplify"],
)
def test_an_attribute_lost_on_the_way_up(
    command: Callable[[Path, Path], Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GroupScales, "rewrite", forgets_epsilon)
    save(from_text(NORM), tmp_path / "in.onnx")
    found = command(tmp_path / "in.onnx", tmp_path / "out.onnx").report.problems
    why = next(one.why for one in found if one.id == "verify/different")
    assert why.endswith(". Changed with the opset: GroupNormalization norm")
    assert not (tmp_path / "out.onnx").exists()


def test_operators_that_are_the_same_in_both_opsets_are_not_named() -> None:
    model = from_text(NORM)
    assert opset_conversion.rewritten(model, model) == []
    assert opset_conversion.rewritten(model, opset_conversion.convert(model, 21)) == ["GroupNormalization norm"]
