"""Every branch that some input takes is compared; a branch that no input takes is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.branch_coverage import _changed
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.sessions import verify_models
from onnxsmith.verification.verification_verdict import ending

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'


def branch(condition: str, result: str, then: str, other: str) -> str:
    return (
        f"{result} = If({condition}) <then_branch = t_{result} () => (float[n] t_{result}) {{ t_{result} = {then} }}, "
        f"else_branch = e_{result} () => (float[n] e_{result}) {{ e_{result} = {other} }}>\n"
    )


PORTS = "float[n] x, bool a, bool b, bool c, int64 k"
TWO = "<int64 two = {2}, float far = {1000.0}, float never = {-1.0}>"
MODELS = {
    "two bools": branch("a", "u", "Neg(x)", "Abs(x)") + branch("b", "y", "Exp(u)", "WRONG(u)"),
    "both together": "d = Or(a, b)\n" + branch("d", "y", "Neg(x)", "WRONG(x)"),
    "three together": "d = Or(a, b) e = Or(d, c)\n" + branch("e", "y", "Neg(x)", "WRONG(x)"),
    "a selector": "d = Equal(k, two)\n" + branch("d", "y", "WRONG(x)", "Abs(x)"),
    "a selector and a bool": "d = Equal(k, two) e = Not(c) f = And(d, e)\n" + branch("f", "y", "WRONG(x)", "Abs(x)"),
    "a value": "d = ReduceSum(x) s = Squeeze(d) e = Greater(s, far)\n" + branch("e", "y", "WRONG(x)", "Abs(x)"),
    "inside a branch": "e = Not(c)\n"
    "y = If(a) <then_branch = o () => (float[n] q) { " + branch("e", "q", "WRONG(x)", "Neg(x)").replace("y", "y")
    + " }, else_branch = r () => (float[n] p) { p = Abs(x) }>\n",
    "a loop": "d = Equal(k, two)\ny = Loop(, d, x) <body = l (int64 i, bool g, float[n] v) => (bool o, float[n] w) "
    "{ w = WRONG(v) h = Abs(v) o = Less(i, k) }>",
}  # fmt: skip


def model(kind: str, operator: str) -> str:
    body = MODELS[kind].replace("WRONG", operator).replace("Loop(, ", 'Loop("", ')
    return HEAD + f"g ({PORTS}) => (float[n] y) {TWO} {{ {body} }}"


@pytest.mark.parametrize("kind", MODELS)
def test_a_fault_in_any_branch_is_found(kind: str) -> None:
    right, wrong = (from_text(model(kind, operator)) for operator in ("Sin", "Cos"))
    assert verify_models(right, right).equal
    assert verify_models(right, wrong).differs


@pytest.mark.parametrize("kind", ["a value", "a loop", "inside a branch"])
def test_a_comparison_runs_the_conditions_beside_its_sides(kind: str) -> None:
    right, wrong = (from_text(model(kind, operator)) for operator in ("Sin", "Cos"))
    assert onnxsmith.compare(right, right, thorough=True).ok
    assert onnxsmith.compare(right, wrong).report.verdict is Verdict.DIFFERENT


NEVER = HEAD + (
    "g (float[n] x, bool c) => (float[n] y) <float never = {-1.0}> { [abs] z = Abs(x) d = ReduceSum(z) s = Squeeze(d) "
    "e = Less(s, never)\n" + branch("e", "u", "Exp(x)", "Neg(x)") + branch("c", "y", "Sin(u)", "Cos(u)") + "}"
)


def test_a_branch_that_no_input_takes_is_named() -> None:
    one = from_text(NEVER)
    found = verify_models(one, one)
    assert found.equal
    never = [clause for clause in found.untried if clause.startswith("no input took")]
    assert never == ["no input took the side of the branch at -> u where its condition is true"]
    assert never[0] in ending(found)


def test_compare_and_simplify_say_it() -> None:
    one = from_text(NEVER)
    for report in (onnxsmith.compare(one, one, thorough=True).report, onnxsmith.simplify(one).report):
        assert any("no input took the side" in clause for clause in report.part(Verification).untried)
        assert "no input took the side" in report.headline


HELD = {
    "of the graph": ("never = {-1.0}, float held = {2.0}", ""),
    "of the branch": ("never = {-1.0}", "held = Constant<value = float {2.0}>() "),
}


@pytest.mark.parametrize("where", HELD)
def test_another_constant_in_a_branch_that_no_input_takes_is_no_agreement(where: str) -> None:
    outside, inside = HELD[where]
    text = NEVER.replace("never = {-1.0}", outside).replace("t_u = Exp(x)", f"{inside}t_u = Mul(x, held)")
    right, wrong = from_text(text), from_text(text.replace("{2.0}", "{3.0}"))
    assert onnxsmith.compare(right, right, thorough=True).ok
    report = onnxsmith.compare(right, wrong).report
    assert report.verdict is Verdict.CANNOT_TELL
    assert "'held' has different values in a branch that no input took" in report.part(Verification).unsure


WHERE = HEAD + (
    "g (float[n] x) => (float[n] y) <float far = {1000.0}> { z = Abs(x) a = Exp(x) b = Neg(x)\nCONDITION\n"
    "y = Where(e, a, b) }"
)
CONDITIONS = {
    "a value": ("d = ReduceSum<keepdims = 0>(z) f = Neg(d) e = Greater(f, far)", ["true"]),
    "a value that is found": ("d = ReduceSum<keepdims = 0>(x) e = Greater(d, far)", []),
    "each element": ("f = Neg(z) e = Greater(f, far)", []),
    "a shape": ("h = Size(x) f = Neg(h) k = Constant<value = int64 {0}>() e = Greater(f, k)", []),
}


@pytest.mark.parametrize("kind", CONDITIONS)
def test_a_side_of_a_where_that_one_value_decides_is_named(kind: str) -> None:
    """Torch's exporter and the recomposed `if` of a module write branches in this form."""
    condition, sides = CONDITIONS[kind]
    one = from_text(WHERE.replace("CONDITION", condition))
    found = verify_models(one, one)
    assert found.equal
    never = [clause for clause in found.untried if clause.startswith("no input took")]
    assert never == [f"no input took the side of the branch at -> y where its condition is {side}" for side in sides]


