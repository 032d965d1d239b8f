"""Two models that have next to nothing in common, and counts that agree between `diff` and `view`."""

from __future__ import annotations

import pytest

from onnxsmith.base.report.parts.model_changes import Difference, NodeChanges
from onnxsmith.base.report.parts.written_files import View
from onnxsmith.comparison.graphs.diff import diff
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.view import view

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
WEIGHT = "float[64] w = {" + ",".join(str(n % 9) for n in range(64)) + "}"


def chain(ops: str, cast: str, weight: str = "") -> str:
    """Unary operators, the last of which is a Cast to a type."""
    lines, last = [], "x"
    for at, op in enumerate(ops.split()):
        lines.append(f"v{at} = {op}({last})")
        last = f"v{at}"
    if weight:
        lines.append(f"product = Mul({last}, w)")
        last = "product"
    body = "\n".join([*lines, f"y = Cast<to = {cast}>({last})"])
    result = "float" if cast == "1" else "float16"
    return f"{HEAD}g (float[64] x) => ({result}[64] y) {f'<{weight}>' if weight else ''} {{ {body} }}"


OLD = "Relu Abs Relu Abs Relu Abs Relu Abs Relu Abs Relu"
NEW = "Sin Cos Sin Cos Sin Cos Sin Cos Sin Cos Sin"


def test_different_models_are_called_so() -> None:
    old, new = from_text(chain(OLD, "1")), from_text(chain(NEW, "10"))
    report, page = diff(old, new).report, view(old, new)
    sentence = "these are different models: 0 of 12 and 12 nodes have a partner"
    assert report.headline == f"the model → the model: {sentence}"
    assert sentence in (page.report.headline or "")
    assert not report.part(NodeChanges).changed, "a Cast and another Cast are no changed node here"
    assert (report.part(Difference).changes["removed node"], report.part(Difference).changes["added node"]) == (12, 12)


def test_models_with_one_weight_in_common_are_not_called_different() -> None:
    old, new = chain(f"{OLD} {OLD}", "1", WEIGHT), chain(f"{NEW} {NEW}", "10", WEIGHT)
    assert "different models" not in (diff(from_text(old), from_text(new)).report.headline or "")
    other = chain(f"{NEW} {NEW}", "10", WEIGHT.replace("{0,", "{9,"))
    assert "different models" in (diff(from_text(old), from_text(other)).report.headline or "")


BRANCHES = (
    HEAD
    + """g (bool c, float[2] x) => (float[2] y) {
        [before] t = Abs(x)
        [choice] u = If (c) <
            then_branch = one () => (float[2] a) { [r] b = Relu(t) \n [n] a = Neg(b) },
            else_branch = two () => (float[2] d) { [s] d = Sin(t) }>
        [after] y = Sqrt(u)
    }"""
)
PLAIN = HEAD + "g (bool c, float[2] x) => (float[2] y) { [before] t = Abs(x)\n[after] y = Sqrt(t) }"


@pytest.mark.parametrize(("old", "new", "side"), [(BRANCHES, PLAIN, "removed"), (PLAIN, BRANCHES, "added")])
def test_nodes_in_branches_are_counted(old: str, new: str, side: str) -> None:
    report = diff(from_text(old), from_text(new)).report
    assert report.part(Difference).changes[f"{side} node"] == 4
    pairs = view(from_text(old), from_text(new)).report.part(View).pairs
    assert pairs is not None
    assert pairs[side] == 4
    assert f"3 {side} nodes in branches and bodies are not in the list" in report.notes
