"""What is said of a verification."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onnxsmith.base.report.base import Table
from onnxsmith.base.report.parts.verification import OutputCheck, Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.verification.input_search import Run
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.optimisation_levels import agreement
from onnxsmith.verification.verification_verdict import ending, problems, verdict
from onnxsmith.verification.verify import _differs_unoptimised, _only_shapes_compared, interface_mismatch

GOOD = OutputCheck("y", "float", True, 0, 0, 1, 1e-6, "", 4)
BAD = replace(GOOD, name="z", equal=False, reason="it is wrong", where="random inputs")
EQUAL = Verification("a", "b", verified=True, equal=True, runs=("one", "two"), outputs=(GOOD,))
DIFFERENT = replace(EQUAL, equal=False, outputs=(GOOD, BAD))
UNSURE = replace(EQUAL, equal=False, unsure=("it is blind", "it is deaf"))
FACES = replace(EQUAL, equal=False, notes=("inputs are a; expected b", "more"))


def test_equal() -> None:
    assert (verdict(EQUAL), problems(EQUAL), ending(EQUAL)) == (Verdict.DONE, (), "verified on 2 inputs")


def test_different() -> None:
    assert (verdict(DIFFERENT), ending(DIFFERENT)) == (Verdict.DIFFERENT, "DIFFERENT on 2 inputs")
    (found,) = problems(DIFFERENT)
    assert (found.id, found.what) == ("verify/different", "output 'z' differs: it is wrong")
    assert found.where == "b, on random inputs"
    (found,) = problems(FACES)
    assert (found.what, found.where) == ("the interface differs: inputs are a; expected b; more", "b")
    assert verdict(DIFFERENT, asked=False) is Verdict.DONE
    assert problems(DIFFERENT, asked=False) == ()


def test_unsure() -> None:
    assert (verdict(UNSURE), ending(UNSURE)) == (Verdict.CANNOT_TELL, "CANNOT TELL on 2 inputs: it is blind")
    (found,) = problems(UNSURE)
    assert found.id == "verify/cannot-tell"
    assert found.what.endswith(": it is blind; it is deaf")
    assert problems(UNSURE, asked=False) == ()


def test_the_table_says_of_which_output_no_value_was_compared() -> None:
    drawn = replace(GOOD, name="r", compared=0, drawn=True, exact=True)
    other = replace(drawn, name="s", equal=False, reason="it is wrong")
    outputs = (replace(GOOD, exact=True), drawn, other)
    (table,) = (block for block in replace(EQUAL, outputs=outputs).blocks() if isinstance(block, Table))
    assert [row[-1] for row in table.rows] == ["equal to the bit", "not compared", "DIFFERENT"]
    assert table.rows[1][2:5] == ("", "", "")
    assert agreement(replace(EQUAL, outputs=(drawn,))) == "in dtypes and shapes"
    assert agreement(replace(EQUAL, outputs=(drawn, outputs[0]))) == "to the bit"


def test_the_headline_names_gaps_and_what_was_drawn() -> None:
    drawn = replace(EQUAL, outputs=(GOOD, replace(GOOD, name="r", drawn=True), replace(GOOD, name="s", drawn=True)))
    assert ending(drawn) == "verified on 2 inputs; drawn at random, so not compared: r, s"
    assert ending(replace(EQUAL, untried=("n was tried at 2 only", "and so on"))) == (
        "verified on 2 inputs; n was tried at 2 only; and so on"
    )
    assert ending(replace(EQUAL, verified=False)) == "NOT VERIFIED"
    assert ending(replace(EQUAL, verified=False, untried=("a gap",))) == "NOT VERIFIED; a gap"


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ([], ""),
        ([replace(GOOD, compared=0)], "is empty or NaN on every input"),
        ([replace(GOOD, compared=0, drawn=True)] * 2, "is drawn at random"),
        ([replace(GOOD, compared=0, drawn=True), replace(GOOD, compared=0)], "is empty or NaN on every input"),
        ([replace(GOOD, compared=0), GOOD], ""),
        ([replace(BAD, compared=0)], ""),
    ],
)
def test_a_check_without_values_says_so(outputs: list[OutputCheck], said: str) -> None:
    found = _only_shapes_compared(outputs)
    assert bool(found) == bool(said)
    assert not found or found[0].startswith(f"every output {said}")


X = Port("x", "float", ("n", 3))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ([X], ""),
        ([Port("z", "float", ("n", 3))], "inputs are z; expected x"),
        ([], "inputs are none; expected x"),
        ([Port("x", "int64", ("n", 3))], "input 'x' is tensor int64; expected tensor float"),
        ([Port("x", "float", ("n", 3), "sequence")], "input 'x' is sequence float; expected tensor float"),
        ([Port("x", "undefined", ("n", 3))], ""),
        ([Port("x", "float", (2, 3))], "axis 0 of input 'x' is fixed to 2; expected dynamic n"),
        ([Port("x", "float", ("m", "k"))], ""),  # more sizes than the reference takes
        ([Port("x", "float", ("n", 4))], ""),
        ([Port("x", "float", (2,))], ""),
        ([Port("x", "float", None)], ""),
    ],
)
def test_an_interface_that_breaks_a_caller_is_said(other: list[Port], said: str) -> None:
    assert interface_mismatch(Signature((X,), ()), Signature(tuple(other), ())) == ((said,) if said else ())


def test_sizes_of_outputs_are_no_promise_and_their_names_are() -> None:
    one, fixed, none = Signature((), (X,)), Signature((), (Port("x", "float", (2, 3)),)), Signature((), ())
    assert interface_mismatch(one, fixed) == ()
    assert interface_mismatch(one, none) == ("outputs are none; expected x",)
    assert interface_mismatch(none, one) == ("outputs are x; expected none",)


class _Plain:
    """A probe that answers each input with the next of these."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)

    def plain(self, feed: Feed) -> object:
        return self.answers.pop(0)


class _Differs:
    """Checks that name an output where two answers are not equal."""

    def differs(self, run: Run, ours: dict[str, float], theirs: dict[str, float]) -> str:
        return next((name for name in ours if ours[name] != theirs[name]), "")


def test_a_difference_without_optimisation_is_said_with_its_input() -> None:
    runs = [Run(Feed(label, {}, {"x": np.zeros(1)}), {}) for label in ("one", "two", "three")]
    same, other = {"y": 1.0}, {"y": 2.0}
    found = _differs_unoptimised(_Plain(None, same, same), _Plain(same, None, other), runs, _Differs())  # type: ignore[arg-type]
    assert found == "with the runtime's optimisations off, output 'y' differs on three"
    assert _differs_unoptimised(_Plain(*[same] * 3), _Plain(*[same] * 3), runs, _Differs()) == ""  # type: ignore[arg-type]
