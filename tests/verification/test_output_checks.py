"""What becomes of one difference: a fault, an input that decides nothing, or no fault after all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.verification import OutputCheck, Verification
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.verification.allowance import Allowance, Allowed
from onnxsmith.verification.arbiter import Arbiter
from onnxsmith.verification.input_search import Run
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.noise import SECOND, Movement, Noise
from onnxsmith.verification.output_checks import Checks
from onnxsmith.verification.rounding import asked, counted
from onnxsmith.verification.value_comparison import Difference, difference

ROUNDING = {"y": counted(1, 2**20, 2.0**-24)}
TOLERANCE = ROUNDING["y"].tolerance
SIGNATURE = Signature((), (Port("y", "float", (2,)),))
ONE = np.float32([1.0, 1.0])
FAR = np.float32([1.0, 3.0])  # the difference is 2, of a scale of 1 + 1
REFUSAL = Problem("runtime/failed", "no.", why="because")


class _Allows(Allowance):
    """Allows a difference of `worst`, on an input that is `ill` or not."""

    def __init__(self, worst: float, ill: str = "", **how: Any) -> None:
        super().__init__(ROUNDING)
        self.allowed = Allowed(worst, ill=ill, **how)

    def judged(self, run: Run, name: str, value: Any) -> tuple[Difference, Allowed]:
        return difference(run.outputs[name], value, self.allowed.worst), self.allowed


class _Says(Arbiter):
    """An arbiter with these answers."""

    def __init__(self, *, settles: str = "", lost: str = "", same: str = "", helps: bool = True) -> None:
        self.answers = (settles, lost, same, helps)
        self.asked: list[float] = []

    def is_asked(self, found: Difference) -> bool:
        return self.answers[3]

    def settle(self, run: Run, name: str, value: Any, tolerance: float, floor: float) -> str:
        self.asked.append(tolerance)
        return self.answers[0]

    def lost(self, run: Run, name: str) -> str:
        return self.answers[1]

    def same(self, run: Run, name: str, value: Any) -> str:
        return self.answers[2]


def run(label: str = "random", values: Any = ONE, **how: Any) -> Run:
    return Run(Feed(label, {}, {"x": np.zeros(1)}), {"y": values}, **how)


def checks(worst: float = 0.1, ill: str = "", *, arbiter: Arbiter | None = None, **how: Any) -> Checks:
    how = {"drawn": lambda _: set(), **how}
    return Checks(SIGNATURE, ROUNDING, arbiter=arbiter, allowance=_Allows(worst, ill), **how)


def test_a_difference_is_a_fault_and_the_worst_one_is_reported() -> None:
    found = checks()
    for label, value in (("good", ONE), ("bad", np.float32([1, 2])), ("worse", FAR), ("bad again", np.float32([1, 2]))):
        found.add(run(label), {"y": value}, None)
    (result,) = found.results()
    assert (result.equal, result.where, result.worst_abs, result.worst_rel) == (False, "worse", 2.0, 1.0)
    assert (result.compared, result.exact, result.weak) == (8, False, "")
    assert result.tolerance == 0.1
    assert found.worst is not None
    assert found.worst.label == "worse"


def test_a_fault_is_worse_than_a_larger_difference_that_is_allowed() -> None:
    found = checks(0.9)
    found.add(run("fault", np.float32([0.1, 0.1])), {"y": np.float32([0.1, 0.5])}, None)  # 0.4 of 0.2
    found.add(run("no fault"), {"y": np.float32([1.0, 2.7])}, None)  # 1.7 of 2
    assert found.results()[0].where == "fault"
    assert found.worst is not None
    assert found.worst.label == "fault"


def test_equal_outputs_are_exact() -> None:
    found = checks()
    assert found.worst is None
    found.add(run("first"), {"y": ONE}, None)
    (result,) = found.results()
    assert (result.equal, result.exact, result.where, result.compared) == (True, True, "", 2)
    assert found.exact
    found.add(run("second"), {"y": np.float32([1.0, 1.1])}, None)
    (result,) = found.results()
    assert (result.equal, result.exact, result.where, found.exact) == (True, False, "", False)


def test_refusals_and_missing_outputs_are_faults() -> None:
    found = checks()
    found.add(run(), None, REFUSAL)
    assert found.results()[0].reason == "the candidate refuses an input that the reference accepts: no. because"
    found = checks()
    found.add(run(), {"z": ONE}, None)
    assert found.results()[0].reason == "the candidate has no such output"
    found.refuse("y", "something else", "everywhere")
    assert found.results()[0].reason == "the candidate has no such output"  # the first stays
    found = checks()
    found.refuse("y", "something else", "everywhere")
    assert (found.results()[0].reason, found.results()[0].where) == ("something else", "everywhere")


def test_an_output_that_is_drawn_is_compared_in_its_layout_only() -> None:
    found = checks(drawn=lambda _: {"y"})
    found.add(run(), {"y": FAR}, None)
    found.add(run(), {"y": FAR}, None)
    (result,) = found.results()
    assert (result.equal, result.drawn, result.compared) == (True, True, 0)
    assert "drawn at random" in result.weak
    found.add(run(), {"y": np.float32([1.0])}, None)
    assert found.results()[0].reason == "shape [2] became [1]"


def test_an_output_that_changes_from_run_to_run_decides_nothing_unless_it_failed_before() -> None:
    found = checks(unsteady=lambda _: {"y"})
    found.add(run("shaky"), {"y": FAR}, None)
    assert found.results()[0].equal
    assert found.undecided == (
        "no input could decide about output 'y': on shaky: it changes from run to run on this input",
    )
    (note,) = found.notes
    assert note.startswith("output 'y' was left out on 1 input that could not decide about it, first shaky: it changes")
    assert not found.exact
    steady = checks(unsteady=lambda one: {"y"} if one.feed.label == "shaky" else set())
    steady.add(run("steady"), {"y": FAR}, None)
    steady.add(run("shaky"), {"y": 2 * FAR}, None)
    (result,) = steady.results()
    assert (result.equal, result.worst_abs) == (False, 5.0)


@pytest.mark.parametrize(("generated", "untried"), [(True, ()), (False, ("mine could not decide about output 'y'",))])
def test_an_input_that_rounding_decides_is_left_out(generated: bool, untried: tuple[str, ...]) -> None:
    found = checks(1.0, "it is ill")
    found.add(run("mine", generated=generated), {"y": FAR}, None)
    assert found.results()[0].equal
    assert found.undecided == ("no input could decide about output 'y': on mine: it is ill",)
    assert found.untried == untried
    sound = found.results()[0]
    assert (sound.compared, sound.weak) == (0, "nothing was compared: no input could decide, first mine: it is ill")


def test_float64_may_settle_an_ill_input_within_the_counted_bound() -> None:
    arbiter = _Says(settles="float64 says so")
    found = checks(1.0, "it is ill", arbiter=arbiter)
    found.add(run(), {"y": FAR}, None)
    assert arbiter.asked == [TOLERANCE]
    assert (found.undecided, found.results()[0].weak, found.results()[0].worst_abs) == ((), "float64 says so", 2.0)
    assert found.results()[0].compared == 2


def test_float64_may_settle_a_difference_within_what_was_allowed() -> None:
    arbiter = _Says(settles="float64 says so")
    found = checks(0.1, arbiter=arbiter)
    found.add(run(), {"y": FAR}, None)
    assert arbiter.asked == [0.1]
    (result,) = found.results()
    assert (result.equal, result.weak, result.worst_abs, found.undecided) == (True, "float64 says so", 2.0, ())


@pytest.mark.parametrize("how", [{"lost": "digits are lost"}, {"same": "digits are lost"}])
def test_float64_may_say_that_an_input_decides_nothing(how: dict[str, str]) -> None:
    found = checks(0.1, arbiter=_Says(**how))
    found.add(run("deep"), {"y": FAR}, None)
    assert found.undecided == ("no input could decide about output 'y': on deep: digits are lost",)
    assert not found.sees(run("deep"), {"y": ONE}, {"y": FAR})
    kept = checks(0.1, arbiter=_Says(**how, helps=False))
    kept.add(run("deep"), {"y": FAR}, None)
    assert not kept.results()[0].equal


def test_an_output_that_another_input_decided_is_not_undecided() -> None:
    found = checks(0.1, arbiter=_Says(lost="digits are lost"))
    found.add(run("deep"), {"y": FAR}, None)
    found.add(run("flat"), {"y": ONE}, None)
    assert found.undecided == ()
    assert len(found.notes) == 1
    found.give_up(run("late"), Problem("runtime/timeout", "it took too long"))
    assert found.undecided == ("on late: it took too long",)


def test_a_fault_is_seen_with_the_bounds_of_its_run() -> None:
    found, here = checks(0.5), run()
    assert not found.sees(here, {"y": ONE}, {"y": FAR})  # not compared yet
    found.add(here, {"y": ONE}, None)
    assert found.sees(here, {"y": ONE}, {"y": np.float32([1.0, 1.1])})  # it agreed to the bit
    assert not found.sees(here, {"y": ONE}, {"z": FAR})
    found.add(here, {"y": np.float32([1.0, 1.1])}, None)
    assert not found.sees(here, {"y": ONE}, {"y": np.float32([1.0, 2.0])})  # half of the scale
    assert found.sees(here, {"y": ONE}, {"y": np.float32([1.0, 2.1])})
    assert found.differs(here, {"y": ONE}, {"y": np.float32([1.0, 2.0])}) == ""
    assert found.differs(here, {"y": ONE}, {"y": np.float32([1.0, 2.1])}) == "y"
    assert found.differs(run(), {"y": ONE}, {"y": FAR}) == ""
    assert found.differs(here, {"y": ONE}, {}) == ""


def test_what_was_allowed_to_a_near_answer_is_not_the_bound_of_another() -> None:
    class Moves(Noise):
        def __init__(self) -> None:
            self.asked: list[Any] = []

        def movement(self, run: Run, name: str, samples_in_all: int = SECOND) -> Movement:
            self.asked.append(run.outputs[name])
            return Movement(worst=1e-6, spread=1e-6, absolute=1e-6, changed=0)

    moves, here, ours = Moves(), run(), ONE * 2
    found = Checks(SIGNATURE, ROUNDING, drawn=lambda _: set(), allowance=Allowance(ROUNDING, moves))
    found.add(here, {"y": ONE}, None)  # bit for bit: the finest bound is enough
    assert not moves.asked
    assert found.differs(here, {"y": ours}, {"y": ours * np.float32(1 + 4e-6)}) == ""
    assert moves.asked[0] is ours
    assert found.differs(here, {"y": ours}, {"y": ours * np.float32(1 + 4e-3)}) == "y"


def test_the_effect_of_a_fault_is_measured_in_usual_differences() -> None:
    found, here = checks(0.5), run()
    found.add(here, {"y": ONE}, None)
    usual = 18 * 2.0**-24  # the rounding of one operation
    assert found.effect(here, {"y": ONE}, {"y": np.float32([1.0, 1.5])}) == pytest.approx(0.25 / usual)
    assert found.effect(here, {"y": ONE}, {"y": ONE}) == np.inf
    assert found.effect(here, {"y": ONE}, {"y": np.float32([1.0, np.nan])}) == np.inf
    assert found.effect(here, {"y": ONE}, {}) == np.inf
    assert found.effect(here, {"y": np.int64([1])}, {"y": np.int64([2])}) == np.inf


def test_an_output_that_never_moves_is_weak() -> None:
    for other, weak in ((ONE, True), (FAR, False)):
        found = checks()
        runs = [run("first"), run("second", other)]
        for one in runs:
            found.add(one, {"y": one.outputs["y"]}, None)
        found.judge_movement(runs)
        assert ("the same for different inputs" in found.results()[0].weak) == weak
    found = checks()
    lone = [run("first"), Run(Feed("another size", {"n": 2}, {"x": np.zeros(1)}), {"y": ONE})]
    found.judge_movement(lone)
    found.add(lone[0], {"y": ONE}, None)
    assert found.results()[0].weak == ""


def test_a_vanishing_scale_is_weak() -> None:
    for size, weak in ((0.9e-12, True), (1.1e-12, False)):
        found, values = checks(), np.float32([size, size])
        found.add(run("small", values), {"y": values}, None)
        assert bool(found.results()[0].weak) == weak


@pytest.mark.parametrize(
    ("dtype", "tolerance", "why"),
    [
        ("float", 2.0**-13, "0.00012 follows from how far a change of one ulp in inputs and weights moves the output"),
        ("int64", 0.0, ""),
    ],
)
def test_the_tolerance_is_explained_by_what_was_measured(dtype: str, tolerance: float, why: str) -> None:
    class Moves(Noise):
        def __init__(self) -> None:
            pass

        def movement(self, run: Run, name: str, samples_in_all: int = SECOND) -> Movement:
            return Movement(2.0**-16, 2.0**-14, 0.0, 0)

    signature = Signature((), (Port("y", dtype, (2,)),))
    found = Checks(signature, ROUNDING, drawn=lambda _: set(), allowance=Allowance(ROUNDING, Moves()))
    found.add(run(), {"y": np.float32([1.0, 1.0 + 2.0**-13])}, None)
    (result,) = found.results()
    assert (result.equal, result.tolerance, result.why_tolerance) == (True, tolerance, why)


def test_the_tolerance_is_explained_by_the_count_or_by_what_was_asked() -> None:
    for rounding in (counted(3, 2, 2.0**-24), asked(0.25)):
        found = Checks(SIGNATURE, {"y": rounding}, drawn=lambda _: set())
        found.add(run(), {"y": np.float32([1.0, 1.0 + 2.4e-6])}, None)  # more than one operation's
        (result,) = found.results()
        assert (result.tolerance, result.why_tolerance) == (rounding.tolerance, str(rounding))
    found = Checks(SIGNATURE, {}, drawn=lambda _: set())
    found.add(run(), {"y": ONE}, None)
    assert (found.results()[0].tolerance, found.results()[0].why_tolerance) == (0.0, "")


def test_the_allowed_column_has_the_unit_that_decided() -> None:
    """An output of tiny values may differ by more than its scale allows, but not by more than its own units do."""
    check = OutputCheck("y", "float", True, 2e-7, 3e-4, 6e-4, 1e-6, "", 4, floor=3e-7)
    part = Verification("a", "b", verified=True, equal=True, outputs=(check,))
    assert "3e-07 in its own units" in str(list(part.blocks()))
    usual = replace(check, worst_rel=5e-7)
    assert "'1e-06'" in str(list(replace(part, outputs=(usual,)).blocks()))
