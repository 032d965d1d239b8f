"""`expose` of tensors around sequences: a tensor gets its rank from the elements, or is left out by name."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
SPLIT = """g (float[a,b] x) => (float[k,b] y) {
    s = SplitToSequence<axis = 0>(x) n = Neg(x) t = SequenceInsert(s, n)
    c = ConcatFromSequence<axis = 0>(t) y = Neg(c)
}"""
UNLIKE = """g (float[a,4] x, float[c] z) => (float[b,4] y) {
    n = Neg(x) s = SequenceConstruct(n, z) i = Constant<value_int = 0>() c = SequenceAt(s, i) y = Neg(c)
}"""


def exposed(text: str, *tensors: str, to: Path) -> tuple[dict[str, onnx.TypeProto], onnxsmith.Result]:
    source = to / "m.onnx"
    save(from_text(HEAD + text), source)
    with onnxsmith.edit(source, to / "o.onnx") as m:
        for tensor in tensors:
            m.expose(tensor)
    assert m.result is not None
    return {value.name: value.type for value in onnx.load(to / "o.onnx").graph.output}, m.result


def test_a_tensor_of_a_sequence_has_the_rank_of_its_elements(tmp_path: Path) -> None:
    outputs, result = exposed(SPLIT, "s", "c", to=tmp_path)
    assert outputs["s"].sequence_type.elem_type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert [dim.dim_param for dim in outputs["c"].tensor_type.shape.dim] == ["", "b"]
    assert "verified" in result.report.headline


def test_a_tensor_without_a_rank_is_left_out_by_name(tmp_path: Path) -> None:
    outputs, result = exposed(UNLIKE, "*", to=tmp_path)
    assert {"s", "n"} <= outputs.keys()
    assert "c" not in outputs
    assert "left out 1 tensor, c: its rank is unknown" in str(result.report.parts)


def test_a_single_tensor_without_a_rank_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError, match="edit/not-exposable: 'c' cannot be an output"):
        exposed(UNLIKE, "c", to=tmp_path)
