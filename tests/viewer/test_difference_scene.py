"""Two models side by side: pairs of nodes by what they compute, and what changed in them."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.report.parts.written_files import View
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.scene import Difference
from onnxsmith.viewer.view import view
from tests.comparison.graphs.models import TEXTS, disguised, model
from tests.comparison.graphs.test_equal_regions import SLICES, SPLIT
from tests.viewer.models import HEAD
from tests.viewer.test_view import scene_in

NET = (
    HEAD
    + """g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}, float[2] b = {0,1}> {
        [first] t = MatMul(x, w)
        [second] u = Add(t, b)
        [third] v = LeakyRelu<alpha = 0.1>(u)
        [last] y = Softmax<axis = 1>(v)
    }"""
)


def difference(old: ir.Model | str, new: ir.Model | str) -> tuple[Difference, list[list[str]]]:
    """The difference in the page, and the names of the nodes of both models."""
    sides = [from_text(one) if isinstance(one, str) else one for one in (old, new)]
    scene = scene_in(view(*sides).page)
    found = scene["difference"]
    pairs = [(a, b, state) for a, b, state in found["pairs"]]
    changes = {int(at): lines for at, lines in found["changes"].items()}
    names = [model["nodes"]["name"] for model in scene["models"]]
    return Difference(pairs, found["removed"], found["added"], changes), names


def states(old: ir.Model | str, new: ir.Model | str) -> dict[str, tuple[int, list[str]]]:
    """State and lines by the name of the first model's node; of pairs that differ, and of nodes without a partner."""
    found, (ours, theirs) = difference(old, new)
    lines = {
        ours[a]: (state, found.changes.get(at, []))
        for at, (a, _, state) in enumerate(found.pairs)
        if state or at in found.changes
    }
    lines |= {f"- {ours[at]}": (-1, []) for at in found.removed}
    return lines | {f"+ {theirs[at]}": (-1, []) for at in found.added}


def test_equal_models_with_other_names() -> None:
    for name in TEXTS:
        one = model(name)
        assert states(one, disguised(one)) == {}


def test_attributes() -> None:
    assert states(NET, NET.replace("0.1", "0.2")) == {"third": (1, ["alpha: 0.1 → 0.2"])}


def test_weights() -> None:
    (state, (line,)) = states(NET, NET.replace("5,6}", "5,8}"))["first"]
    assert state == 2
    assert line.startswith("weight w: values, 16.67% of the elements differ, by at most 2")
    assert "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0] → [1.0, 2.0, 3.0, 4.0, 5.0, 8.0]" in line


def test_attributes_and_weights() -> None:
    old = HEAD + (
        "g (float[1,1,4,4] x) => (float y) <float[1,1,2,2] w = {1,2,3,4}> { [conv] y = Conv<strides = [1,1]>(x, w) }"
    )
    assert states(old, old.replace("[1,1]>", "[2,2]>").replace("4}", "5}"))["conv"][0] == 3


def test_another_operator() -> None:
    assert states(NET, NET.replace("LeakyRelu<alpha = 0.1>", "Relu"))["third"] == (
        4,
        ["operator: LeakyRelu → Relu", "alpha: 0.1 → -"],
    )


def test_removed_and_added() -> None:
    shorter = NET.replace("[third] v = LeakyRelu<alpha = 0.1>(u)", "").replace("(v)", "(u)")
    assert states(NET, shorter) == {"- third": (-1, [])}
    assert states(shorter, NET) == {"+ third": (-1, [])}


def test_another_type() -> None:
    old = HEAD + "g (float[N,4] x) => (float[N,4] y) { [a] y = Relu(x) }"
    found = states(old, old.replace("float[", "float16["))
    assert found == {"a": (5, ["type of result 0: float32[N, 4] → float16[N, 4]"])}
    assert states(old, old.replace("[N,", "[batch,")) == {}, "names of dimensions are no difference"


def test_a_function_of_one_model() -> None:
    """It is compared by what it computes: the page shows the model with the function inlined."""
    function = """<ir_version: 10, opset_import: ["": 20, "local": 1]>
    g (float[N] x) => (float[N] y) { y = local.Twice(x) }
    <domain: "local", opset_import: ["": 20]> Twice (x) => (y) { [add] y = Add(x, x) }"""
    found, names = difference(function, HEAD + "g (float[N] x) => (float[N] y) { [sum] y = Add(x, x) }")
    assert [state for _, _, state in found.pairs] == [0]
    assert len(names[0]) == 1


def test_nodes_inside_branches_are_paired() -> None:
    text = (
        HEAD
        + """g (bool c, float[N] x) => (float[N] y) {
        y = If (c) <then_branch = t () => (float[N] r) { [inner] r = Elu<alpha = 1.0>(x) },
                    else_branch = e () => (float[N] s) { s = Abs(x) }> }"""
    )
    assert states(text, text.replace("alpha = 1.0", "alpha = 2.0"))["inner"] == (1, ["alpha: 1.0 → 2.0"])


def test_nodes_computed_otherwise_are_counted_apart() -> None:
    same = view(from_text(SPLIT), from_text(SLICES)).report
    assert same.headline == "the model → the model: 4 nodes computed otherwise"
    more = SLICES.replace("at = Tanh(a)", "at0 = Tanh(a)\n        [more] at = Neg(at0)")
    said = view(from_text(SPLIT), from_text(more)).report.headline
    assert said == "the model → the model: 1 node added, 4 nodes computed otherwise"


def test_counts_in_the_report() -> None:
    result = view(from_text(NET), from_text(NET.replace("0.1", "0.2")))
    pairs = result.report.part(View).pairs
    assert pairs is not None
    assert (pairs["equal"], pairs["other attributes"], pairs["added"]) == (3, 1, 0)
    assert result.report.headline == "the model → the model: 1 node changed"


FLOAT = """g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1.0, 2.0, 3.0, 4.5}, float[2] b = {0, 0}> {
    [gemm] t = Gemm(x, w, b) [act] y = Relu(t) }"""
INT8 = """g (float[N,2] x) => (float[N,2] y) <int8[2,2] q = {2, 4, 6, 8}, float s = {0.5},
    int8 z = {0}, float[2] b = {0, 0}> {
    [wide] w = DequantizeLinear(q, s, z) [gemm] t = Gemm(x, w, b) [act] y = Relu(t) }"""


def test_a_node_that_reads_integers_is_not_equal_to_its_node_in_floats() -> None:
    state, lines = states(HEAD + FLOAT, HEAD + INT8)["gemm"]
    assert (state, lines) == (
        2,
        ["input 1: float → dequantised from int8[2, 2], which changes the values by at most 0.5"],
    )
    state, lines = states(HEAD + INT8, HEAD + FLOAT)["gemm"]
    assert (state, lines[0].partition(",")[0]) == (2, "input 1: dequantised from int8[2")
    assert "act" not in states(HEAD + FLOAT, HEAD + INT8)


def test_integers_that_give_the_same_floats_are_equal() -> None:
    assert "gemm" not in states(HEAD + FLOAT.replace("4.5", "4.0"), HEAD + INT8)


def test_a_node_with_quantised_activations_reads_other_tensors() -> None:
    activations = INT8.replace(
        "[gemm] t = Gemm(x,", "xq = QuantizeLinear(x, s, z) xd = DequantizeLinear(xq, s, z) [gemm] t = Gemm(xd,"
    )
    state, lines = states(HEAD + FLOAT.replace("4.5", "4.0"), HEAD + activations)["gemm"]
    assert (state, lines) == (5, ["input 0: float → dequantised from int8[N, 2]"])
