"""What an edit leaves without a reader goes, and the IR version and the opset imports follow the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import parser
from typer.testing import CliRunner

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.cli.application import app
from onnxsmith.editor.graph_cleanup import no_longer_read, read_names
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import versions

VIEW = """<ir_version: 10, opset_import: ["": 17]> g (float[2,3,4] x) => (float[2,12] y)
<int64[1] zero = {0}, int64[1] minus = {-1}> {
    unread = Neg(x)
    s = Shape(x)
    n = Gather(s, zero)
    t = Concat<axis = 0>(n, minus)
    r = Relu(x)
    [view] y = Reshape(r, t)
}"""
BRANCH = """<ir_version: 8, opset_import: ["": 17]> g (bool c, float[2,3] x) => (float[2,3] y) {
    s = Shape(x)
    y = If (c) <
        then_branch = a () => (float[2,3] u) {
            z = Constant<value = int64[2] {2, 3}>()
            e = Expand(x, s)
            [body] u = Reshape(e, s)
        },
        else_branch = b () => (float[2,3] w) { w = Neg(x) }
    >
}"""


def command(*words: str | Path) -> int:
    return CliRunner().invoke(app, [str(word) for word in words]).exit_code


def saved(text: str, tmp_path: Path) -> Path:
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def operators(file: Path) -> list[str]:
    return [node.op_type for node in onnx.load(file).graph.node]


def test_what_computed_a_replaced_operand_goes(tmp_path: Path) -> None:
    out = tmp_path / "n.onnx"
    with onnxsmith.edit(saved(VIEW, tmp_path), out) as m:
        m.wire("view", input="shape", tensor=np.array([2, 12]))
    assert operators(out) == ["Neg", "Relu", "Reshape"], "what nothing read before the edit stays"
    assert [one.name for one in onnx.load(out).graph.initializer if one.name in ("zero", "minus")] == []
    assert m.result is not None
    note, constants = m.result.report.part(Edits).notes
    assert constants == "removed 2 constants that nothing reads: zero, minus"
    assert note.startswith("removed 3 nodes whose results no node reads any more: Concat")


def test_keep_unused_keeps_it_and_names_it(tmp_path: Path) -> None:
    out = tmp_path / "n.onnx"
    with onnxsmith.edit(saved(VIEW, tmp_path), out, keep_unused=True) as m:
        m.wire("view", input="shape", tensor=np.array([2, 12]))
    assert operators(out) == ["Neg", "Shape", "Gather", "Concat", "Relu", "Reshape"]
    assert m.result is not None
    (note,) = m.result.report.part(Edits).notes
    assert note.startswith("no node reads the results of 3 nodes any more: Concat")


def test_the_command_has_the_option(tmp_path: Path) -> None:
    source, out = saved(VIEW, tmp_path), tmp_path / "n.onnx"
    (tmp_path / "p.toml").write_text('[[step]]\ndo = "wire"\nnode = "view"\ninput = "data"\ntensor = "x"\n')
    assert command("edit", source, tmp_path / "p.toml", "-o", out, "--keep-unused") == 0
    assert "Relu" in operators(out)
    assert command("edit", source, tmp_path / "p.toml", "-o", out) == 0
    assert "Relu" not in operators(out)


def test_a_node_that_only_a_dead_branch_reads_is_dead_too(tmp_path: Path) -> None:
    model = load(saved(BRANCH, tmp_path))
    before = read_names(model)
    chosen = model.graph[-1]
    y = model.graph.outputs[0]
    relu = ir.node("Relu", [model.graph.inputs[1]])
    model.graph.append(relu)
    model.graph.outputs[0] = relu.outputs[0]
    dead = no_longer_read(model, before, {})
    assert [node.op_type for node in dead] == ["Constant", "If", "Shape"]
    assert dead[1] is chosen is y.producer()


def test_a_dead_node_in_a_branch_goes(tmp_path: Path) -> None:
    out = tmp_path / "n.onnx"
    with onnxsmith.edit(saved(BRANCH, tmp_path), out) as m:
        m.wire("body", input="data", tensor="x")
    (chosen,) = [node for node in onnx.load(out).graph.node if node.op_type == "If"]
    then = next(one.g for one in chosen.attribute if one.name == "then_branch")
    assert [node.op_type for node in then.node] == ["Reshape"]


def test_a_new_node_without_a_reader_stays(tmp_path: Path) -> None:
    model = load(saved(VIEW, tmp_path))
    before = read_names(model)
    model.graph.append(ir.node("Relu", [model.graph.inputs[0]]))
    assert no_longer_read(model, before, {}) == []


CONV = """<ir_version: 10, opset_import: ["": {opset}, "com.unused": 1]> g (float[2,3] x) => (float[2,3] y)
<float[3] w = {{1, 2, 3}}> {{ y = Add(x, w) }}"""


@pytest.mark.parametrize(("start", "end"), [(17, 7), (17, 11), (17, 13), (13, 18), (11, 21), (7, 23), (21, 13)])
def test_a_conversion_writes_the_ir_version_of_its_opset(start: int, end: int, tmp_path: Path) -> None:
    out = tmp_path / "n.onnx"
    with onnxsmith.edit(saved(CONV.format(opset=start), tmp_path), out) as m:
        m.opset(end)
    written = onnx.load(out)
    own = [one for one in written.opset_import if one.domain == ""]
    assert written.ir_version == max(4, onnx.helper.find_min_ir_version_for(own)), "constants need version 4"
    assert [one.domain for one in written.opset_import] == [""], "nothing needs the other import"


def test_local_functions_and_new_dtypes_need_a_later_ir_version(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 17, "own": 1]> g (float[2] x) => (float[2] y) { y = own.twice(x) }
    <domain: "own", opset_import: ["": 17]> twice (a) => (b) { b = Add(a, a) }"""
    model = load(saved(text, tmp_path))
    assert versions.least_ir(model) == 8
    model.functions.clear()
    assert versions.least_ir(model) == 8, "opset 17 came with 8"
    model.graph.inputs[0].type = ir.TensorType(ir.DataType.INT4)
    assert versions.least_ir(model) == 10


@pytest.mark.parametrize("version", [9, 10])
def test_an_ir_version_that_the_user_chooses(version: int, tmp_path: Path) -> None:
    out = tmp_path / "n.onnx"
    source = saved(CONV.format(opset=17), tmp_path)
    assert command("opset", source, "13", "--ir-version", str(version), "-o", out) == 0
    assert onnx.load(out).ir_version == version


def test_the_same_opset_keeps_the_ir_version_unless_one_is_asked(tmp_path: Path) -> None:
    out = tmp_path / "n.onnx"
    source = saved(CONV.format(opset=17), tmp_path)
    assert command("opset", source, "17", "-o", out) == 0
    assert onnx.load(out).ir_version == 10
    assert command("opset", source, "17", "--ir-version", "8", "-o", out) == 0
    assert onnx.load(out).ir_version == 8


@pytest.mark.parametrize("version", [3, 99])
def test_an_ir_version_that_the_model_cannot_have_is_refused(version: int, tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError) as raised, onnxsmith.edit(saved(CONV.format(opset=17), tmp_path)) as m:
        m.opset(13, ir_version=version)
    assert raised.value.problem.id == "edit/ir-version"
    assert "7 to" in raised.value.problem.fix
