"""`merge`: two models in one file, each equal to its part."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from typer.testing import CliRunner

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.application import app
from onnxsmith.editor import merge as room
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk

FIRST = """<ir_version: 8, opset_import: ["": 17]>
g (float[n,4] x) => (float[n,4] y, float[n,4] aux) <float[4] w = {1,2,3,4}> {
  [one] a = Relu(x)
  y = Mul(a, w)
  aux = Neg(a)
}"""
SECOND = """<ir_version: 10, opset_import: ["": 21]>
g (float[m,4] x, float[4] s) => (float[m,4] y) <float[4] w = {5,2,3,4}> {
  [one] a = Sigmoid(x)
  b = Mul(a, w)
  y = Add(b, s)
}"""
X = np.array([[-1.0, 0.5, 2.0, 3.0]], np.float32)


def files(folder: Path, first: str = FIRST, second: str = SECOND) -> tuple[Path, Path]:
    onnxsmith.save(from_text(first), folder / "first.onnx")
    onnxsmith.save(from_text(second), folder / "second.onnx")
    return folder / "first.onnx", folder / "second.onnx"


def test_the_whole_is_one_after_the_other(tmp_path: Path) -> None:
    first, second = files(tmp_path)
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"y": "x"})
    assert result.ok, result.report.problems
    assert "opset 17 to 21" in str(result.report.parts[0])
    s = np.ones(4, np.float32)
    middle = onnxsmith.run(first, {"x": X}).outputs
    last = onnxsmith.run(second, {"x": middle["y"], "s": s}).outputs["y"]
    found = onnxsmith.run(tmp_path / "both.onnx", {"x": X, "s": s}).outputs
    assert next(iter(found)) == "aux"
    assert np.array_equal(found["aux"], middle["aux"])
    assert np.array_equal(list(found.values())[1], last)
    kept = onnxsmith.merge(first, second, wires={"y": "x"}, keep=True)
    assert kept.model is not None
    assert len(kept.model.graph.outputs) == 3


def test_a_wrong_whole_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = files(tmp_path)
    right = room.joined

    def wrong(*given: Any) -> Any:
        made = right(*given)
        made.graph.initializers["w_1"].const_value = made.graph.initializers["w"].const_value
        return made

    monkeypatch.setattr(room, "joined", wrong)
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"y": "x"})
    assert result.report.verdict is Verdict.DIFFERENT
    assert not (tmp_path / "both.onnx").exists()


def test_the_power_counts_the_weights_of_both(tmp_path: Path) -> None:
    """One weight in the first model, one in the second: faults in both were noticed. A model without weights has
    faults in its inputs."""
    both = onnxsmith.merge(*files(tmp_path), wires={"y": "x"}).report.part(Verification)
    assert str(both.power) == "the check would notice a change of 1% in each of the 2 weights"
    plain = '<ir_version: 8, opset_import: ["": 17]> g (float[n,4] x) => (float[n,4] z) { z = Relu(x) }'
    for first, second, wires in ((FIRST, plain, {"y": "x"}), (plain, FIRST, {"z": "x"})):
        mixed = onnxsmith.merge(*files(tmp_path, first, second), wires=wires).report.part(Verification)
        assert str(mixed.power) == "the check would notice a change of 1% in each of the 2 weights and inputs"


def test_a_fault_that_the_second_model_hides_is_said(tmp_path: Path) -> None:
    """The second model never selects its weight, so that no fault in it can be noticed."""
    hides = FIRST.replace("y = Mul(a, w)", "c = IsNaN(w) y = Where(c, w, a)")
    power = onnxsmith.merge(*files(tmp_path, SECOND, hides), wires={"y": "x"}).report.part(Verification).power
    assert power is not None
    assert (power.kind, power.tried, power.idle) == ("weights and inputs", 2, 1)


@pytest.mark.parametrize(
    ("first", "second", "wires", "id_"),
    [
        (FIRST, SECOND, None, "merge/no-joint"),
        (FIRST, SECOND, {"z": "x"}, "merge/no-port"),
        (FIRST, SECOND, {"y": "w"}, "merge/no-port"),
        (FIRST, SECOND.replace("float[m,4] x", "float16[m,4] x"), {"y": "x"}, "merge/types"),
        (FIRST, SECOND.replace("float[m,4] x", "float[m,5] x"), {"y": "x"}, "merge/types"),
        (
            FIRST.replace('["": 17]', '["": 17, "ai.onnx.ml": 3]'),
            SECOND.replace('["": 21]', '["": 21, "ai.onnx.ml": 4]'),
            {"y": "x"},
            "merge/versions",
        ),
    ],
)
def test_what_does_not_fit(tmp_path: Path, first: str, second: str, wires: dict[str, str] | None, id_: str) -> None:
    paths = files(tmp_path, first, second)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.merge(*paths, tmp_path / "both.onnx", wires=wires)
    assert caught.value.problem.id == id_
    assert caught.value.problem.fix
    assert not (tmp_path / "both.onnx").exists()


def test_dimensions_of_the_second_get_the_names_of_the_first(tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["": 21]> '
    first = from_text(head + "a (float[batch,4] x) => (float[batch,4] u) { u = Relu(x) }")
    body = "{ y = Neg(v) z = Abs(w) }"
    second = from_text(head + f"b (float[n,4] v, float[m,4] w) => (float[n,4] y, float[m,4] z) {body}")
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"u": "v"})
    whole = onnxsmith.load(tmp_path / "both.onnx")
    assert [str(value.shape) for value in (*whole.graph.inputs, *whole.graph.outputs)] == [
        "[batch,4]", "[m,4]", "[batch,4]", "[m,4]",
    ]  # fmt: skip
    assert "dimension n of the second model was renamed to batch" in result.report.part(Edits).notes
    assert [str(value.shape) for value in second.graph.inputs] == ["[n,4]", "[m,4]"]


def test_a_model_behind_itself_keeps_its_interface(tmp_path: Path) -> None:
    half = from_text(
        '<ir_version: 10, opset_import: ["": 21]> h (float[n] x) => (float[n] y) { a = Neg(x) y = Exp(a) }'
    )
    result = onnxsmith.merge(half, half, tmp_path / "both.onnx", wires={"y": "x"})
    whole = onnxsmith.load(tmp_path / "both.onnx")
    assert [value.name for value in (*whole.graph.inputs, *whole.graph.outputs)] == ["x", "y"]
    assert any("y_of_the_first" in note for note in result.report.part(Edits).notes)
    kept = onnxsmith.merge(half, half, tmp_path / "kept.onnx", wires={"y": "x"}, keep=True)
    assert [value.name for value in onnxsmith.load(tmp_path / "kept.onnx").graph.outputs] == ["y", "y_1"]
    assert any("is now called y_1" in note for note in kept.report.part(Edits).notes)


def test_prefixes_keep_the_names_of_both_models_apart(tmp_path: Path) -> None:
    first, second = files(tmp_path)
    result = onnxsmith.merge(
        first, second, tmp_path / "both.onnx", wires={"y": "x"}, prefixes=("enc/", "dec/"), keep=True
    )
    assert result.ok, result.report.problems
    whole = onnxsmith.load(tmp_path / "both.onnx")
    assert [value.name for value in whole.graph.inputs] == ["enc/x", "dec/s"]
    assert [value.name for value in whole.graph.outputs] == ["enc/y", "enc/aux", "dec/y"]
    assert set(whole.graph.initializers) == {"enc/w", "dec/w"}
    assert {node.name for node in whole.graph if node.name} >= {"enc/one", "dec/one"}
    s = np.ones(4, np.float32)
    middle = onnxsmith.run(first, {"x": X}).outputs["y"]
    found = onnxsmith.run(tmp_path / "both.onnx", {"enc/x": X, "dec/s": s}).outputs
    assert np.array_equal(found["dec/y"], onnxsmith.run(second, {"x": middle, "s": s}).outputs["y"])


def test_prefixes_go_into_branches(tmp_path: Path) -> None:
    branches = from_text(
        '<ir_version: 10, opset_import: ["": 21]> f (float[n] x, bool c) => (float[n] y) '
        "{ w = Abs(x) y = If(c) <then_branch = t () => (float[n] a) { a = Neg(w) }, "
        "else_branch = e () => (float[n] b) { b = Exp(w) }> }"
    )
    result = onnxsmith.merge(branches, branches, tmp_path / "both.onnx", wires={"y": "x"}, prefixes=("", "second_"))
    assert result.ok, result.report.problems
    assert [value.name for value in onnxsmith.load(tmp_path / "both.onnx").graph.inputs] == ["x", "c", "second_c"]


def test_a_fixed_size_of_the_first_meets_a_symbol_of_the_second(tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["": 21]> '
    first = from_text(head + "a (float[2,4] x) => (float[2,4] u) { u = Relu(x) }")
    second = from_text(head + "b (float[n,4] v, float[n] w) => (float[n,4] y, float[n] z) { y = Neg(v) z = Abs(w) }")
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"u": "v"})
    assert result.ok, result.report.problems
    whole = onnxsmith.load(tmp_path / "both.onnx")
    assert [str(value.shape) for value in (*whole.graph.inputs, *whole.graph.outputs)] == [
        "[2,4]", "[2]", "[2,4]", "[2]",
    ]  # fmt: skip
    assert (
        "dimension n of the second model was fixed to 2, its size in the first model" in result.report.part(Edits).notes
    )
    assert [str(value.shape) for value in second.graph.inputs] == ["[n,4]", "[n]"]


def test_one_symbol_of_the_second_meets_two_sizes(tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["": 21]> '
    first = from_text(head + "a (float[2] x, float[3] t) => (float[2] u, float[3] s) { u = Relu(x) s = Abs(t) }")
    second = from_text(head + "b (float[n] v, float[n] w) => (float[n] y) { y = Add(v, w) }")
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"u": "v", "s": "w"})
    assert caught.value.problem.id == "merge/types"
    assert not (tmp_path / "both.onnx").exists()


HEAD = '<ir_version: 10, opset_import: ["": 21]> '


def dims(path: Path) -> list[str]:
    graph = onnxsmith.load(path).graph
    return [str(value.shape) for value in (*graph.inputs, *graph.outputs)]


def test_a_fixed_size_of_the_second_meets_a_symbol_of_the_first(tmp_path: Path) -> None:
    first = from_text(HEAD + "a (uint8[h,w] x, float[h] t) => (float[w,h] u, float[h] s) "
                      "{ f = Cast<to = 1>(x) u = Transpose<perm = [1,0]>(f) s = Relu(t) }")  # fmt: skip
    second = from_text(HEAD + "b (float[5,m] v, float[m] z, float[4] r) => (float[5,m] y, float[4] q) "
                       "{ y = Add(v, z) q = Neg(r) }")  # fmt: skip
    # r fixes h to 4 in the first, u then fixes m to 4 in the second, and v fixes w to 5
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"u": "v", "s": "r"})
    assert result.ok, result.report.problems
    assert dims(tmp_path / "both.onnx") == ["[4,5]", "[4]", "[4]", "[5,4]", "[4]"]
    assert set(result.report.part(Edits).notes) == {
        "dimension h of the first model was fixed to 4, its size in the second model",
        "dimension w of the first model was fixed to 5, its size in the second model",
        "dimension m of the second model was fixed to 4, its size in the first model",
    }
    assert [str(value.shape) for value in first.graph.inputs] == ["[h,w]", "[h]"]
    onnxsmith.run(tmp_path / "both.onnx", {"x": np.ones((4, 5), np.uint8), "t": np.ones(4, np.float32),
                                           "z": np.ones(4, np.float32)})  # fmt: skip


def test_one_symbol_of_the_first_meets_two_sizes(tmp_path: Path) -> None:
    first = from_text(HEAD + "a (float[n] x) => (float[n] u, float[n] s) { u = Relu(x) s = Abs(x) }")
    second = from_text(HEAD + "b (float[2] v, float[3] w) => (float[2] y, float[3] z) { y = Neg(v) z = Neg(w) }")
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"u": "v", "s": "w"})
    assert caught.value.problem.id == "merge/types"
    assert "dimension n of the first model would have two sizes: 2 and 3" in caught.value.problem.what


def test_a_size_that_an_expression_has_to_be_is_said(tmp_path: Path) -> None:
    first = from_text(HEAD + "a (float[n] x) => (float[k] u) { u = Concat<axis = 0>(x, x) }")
    first.graph.outputs[0].shape = ir.Shape(["2*n"])
    second = from_text(HEAD + "b (float[4] v) => (float[4] y) { y = Neg(v) }")
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", verify=False)
    assert "at u=v, axis 0, the first model has 2*n, but the second has 4" in result.report.part(Edits).notes


def test_inputs_of_one_name_have_one_shape(tmp_path: Path) -> None:
    first = from_text(HEAD + "a (float[n,4] x) => (float[n,4] u) { u = Relu(x) }")
    second = from_text(HEAD + "b (float[m,4] x, float[m,4] v) => (float[m,4] y) { y = Add(x, v) }")
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"u": "v"})
    assert result.ok
    assert dims(tmp_path / "both.onnx") == ["[n,4]", "[n,4]"]
    sized = from_text(HEAD + "b (float[3,4] x, float[k] v) => (float[3,4] y, float[k] z) { y = Neg(x) z = Abs(v) }")
    result = onnxsmith.merge(first, sized, tmp_path / "both.onnx", wires={})
    assert result.ok
    assert dims(tmp_path / "both.onnx") == ["[3,4]", "[k]", "[3,4]", "[3,4]", "[k]"]


@pytest.mark.parametrize("other", ["float[n,5] x", "float[n] x", "int64[n,4] x"])
def test_inputs_of_one_name_that_differ_are_refused_and_the_fix_keeps_them_apart(other: str, tmp_path: Path) -> None:
    first = from_text(HEAD + "a (float[n,4] x) => (float[n,4] u) { u = Relu(x) }")
    second = from_text(HEAD + f"b ({other}) => ({other.replace(' x', ' y')}) {{ y = Neg(x) }}")
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={})
    assert caught.value.problem.id == "merge/types"
    assert caught.value.problem.fix.endswith("--second-prefix second_")
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={}, prefixes=("", "second_"))
    assert result.ok, result.report.problems


ONE = HEAD + "a (float[n,4] x) => (float[n,4] y) { y = Relu(x) }"
OTHER = HEAD + "b (float[n,4] x) => (float[n,4] y) { y = Sigmoid(x) }"


def test_siblings_read_one_input(tmp_path: Path) -> None:
    first, second = files(tmp_path, ONE, OTHER)
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={})
    assert result.ok, result.report.problems
    assert "both models read the same input x" in result.report.part(Edits).notes
    found = list(onnxsmith.run(tmp_path / "both.onnx", {"x": X}).outputs.values())
    wanted = [onnxsmith.run(path, {"x": X}).outputs["y"] for path in (first, second)]
    assert [np.array_equal(*pair) for pair in zip(found, wanted, strict=True)] == [True, True]


def test_the_command_joins_the_only_ports_and_says_how_to_join_nothing(tmp_path: Path) -> None:
    first, second = files(tmp_path, ONE, OTHER)
    chain, siblings = tmp_path / "chain.onnx", tmp_path / "siblings.onnx"
    told = CliRunner().invoke(app, ["merge", str(first), str(second), "-o", str(chain)])
    assert told.exit_code == 0
    assert "--siblings" in told.output
    assert [value.name for value in onnxsmith.load(chain).graph.outputs] == ["y"]
    told = CliRunner().invoke(app, ["merge", str(first), str(second), "--siblings", "-o", str(siblings)])
    assert told.exit_code == 0
    assert [value.name for value in onnxsmith.load(siblings).graph.outputs] == ["y", "y_1"]
    both = ["merge", str(first), str(second), "--siblings", "--wire", "y=x", "-o", str(siblings)]
    assert CliRunner().invoke(app, both).exit_code != 0


def test_functions_that_differ_are_refused_and_the_fix_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 21, "my": 1]> g (float[n] x) => (float[n] x2) { x2 = my.Act(x) }\n'
        '<domain: "my", opset_import: ["": 21]> Act (u) => (v) { v = Relu(u) }'
    )
    first, second = files(tmp_path, text, text.replace("Relu", "Tanh"))
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.merge(first, second, tmp_path / "both.onnx")
    assert caught.value.problem.id == "merge/functions"
    assert str(second) in caught.value.problem.where
    monkeypatch.chdir(tmp_path)
    words = shlex.split(caught.value.problem.remedies[0].text)
    assert words[0] == "onnxsmith"
    assert CliRunner().invoke(app, words[1:]).exit_code == 0
    result = onnxsmith.merge(first, tmp_path / "inlined.onnx", tmp_path / "both.onnx")
    assert result.ok, result.report.problems
    found = onnxsmith.run(tmp_path / "both.onnx", {"x": X[0]}).outputs["x2"]
    assert np.allclose(found, np.tanh(np.maximum(X[0], 0)))


def with_weights(numbers: str) -> ir.Model:
    return from_text(
        f"""<ir_version: 10, opset_import: ["": 21, "my": 1]> g (float[1000] x) => (float[1000] y) {{ y = my.F(x) }}
        <domain: "my", opset_import: ["": 21]> F (u) => (v) {{ w = Constant<value = float[1000] {{{numbers}}}>()
          t = Add(u, w) v = Relu(t) }}"""
    )


def test_equal_functions_are_one_and_large_ones_are_compared_in_full(tmp_path: Path) -> None:
    ones = ",".join(["1"] * 1000)
    result = onnxsmith.merge(with_weights(ones), with_weights(ones), tmp_path / "both.onnx")
    assert result.ok, result.report.problems
    assert len(onnxsmith.load(tmp_path / "both.onnx").functions) == 1
    middle = ",".join([*["1"] * 500, "2", *["1"] * 499])
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.merge(with_weights(ones), with_weights(middle), tmp_path / "both.onnx")
    assert caught.value.problem.id == "merge/functions"


def test_docs_do_not_make_functions_different() -> None:
    one, two = (with_weights(",".join(["1"] * 1000)) for _ in range(2))
    for node in walk.all_nodes(two):
        node.doc_string, node.metadata_props["pkg.torch.onnx.stack_trace"] = "elsewhere", "File x"
    assert onnxsmith.merge(one, two, verify=False).model is not None


def test_every_tensor_that_gets_another_name_is_in_the_report(tmp_path: Path) -> None:
    first = '<ir_version: 10, opset_import: ["": 21]> a (float[n,4] x) => (float[n,4] y) { t = Relu(x) y = Neg(t) }'
    second = (
        '<ir_version: 10, opset_import: ["": 21]> b (float[n,4] u) => (float[n,4] v) <float[4] x = {1,2,3,4}> '
        "{ t = Mul(u, x) v = Abs(t) }"
    )
    models = []
    for name, text, author in (("a", first, "one"), ("b", second, "two")):
        model = from_text(text)
        model.metadata_props["author"] = author
        models.append(tmp_path / f"{name}.onnx")
        onnxsmith.save(model, models[-1])
    result = onnxsmith.merge(*models, tmp_path / "c.onnx", wires={"y": "u"})
    notes = " ".join(result.report.part(Edits).notes)
    assert result.ok
    assert "renamed tensors of the second model, because the first model has the same names: x → x_1, t → t_1" in notes
    assert "for the key: author = 'two'" in notes


TWO = """<ir_version: 10, opset_import: ["": 21]>
two (float[n,3] a, float[n,3] b) => (float[n,3] s, float[n,3] d) { s = Add(a, b)\n d = Sub(a, b) }"""


@pytest.mark.parametrize(("wires", "end"), [(("s=a", "d=a"), "the input a"), (("s=a", "s=b"), "the output s")])
def test_two_wires_at_one_end(tmp_path: Path, wires: tuple[str, ...], end: str) -> None:
    """Neither is left out in silence."""
    (tmp_path / "two.onnxtxt").write_text(TWO)
    words = [word for wire in wires for word in ("--wire", wire)]
    file = str(tmp_path / "two.onnxtxt")
    done = CliRunner().invoke(app, ["merge", file, file, *words, "-o", str(tmp_path / "out.onnx")])
    assert done.exit_code == 2
    assert f"merge/two-wires: {end} of the" in done.output
    assert not (tmp_path / "out.onnx").exists()


PASSES = """<ir_version: 9, opset_import: ["": 20]>
g (float[2] a, float[2] b) => (float[2] a, float[2] s, float[2] w, float[2] s) <float[2] w = {1,2}> {
  t = Mul(b, w)
  s = Add(a, t)
}"""
READS = """<ir_version: 9, opset_import: ["": 20]>
g (float[2] s) => (float[2] s, float[2] z) { z = Relu(s) }"""


@pytest.mark.parametrize("keep", [False, True])
def test_outputs_that_are_inputs_weights_or_listed_twice(keep: bool, tmp_path: Path) -> None:
    first, second = files(tmp_path, PASSES, READS)
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", keep=keep)
    assert result.ok, result.report.problems
    made = onnxsmith.load(tmp_path / "both.onnx")
    own = ["a", "s", "w", "s"] if keep else ["a", "w"]
    assert [value.name for value in made.graph.outputs] == [*own, "s", "z"]
    assert [value.name for value in made.graph.inputs] == ["a", "b"]


def test_a_wrong_wire_behind_an_input_that_is_an_output_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = files(tmp_path, PASSES, READS)
    honest = room.joined

    def wrong(one: ir.Model, two: ir.Model, wires: Any, renamed: Any) -> ir.Model:
        return honest(one, two, {"s": "a"}, renamed)

    monkeypatch.setattr(room, "joined", wrong)
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx")
    assert not result.ok
    assert not (tmp_path / "both.onnx").exists()
