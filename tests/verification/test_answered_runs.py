"""Runs of an earlier comparison that a second one takes over."""

from __future__ import annotations

import numpy as np

from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.runtimes.base import Feeds, Outputs, Session
from onnxsmith.verification.explore import Explorer, Plan, Run
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.optimisation_levels import again_on_some

PORTS = Signature((Port("x", "float", (2,)),), (Port("y", "float", (2,)),))


class _Counted(Session):
    signature, provider = PORTS, "counted"

    def __init__(self) -> None:
        self.count = 0

    def run(self, feeds: Feeds) -> Outputs:
        self.count += 1
        return {"y": np.asarray(feeds["x"])}


def test_a_reference_does_not_answer_twice_for_a_second_comparison() -> None:
    session, value = _Counted(), np.ones(2, np.float32)
    first = [Run(Feed(f"input {number}", {}, {"x": value}), {"y": value}) for number in range(9)]
    plan = Plan(Generator(PORTS), (Feed("the example", {}, {"x": value}),))
    found = list(Explorer(session, again_on_some(plan, first), {}).runs())
    assert session.count == 0
    assert [run.feed.label for run in found] == ["input 0", "input 2", "input 5", "input 8"]
    assert not any(run.generated for run in found)
