"""`remove` of Casts with nodes between them: these take the other dtype, or the refusal names the one that cannot."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.graph.files.load import load
from tests.editor.models import saved
from tests.editor.test_edit_messages import refusal


def text(between: str, result: str = "p") -> str:
    return f"""<ir_version: 10, opset_import: ["": 17, "my": 1]>
    g (float16[n,4] x, bool[4] m) => (float16[n,4] y) <float[4] w = {{1,2,3,4}}, float16[4] h = {{1,2,3,4}}> {{
      [up] a = Cast<to = 1>(x)
      {between}
      [down] b = Cast<to = 10>({result})
      [last] y = Neg(b)
    }}
    <domain: "my", opset_import: ["": 17]> F (v) => (r) {{ r = Neg(v) }}"""


X = {"x": np.array([[1, -2, 3, 0.3]], np.float16), "m": np.array([True, False, True, False])}


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize(
    ("between", "result"),
    [
        ("[soft] p = Softmax(a)", "p"),
        ("[one] q = Tanh(a) [two] p = Mul(q, a)", "p"),
        ("[wide] w16 = Cast<to = 1>(h) [mul] p = Mul(a, w16)", "p"),
        ("[where] p = Where(m, a, a)", "p"),
        ("[split] q, r = Split<axis = 1>(a) [join] p = Concat<axis = 1>(r, q)", "p"),
        ("[top] s = Shape(a) [fill] z = Reshape(a, s) [soft] p = Softmax(z)", "p"),
    ],
)
def test_nodes_between_follow(between: str, result: str, same: bool, tmp_path: Path) -> None:
    path, out = saved(text(between, result), tmp_path), tmp_path / "out.onnx"
    names = ["up", "down", *(["wide"] if "wide" in between else [])]
    with onnxsmith.edit(path, out) as m:
        m.remove(names, same=same)
    assert m.result is not None
    part = m.result.report.part(Edits)
    assert "computed in float16, before in float32" in part.notes[0]
    assert part.changed == (() if same else ("y",))
    assert not [node for node in load(out).graph if node.op_type == "Cast"]
    before, after = (onnxsmith.run(one, X).outputs["y"] for one in (path, out))
    assert np.allclose(before.astype(np.float32), after.astype(np.float32), atol=4e-3)


@pytest.mark.parametrize(
    ("between", "names", "why"),
    [
        ("[mul] p = Mul(a, w)", ["up", "down"], "mul (Mul) would read float16 and float32"),
        ("[where] p = Where(m, a, w)", ["up", "down"], "where (Where) would read float16 and float32"),
        ("[call] p = my.F(a)", ["up", "down"], "call (my::F) reads this tensor"),
        ("[soft] p = Softmax(a)", ["up"], "down (Cast) would have nothing to do"),
        ("[soft] p = Softmax(a)", ["down"], "y is an output of the graph g, whose dtype has to stay float16"),
    ],
)
def test_a_node_that_cannot_follow_is_named(between: str, names: list[str], why: str, tmp_path: Path) -> None:
    found = refusal(saved(text(between), tmp_path), lambda m: m.remove(names))
    assert found.id == "edit/dtype"
    assert why in found.why
    if "nothing to do" in why:
        assert 'node = ["up", "down"]' in found.fix


def test_an_operator_without_the_dtype(tmp_path: Path) -> None:
    model = """<ir_version: 10, opset_import: ["": 18]>
    g (float16[n] x) => (int64[n] y) { [up] a = Cast<to = 7>(x) [and] b = BitwiseAnd(a, a) [to] y = Cast<to = 7>(b) }"""
    found = refusal(saved(model, tmp_path), lambda m: m.remove("up"))
    assert "and (BitwiseAnd) does not accept float16" in found.why


def test_a_body_that_reads_the_result(tmp_path: Path) -> None:
    model = """<ir_version: 10, opset_import: ["": 17]>
    g (float16[4] x, bool c) => (float[4] y) {
      [up] a = Cast<to = 1>(x)
      y = If(c) <then_branch = t () => (float[4] u) { u = Neg(a) }, else_branch = e () => (float[4] v) { v = Abs(a) }>
    }"""
    found = refusal(saved(model, tmp_path), lambda m: m.remove("up"))
    assert "is an output of the graph" in found.why


def test_the_fix_of_a_cast_behind_an_input_begins_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(
        """<ir_version: 8, opset_import: ["": 13]>
        g (uint8[1,1,4,4] img, float[1] k) => (float[1,1,4,4] y) <float[1,1,1,1] w = {2}> {
          [first] feat = Cast<to = 1>(img)  [conv] c = Conv(feat, w)  y = Mul(c, k) }""",
        tmp_path,
    )
    monkeypatch.chdir(tmp_path)
    found = refusal(path, lambda m: m.remove("first"))
    assert "conv (Conv) does not accept uint8" in found.why
    command = shlex.split(found.fix.split("`")[1])
    assert command == [
        *("onnxsmith", "extract", str(path), "--from", "feat", "--from", "k", "--to", "y", "-o", "part.onnx")
    ]  # fmt: skip
    with onnxsmith.edit(path, "part.onnx") as m:
        m.extract(["feat", "k"], ["y"])
    given = {"feat": np.full((1, 1, 4, 4), 1.5, np.float32), "k": np.array([3], np.float32)}
    assert np.array_equal(onnxsmith.run("part.onnx", given).outputs["y"], np.full((1, 1, 4, 4), 9, np.float32))
