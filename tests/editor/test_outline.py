"""`outline`: nodes become calls of a local function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.single_steps import Outline
from onnxsmith.editor.steps import local_functions as room
from onnxsmith.graph.files.text import from_text
from tests.editor.models import LOOP, NET

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
TWICE = f"""{HEAD} g (float[n,4] x) => (float[n,4] y, float[n,4] c)
  <float[4] w = {{-1,2,-3,4}}, float[4] v = {{5,6,7,8}}> {{
  [e1] a = Elu<alpha = 0.5>(x) [s1] b = Sigmoid(a) [m1] c = Mul(b, w)
  [e2] d = Elu<alpha = 0.25>(c) [s2] e = Sigmoid(d) [m2] f = Mul(e, v)
  y = Neg(f)
}}"""
PATTERN = "Mul(Sigmoid(Elu(x)), w)"
CASTS = f"""{HEAD} g (float[n,4] x) => (float16[n,4] y, int32[n,4] z) {{
  a = Relu(x) y = Cast<to = 10>(a) b = Relu(a) z = Cast<to = 6>(b)
}}"""
BRANCHES = f"""{HEAD} g (float[n,4] x, bool p) => (float[n,4] y) <float[4] w = {{1,2,3,4}}> {{
  a = Tanh(x)
  [one] b = If(p) <then_branch = t () => (float[n,4] o) {{ o = Mul(a, w) }}, else_branch = e () => (float[n,4] q) {{ q = Neg(a) }}>
  c = Tanh(b)
  [two] y = If(p) <then_branch = t () => (float[n,4] o2) {{ o2 = Mul(c, w) }}, else_branch = e () => (float[n,4] q2) {{ q2 = Neg(c) }}>
}}"""  # noqa: E501
IN_A_FUNCTION = """<ir_version: 10, opset_import: ["": 21, "my": 1]>
g (float[n,4] x) => (float[n,4] y, float[n,4] z) { y = my.Outer<alpha = 0.5>(x) z = my.Outer<alpha = 2.0>(y) }
<domain: "my", opset_import: ["": 21]>
Outer <alpha> (x) => (y) { a = Elu<alpha: float = @alpha>(x) [inner] b = Sigmoid(a) y = Mul(a, b) }"""


def ops(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


def function(model: ir.Model) -> ir.Function:
    (found,) = model.functions.values()
    return found


def outlined(text: str, **fields: Any) -> ir.Model:
    """The edited model, after a comparison; what `inline` makes of it must be equal too."""
    with onnxsmith.edit(from_text(text)) as m:
        m.outline("own::F", **fields)
    assert m.result is not None
    assert m.result.ok
    assert m.result.model is not None
    assert "verified on" in m.result.report.headline
    with onnxsmith.edit(m.result.model) as back:
        back.inline("own::F")
    assert "own" not in back.model.opset_imports
    assert back.result is not None
    assert back.result.model is not None
    again = onnxsmith.compare(from_text(text), back.result.model)
    assert again.ok, again.report.problems
    return m.result.model


def test_a_pattern_in_two_places() -> None:
    model = outlined(TWICE, find=PATTERN)
    assert ops(model) == ["F", "F", "Neg"]
    made = function(model)
    assert (len(made.inputs), list(made.attributes), len(made.outputs)) == (2, ["alpha"], 1)
    assert [node.attributes.get_float("alpha") for node in model.graph if node.op_type == "F"] == [0.5, 0.25]
    assert [value.name for value in model.graph.outputs] == ["y", "c"]


def test_nodes_by_name() -> None:
    model = outlined(TWICE, node=["e1", "s1", "m1"])
    assert ops(model) == ["F", "Elu", "Sigmoid", "Mul", "Neg"]
    assert not function(model).attributes


def test_a_result_that_one_place_needs_is_one_of_all() -> None:
    text = TWICE.replace("y = Neg(f)", "y = Add(f, b)")
    model = outlined(text, find="s = Sigmoid(Elu(x)) Mul(s, w)")
    assert len(function(model).outputs) == 2


def test_dtypes_that_differ() -> None:
    model = outlined(CASTS, find="Cast(Relu(x))", count=2)
    assert list(function(model).attributes) == ["to"]


def test_branches_come_along() -> None:
    model = outlined(BRANCHES, node=["one"])
    assert ops(model) == ["Tanh", "F", "Tanh", "If"]
    assert len(function(model).inputs) == 3  # the condition, and what the branches capture
    assert ops(outlined(BRANCHES, find="any(p)", where={"p": "p"}, count=2)) == ["Tanh", "F", "Tanh", "F"]


def test_a_loop_and_nodes_of_its_body() -> None:
    assert ops(outlined(LOOP, node={"op": "Loop"})) == ["Tanh", "F"]
    with onnxsmith.edit(from_text(LOOP)) as m:
        m.outline("own::F", node=[{"op": "Mul"}, {"op": "Add"}])
    assert m.result is not None
    assert m.result.ok
    body = next(node for node in m.model.graph if node.op_type == "Loop").attributes["body"].as_graph()
    assert [node.op_type for node in body] == ["Identity", "F"]


def test_in_a_function_with_its_attributes() -> None:
    with onnxsmith.edit(from_text(IN_A_FUNCTION)) as m:
        m.outline("own::F", find="a = Elu(x) Mul(a, Sigmoid(a))")
    assert m.result is not None
    assert m.result.ok
    outer = m.model.functions["my", "Outer", ""]
    assert [node.op_type for node in outer] == ["F"]
    assert next(iter(outer)).attributes["alpha"].ref_attr_name == "alpha"


def test_a_list_passes_into_a_call() -> None:
    text = f"""{HEAD} g (float[n,4] x) => (float[n,2] y) <int64 one = {{1}}, int64 two = {{2}}> {{
      s = SplitToSequence<axis = 1>(x, two) [at] t = SequenceAt(s, one) [neg] y = Neg(t) }}"""
    assert ops(outlined(text, node=["at", "neg"])) == ["SplitToSequence", "F"]


def test_size_zero() -> None:
    text = f"{HEAD} g (float[0,4] x) => (float[0,4] y) {{ [a] a = Neg(x) [b] y = Relu(a) }}"
    assert ops(outlined(text, node=["a", "b"])) == ["F"]


def test_a_node_between_is_named() -> None:
    with pytest.raises(onnxsmith.OnnxsmithError, match="edit/not-convex") as caught:
        outlined(TWICE, node=["e1", "m1"])
    assert caught.value.problem.fix.startswith("select s1")


def test_readers_in_the_middle_are_sorted_behind_the_call() -> None:
    text = f"""{HEAD} g (float[n,4] x) => (float[n,4] y, float[n,4] z) {{
      [one] a = Relu(x) z = Neg(a) [two] b = Exp(x) y = Add(a, b) }}"""
    assert ops(outlined(text, node=["one", "two"])) == ["F", "Neg", "Add"]


def test_two_calls_that_need_each_other() -> None:
    """Each of the two is convex, and together they are not."""
    text = f"""{HEAD} g (float[n] x) => (float[n] p, float[n] q) {{
      a = Sigmoid(x) b = Tanh(a) c = Sigmoid(x) d = Tanh(c) e = Add(a, d) f = Add(c, b) p = Neg(e) q = Neg(f) }}"""
    with pytest.raises(onnxsmith.OnnxsmithError, match="edit/cycle"):
        outlined(text, find="(x, t) => (s, y) { s = Sigmoid(x) y = Add(s, t) }")


def test_places_that_are_not_alike(tmp_path: Path) -> None:
    text = TWICE.replace("[m2] f = Mul(e, v)", "[m2] f = Mul(v, e)")
    with pytest.raises(onnxsmith.OnnxsmithError, match="edit/not-alike") as caught:
        outlined(text, find=PATTERN)
    assert "comes from another node" in caught.value.problem.why


def layered(count: int = 3) -> Any:
    torch = pytest.importorskip("torch")

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, slope: float) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(8, 8)
            self.act = torch.nn.LeakyReLU(slope)

        def forward(self, x: Any) -> Any:
            return x + self.act(self.linear(x))

    torch.manual_seed(0)
    return torch.nn.Sequential(*[Block(0.1 * (1 + index)) for index in range(count)])


def test_torch_modules_become_calls(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model, path = layered(), tmp_path / "net.onnx"
    assert onnxsmith.export(model, (torch.zeros(2, 8),), output=path, dynamic={"input": {0: "n"}}).ok
    report = Outline(model=str(path), function="my::Block", module="*", output=str(tmp_path / "out.onnx")).run()
    assert report.verdict is Verdict.DONE
    made = onnxsmith.load(tmp_path / "out.onnx")
    assert ops(made) == ["Block"] * 3
    assert list(function(made).attributes) == ["alpha"]
    assert "verified on" in report.headline


def test_a_shape_that_modules_share_is_computed_in_front() -> None:
    text = f"""{HEAD} g (float[n,4] x, float[n,4] h) => (float[n,4] y) {{
      [a0] a = Relu(x) [s] s = Shape(a) [r0] b = Reshape(a, s)
      [a1] c = Relu(b) [r1] d = Reshape(c, s) [a2] e = Relu(d) [r2] y = Reshape(e, s) }}"""
    assert ops(layers(text, (0, 0, 0, 1, 1, 2, 2))) == ["Relu", "Shape", "F", "F", "F"]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("[m0] k = Unsqueeze(mask, axes) [m1] l = Not(k) [a0] a = Where(l, x, h)", ["Unsqueeze", "Not", "F", "F", "F"]),
        (
            "[m0] k = Not(mask) [m1] l = Unsqueeze(k, axes) [a0] a = Where(l, x, h)",
            ["Not", "Unsqueeze", "F", "F", "F"],
        ),
        (
            "[m0] k = Unsqueeze(mask, axes) [m2] w = Not(k) [m1] l = And(k, w) [a0] a = Where(l, x, h)",
            ["Unsqueeze", "Not", "And", "F", "F", "F"],
        ),
    ],
)
def test_a_mask_that_modules_share_leaves_the_first_with_its_chain(mask: str, expected: list[str]) -> None:
    text = f"""{HEAD} g (float[n,4] x, float[n,4] h, bool[n] mask) => (float[n,4] y) <int64[1] axes = {{1}}> {{
      {mask} [a1] b = Relu(a) [b0] c = Where(l, b, h) [b1] d = Relu(c) [c0] e = Where(l, d, h) [c1] y = Relu(e) }}"""
    first = mask.count("=")
    assert ops(layers(text, (0,) * (first + 1) + (1, 1, 2, 2))) == expected


def layers(text: str, numbers: tuple[int, ...]) -> ir.Model:
    """The model with nodes of `layers.N` for these numbers, and each layer a call."""
    model = from_text(text)
    for node, module in zip(model.graph, numbers, strict=True):
        node.metadata_props["pkg.torch.onnx.name_scopes"] = f"['', 'layers.{module}', '{node.name}']"
    with onnxsmith.edit(model) as m:
        m.outline("own::F", module="layers.*")
    assert m.result is not None
    assert m.result.ok
    made: ir.Model = m.model
    return made


def test_a_wrong_function_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = room.outlined

    def wrong(*given: Any) -> ir.Function:
        made = right(*given)
        next(node for node in made if node.op_type == "Sigmoid").op_type = "Tanh"
        return made

    monkeypatch.setattr(room, "outlined", wrong)
    onnxsmith.save(from_text(TWICE), tmp_path / "in.onnx")
    out = tmp_path / "out.onnx"
    report = Outline(model=str(tmp_path / "in.onnx"), function="my::F", find=PATTERN, output=str(out)).run()
    assert report.verdict is Verdict.DIFFERENT
    assert not out.exists()


def test_a_wrong_attribute_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = room.outlined

    def wrong(layouts: Any, *given: Any) -> ir.Function:
        made = right(layouts, *given)
        calls = [node for node in layouts[0].region.graph if node.op_type == "F"]
        calls[1].attributes["alpha"] = calls[0].attributes["alpha"]
        return made

    monkeypatch.setattr(room, "outlined", wrong)
    with pytest.raises(onnxsmith.OnnxsmithError, match="verify/different"):
        outlined(TWICE, find=PATTERN)


@pytest.mark.parametrize(
    ("fields", "id_"),
    [
        ({}, "edit/step-argument"),
        ({"node": "e1", "find": PATTERN}, "edit/step-argument"),
        ({"node": "nope"}, "edit/no-match"),
        ({"find": "Gemm(a, b)"}, "edit/no-match"),
        ({"find": PATTERN, "count": 3}, "edit/match-count"),
        ({"module": "layers.*"}, "edit/no-match"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], id_: str) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError, match=id_):
        outlined(TWICE, **fields)


@pytest.mark.parametrize(
    ("name", "id_"),
    [("F", "edit/step-argument"), ("ai.onnx::F", "edit/step-argument"), ("my::Outer", "edit/name-taken")],
)
def test_names_that_are_refused(name: str, id_: str) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError, match=id_), onnxsmith.edit(from_text(IN_A_FUNCTION)) as m:
        m.outline(name, node="inner")


def test_graphs_and_versions_that_are_refused() -> None:
    with pytest.raises(onnxsmith.OnnxsmithError, match="edit/out-of-scope"):
        outlined(LOOP, node=[{"op": "Mul"}, {"op": "Tanh"}])
    old = '<ir_version: 3, opset_import: ["": 11]> g (float[n] x) => (float[n] y) { [a] y = Neg(x) }'
    with pytest.raises(onnxsmith.OnnxsmithError, match="IR version 3"):
        outlined(old, node="a")


def test_patches_record_the_step(tmp_path: Path) -> None:
    onnxsmith.save(from_text(NET), tmp_path / "net.onnx")
    with onnxsmith.edit(tmp_path / "net.onnx", tmp_path / "a.onnx", write_patch=tmp_path / "p.toml") as m:
        m.outline("my::F", node=["add", "product"])
    with onnxsmith.edit(tmp_path / "net.onnx", tmp_path / "b.onnx") as again:
        again.apply(tmp_path / "p.toml")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    x = {"x": np.ones((1, 4), np.float32)}
    assert np.array_equal(*(onnxsmith.run(tmp_path / f, x).outputs["y"] for f in ("net.onnx", "a.onnx")))
