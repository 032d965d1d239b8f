"""Where the two differ by more than rounding explains, float64 says which of them is closer; where inputs show too
little, those of other seeds are tried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification import sessions
from onnxsmith.verification.sessions import verify_models

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'


def causal(scale: str) -> str:
    """Attention as the TorchScript exporter writes it: the root of the scale is multiplied to queries and to keys."""
    return f"""{HEAD} g (float[n,2,l,8] q, float[n,2,l,8] k, float[n,2,l,8] v) => (float[n,2,M,8] y)
    <float[1] one = {{1}}, float[1] zero = {{0}}, float[1] low = {{-inf}}> {{
        d = Shape<start = 3>(q)\n f = Cast<to = 1>(d)\n r = Sqrt(f)\n s = Div({scale}, r)\n t = Sqrt(s)
        a = Shape<start = 2, end = 3>(q)\n b = Shape<start = 2, end = 3>(k)\n c = Concat<axis = 0>(a, b)
        e = Expand(one, c)\n h = Trilu<upper = 0>(e)\n i = Equal(h, zero)\n m = Where(i, low, zero)
        u = Transpose<perm = [0, 1, 3, 2]>(k)\n g1 = Mul(q, t)\n g2 = Mul(u, t)\n p = MatMul(g1, g2)
        o = Add(p, m)\n w = Softmax<axis = -1>(o)\n y = MatMul(w, v) }}"""


def test_a_constant_scale_is_folded() -> None:
    """With a constant scale the runtime's optimisation rounds otherwise, and closer to float64 than before."""
    result = onnxsmith.simplify(from_text(causal("one")))
    part = next(part for part in result.report.parts if isinstance(part, Simplification))
    assert not part.switched_off
    assert result.model is not None
    assert "Sqrt" not in [node.op_type for node in result.model.graph]


def test_another_scale_is_wrong() -> None:
    """One part in a thousand is not excused."""
    other = causal("more").replace("float[1] one = {1}", "float[1] one = {1}, float[1] more = {1.001}")
    assert verify_models(from_text(causal("one")), from_text(other)).differs


def _with_verdicts(monkeypatch: pytest.MonkeyPatch, verdicts: list[dict[str, Any]]) -> list[int]:
    """Replaces the comparison on one seed by these verdicts; returns the seeds that were asked for, as they come."""
    model = from_text(causal("one"))
    usual = verify_models(model, model)
    seeds: list[int] = []

    def compared(self: sessions._Pair) -> Verification:
        if not self.is_opened:
            seeds.append(self.seed)
        return replace(usual, **verdicts[len(seeds) - 1])

    monkeypatch.setattr(sessions._Pair, "compared", compared)
    return seeds


def test_other_seeds_are_tried_until_a_check_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    unsure = {"equal": False, "unsure": ("too little",)}
    model = from_text(causal("one"))
    seeds = _with_verdicts(monkeypatch, [unsure, {"equal": True, "unsure": ()}])
    found = verify_models(model, model, Verify(seed=5))
    assert seeds == [5, 6]
    assert found.equal
    assert any("seed 6 were used" in note for note in found.notes)


def test_a_difference_on_another_seed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    unsure = {"equal": False, "unsure": ("too little",)}
    model = from_text(causal("one"))
    seeds = _with_verdicts(monkeypatch, [unsure, {"equal": False, "unsure": ()}])
    assert verify_models(model, model).differs
    assert seeds == [0, 1]


def test_what_no_seed_can_tell_stays_unsure(monkeypatch: pytest.MonkeyPatch) -> None:
    unsure = {"equal": False, "unsure": ("too little",)}
    model = from_text(causal("one"))
    seeds = _with_verdicts(monkeypatch, [unsure] * 9)
    found = verify_models(model, model)
    assert found.unsure
    assert not found.equal
    assert seeds == [0, 1, 2]
