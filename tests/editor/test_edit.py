"""Edits: what they do, what they keep, and that a wrong one leaves the file as it was."""

from __future__ import annotations

import shlex
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from typer.testing import CliRunner

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.application import app
from onnxsmith.editor import patch
from onnxsmith.editor.edit import Edit, edited
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.steps import extract
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from tests.editor.models import LOOP, NET, WIDE, saved

X = np.array([[-1.0, 0.5, 2.0, 3.0]], np.float32)


def run(path: Path, **feeds: Any) -> dict[str, Any]:
    return dict(onnxsmith.run(path, feeds or {"x": X}).outputs)


def run_command(words: list[str]) -> int:
    """The exit status of a command."""
    return CliRunner().invoke(app, words).exit_code


def refused(path: Path, change: Any) -> str:
    """The id of the problem; the file is as it was."""
    before = path.read_bytes()
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        change(m)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert caught.value.problem.where.startswith(("step 1", "the edited model")), caught.value.problem
    assert caught.value.problem.fix
    return caught.value.problem.id


def test_insert_behind_a_tensor_keeps_other_readers_and_outputs(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    with onnxsmith.edit(path) as m:
        m.insert("Clip", after="c", operands=[0.0, 4.0], name="clip")
    after = run(path)
    assert np.array_equal(after["y"], np.clip(np.maximum(X, 0) + np.array([1, 2, 3, 4]), 0, 4) ** 2)
    assert m.result is not None
    assert m.result.report.parts[0].changed == ("y",)  # type: ignore[attr-defined]
    assert {check.name for check in m.result.report.parts[1].outputs} == {"z", "c"}  # type: ignore[attr-defined]


def test_insert_behind_an_output_keeps_its_name(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    with onnxsmith.edit(path) as m:
        m.insert("Neg", after="y")
        m.insert("Mul", after="x", operands=["$", np.float32(2)])
    assert list(run(path)) == ["y", "z"]
    assert np.array_equal(run(path)["y"], -((np.maximum(2 * X, 0) + np.array([1, 2, 3, 4], np.float32)) ** 2))


def test_insert_in_front_of_one_operand(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    with onnxsmith.edit(path) as m:
        m.insert("Neg", before="product", input="B")
    assert np.array_equal(run(path)["y"], -((np.maximum(X, 0) + np.array([1, 2, 3, 4], np.float32)) ** 2))


def test_remove_joins_the_readers(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    with onnxsmith.edit(path) as m:
        m.remove("add", keep=0)
        m.remove({"op": "Sigmoid"})
    assert np.array_equal(run(path)["z"], np.maximum(X, 0))
    assert np.array_equal(run(path)["y"], np.maximum(X, 0) ** 2)


def test_set_constant_wire(tmp_path: Path) -> None:
    path = saved(WIDE, tmp_path)
    with onnxsmith.edit(path) as m:
        m.set("soft", {"axis": 0})
        m.constant("k", [1])
        m.wire("scale", "B", 3.0)
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(2, 6), "w": np.ones(6, np.float32)}
    after = run(path, **feeds)
    assert after["at"].shape == (2, 1)
    exp = np.exp(-3 * feeds["x"])
    assert np.allclose(after["scaled"], exp / exp.sum(0))


def test_nodes_in_functions_and_bodies(tmp_path: Path) -> None:
    path = saved(WIDE, tmp_path)
    with onnxsmith.edit(path) as m:
        m.remove({"op": "Neg"})
    feeds = {"x": np.ones((1, 6), np.float32), "w": np.ones(6, np.float32)}
    assert run(path, **feeds)["scaled"].argmax() == 5
    path = saved(LOOP, tmp_path)
    with onnxsmith.edit(path) as m:
        m.insert("Neg", after="inner")
    assert np.allclose(run(path, x=X, k=np.array(1))["y"], np.tanh(X) - np.tanh(X) ** 2, atol=1e-6)


def test_interface(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    with onnxsmith.edit(path) as m:
        m.rename("x", "image")
        m.rename(dim="n", to="batch")
        m.add_input("bias")
        m.expose("a")
        m.drop_output("z")
    assert list(run(path, image=X, bias=np.zeros(4, np.float32))) == ["y", "a"]
    assert m.result is not None
    assert m.result.report.verdict is Verdict.DONE
    with onnxsmith.edit(path) as m:
        m.drop_input("bias", 1.0)
    assert np.array_equal(run(path, image=X)["y"], (np.maximum(X, 0) + 1) ** 2)
    assert not m.result.report.parts[0].changed  # type: ignore[union-attr,attr-defined]


def test_expose_in_a_body(tmp_path: Path) -> None:
    path = saved(LOOP, tmp_path)
    with onnxsmith.edit(path) as m:
        m.expose("inner", name="steps")
    found = run(path, x=X, k=np.array(3))["steps"]
    assert len(found) == 3
    assert np.allclose(found[0], np.tanh(X) ** 2)


def test_replace(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    before = run(path)
    with onnxsmith.edit(path, write_patch=tmp_path / "p.toml") as m:
        m.replace(lambda op, v: op.Mul(v, v), lambda op, v: op.Pow(v, 2.0))
        m.replace("Add(a, b)", "Sub(b, Neg(a))")
    assert {node.op_type for node in onnxsmith.load(path).graph} == {"Relu", "Neg", "Sub", "Pow", "Sigmoid"}
    assert np.allclose(run(path)["y"], before["y"])
    assert list(run(path)) == ["y", "z"]
    with onnxsmith.edit(saved(NET, tmp_path), tmp_path / "again.onnx") as m:
        m.apply(tmp_path / "p.toml")
    assert {node.op_type for node in onnxsmith.load(tmp_path / "again.onnx").graph} >= {"Neg", "Sub", "Pow"}
    with onnxsmith.edit(path) as m:
        m.replace("Sigmoid(x)", "HardSigmoid(x)", changes=True)
    assert not np.allclose(run(path)["z"], before["z"])


def test_replacing_one_result_by_a_variable_and_several_results(tmp_path: Path) -> None:
    path = saved(LOOP.replace("c2 = Identity(c)", "c1 = Not(c) c2 = Not(c1)"), tmp_path)
    with onnxsmith.edit(path) as m:
        m.replace("Not(Not(x))", "Identity(x)")
    assert np.allclose(run(path, x=X, k=np.array(1))["y"], np.tanh(X) + np.tanh(X) ** 2, atol=1e-6)
    path = saved(WIDE, tmp_path)
    with onnxsmith.edit(path) as m:
        m.replace(
            "f (x, const p) => (u, v) { u, v = Split <axis = 1> (x, p) }",
            "f (x) => (u, v) { u, v = Split <axis = 1, num_outputs = 2> (x) }",
        )
    split = next(iter(onnxsmith.load(path).graph))
    assert split.attributes["num_outputs"].as_int() == 2


def test_replacing_by_a_variable_and_by_a_result_inside_of_the_match(tmp_path: Path) -> None:
    path = saved(LOOP.replace("c2 = Identity(c)", "c1 = Not(c) c2 = Not(c1)"), tmp_path)
    with onnxsmith.edit(path, write_patch=tmp_path / "p.toml") as m:
        m.replace("Not(Not(x))", "x")  # c2, an output of the body, needs a name of its own
    assert np.allclose(run(path, x=X, k=np.array(1))["y"], np.tanh(X) + np.tanh(X) ** 2, atol=1e-6)
    path = saved(NET, tmp_path)
    with onnxsmith.edit(path) as m:
        m.replace("r = Relu(x) y = Sigmoid(r)", lambda op, r: op.Reciprocal(op.Add(1.0, op.Exp(op.Neg(r)))))
    assert [node.op_type for node in onnxsmith.load(path).graph].count("Relu") == 1


def test_an_operator_of_a_newer_opset_names_the_command_that_converts(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.replace("Mul(x, x)", "Swish(x)")
    command = f"`onnxsmith opset {path} 24 -o converted.onnx`"
    assert caught.value.problem.fix == f"convert the model first: {command}, or the step opset"


@pytest.mark.parametrize(
    ("find", "by", "id_"),
    [
        ("y = Sigmoid(x)", "Relu(y)", "edit/replacement"),
        ("Mul(x, Tanh(x))", "Identity(x)", "edit/no-match"),
        ("Mul(x, x)", "Add(x, z)", "edit/replacement"),
        ("Mul(x, x)", "Add(x, either(x, Neg(x)))", "edit/replacement"),
        ("Mul(x, x)", "Mul(x, Neg(x))", "verify/different"),
        ("Mul(x, x)", "Mull(x, x)", "build/operator"),
    ],
)
def test_bad_replacements(tmp_path: Path, find: str, by: str, id_: str) -> None:
    path = saved(NET, tmp_path)
    before = path.read_bytes()
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.replace(find, by)
    assert caught.value.problem.id == id_, caught.value.problem
    assert path.read_bytes() == before


def test_cast(tmp_path: Path) -> None:
    path = saved(NET.replace("float[4] bias = {1,2,3,4}", "float[1,4] bias = {1,2,3.001,4}"), tmp_path)
    before = run(path)
    for dtype in ("bfloat16", "float16", "float8e4m3fn"):
        out = tmp_path / f"{dtype}.onnx"
        with onnxsmith.edit(path, out) as m:
            m.cast(dtype)
        assert onnxsmith.load(out).graph.initializers["bias"].dtype.name == dtype.upper()  # type: ignore[union-attr]
        assert np.allclose(run(out)["y"], before["y"], rtol=0.1)
        assert np.array_equal(run(out)["z"], before["z"])
    wide = saved(NET.replace("{1,2,3,4}", "{1,2,3,70000}"), tmp_path)
    with pytest.raises(onnxsmith.OnnxsmithError, match="edit/overflow"), onnxsmith.edit(wide) as m:
        m.cast("float16", "bias")
    with pytest.raises(onnxsmith.OnnxsmithError, match="edit/no-match"), onnxsmith.edit(wide) as m:
        m.cast("float16")
    with pytest.raises(onnxsmith.OnnxsmithError, match="edit/dtype"), onnxsmith.edit(wide) as m:
        m.cast("int8", "bias")


CLASSIFIER = """<ir_version: 3, opset_import: ["ai.onnx.ml": 1]>
g (float[3,2] x) => (int64[3] label, seq(map(int64, float)) p) {
  label, scores = ai.onnx.ml.LinearClassifier<
      classlabels_ints = [0, 1], coefficients = [1.0, 2.0, -1.0, 0.5], intercepts = [0.1, -0.1]>(x)
  shares = ai.onnx.ml.Normalizer<norm = "L1">(scores)
  p = ai.onnx.ml.ZipMap<classlabels_int64s = [0, 1]>(shares)
}"""


def test_a_zip_map_is_removed(tmp_path: Path) -> None:
    with onnxsmith.edit(saved(CLASSIFIER, tmp_path), tmp_path / "plain.onnx") as m:
        m.remove({"op": "ai.onnx.ml::ZipMap"})
    output = onnxsmith.load(tmp_path / "plain.onnx").graph.outputs[1]
    assert (output.name, str(output.dtype), str(output.shape)) == ("p", "FLOAT", "[3,2]")


def test_what_only_a_removed_node_read_goes_along(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    with onnxsmith.edit(path) as m:
        m.remove("add")
    assert not onnxsmith.load(path).graph.initializers


def test_strip_takes_the_declarations_of_weights_too(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    with onnxsmith.edit(path) as m:
        m.strip(["shapes"])
    assert not onnx.load(path).graph.value_info


def test_extract(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    with onnxsmith.edit(path, tmp_path / "part.onnx") as m:
        m.extract("a", "y")
    assert list(run(tmp_path / "part.onnx", a=X)) == ["y"]
    assert np.array_equal(run(tmp_path / "part.onnx", a=X)["y"], (X + np.array([1, 2, 3, 4], np.float32)) ** 2)


@pytest.mark.parametrize("step", ["", "Add"])
def test_a_part_of_a_large_model_is_compared_from_its_first_tensors_on(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract, "_LARGE", -1)

    def change(edit: Edit) -> None:
        edit.extract("a", "y")
        if step:
            edit._do(Swapped())

    result = edited(saved(NET, tmp_path), tmp_path / "part.onnx", change)
    assert result.report.verdict is (Verdict.DIFFERENT if step else Verdict.DONE)
    assert "on values for its first tensors" in result.report.part(Edits).notes[0]


def test_a_part_of_a_loop_body(tmp_path: Path) -> None:
    path = saved(LOOP, tmp_path)
    result = edited(path, tmp_path / "part.onnx", lambda m: m.extract(to="s2"))
    assert result.ok
    assert result.report.part(Verification).verified
    part = onnxsmith.load(tmp_path / "part.onnx")
    assert {value.name: value.dtype.name for value in part.graph.inputs} == {"s": "FLOAT", "a": "FLOAT"}
    assert np.allclose(run(tmp_path / "part.onnx", s=X, a=X)["s2"], X * X + X)


def test_a_part_of_a_loop_body_between_tensors(tmp_path: Path) -> None:
    path = saved(LOOP, tmp_path)
    assert edited(path, tmp_path / "part.onnx", lambda m: m.extract(["inner", "s"], "s2")).ok
    assert np.allclose(run(tmp_path / "part.onnx", inner=X, s=2 * X)["s2"], 3 * X)
    assert edited(path, tmp_path / "other.onnx", lambda m: m.extract(["a", "s"], "inner")).ok
    assert np.allclose(run(tmp_path / "other.onnx", a=X, s=X)["inner"], X * X)


def test_a_part_of_a_body_whose_nodes_have_names(tmp_path: Path) -> None:
    named = LOOP.replace("inner = Mul", "[product] inner = Mul").replace("s2 = Add", "[sum] s2 = Add")
    assert edited(saved(named, tmp_path), tmp_path / "part.onnx", lambda m: m.extract(to="s2")).ok


def test_a_part_of_a_branch_of_a_body(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
    g (float[n,4] x, int64 k, bool which) => (float[n,4] y) <bool go = {1}, float[4] w = {1,2,3,4}> {
      y = Loop(k, go, x) <body = b (int64 i, bool c, float[n,4] s) => (bool c2, float[n,4] s2) {
        c2 = Identity(c)
        s2 = If(which) <then_branch = t () => (float[n,4] p) { m = Mul(s, w) p = Add(m, x) },
                        else_branch = e () => (float[n,4] q) { q = Sub(s, w) }>
      }>
    }"""
    path = saved(text, tmp_path)
    assert edited(path, tmp_path / "part.onnx", lambda m: m.extract(["m", "x"], "p")).ok
    assert edited(path, tmp_path / "whole.onnx", lambda m: m.extract(to="p")).ok
    wide = np.array([1, 2, 3, 4], np.float32)
    assert np.allclose(run(tmp_path / "whole.onnx", s=X, x=X)["p"], X * wide + X)


def test_a_wrong_part_of_a_body_is_found(tmp_path: Path) -> None:
    path = saved(
        LOOP.replace("inner = Mul(s, a)", "two = Constant<value_floats = [2.0]>() inner = Mul(s, two)"), tmp_path
    )

    def change(edit: Edit) -> None:
        edit.extract(to="s2")
        edit._do(Swapped())

    assert edited(path, tmp_path / "part.onnx", change).report.verdict is Verdict.DIFFERENT
    assert not (tmp_path / "part.onnx").exists()


@dataclass(frozen=True)
class Swapped(Step):
    """Makes an Add a Sub and does not say so."""

    def apply(self, work: Work) -> str:
        next(node for node in work.model.graph if node.op_type == "Add").op_type = "Sub"
        return ""


def test_an_extracted_part_that_is_wrong_is_found(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)

    def change(edit: Edit) -> None:
        edit.extract("a", "y")
        edit.model.graph.initializers["bias"].const_value = onnxsmith.load(path).graph.initializers["bias"].const_value
        edit._do(Silent("bias"))

    assert edited(path, tmp_path / "part.onnx", change).report.verdict is Verdict.DIFFERENT
    assert not (tmp_path / "part.onnx").exists()


@dataclass(frozen=True)
class Silent(Step):
    """Changes a constant and does not say so."""

    tensor: str

    def apply(self, work: Work) -> str:
        value = work.find.tensor(self.tensor)
        assert value.const_value is not None
        import onnx_ir as ir

        value.const_value = ir.tensor(value.const_value.numpy() * np.float32(1.05), name=self.tensor)
        return "nothing"


def test_a_step_that_changes_numbers_in_silence_is_found(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    before = path.read_bytes()
    result = edited(path, None, lambda edit: edit._do(Silent("bias")))
    assert result.report.verdict is Verdict.DIFFERENT
    assert result.path is None
    assert path.read_bytes() == before
    with pytest.raises(onnxsmith.OnnxsmithError, match="verify/different"), onnxsmith.edit(path) as m:
        m.remove("add", keep=0, same=True)
    assert path.read_bytes() == before


def test_an_exception_leaves_the_file(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    before = path.read_bytes()

    def change(m: Edit) -> None:
        m.rename("x", "image")
        raise KeyError("mine")

    with pytest.raises(KeyError), onnxsmith.edit(path) as m:
        change(m)
    assert path.read_bytes() == before


def test_a_model_in_memory_is_not_changed() -> None:
    from onnxsmith.graph.files.text import from_text, to_text

    model = from_text(NET)
    before = to_text(model, weights=True)
    with onnxsmith.edit(model) as m:
        m.rename("x", "image")
    assert to_text(model, weights=True) == before
    assert m.result is not None
    assert m.result.model is not None
    assert m.result.model.graph.inputs[0].name == "image"


@pytest.mark.parametrize(
    ("change", "id_"),
    [
        (lambda m: m.insert("Clip", after="d"), "edit/no-match"),
        (lambda m: m.remove({"op": "Conv"}), "edit/no-match"),
        (lambda m: m.wire({"op": "*"}, 0, "a"), "edit/many-matches"),
        (lambda m: m.remove({"opp": "Conv"}), "edit/selector"),
        (lambda m: m.rename("x", "a"), "edit/name-taken"),
        (lambda m: m.constant("a", 1.0), "edit/not-constant"),
        (lambda m: m.constant("bias", np.zeros(4)), "edit/dtype"),
        (lambda m: m.constant("bias", np.zeros(3, np.float32)), "model/shape-conflict"),
        (lambda m: m.wire("add", 7, "a"), "edit/no-operand"),
        (lambda m: m.wire("add", "B", "y"), "edit/cycle"),
        (lambda m: m.remove("product", keep="C"), "edit/no-operand"),
        (lambda m: m.insert("Cip", after="a"), "build/operator"),
        (lambda m: m.insert("Clip", after="a", attributes={"minimum": 0.0}), "build/attribute"),
        (lambda m: m.insert("Clip", after="a", limit=3), "edit/step-argument"),
        (lambda m: m.insert("Cast", after="a", attributes={"to": "int64"}), "model/shape-conflict"),
        (lambda m: m.set("gate", {"axis": 1}), "build/attribute"),
        (lambda m: m.expose("y"), "edit/is-output"),
        (lambda m: m.drop_output(["y", "z"]), "edit/no-outputs"),
        (lambda m: m.drop_input("x"), "edit/input-needed"),
        (lambda m: m.drop_input("x", 1.0), "edit/shape"),
        (lambda m: m.add_input("a"), "edit/not-constant"),
        (lambda m: m.extract("c", "z"), "edit/unused-cut"),
        (lambda m: m.extract("c", ["y", "a"]), "edit/undefined"),
        (lambda m: m.extract("a", "a"), "edit/empty-part"),
        (lambda m: m.inline(), "edit/no-match"),
        (lambda m: m.opset(99), "export/opset"),
        (lambda m: m.strip("weights"), "edit/step-argument"),
    ],
)
def test_bad_steps(tmp_path: Path, change: Any, id_: str) -> None:
    assert refused(saved(NET, tmp_path), change) == id_


def test_bodies_are_closed(tmp_path: Path) -> None:
    assert refused(saved(LOOP, tmp_path), lambda m: m.wire({"op": "Tanh"}, 0, "inner")) == "edit/out-of-scope"
    assert refused(saved(LOOP, tmp_path), lambda m: m.extract("inner", "y")) == "edit/out-of-scope"
    assert refused(saved(WIDE, tmp_path), lambda m: m.remove("split", keep=0)) == "edit/several-results"
    assert refused(saved(WIDE, tmp_path), lambda m: m.remove("wide")) == "edit/dtype"
    assert refused(saved(WIDE, tmp_path), lambda m: m.remove("wide", keep=0)) == "edit/dtype"


def test_reading(tmp_path: Path) -> None:
    m = onnxsmith.edit(saved(NET, tmp_path))
    assert [node.name for node in m.between("a", "y")] == ["add", "product"]
    assert [node.op for node in m.tensor("a").consumers] == ["Add", "Sigmoid"]
    assert m.node({"gives": "y"}).producers[0].name == "add"
    assert m.tensor({"producer": "add"}).shape == ("n", 4)
    assert m.tensor("bias").constant.tolist() == [1, 2, 3, 4]
    assert [str(port) for port in m.inputs] == ["<tensor x: float[n, 4]>"]
    assert "<td>gate</td>" in m._repr_html_()
    assert "insert" in dir(m)
    with pytest.raises(AttributeError):
        m.isnert("Clip")


def test_a_recorded_edit_does_the_same_again(tmp_path: Path) -> None:
    path, notes = saved(WIDE, tmp_path), tmp_path / "patch.toml"
    with onnxsmith.edit(path, tmp_path / "one.onnx", write_patch=notes) as m:
        m.insert("Clip", after=m.tensor("s"), operands=[None, np.float32(6)])
        m.rename(node=m.node({"op": "Cast"}), to="widen")
        m.set(m.node("soft"), {"axis": -1}, same=False)
        m.constant("h", np.ones(6, np.float16))
        m.rename("x", "features")
    assert len(patch.read(notes)) == 5
    with onnxsmith.edit(path, tmp_path / "two.onnx") as again:
        again.apply(notes)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("[[step]]\ndo = 'rename", "edit/patch-file"),
        ("[[stp]]\ndo = 'rename'", "edit/patch-file"),
        ("[[step]]\ntensor = 'x'", "edit/patch-file"),
        ("[[step]]\ndo = 'renam'\ntensor = 'x'", "edit/unknown-step"),
        ("[[step]]\ndo = 'rename'\ntensro = 'x'", "edit/step-argument"),
        ("[[step]]\ndo = 'constant'\ntensor = 'bias'\nvalue = { file = 'no.npy' }", "edit/patch-file"),
        ("step = []", "edit/nothing"),
    ],
)
def test_bad_patch_files(tmp_path: Path, text: str, id_: str) -> None:
    path = saved(NET, tmp_path)
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.apply(tmp_path / "p.toml")
    assert caught.value.problem.id == id_


def test_a_part_that_a_later_step_converts_to_another_opset(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
    g (float[n,6] x) => (float[n,3] first, float[n,3] last) <int64[2] parts = {3,3}> {
      a = Neg(x)
      first, second = Split<axis = 1>(a, parts)
      last = Relu(second)
    }"""
    (tmp_path / "m.onnxtxt").write_text(text)
    with onnxsmith.edit(tmp_path / "m.onnxtxt", tmp_path / "part.onnx") as m:
        m.extract(from_="a", to=["first", "last"])
        m.opset(11)
    assert m.result is not None
    assert m.result.ok, m.result.report.problems
    assert onnxsmith.load(tmp_path / "part.onnx").opset_imports[""] == 11


HALF = """<ir_version: 10, opset_import: ["": 21]>
g (float16[n,4] x) => (float16[n,4] y, float16[n,4] z) {
  [to32] a = Cast<to = 1>(x)
  [to16] b = Cast<to = 10>(a)
  [out] y = Relu(b)
  [end32] c = Cast<to = 1>(b)
  [end16] z = Cast<to = 10>(c)
}"""


@pytest.mark.parametrize(
    "pair", [["to32", "to16"], ["to16", "to32"], ["end16", "end32"], ["to32", "to16", "end32", "end16"]]
)
def test_nodes_that_go_together_are_judged_together(pair: list[str], tmp_path: Path) -> None:
    path, out = saved(HALF, tmp_path), tmp_path / "out.onnx"
    with onnxsmith.edit(path, out) as m:
        m.remove(pair, same=True)
    x = np.array([[1, -2, 3, 4]], np.float16)
    for name, array in onnxsmith.run(path, {"x": x}).outputs.items():
        assert np.array_equal(array, onnxsmith.run(out, {"x": x}).outputs[name])
    assert not {node.name for node in onnxsmith.load(out).graph} & set(pair)


def test_a_cast_alone_is_refused_and_the_fix_removes_the_pair(tmp_path: Path) -> None:
    path = saved(HALF, tmp_path)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.remove("to32", same=True)
    assert caught.value.problem.id == "edit/dtype"
    fix = caught.value.problem.fix
    assert 'node = ["to32", "to16"]' in fix
    with onnxsmith.edit(path) as m:
        m.remove(["to32", "to16"], same=True)


def test_the_first_result_takes_the_name_of_a_graph_output(tmp_path: Path) -> None:
    path, out = saved(NET, tmp_path), tmp_path / "out.onnx"
    with onnxsmith.edit(path, out) as m:
        m.insert("TopK", after="y", operands=["$", [2]], attributes={"axis": -1}, outputs=["best", "at"])
        m.expose("at")
    assert [value.name for value in onnxsmith.load(out).graph.outputs] == ["y", "z", "at"]
    assert m.result is not None
    assert "the first result is called y, not best" in " ".join(str(part) for part in m.result.report.parts)
    with onnxsmith.edit(path, out) as m:
        m.insert("TopK", after="y", operands=["$", [2]], attributes={"axis": -1}, outputs=["y", "at"])
    assert list(m.result.report.parts[0].notes) == []  # type: ignore[attr-defined, union-attr]


TWINS = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,4] x) => (float[n,4] y, float[n,4] z) { [t] a = Relu(x)
  [t] y = Neg(a)
  [t] z = Neg(y) }"""


@pytest.mark.parametrize("index", range(3))
def test_nodes_of_one_name_are_told_apart_by_the_selectors_in_the_fix(index: int, tmp_path: Path) -> None:
    path = saved(TWINS, tmp_path)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.rename(node="t", to="other")
    found = caught.value.problem
    assert found.id == "edit/many-matches"
    assert found.fix.endswith('{ name = "t", op = "Relu" } or { gives = "y" } or { gives = "z" }')
    selector = found.fix.removeprefix("name one of them: ").split(" or ")[index]
    out = tmp_path / "out.onnx"
    assert run_command(["rename", str(path), selector, "other", "--kind", "node", "-o", str(out)]) == 0
    assert [node.name for node in onnxsmith.load(out).graph].index("other") == index


def test_an_edit_of_a_model_with_repeated_names_says_how_to_mend_it(tmp_path: Path) -> None:
    path = saved(TWINS, tmp_path)
    with onnxsmith.edit(path) as m:
        m.insert("Tanh", after="y")
    assert m.result is not None
    assert [one.id for one in m.result.report.problems] == ["model/repeated-node-names"]
    words = shlex.split(m.result.report.problems[0].fix.split("`")[1])
    assert words[0] == "onnxsmith"
    assert run_command(words[1:]) == 0


def test_the_refusal_of_a_replacement_names_changes(tmp_path: Path) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(saved(NET, tmp_path)) as m:
        m.replace("Relu(x)", "Neg(x)")
    assert caught.value.problem.id == "verify/different"
    assert "--changes" in caught.value.problem.fix
    assert "changes=True" in caught.value.problem.fix
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(saved(NET, tmp_path)) as m:
        m.insert("Neg", after="a", same=True)
    assert "leave out `same`" in caught.value.problem.fix


def test_errors_speak_of_steps(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)

    def change(m: Edit) -> None:
        m.dtype("x", "int32")
        m.insert("Div", after="x", operands=["$", 2.5])

    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        edited(path, None, change)
    assert 'after = "x_cast"' in caught.value.problem.fix
    assert str(caught.value) not in "".join(traceback.format_exception(caught.value)[:-1])
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.rename("x", "z")
    assert caught.value.problem.why == "it is the result of gate (Sigmoid), and a graph output"
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.drop_input("x")
    assert "is read by a" in caught.value.problem.what.replace("-> ", "")


def test_a_last_node_that_changes_nothing_leaves_nothing_behind(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[n] x) => (float[n] v) { r = Relu(x) v = Identity(r) }'
    (tmp_path / "m.onnxtxt").write_text(text)
    with onnxsmith.edit(tmp_path / "m.onnxtxt", tmp_path / "out.onnx") as m:
        m.remove({"op": "Identity"})
    made = onnxsmith.load(tmp_path / "out.onnx")
    assert [node.op_type for node in made.graph] == ["Relu"]
    assert [value.name for value in made.graph.outputs] == ["v"]


def test_an_identity_that_keeps_the_name_of_an_output_is_reported(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[n] x) => (float[n] v) { r = Relu(x) v = Sigmoid(r) }'
    (tmp_path / "m.onnxtxt").write_text(text)
    with onnxsmith.edit(tmp_path / "m.onnxtxt", tmp_path / "out.onnx") as m:
        m.remove({"op": "Sigmoid"})
    assert m.result is not None
    assert "an Identity computes the output v" in m.result.report.to_json()


def test_an_output_behind_a_body_without_shapes_keeps_its_shape(tmp_path: Path) -> None:
    """Inference knows no shape of what such a body gives; the checker demands one of each output."""
    model = from_text(
        '<ir_version: 9, opset_import: ["": 18]> g (float[2,3] x, bool c) => (float[2,3] y) <int64 n = {3}> { '
        "z = Loop(n, c, x) <body = b (int64 i, bool ci, float[2,3] s) => (bool co, float[2,3] t) { "
        "co = Identity(ci) v = Exp(s) t = Neg(v) }> "
        "y = If(c) <then_branch = a () => (float[2,3] u) { u = Abs(z) }, "
        "else_branch = e () => (float[2,3] w) { w = Sqrt(z) }> }"
    )
    for graph in walk.nested(model.graph):
        for value in (*graph.inputs, *(one for node in graph for one in node.outputs)):
            value.shape = None if value.dtype == ir.DataType.FLOAT else value.shape
    model.graph[0].outputs[0].shape = None
    save(model, tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "o.onnx") as m:
        m.insert("Clip", after="v", operands=[0.0, 2.0])
    assert m.result is not None
    assert m.result.ok
    (output,) = onnxsmith.load(tmp_path / "o.onnx").graph.outputs
    assert output.shape == [2, 3]


def test_an_input_goes_with_the_output_that_alone_reads_it(tmp_path: Path) -> None:
    """A step inserts a node whose type only inference knows; dropped nodes still read the input at that time."""
    path = saved(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x, float[4] z) => (float[4] y)
        { h = Exp (z)  s = Add (x, h)  y = Neg (s) }""",
        tmp_path,
    )
    with onnxsmith.edit(path) as m:
        m.insert("LeakyRelu", after="h", name="leaky", outputs=["out"])
        m.expose("out")
        m.drop_output("y")
        m.drop_input("x")
    model = onnx.load(path)
    assert [one.name for one in model.graph.input] == ["z"]
    assert [one.name for one in model.graph.output] == ["out"]


@pytest.mark.parametrize(
    ("op", "clause"),
    [
        ("com.microsoft::NoSuchOp", "the edited model was not run as a whole, because onnxruntime does not know"),
        ("RandomNormalLike", "onnxruntime has no kernel for RandomNormalLike"),
    ],
)
def test_a_new_operator_that_the_runtime_lacks_is_in_the_headline(tmp_path: Path, op: str, clause: str) -> None:
    text = '<ir_version: 10, opset_import: ["": 22]> g (float[n,4] x) => (float[n,4] y, float[n,4] z) { %s }'
    onnxsmith.save(from_text(text % "c = Neg(x) y = Relu(c) z = Abs(x)"), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.insert(op, after="c")
    assert m.result is not None
    assert clause in m.result.report.headline