class Chosen(nn.Module):
    def __init__(self, factor: float, limit: float) -> None:
        super().__init__()
        self.factor, self.limit = factor, limit

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.tanh(x.abs().mean()) > self.limit, x * self.factor, x + 1)


@pytest.mark.torch
def test_a_module_that_differs_in_a_branch_is_never_equal(tmp_path: Path) -> None:
    def written(limit: float) -> Path:
        path = tmp_path / f"{limit}.onnx"
        assert onnxsmith.export(Chosen(0.5, limit), (torch.randn(2, 3),), output=path).ok
        return path

    def verdict(factor: float, limit: float) -> Verdict:
        module, args = Chosen(factor, limit), (torch.randn(2, 3),)
        return onnxsmith.compare((module, args), written(limit)).report.verdict

    assert verdict(0.5, 0.9) is Verdict.DONE, "an input is found for each side"
    assert verdict(0.9, 0.9) is Verdict.DIFFERENT
    assert verdict(0.5, 2.0) is Verdict.CANNOT_TELL, "no input is"
    assert verdict(0.9, 2.0) is Verdict.CANNOT_TELL


def test_an_input_is_found_where_one_combination_of_three_bools_runs() -> None:
    """Each other branch refuses every input."""
    conditions = "p = Not(a) q = And(p, b) r = Not(c) e = And(q, r)\n"
    text = HEAD + (
        "g (float[4] x, bool a, bool b, bool c) => (float[4] y) <int64[1] bad = {3}> { "
        + conditions
        + branch("e", "u", "Neg(x)", "Reshape(x, bad)")
        + "y = Abs(u) }"
    )
    found = verify_models(from_text(text), from_text(text))
    assert found.equal
    assert any("its condition is false" in clause for clause in found.untried)


@pytest.mark.filterwarnings("error")
def test_other_values_of_an_infinite_input_are_numbers() -> None:
    feed = Feed("given", {}, {"x": np.array([np.inf, 6e4], np.float16)})
    none, larger = (_changed(feed, "", factor, 0.0).values["x"] for factor in (0.0, 100.0))
    assert none.tolist() == [0, 0]
    assert larger.tolist() == [np.inf, np.inf]
