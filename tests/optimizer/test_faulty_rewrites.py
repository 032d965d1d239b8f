"""A rewrite that is wrong is found, switched off and named; the rest stays."""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from pathlib import Path

import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.edits import Entry, Simplification
from onnxsmith.base.report.parts.verification import REFUSES, OutputCheck, Verification
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.faulty_rewrites import without_culprits
from onnxsmith.optimizer.journal import Place
from onnxsmith.optimizer.rules.base import Exactness, Match, Rule

TEXT = """
<ir_version: 10, opset_import: ["": 20]>
g (float[N,4] x) => (float[N,4] y) {
    a = Identity(x)
    b = Abs(a)
    c = Neg(b)
    d = Exp(c)
    e = Neg(d)
    f = Identity(e)
    y = Tanh(f)
}
"""


class WrongNeg(Rule):
    """Neg(x) is taken to be x, which is wrong."""

    anchor = ("Neg",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match:
        return Match(node, (node,))

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return self.instead(tape, match.node.inputs[0])

    def instead(self, tape: ir.tape.Tape, value: ir.Value | None) -> ir.Value:
        return tape.op("Relu", [value])


class InvalidNeg(WrongNeg):
    """Puts an operator there that does not exist."""

    def instead(self, tape: ir.tape.Tape, value: ir.Value | None) -> ir.Value:
        return tape.op("NoSuchOperator", [value])


class CrashingNeg(WrongNeg):
    """Puts a node there that no runtime takes."""

    def instead(self, tape: ir.tape.Tape, value: ir.Value | None) -> ir.Value:
        return tape.op("Reshape", [value, tape.initializer(ir.tensor([7, 7, 7]), name="target")])


@pytest.fixture(params=[WrongNeg, InvalidNeg, CrashingNeg])
def wrong(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = rooms.members

    def members(room: str, base: type) -> dict[str, object]:
        found = honest(room, base)
        return {**found, "test/wrong": request.param()} if room == "onnxsmith.optimizer.rules" else found

    monkeypatch.setattr(rooms, "members", members)


@pytest.mark.usefixtures("wrong")
def test_the_culprits_are_switched_off_and_named(tmp_path: Path) -> None:
    result = onnxsmith.simplify(from_text(TEXT), tmp_path / "out.onnx", verify=Verify(runtime="reference"))
    assert result.ok
    assert result.report.part(Verification).equal
    part = result.report.part(Simplification)
    assert {entry.rule for entry in part.switched_off} == {"test/wrong"}
    assert all(entry.why_not for entry in part.switched_off)
    assert not [entry for entry in part.fired if entry.rule == "test/wrong"]
    left = [node.op_type for node in onnxsmith.load(tmp_path / "out.onnx").graph]
    assert left == ["Abs", "Neg", "Exp", "Neg", "Tanh"]
    assert "switched off test/wrong at" in str(list(part.blocks()))
    assert result.report.from_json(result.report.to_json()) == result.report


@pytest.mark.usefixtures("wrong")
def test_without_verification_nothing_is_repaired() -> None:
    result = onnxsmith.simplify(from_text(TEXT), verify=False)
    assert [entry for entry in result.report.part(Simplification).fired if entry.rule == "test/wrong"]


# The bisection by itself


class Journalled:
    """A simplification of `count` rewrites. The model's name holds the rewrites that were made."""

    def __init__(
        self,
        count: int,
        wrong: Collection[int],
        *,
        hopeless: bool = False,
        reason: str = "it is wrong",
        where: str = "",
    ) -> None:
        self.count, self.wrong, self.hopeless, self.runs = count, wrong, hopeless, 0
        self.reason, self.where = reason, where

    def __call__(
        self, *, limit: float = inf, switched_off: frozenset[Place] = frozenset(), exactness: str | None = None
    ) -> tuple[ir.Model, Simplification]:
        self.runs += 1
        tidying = Entry(0, "pass: tidying", "graph")
        made = [
            Entry(i, "test/rule", f"node {i}")
            for i in range(self.count)
            if ("test/rule", f"node {i}") not in switched_off
        ]
        made = made[: int(min(limit, self.count))]
        model = ir.Model(ir.Graph([], [], nodes=[], name=" ".join(one.where[5:] for one in made)), ir_version=10)
        return model, Simplification(0, 0, 0, 0, (tidying, *made), (), 1)

    def judge(self, model: ir.Model) -> Verification:
        made = {int(number) for number in (model.graph.name or "").split()}
        equal = not self.hopeless and not made & set(self.wrong)
        output = OutputCheck("y", "float32", equal, 0, 0, 1, 0, "", 1, "" if equal else self.reason, self.where)
        return Verification("a", "b", verified=True, equal=equal, outputs=(output,))


@pytest.mark.parametrize("wrong", [[0], [1], [6], [7], [0, 7], [2, 3, 4], range(8)])
def test_each_wrong_rewrite_is_found_wherever_it_is(wrong: Collection[int]) -> None:
    simplify = Journalled(8, wrong)
    found = without_culprits(simplify, simplify.judge, lambda model, where: None)
    assert found is not None
    assert [entry.where for entry in found.part.switched_off] == [f"node {i}" for i in wrong]
    assert [entry.id for entry in found.part.switched_off] == list(range(len(wrong)))
    assert {entry.why_not for entry in found.part.switched_off} == {"output 'y' differs: it is wrong"}
    assert found.model.graph.name == " ".join(str(i) for i in range(8) if i not in wrong)
    assert simplify.runs <= 5 * len(wrong) + 1  # the whole, none, and log2(8) halves for each


def test_sixteen_rewrites_are_switched_off_and_no_more() -> None:
    sixteen, more = Journalled(20, range(16)), Journalled(20, range(17))
    assert without_culprits(sixteen, sixteen.judge, lambda model, where: None) is not None
    assert without_culprits(more, more.judge, lambda model, where: None) is None


NATIVE = f"{REFUSES}: it failed FAIL : in Attention. Status Message: /src/core/helper.h:55 f(int) at 0"


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (
            "b=0, t=64, seed 2, normal",
            (
                "empty inputs after this rewrite (b=0), which the original accepts; with --dim b=1, no empty "
                "inputs are tried"
            ),
        ),
        (
            "b=10, seed 2, normal",
            (
                "an input after this rewrite (b=10, seed 2, normal) that the original accepts: it failed FAIL : "
                "in Attention."
            ),
        ),
    ],
)
def test_what_a_runtime_refuses_is_said_in_a_sentence_and_twice_is_everywhere(where: str, said: str) -> None:
    simplify = Journalled(40, range(30), reason=NATIVE, where=where)
    found = without_culprits(simplify, simplify.judge, lambda model, where: None)
    assert found is not None
    assert [entry.where for entry in found.part.switched_off] == ["node 0", "node 1"]
    assert [entry.why_not for entry in found.part.switched_off] == [
        f"the runtime refuses {said}",
        f"the runtime refuses {said}, as at 38 other places",
    ]


def test_no_rewrite_is_blamed_for_a_model_that_differs_without_any() -> None:
    simplify = Journalled(8, [3], hopeless=True)
    assert without_culprits(simplify, simplify.judge, lambda model, where: None) is None
    assert simplify.runs == 2


def test_a_rewrite_is_to_blame_for_an_invalid_model_that_the_runtime_takes() -> None:
    simplify, honest = Journalled(8, [5]), Journalled(8, [])

    def check(model: ir.Model, where: str) -> None:
        if not simplify.judge(model).equal:
            raise problem("model/invalid", "the model is invalid", why="it has a node too many")

    found = without_culprits(simplify, honest.judge, check)
    assert found is not None
    (culprit,) = found.part.switched_off
    assert (culprit.where, culprit.why_not) == ("node 5", "the model is invalid it has a node too many")
