"""A rewrite that is wrong is found, switched off and named; the rest stays."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith import rooms
from onnxsmith.model.files.text import from_text
from onnxsmith.report.parts.simplification import Simplification
from onnxsmith.report.parts.verification import Verification
from onnxsmith.rules.base import Exactness, Match, Rule
from onnxsmith.settings import Verify

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
        return {**found, "test/wrong": request.param()} if room == "onnxsmith.rules" else found

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
