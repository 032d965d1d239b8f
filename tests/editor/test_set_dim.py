"""`set-dim`: frozen sizes become symbolic, each row is the original's, and what cannot be opened is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.editor.dims.row_comparison import Rows
from onnxsmith.editor.dims.tried_sizes import tried
from onnxsmith.editor.edit import Edit
from onnxsmith.editor.edited_model import Work
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.verification.sessions import verify_models
from tests.editor.models import saved

HEAD = '<ir_version: 10, opset_import: ["": 21, "my": 1]>\n'
ROWS = {
    "an existing -1 elsewhere": """g (float[2,3,4] x) => (float[2,12] y) <int64[2] s = {2,-1}>
      { y = Reshape(x, s) }""",
    "a frozen Reshape": """g (float[2,3,4] x) => (float[6,4] y) <int64[2] s = {6,4}>
      { a = Reshape(x, s) y = Relu(a) }""",
    "a batch of one": """g (float[1,3,4] x) => (float[1,4,3] y) <int64[3] s = {1,4,3}>
      { y = Reshape(x, s) }""",
    "a batch behind another axis": """g (float[2,3,4] x) => (float[2,3,4] y) <int64[2] s = {3,8}, int64[3] t = {3,2,4}>
      { a = Transpose<perm = [1,0,2]>(x) b = Reshape(a, s) c = Sqrt(b) d = Reshape(c, t)
        y = Transpose<perm = [1,0,2]>(d) }""",
    "a frozen Expand": """g (float[2,1,4] x) => (float[2,3,4] y) <int64[3] s = {2,3,4}>
      { y = Expand(x, s) }""",
    "an expanded token": """g (float[2,3,4] x) => (float[2,4,4] y) <float[1,1,4] w = {1,2,3,4}, int64[3] s = {2,1,4}>
      { t = Expand(w, s) y = Concat<axis = 1>(t, x) }""",
    "frozen sizes of Resize": """g (float[2,3,4,4] x) => (float[2,3,8,8] y) <int64[4] s = {2,3,8,8}>
      { y = Resize<mode = "nearest">(x, , , s) }""",
    "a Transpose of one row that was written as a Reshape": """g (float[1,3,4] x) => (float[1,3,4] y)
      <int64[3] s = {1,3,4}> { a = Transpose<perm = [1,0,2]>(x) b = Neg(a) c = Reshape(b, s) y = Exp(c) }""",
    "pads that nodes compute from a constant": """g (float[1,3,4] x) => (float[1,18] y)
      <int64[6] p = {0,0,0,0,1,1}, int64[2] s = {3,2}, int64[1] f = {-1}, int64[2] t = {1,18}> {
        a = Reshape(p, s) b = Transpose(a) q = Reshape(b, f) c = Pad(x, q) d = Relu(c) y = Reshape(d, t) }""",
    "numbers of the rows": """g (float[3,4] x) => (float[3] y) <int64[3,2] at = {0,1,1,1,2,1}>
      { y = GatherND(x, at) }""",
    "the number of a single row": """g (float[1,4] x) => (float[1,2] y) <int64[1,2,2] at = {0,1,0,3}>
      { y = GatherND(x, at) }""",
    "places in rows that lie one behind another": """g (float[2,3] x) => (float[2,2] y)
      <int64[1] end = {-1}, int64[1,2] k = {0,2}, int64[2,1] rows = {0,1}, int64[1] one = {1}> {
        s = Shape(x) wide = Gather(s, one) at = Mul(rows, wide) i = Add(at, k)
        flat = Reshape(x, end) y = Gather(flat, i) }""",
    "a constant expanded to the batch": """g (float[2,3] x) => (float[2,3] y)
      <float[2,3] w = {1,2,3,1,2,3}> { s = Shape(x) e = Expand(w, s) y = Mul(x, e) }""",
    "an int32 Slice": """g (float[4,6] x) => (float[4,3] y) <int32[2] s = {0,3}, int32[2] e = {4,6}>
      { y = Slice(x, s, e) }""",
    "a constant of rows": """g (float[2,2] x) => (float[2,2] y) <float[2,2] b = {1,2,1,2}> { y = Add(x, b) }""",
    "a shared constant": """g (float[4,2] x) => (float[4,2] y, float[4,2] z)
      <int64[2] s = {4,2}, float[8] w = {1,2,3,4,5,6,7,8}>
      { y = Reshape(x, s) m = Reshape(w, s) t = Transpose(m) g = MatMul(t, m) z = MatMul(x, g) }""",
    "a branch": """g (float[2,4] x, bool c) => (float[2,2,2] y) <int64[3] s = {2,2,2}> {
      y = If(c) <then_branch = t () => (float[2,2,2] a) { a = Reshape(x, s) },
        else_branch = e () => (float[2,2,2] b) { n = Neg(x) b = Reshape(n, s) }> }""",
    "a loop": """g (float[2,4] x) => (float[2,4] y)
      <bool go = {1}, int64 k = {3}, int64[2] s = {4,2}, int64[2] t = {2,4}> {
      y = Loop(k, go, x) <body = b (int64 i, bool c, float[2,4] v) => (bool c2, float[2,4] v2) {
        c2 = Identity(c) a = Reshape(v, s) n = Tanh(a) v2 = Reshape(n, t) }> }""",
    "local functions": """g (float[2,4] x) => (float[2,2,2] y, float[2] z)
      <int64[3] s = {2,2,2}, float[8] w = {1,2,3,4,5,6,7,8}, int64[3] o = {0,1,2}, int64[1] n = {1}> {
        y = my.Shaped(x, s) v = my.Shaped(w, s)
        u = ReduceSum<keepdims = 0>(v, o) q = ReduceSum<keepdims = 0>(x, n) z = Add(q, u) }
      <domain: "my", opset_import: ["": 21]> Shaped (v, s) => (r) { r = Reshape(v, s) }""",
}


CHOICES = {
    "the last of two dimensions of 1": """g (float[1,6] x) => (float[1,4] y)
      <int64[3] s = {1,1,6}, int64[2] t = {1,6}, float[6,4] w = {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4},
       int64[1] zero = {0}> { a = Reshape(x, s) b = ReduceMax<keepdims = 0>(a, zero) y = MatMul(b, w) }""",
    "the first of two dimensions of 1": """g (float[1,6] x) => (float[1,1,6] y)
      <int64[3] s = {1,1,6}> { a = Reshape(x, s) y = Softmax<axis = 1>(a) }""",
    "a 0 that is added to indices of rows that lie one behind another": """g (float[1,3,4] x, int64[1,3] at)
      => (float[3,4] y) <int64[2] s = {3,4}, int64[1,1] first = {0}, int64[1] flat = {-1}> {
      a = Reshape(x, s) i = Add(at, first) j = Reshape(i, flat) y = Gather(a, j) }""",
    "a 0 for each row, and one that numbers them": """g (float[1,5,4] x, int64[1] at) => (float[1,4] y)
      <int64[1,1,4] zeros = {0,0,0,0}, int64[1,1] rows = {0}, int64[1] one = {1}, float[1,1,4] v = {7,7,7,7}> {
      s = ScatterElements<axis = 1>(x, zeros, v)
      c = Unsqueeze(at, one) i = Concat<axis = 1>(rows, c) y = GatherND(s, i) }""",
    "a 0 that numbers the only row": """g (float[1,5,4] x, int64[1] at) => (float[1,4] y)
      <int64[1,1] rows = {0}, int64[1] one = {1}> {
      c = Unsqueeze(at, one) i = Concat<axis = 1>(rows, c) y = GatherND(x, i) }""",
}
SCATTERED = {
    "zeros that rows are written into": """g (float[2,3] x) => (float[2,4] y)
      <float[2,4] data = {0,0,0,0,0,0,0,0}, int64[2,3,2] at = {0,0,0,1,0,2,1,0,1,1,1,2}> {
      y = ScatterND(data, at, x) }""",
    "ones that are counted": """g (int64[2,3] x) => (float[2,5] y)
      <float[2,5] data = {0,0,0,0,0,0,0,0,0,0}, float[2,3] ones = {1,1,1,1,1,1}> {
      y = ScatterElements<axis = 1, reduction = "add">(data, x, ones) }""",
}
MASK = """g (float[1,6] x, int64[1] length) => (float[1,6] y) <int64[1,6] at = {0,1,2,3,4,5}, int64[1] one = {1}> {
  n = Unsqueeze(length, one) keep = Less(at, n) m = Cast<to = 1>(keep) y = Mul(x, m) }"""


STATE = (
    HEAD
    + """g (float[5,2,3] x) => (float[1,2,1] h)
  <float[1,4,3] w = {1,2,3,1,2,3,1,2,3,1,2,3}, float[1,4,1] r = {1,2,3,4}, float[1,2,1] z = {0,0}>
  { q, h = LSTM<hidden_size = 1>(x, w, r, , , z, z) }"""
)


def part(m: Edit) -> Verification:
    assert m.result is not None
    return next(one for one in m.result.report.parts if isinstance(one, Verification))


@pytest.mark.parametrize("kind", list(ROWS))
def test_axis_0_becomes_symbolic_and_each_row_is_the_originals(kind: str, tmp_path: Path) -> None:
    path = saved(HEAD + ROWS[kind], tmp_path)
    with onnxsmith.edit(path, tmp_path / "dynamic.onnx") as m:
        m.set_dim("x:0=batch")
    assert [note for note in part(m).notes if "each row agrees with the original" in note], part(m)
    assert m.result is not None
    assert m.result.ok
    shape = onnxsmith.load(tmp_path / "dynamic.onnx").graph.inputs[0].shape
    assert shape is not None
    assert str(shape[0]) == "batch"


def test_the_rows_are_those_of_the_original(tmp_path: Path) -> None:
    path = saved(HEAD + ROWS["a batch behind another axis"], tmp_path)
    with onnxsmith.edit(path, tmp_path / "dynamic.onnx") as m:
        m.set_dim("x:0=batch")
    x = np.random.default_rng(0).random((6, 3, 4)).astype(np.float32)
    whole = onnxsmith.run(tmp_path / "dynamic.onnx", {"x": x}).outputs["y"]
    for at in (0, 2, 4):
        assert np.array_equal(whole[at : at + 2], onnxsmith.run(path, {"x": x[at : at + 2]}).outputs["y"])


def test_a_state_follows_the_batch_on_axis_1(tmp_path: Path) -> None:
    path = saved(STATE, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:1=batch")
    assert [note for note in part(m).notes if "each row agrees with the original" in note], part(m)
    assert onnxsmith.run(path, {"x": np.ones((5, 7, 3), np.float32)}).outputs["h"].shape == (1, 7, 1)


def refused(text: str, dims: str | list[str], folder: Path) -> onnxsmith.OnnxsmithError:
    path = saved(HEAD + text, folder)
    before = path.read_bytes()
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.set_dim(dims)
    assert path.read_bytes() == before
    assert [one.name for one in folder.iterdir()] == [path.name]
    assert caught.value.problem.fix
    return caught.value


def test_a_node_that_keeps_the_size_is_named_with_the_reason(tmp_path: Path) -> None:
    text = "g (float[2,3] x) => (float[2,3] y) <float[2,3] b = {1,2,3,4,5,6}> { [sum] y = Add(x, b) }"
    problem = refused(text, "x:0=batch", tmp_path).problem
    assert problem.id == "edit/frozen-dim"
    assert "sum" in problem.where
    assert "another value at each index of axis 0" in problem.why


def test_an_input_that_holds_the_same_dimension_is_named(tmp_path: Path) -> None:
    text = "g (float[2,3] x, float[2,3] w) => (float[2,3] y) { y = Add(x, w) }"
    problem = refused(text, "x:0=batch", tmp_path).problem
    assert problem.id == "edit/frozen-dim"
    assert '"w:0=batch"' in problem.fix
    with onnxsmith.edit(tmp_path / "model.onnx") as m:
        m.set_dim(["x:0=batch", "w:0=batch"])
    assert [note for note in part(m).notes if "each row agrees with the original" in note]


def test_one_text_names_several_inputs(tmp_path: Path) -> None:
    path = saved(HEAD + "g (float[2,3] x, float[2,3] w) => (float[2,3] y) { y = Add(x, w) }", tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:0=batch,1=n, w:0=batch,1=n")
    assert [str(value.shape) for value in onnxsmith.load(path).graph.inputs] == ["[batch,n]", "[batch,n]"]
    with onnxsmith.edit(path) as m:
        m.set_dim("batch=4,n=3")
    assert [str(value.shape) for value in onnxsmith.load(path).graph.inputs] == ["[4,3]", "[4,3]"]


def test_operators_of_a_runtime_are_followed_as_what_they_are(tmp_path: Path) -> None:
    """The zero states of a quantised LSTM follow the batch, as those of an LSTM do."""
    names = "w, r, ws, wz, rs, rz"
    text = f"""<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
    g (float[5,1,4] x, {names.replace(", ", ", float ")}) => (float[5,1,1,3] y, float[1,1,3] h) {{
      zero = Constant<value = float[1,1,3] {{0,0,0}}>()
      y, h = com.microsoft.DynamicQuantizeLSTM<hidden_size = 3>(x, w, r, , , zero, zero, , ws, wz, rs, rz) }}"""
    model = from_text(text.replace("x, w, float r", "x, float w, float r"))
    random = np.random.default_rng(0)
    given = {
        "w": random.integers(-99, 99, (1, 4, 12), np.int8), "r": random.integers(-99, 99, (1, 3, 12), np.int8),
        "ws": np.float32([0.01]), "rs": np.float32([0.02]), "wz": np.int8([0]), "rz": np.int8([0]),
    }  # fmt: skip
    for value in [one for one in model.graph.inputs if one.name in given]:
        model.graph.inputs.remove(value)
        value.const_value = ir.tensor(given[str(value.name)], name=value.name)
        value.type, value.shape = ir.TensorType(value.const_value.dtype), ir.Shape(value.const_value.shape)
        model.graph.register_initializer(value)
    onnxsmith.save(model, tmp_path / "model.onnx")
    with onnxsmith.edit(tmp_path / "model.onnx") as m:
        m.set_dim("x:1=n")
    outputs = onnxsmith.load(tmp_path / "model.onnx").graph.outputs
    assert [str(value.shape) for value in outputs] == ["[5,1,n,3]", "[1,n,3]"]


def test_weights_that_a_node_sums_over_are_not_repeated(tmp_path: Path) -> None:
    """The map is one pixel here. At another size the trained weight would have to be another one."""
    text = """g (float[1,2,4] x) => (float[1,3] y) <float[2,3] w = {1,2,3,4,5,6}, int64[2] s = {1,2}> {
      a = AveragePool<kernel_shape = [4]>(x) b = Reshape(a, s) y = Gemm(b, w) }"""
    problem = refused(text, "x:2=length", tmp_path).problem
    assert problem.id == "edit/frozen-dim"
    assert "its weights w fit only the size 2" in problem.why
    assert "change the layout of the input" in problem.fix
    assert "export" not in problem.fix


def test_the_last_row_stays_the_last(tmp_path: Path) -> None:
    text = """g (float[1,5,3] x) => (float[1,3] y, float[1,1,3] z) <int64 last = {4}, int64[1] s = {4},
      int64[1] e = {5}, int64[1] one = {1}> { y = Gather<axis = 1>(x, last) z = Slice(x, s, e, one) }"""
    path = saved(HEAD + text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:1=n")
    x = np.random.default_rng(0).random((1, 8, 3)).astype(np.float32)
    found = onnxsmith.run(path, {"x": x}).outputs
    assert np.array_equal(found["y"], x[:, -1])
    assert np.array_equal(found["z"], x[:, -1:])


@pytest.mark.parametrize("number", ["float five = {5}", "float[1] five = {5}", "float[1,1] five = {5}"])
def test_the_divisor_of_a_mean_follows(number: str, tmp_path: Path) -> None:
    text = f"""g (float[1,5,3] x) => (float[1,3] y) <{number}, int64[1] at = {{1}}> {{
      a = ReduceSum<keepdims = 0>(x, at) y = Div(a, five) }}"""
    path = saved(HEAD + text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:1=n")
    x = np.random.default_rng(0).random((1, 8, 3)).astype(np.float32)
    np.testing.assert_allclose(onnxsmith.run(path, {"x": x}).outputs["y"], x.mean(axis=1), rtol=1e-6)


def test_a_constant_that_may_hold_the_size_is_named(tmp_path: Path) -> None:
    text = """g (float[1,5,3] x) => (float[1,3] y) <float five = {5}, int64[1] at = {1}> {
      a = Div(x, five) b = Relu(a) y = ReduceMax<keepdims = 0>(b, at) }"""
    path = saved(HEAD + text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:1=n")
    assert any("keeps five, in which the number 5 may be the size of n" in one for one in part(m).untried)


def test_windows_keep_their_size(tmp_path: Path) -> None:
    """Six rows in windows of two become n / 2 windows; joined, they are n rows again."""
    text = """g (float[1,6,4] x) => (float[1,6,4] y, float[1,3,8] z)
      <int64[4] s = {1,3,2,4}, int64[3] t = {1,6,4}, int64[3] u = {1,3,8}> {
        a = Reshape(x, s) b = Relu(a) c = Reshape(b, t) y = Add(c, x) z = Reshape(b, u) }"""
    path = saved(HEAD + text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:1=n")
    x = np.random.default_rng(0).random((1, 10, 4)).astype(np.float32)
    found = onnxsmith.run(path, {"x": x}).outputs
    assert np.array_equal(found["y"], 2 * x)
    assert np.array_equal(found["z"], x.reshape(1, 5, 8))
    assert str(onnxsmith.load(path).graph.outputs[0].shape) == "[1,n,4]"


def test_an_output_that_is_no_tensor_is_not_compared_by_rows(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 3]>
      g (float[2,3] x) => (float[2,3] y, seq(map(int64, float)) z) {
        y = Relu(x) z = ai.onnx.ml.ZipMap<classlabels_int64s = [0, 1, 2]>(y) }"""
    path = saved(text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:0=n")
    assert any("no axis of z has the size n" in one for one in part(m).untried)
    assert str(onnxsmith.load(path).graph.outputs[0].shape) == "[n,3]"


def test_outputs_of_unknown_operators_are_declared_as_the_runs_show(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["": 17, "com.microsoft": 1]>
    g (float[1,3] x) => (float[1,1,3] y) <int32 at = {0}> { a = Abs(x) y = com.microsoft.ExpandDims(a, at) }"""
    path = saved(text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:0=n")
    assert onnxsmith.load(path).graph.outputs[0].shape == (None, "n", 3)
    assert any("y was declared as float[n,1,3]" in one for one in part(m).untried)
    assert any("each row agrees with the original" in note for note in part(m).notes)


def test_names_of_the_shape_engine_are_not_written(tmp_path: Path) -> None:
    text = """g (float[1,8] x, float[4] t) => (float[1,?] y) <float[1] two = {2}, float[2] s = {1, 1.5}> {
      y = Resize<mode = "nearest">(x, , s) }"""
    path = saved(HEAD + text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:0=b,1=n")
    assert "_d0" not in str(onnxsmith.load(path).graph.outputs[0].shape)


def test_a_loop_whose_state_changes_its_shape_is_refused(tmp_path: Path) -> None:
    text = """g (float[2,2] x) => (float[?,2] y) <bool go = {1}, int64 k = {1}> {
      y = Loop(k, go, x) <body = b (int64 i, bool c, float[2,2] v) => (bool c2, float[?,2] v2) {
        c2 = Identity(c) v2 = Concat<axis = 0>(v, x) }> }"""
    assert refused(text, "x:0=batch", tmp_path).problem.id == "edit/frozen-dim"


@pytest.mark.parametrize(
    ("dims", "said"),
    [
        ("x:0", "is not AXIS=NAME"), ("x:5=batch", "has no axis 5"), ("q:0=batch", "is not a graph input"),
        ("x:0=3", "has the fixed size 2"), ("x:0=2", "already"), ("x:0=n,1=n", "would be 2"), ("n=4", "no input has"),
        ("x:0=a b", "is not AXIS=NAME"), ("x:0=-1", "neither a size nor the name"), ("", "neither INPUT"),
        ("x:0=²", "neither a size nor the name"), ("n=²", "neither INPUT"),
        ("x:0=9223372036854775808", "can have the size"), ("n=" + "9" * 5000, "can have the size"),
    ],
)  # fmt: skip
def test_wrong_dimensions_are_refused(dims: str, said: str, tmp_path: Path) -> None:
    problem = refused("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", dims, tmp_path).problem
    assert said in problem.what + problem.why


def test_rows_that_depend_on_each_other_are_not_called_verified(tmp_path: Path) -> None:
    text = "g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis = 0>(x) }"
    path = saved(HEAD + text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:0=n")
    assert not [note for note in part(m).notes if "each row" in note]
    assert any("was compared at 2 only, because the rows of output y depend on each other" in one
               for one in part(m).untried)  # fmt: skip


def test_a_batch_of_one_whose_rows_would_mix_is_a_difference(tmp_path: Path) -> None:
    text = "g (float[1,3] x) => (float[1,3] y) { y = LpNormalization<axis = 0, p = 1>(x) }"
    assert refused(text, "x:0=n", tmp_path).problem.id == "verify/different"


def test_an_output_without_rows_is_not_called_verified(tmp_path: Path) -> None:
    text = "g (float[2,3] x) => (float[2,3] y, float s) { y = Relu(x) s = ReduceSum<keepdims = 0>(x) }"
    path = saved(HEAD + text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:0=n")
    assert any("because no axis of s has the size n" in one for one in part(m).untried)


def test_the_comparison_finds_a_model_that_is_right_at_the_old_size_only(tmp_path: Path) -> None:
    original = saved(HEAD + "g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }", tmp_path)
    candidate = tmp_path / "candidate.onnx"
    text = """g (float[batch,3] x) => (float[batch,3] y) <float[1] half = {-0.5}> {
      s = Shape<start = 0, end = 1>(x) c = Cast<to = 1>(s) f = Mul(c, half) y = Mul(x, f) }"""
    onnxsmith.save(from_text(HEAD + text), candidate)
    equal = verify_models(original, original, Verify())
    assert equal.equal
    rows = Rows(Work(onnxsmith.load(candidate)), "batch", 2, {"x": 0}, {"y": (0, 1)}, [], {"batch": 2})
    found = rows.compared(equal, (original, candidate), Verify())
    assert not found.equal
    assert any("at other sizes of batch" in note for note in found.notes)


def test_static_again(tmp_path: Path) -> None:
    text = "g (float[n,3] x, float[n,2] w) => (float[n,5] y) { y = Concat<axis = 1>(x, w) }"
    path = saved(HEAD + text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("n=4")
    graph = onnxsmith.load(path).graph
    assert [list(value.shape or ()) for value in (*graph.inputs, *graph.outputs)] == [[4, 3], [4, 2], [4, 5]]
    with onnxsmith.edit(path) as m:
        m.set_dim(["x:0=batch", "w:0=batch"])
        m.set_dim("batch=2")
    shape = onnxsmith.load(path).graph.outputs[0].shape
    assert shape is not None
    assert list(shape) == [2, 5]


def test_size_zero(tmp_path: Path) -> None:
    path = saved(HEAD + ROWS["an existing -1 elsewhere"], tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("x:0=batch")
    assert onnxsmith.run(path, {"x": np.zeros((0, 3, 4), np.float32)}).outputs["y"].shape == (0, 12)


def test_a_zero_beside_the_batch(tmp_path: Path) -> None:
    text = "g (float[2,0,4] x) => (float[2,0] y) <int64[2] s = {2,0}> { y = Reshape<allowzero = 1>(x, s) }"
    assert refused(text, "x:0=batch", tmp_path).problem.id == "edit/frozen-dim"


LOOPED = """g (float[b,4] x, float[c,b] w, int64 trips) => (float[b,4] last, float[t,b] sums, float[b,c] w2)
<bool go = {1}, int64[1] one = {1}> {
  last, sums = Loop(trips, go, x) <
      body = inner (int64 i, bool c, float[b,4] h) => (bool c2, float[b,4] h2, float[b] s) {
    c2 = Identity(c)
    h2 = Tanh(h)
    s = ReduceSum<keepdims = 0>(h2, one)
  }>
  w2 = Transpose(w)
}"""


def declared(path: Path) -> list[list[object]]:
    graph = onnxsmith.load(path).graph
    values = (*graph.inputs, *graph.outputs)
    return [[dim if isinstance(dim, int) else dim.value for dim in value.shape or ()] for value in values]


def test_a_name_is_fixed_behind_a_loop_and_in_its_body_too(tmp_path: Path) -> None:
    path = saved(HEAD + LOOPED, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set_dim("b=3")
    assert declared(path) == [[3, 4], ["c", 3], [], [3, 4], ["t", 3], [3, "c"]]
    assert m.result is not None
    assert m.result.report.part(Edits).notes == ()
    body = next(walk.nested(onnxsmith.load(path).graph))
    dims = [dim for value in (*body.inputs, *body.outputs) for dim in value.shape or ()]
    assert 3 in dims
    assert all(isinstance(dim, int) for dim in dims)


def test_a_name_that_another_input_still_has_stays(tmp_path: Path) -> None:
    path = saved(HEAD + LOOPED, tmp_path)
    with onnxsmith.edit(path, verify=False) as m:
        m.set_dim("x:0=3")
    assert declared(path)[1] == ["c", "b"]
    assert declared(path)[-1] == ["b", "c"]


def test_an_input_that_becomes_a_constant_fixes_its_names(tmp_path: Path) -> None:
    path = saved(HEAD + LOOPED, tmp_path)
    with onnxsmith.edit(path) as m:
        m.drop_input("w", np.ones((2, 5), np.float32))
    assert declared(path) == [["b", 4], [], ["b", 4], ["t", "b"], [5, 2]]
    with onnxsmith.edit(path) as m:
        m.drop_input("x", np.ones((5, 4), np.float32))
    assert declared(path) == [[], [5, 4], ["t", 5], [5, 2]]


HALVED = """g (float[1,1,8,8] x) => (float[1,2,8,8] y) <float[4] scales = {1,1,4,4}> {
  a = AveragePool<kernel_shape = [4,4], strides = [4,4]>(x)
  b = Resize<mode = "linear">(a, , scales)
  y = Concat<axis = 1>(x, b)
}"""
"""Takes sizes that are multiples of 4: the Concat needs equal ones."""


def opened(tmp_path: Path, *dims: str, sizes: dict[str, int] | None = None, text: str = HALVED) -> str:
    """What the report says was not tried."""
    with onnxsmith.edit(saved(HEAD + text, tmp_path), verify=Verify(sizes=sizes or {})) as m:
        m.set_dim(list(dims))
    return "; ".join(part(m).untried)


def test_sizes_that_the_model_refuses_are_named_and_others_tried(tmp_path: Path) -> None:
    said = opened(tmp_path, "x:2=h,3=w")
    for name in "hw":
        assert f"{name} was compared at 8 only" in said
    assert said.count("the edited model runs at 8, 12, 16, 24, and not at 1, 9, 10, 17") == 2
    x = np.ones((1, 1, 20, 12), np.float32)
    assert onnxsmith.run(tmp_path / "model.onnx", {"x": x}).outputs["y"].shape == (1, 2, 20, 12)


def test_the_size_that_is_given_is_the_one_that_is_tried(tmp_path: Path) -> None:
    said = opened(tmp_path, "x:2=h,3=w", sizes={"h": 20})
    assert "the edited model runs at 8, 20;" in said
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        opened(tmp_path, "x:2=h", sizes={"h": 10})
    assert caught.value.problem.id == "edit/does-not-run"
    assert "h = 10" in caught.value.problem.where
    assert "leave --dim h=10 out" in caught.value.problem.fix
    opened(tmp_path, "x:2=h")  # the fix


def test_sizes_that_only_fit_together_are_tried_together() -> None:
    model = from_text(HEAD + "g (float[h,w] x) => (float[h,w] y) { y = MatMul(x, x) }")
    known = {"h": 4, "w": 4}
    found = tried(model, "h", 4, known, {"h": 6, "w": 6}, 0)
    assert (list(found.feeds), found.together, found.refused) == ([4], [6], {})
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        tried(model, "h", 4, known, {}, 0)
    assert caught.value.problem.id == "edit/does-not-run"
    assert caught.value.problem.where == "h = 1, 5, 6, 8, 9, 12"


def rows_of(text: str, size: int, tmp_path: Path) -> Verification:
    """The comparison at other sizes of a model that negates its rows."""
    original = saved(HEAD + f"g (float[{size},4] x) => (float[{size},4] y) {{ y = Neg(x) }}", tmp_path)
    candidate = tmp_path / "candidate.onnx"
    onnxsmith.save(from_text(HEAD + text), candidate)
    equal = verify_models(original, original, Verify())
    rows = Rows(Work(onnxsmith.load(candidate)), "n", size, {"x": 0}, {"y": (0, 1)}, [], {"n": size})
    return rows.compared(equal, (original, candidate), Verify())


PAIRS = """g (float[n,4] x) => (float[n,4] y) <int64[2] pairs = {-1,8}, int64[2] flat = {-1,4}> {
  a = Reshape(x, pairs) b = Neg(a) y = Reshape(b, flat) }"""
"""Takes an even number of rows."""


def test_rows_are_compared_at_the_sizes_that_the_model_takes(tmp_path: Path) -> None:
    found = rows_of(PAIRS, 6, tmp_path)
    assert found.equal
    assert any("at n = 6, 8, 10, 12 each row agrees with the original" in note for note in found.notes)
    assert "the edited model does not run at n = 1, 7, 13" in found.untried
    wrong = PAIRS.replace("Neg(a)", "Abs(a)")
    assert not rows_of(wrong, 6, tmp_path).equal


def test_a_model_that_takes_no_other_size_is_refused(tmp_path: Path) -> None:
    text = """g (float[n,4] x) => (float[n,4] y) <
      float[4,1] one = {1,1,1,1}, int64[1] zero = {0}, int64[1] four = {4}, int64[1] axis = {1}> {
      a = Concat<axis = 1>(x, one) b = Slice(a, zero, four, axis) y = Neg(b) }"""
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        rows_of(text, 4, tmp_path)
    assert caught.value.problem.id == "edit/does-not-run"
    assert "runs only at n = 4" in caught.value.problem.what


def test_a_dynamic_dimension_without_a_name_gets_one(tmp_path: Path) -> None:
    """Such a dimension has no name that other commands could take."""
    path = saved(HEAD + "g (float[?,3] x, float[?,3] z) => (float[?,3] y) { y = Add(x, z) }", tmp_path)
    with onnxsmith.edit(path, tmp_path / "named.onnx") as m:
        m.set_dim(["x:0=n", "z:0=n"])
    assert m.result is not None
    assert m.result.ok
    inputs = onnxsmith.load(tmp_path / "named.onnx").graph.inputs
    assert [str(value.shape[0]) for value in inputs if value.shape is not None] == ["n", "n"]


def told(tmp_path: Path, text: str, *dims: str) -> list[str]:
    """What the report says of a dimension that is made symbolic; the edit has to be verified at three sizes."""
    onnxsmith.save(from_text(text), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.set_dim(*dims)
    assert m.result.ok, m.result.report.problems
    return [m.result.report.headline, *m.result.report.part(Edits).notes]


def test_the_batch_joins_the_heads_of_an_attention_over_sequences_first(tmp_path: Path) -> None:
    """(length, batch, heads · width) is divided into (length, batch · heads, width), as torch's MultiheadAttention
    does; with the batch beside the length the rows would mix."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[1,5,8] x) => (float[1,5,8] y)
    <int64[3] s = {5,2,4}, int64[4] f = {1,2,5,4}, int64[2] j = {5,8}, int64[3] b = {5,1,8}> {
        t = Transpose<perm=[1,0,2]>(x) h = Reshape(t, s) q = Transpose<perm=[1,0,2]>(h) r = Reshape(q, f)
        k = Transpose<perm=[0,1,3,2]>(r) p = MatMul(r, k) a = Softmax<axis=-1>(p) v = MatMul(a, r)
        o = Transpose<perm=[2,0,1,3]>(v) c = Reshape(o, j) d = Reshape(c, b) y = Transpose<perm=[1,0,2]>(d)
    }"""
    said = " ".join(told(tmp_path, text, "x:0=batch"))
    assert "[5, 2, 4] → [5, -1, 4]" in said
    assert "verified" in said


def test_an_output_that_is_declared_symbolic_and_a_second_open_axis(tmp_path: Path) -> None:
    declared = (
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,4] x) => (float[n,4] y, float[rows,2] z) '
        "<float[4,2] w = {1,2,3,4,5,6,7,8}> { y = Relu(x) z = MatMul(y, w) }"
    )
    assert "verified" in told(tmp_path, declared, "x:0=batch")[0]
    open_ = (
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,n,4] x) => (float[1,n,2] z) '
        "<float[4,2] w = {1,2,3,4,5,6,7,8}> { z = MatMul(x, w) }"
    )
    assert "verified" in told(tmp_path, open_, "x:0=batch")[0]


OPEN = {
    "a 1 beside an open axis": """g (float[1,n,8] x) => (float[?,?,?,?] y) <int64[4] s = {1,-1,2,4}> {
      a = Reshape(x, s) y = Transpose<perm = [0,2,1,3]>(a) }""",
    "heads joined to the batch": """g (float[1,n,8] x) => (float[heads,m,4] y)
      <int64[4] s = {1,-1,2,4}, int64[3] t = {2,-1,4}> {
      a = Reshape(x, s) b = Transpose<perm = [0,2,1,3]>(a) y = Reshape(b, t) }""",
    "an output with names of its own": """g (float[1,n,4] x) => (float[y_dim_0,y_dim_1,4] y) {
      y = Softmax<axis = 1>(x) }""",
    "an open axis with a least size": """g (float[1,n] x) => (float[1,3,t] y) <int64[1] one = {1}, float[3,1,40] w> {
      a = Unsqueeze(x, one) y = Conv<strides = [8]>(a, w) }""",
    "a Resize to fixed sizes": """g (float[1,2,h,w] x) => (float[1,2,6,6] y) <int64[2] s = {6,6}> {
      y = Resize<mode = "nearest", axes = [2,3]>(x, , , s) }""",
}


@pytest.mark.parametrize("kind", list(OPEN))
def test_rows_are_the_originals_where_another_axis_is_open(kind: str, tmp_path: Path) -> None:
    text = OPEN[kind].replace(
        "float[3,1,40] w>", f"float[3,1,40] w = {{{','.join(str(i % 7 - 3) for i in range(120))}}}>"
    )
    found = part(with_open_batch(text, tmp_path))
    assert found.equal
    assert not [one for one in found.untried if "was compared at" in one], found.untried
    assert any(note.startswith("at batch = 1, 2, 3 each row") for note in found.notes), found.notes


def test_rows_that_mix_beside_an_open_axis_are_a_difference(tmp_path: Path) -> None:
    text = """g (float[1,n,4] x) => (float[1,n,4] y) <int64[1] zero = {0}> {
      m = ReduceMean<keepdims = 1>(x, zero) y = Sub(x, m) }"""
    assert refused(text, "x:0=batch", tmp_path).problem.id == "verify/different"


def with_open_batch(text: str, folder: Path) -> Edit:
    with onnxsmith.edit(saved(HEAD + text, folder), folder / "o.onnx") as m:
        m.set_dim("x:0=batch")
    return m


@pytest.mark.parametrize("kind", list(CHOICES))
def test_what_a_size_of_1_means_is_found_by_the_rows(kind: str, tmp_path: Path) -> None:
    dims = "x:0=batch at:0=batch" if " at)" in CHOICES[kind] else "x:0=batch"
    with onnxsmith.edit(saved(HEAD + CHOICES[kind], tmp_path), tmp_path / "o.onnx") as m:
        m.set_dim(dims.split())
    assert any(note.startswith("at batch = 1, 2, 3 each row") for note in part(m).notes), part(m)


@pytest.mark.parametrize("kind", list(SCATTERED))
def test_what_rows_are_scattered_into_follows(kind: str, tmp_path: Path) -> None:
    found = part(with_open_batch(SCATTERED[kind], tmp_path))
    assert any(note.startswith("at batch = 1, 2, 3, 5 each row") for note in found.notes), found


def test_a_mask_of_constants_and_lengths_follows(tmp_path: Path) -> None:
    with onnxsmith.edit(saved(HEAD + MASK, tmp_path), tmp_path / "o.onnx") as m:
        m.set_dim("x:1=t")
    x, length = np.ones((1, 9), np.float32), np.array([7])
    found = onnxsmith.run(tmp_path / "o.onnx", {"x": x, "length": length}).outputs["y"]
    assert found.tolist() == [[1.0] * 7 + [0.0] * 2]


def test_a_constant_that_follows_two_dimensions(tmp_path: Path) -> None:
    text = """g (float[1,2,3,3] x) => (float[1,3,3,3] y) <float[1,1,3,3] z = {4,4,4,4,4,4,4,4,4}> {
      y = Concat<axis = 1>(x, z) }"""
    with onnxsmith.edit(saved(HEAD + text, tmp_path), tmp_path / "o.onnx") as m:
        m.set_dim(["x:2=h", "x:3=w"])
    found = onnxsmith.run(tmp_path / "o.onnx", {"x": np.ones((1, 2, 5, 4), np.float32)}).outputs["y"]
    assert found.shape == (1, 3, 5, 4)
    assert (found[:, 2] == 4).all()


def test_an_output_that_keeps_its_rows_is_refused(tmp_path: Path) -> None:
    text = """g (float[2,3] x) => (float[2,3] y) <float[2,3] w = {1,2,3,4,5,6}> {
      s = ReduceMax<keepdims = 0>(x) y = Mul(w, s) }"""
    error = refused(text, "x:0=batch", tmp_path)
    assert error.problem.id == "edit/frozen-dim"
    assert "the output y keeps the size of batch" in error.problem.what


def test_no_other_runtime_decides_on_sizes(tmp_path: Path) -> None:
    text = """g (float[4,3] x, int64[4,3] at) => (float[4,3] y) <float[4,3] ones = {1,1,1,1,1,1,1,1,1,1,1,1}> {
      n = Neg(x) y = ScatterElements<axis = 1>(n, at, ones) }"""
    with onnxsmith.edit(saved(HEAD + text, tmp_path), tmp_path / "o.onnx") as m:
        m.set_dim(["x:0=batch", "at:0=batch"])
    assert any("each row agrees with the original" in note for note in part(m).notes), part(m)


def test_an_output_whose_rank_follows_the_size_is_refused(tmp_path: Path) -> None:
    text = """g (float[1,3] x) => (float[3] y) <bool no = {0}> {
      s = Shape(x) n = Gather(s, zero) is = Equal(n, one)
      y = If(is) <then_branch = t () => (float[3] a) { a = Squeeze(x, at) },
        else_branch = e () => (float[?,3] b) { b = Identity(x) }> }"""
    text = text.replace("<bool no = {0}>", "<int64 zero = {0}, int64 one = {1}, int64[1] at = {0}>")
    assert refused(text, "x:0=batch", tmp_path).problem.id == "edit/frozen-dim"


def test_an_output_that_keeps_a_single_row_is_refused(tmp_path: Path) -> None:
    text = """g (float[1,3] x) => (float[1,3] y) <float[1,3] w = {1,2,3}> {
      s = ReduceMax<keepdims = 0>(x) y = Mul(w, s) }"""
    error = refused(text, "x:0=batch", tmp_path)
    assert error.problem.id == "edit/frozen-dim"
    assert "keeps the size of batch" in error.problem.what


CACHE = """<ir_version: 10, opset_import: ["": 21]>
g (float[batch,past_length,4] past, float[batch,length,4] x, float["batch","past_length + length"] mask)
=> (float[batch,total,4] k, float[batch] s) <int64[1] one = {1}> {
  k = Concat <axis = 1> (past, x)
  s = ReduceSum <keepdims = 0> (mask, one)
}"""


@pytest.mark.parametrize(
    ("dims", "wanted"),
    [
        (["past_length=16", "length=1"], 17),
        (["past_length=16"], "length + 16"),
        (["length=1"], "past_length + 1"),
    ],
)
def test_a_size_in_the_expression_of_another_input(dims: list[str], wanted: int | str, tmp_path: Path) -> None:
    """The mask of a decoder is as long as the cache and the new tokens together."""
    model = from_text(CACHE.replace('"batch","past_length + length"', "batch,both"))
    model.graph.inputs[2].shape = ir.Shape(["batch", "past_length + length"])
    onnxsmith.save(model, tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "out.onnx") as m:
        m.set_dim(dims)
    assert m.result is not None
    assert m.result.ok, m.result.report.problems
    mask = onnxsmith.load(tmp_path / "out.onnx").graph.inputs[2].shape
    assert mask is not None
    assert mask[1] == wanted
