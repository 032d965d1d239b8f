"""Every single change that is planted into a model is found, and is all that is reported; names and order are not."""

from __future__ import annotations

import pytest

from onnxsmith.base.report.parts.model_changes import Difference
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.comparison.graphs.diff import diff
from tests.comparison.graphs.models import TEXTS, disguised, model
from tests.comparison.graphs.planting import EXPECTED, every


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("seed", range(10))
def test_other_names_and_another_order_are_no_difference(name: str, seed: int) -> None:
    old = model(name)
    report = diff(old, disguised(old, seed)).report
    part = report.part(Difference)
    assert report.verdict is Verdict.DONE
    assert "only names differ" in report.headline
    assert part.paired == part.equal
    assert part.names["node"] == part.paired


@pytest.mark.parametrize("name", TEXTS)
def test_names_of_inputs_and_outputs_are_the_interface(name: str) -> None:
    old = model(name)
    new = disguised(old, 1, ports=True)
    report = diff(old, new).report
    ports = len(old.graph.inputs) + len(old.graph.outputs)
    assert report.part(Difference).changes == {"interface change": ports}
    assert report.verdict is Verdict.DIFFERENT
    assert "only names differ" in report.headline
    assert diff(old, new, ignore=["names"]).report.verdict is Verdict.DONE


@pytest.mark.parametrize("hidden", [False, True], ids=["as it is", "disguised"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_planted_change_is_the_only_thing_reported(name: str, hidden: bool) -> None:
    old = model(name)
    wrong = {}
    kinds = set()
    for planted in every(old):
        new = model(name)
        planted.make(new)
        report = diff(old, disguised(new, 1) if hidden else new).report
        kinds.add(planted.kind)
        found = report.part(Difference).changes
        if found != {EXPECTED[planted.kind]: planted.count} or report.verdict is not Verdict.DIFFERENT:
            wrong[str(planted)] = found
    assert not wrong
    assert kinds >= {"rewire", "insert", "remove", "weight", "attribute", "output"}


@pytest.mark.parametrize("name", TEXTS)
def test_planted_the_other_way_round(name: str) -> None:
    new = model(name)
    opposite = {"added node": "removed node", "removed node": "added node"}
    for number, planted in enumerate(every(new)):
        if number % 5:  # a sample: the pairing is not symmetric, but nearly
            continue
        old = model(name)
        planted.make(old)
        expected = EXPECTED[planted.kind]
        assert diff(old, new).report.part(Difference).changes == {opposite.get(expected, expected): planted.count}, (
            planted
        )
