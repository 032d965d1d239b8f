"""Two optimisation levels of one runtime make one verification."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxsmith.base.report.parts.verification import OutputCheck, Verification
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification import intermediate_outputs, probe, sessions
from onnxsmith.verification.input_search import Run
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.intermediate_outputs import with_common_tensors
from onnxsmith.verification.optimisation_levels import agreement, both_levels, spread
from onnxsmith.verification.sessions import verify_models
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20]> '
TEXT = HEAD + "g (float[n,3] x) => (float[n,3] y) { a = Exp(x) y = Neg(a) }"


def check(name: str, *, equal: bool = True, worst: float = 0.0, exact: bool = False) -> OutputCheck:
    return OutputCheck(name, "float", equal, worst, worst, 1, 1e-6, "", 4, exact=exact)


def part(*outputs: OutputCheck, unsure: tuple[str, ...] = (), notes: tuple[str, ...] = ()) -> Verification:
    equal = all(output.equal for output in outputs) and not unsure
    return Verification("a", "b", verified=True, equal=equal, outputs=outputs, unsure=unsure, notes=notes)


def test_each_output_gets_the_worse_result() -> None:
    main = part(check("p", worst=0.2), check("q", worst=0.1), check("r", equal=False, worst=0.1))
    other = part(check("p", worst=0.1), check("q", worst=0.2), check("r", worst=0.9))
    found = both_levels(main, other, "a note")
    assert [output.worst_rel for output in found.outputs] == [0.2, 0.2, 0.1]
    assert not found.equal
    assert found.notes == ("a note",)


def test_either_level_can_show_a_difference_or_leave_a_doubt() -> None:
    good, bad = part(check("p"), notes=("one",)), part(check("p", equal=False), notes=("one", "two"))
    doubt = part(check("p"), unsure=("why", "more"))
    assert both_levels(good, good, "n").equal
    assert both_levels(good, bad, "n").notes == ("one", "two", "n")
    for one, other in ((good, bad), (bad, good), (doubt, bad), (bad, doubt)):
        assert both_levels(one, other, "n").differs
    for one, other in ((good, doubt), (doubt, good), (doubt, doubt)):
        found = both_levels(one, other, "n")
        assert (found.equal, found.unsure) == (False, ("why", "more"))


def test_agreement_in_words() -> None:
    assert agreement(part(check("p", exact=True))) == "to the bit"
    assert agreement(part(check("p", exact=True), check("q"))) == "within rounding"
    assert agreement(part(check("p"), unsure=("why",))) == "within rounding"
    assert agreement(part(check("p", equal=False))) == "not"


@pytest.mark.parametrize(
    ("count", "chosen"),
    [(0, []), (3, [0, 1, 2]), (4, [0, 1, 2, 3]), (5, [0, 1, 2, 4]), (10, [0, 3, 6, 9]), (11, [0, 3, 6, 10])],
)
def test_four_inputs_from_the_first_to_the_last_are_taken(count: int, chosen: list[int]) -> None:
    runs = [Run(Feed(str(place), {}, {}), {}) for place in range(count)]
    assert [int(run.feed.label) for run in spread(runs)] == chosen


def test_a_runtime_with_levels_is_asked_twice() -> None:
    model = from_text(TEXT)
    (note,) = (one for one in verify_models(model, model).notes if "optimisations" in one)
    assert note == (
        "the outputs agree to the bit without and with the optimisations of onnxruntime (with them on 4 of the inputs)"
    )
    for runtime in ("reference", "onnxruntime:disable"):
        found = verify_models(model, model, Verify(runtime=runtime))
        assert found.equal
        assert not [one for one in found.notes if "optimisations" in one]


def test_faults_are_planted_without_optimisation_only() -> None:
    found = verify_models(from_text(TEXT), from_text(TEXT))
    assert found.power is not None
    assert found.power.kind == "inputs"


def test_each_file_is_read_by_the_comparison_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + "g (float[n,2] x) => (float[n,2] y) <float[2] w = {1.5, 2.5}> { a = Mul(x, w) y = Exp(a) }"
    files = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for file in files:
        save(from_text(text), file)
    read: list[str] = []
    parse = load._parse

    def noted(path: Path) -> Any:
        read.append(path.name)
        return parse(path)

    monkeypatch.setattr(load, "_parse", noted)
    assert verify_models(*files).equal
    assert sorted(read) == ["a.onnx", "b.onnx"]


def test_both_levels_measure_the_effect_of_rounding_in_the_same_session(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[probe.Probe] = []
    compared = sessions._Pair._compared

    def noted(self: sessions._Pair, pair: Any, plan: Any, probes: Any, **how: Any) -> Verification:
        asked.append(probes[0])
        return compared(self, pair, plan, probes, **how)

    monkeypatch.setattr(sessions._Pair, "_compared", noted)
    assert verify_models(from_text(TEXT), from_text(TEXT)).equal
    assert len(asked) == 2
    assert asked[0] is asked[1]


def test_an_answer_of_a_probe_belongs_to_its_input() -> None:
    """Inputs that are gone may have had the identity of a new one."""
    text = HEAD + "g (float[n,2] x) => (float[n,2] y) { y = Exp(x) }"
    with runtimes.get("reference").preparer() as preparer, probe.Probe(from_text(text), preparer.prepare) as one:
        for number in range(20):
            values = {"x": np.full((1, 2), number, np.float32)}
            answer = one.plain(Feed("", {}, values))
            assert answer is not None
            assert np.allclose(answer["y"], np.exp(values["x"]))


def test_a_refusal_of_the_optimised_model_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.base.problem import problem

    model = from_text(TEXT)
    compared = sessions._Pair._compared

    def refusing(self: sessions._Pair, *given: Any, plant: bool = True, **how: Any) -> Verification:
        if not plant:
            raise problem(name, "it crashed")
        return compared(self, *given, plant=plant, **how)

    monkeypatch.setattr(sessions._Pair, "_compared", refusing)
    name = "runtime/died"
    found = verify_models(model, model)
    assert found.equal
    assert (
        "compared only without the optimisations of onnxruntime, because with the optimisations it crashed"
    ) in found.notes
    name = "verify/nothing-compared"
    with pytest.raises(sessions.OnnxsmithError):
        verify_models(model, model)


def test_a_refusal_names_the_model_the_input_and_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.base.problem import problem

    model, seen = from_text(TEXT), []
    compared = sessions._Pair._compared

    class Failing:
        def run(self, _: Any) -> Any:
            seen.append(True)
            if len(seen) > 4:  # the first model runs with all four inputs
                raise problem("runtime/failed", "it failed", where="node n", why="axis 3 is out of range")

    def refusing(self: sessions._Pair, pair: Any, *given: Any, plant: bool = True, **how: Any) -> Verification:
        if not plant:
            raise problem("runtime/failed", "it failed")
        for session in pair:
            monkeypatch.setattr(session, "at", lambda _: Failing())
        return compared(self, pair, *given, plant=plant, **how)

    monkeypatch.setattr(sessions._Pair, "_compared", refusing)
    found = verify_models(model, model, names=("the first", "the second"))
    (note,) = (one for one in found.notes if "compared only without" in one)
    assert "with the optimisations the second failed on " in note
    assert note.endswith("it failed: node n: axis 3 is out of range")


def test_the_tolerance_that_was_asked_for_holds_for_every_output() -> None:
    other = from_text(TEXT.replace("y = Neg(a)", "c = Constant<value_float = -1.01>() y = Mul(a, c)"))
    assert verify_models(from_text(TEXT), other).differs
    assert not verify_models(from_text(TEXT), other, Verify(tolerance=0.02)).differs


def test_draws_that_cannot_be_fixed_are_named(refused: Refused) -> None:
    text = '<ir_version: 6, opset_import: ["": 7]> g (float[n] x) => (float[n] y) {{ {} }}'
    nodes = ["[first] a = RandomNormalLike(x)", "b = RandomNormalLike(a)", "c = RandomNormalLike(b)",
             "y = RandomNormalLike(c)"]  # fmt: skip
    model = from_text(text.format(" ".join(nodes)))
    with refused("verify/nondeterministic") as refusal:
        verify_models(model, model)
    assert refusal.problem.what == "the model draws random numbers: 4 nodes"
    assert refusal.problem.where.count("RandomNormalLike") == 3
    assert "first" in refusal.problem.where


# Tensors in the middle


def outputs(text: str, other: str) -> list[list[str | None]] | None:
    made = with_common_tensors(from_text(HEAD + text), from_text(HEAD + other))
    return None if made is None else [[value.name for value in one.graph.outputs] for one in made]


def test_common_results_near_weights_become_outputs() -> None:
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Neg(x) b = Mul(a, w) c = Exp(b) y = Tanh(c) }"
    assert outputs(text, text) == [["y", "b"]] * 2
    plain = text.replace("Mul(a, w)", "Abs(a)")
    assert outputs(plain, plain) == [["y", "a", "b", "c"]] * 2
    assert outputs(plain, plain.replace("c = Exp(b) y = Tanh(c)", "d = Exp(b) y = Tanh(d)")) == [["y", "a", "b"]] * 2
    assert outputs(plain, plain.replace("b = ", "x2 = ").replace("(b)", "(x2)")) == [["y", "a", "c"]] * 2
    short = "g (float[2] x) => (float[2] y) { y = Neg(x) }"
    assert outputs(short, short) is None
    whole = "g (float[2] x) => (float[2] y) { a = Cast<to = 7>(x) y = Cast<to = 1>(a) }"
    assert outputs(whole, whole) is None  # integers have to be equal anyway


def test_64_tensors_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intermediate_outputs, "_MOST", 3)
    nodes = " ".join(f"a{place + 1} = Neg(a{place})" for place in range(6))
    text = f"g (float[2] a0) => (float[2] y) {{ {nodes} y = Abs(a6) }}"
    assert (outputs(text, text) or [[]])[0] == ["y", "a2", "a4", "a6"]
    text = text.replace("y = Abs(a6)", "a7 = Neg(a6) y = Abs(a7)")
    assert (outputs(text, text) or [[]])[0] == ["y", "a3", "a6"]


def test_the_interfaces_may_be_asked_for_without_generated_inputs(refused: Refused) -> None:
    model = from_text(TEXT)
    with refused("verify/nothing-compared"):
        verify_models(model, model, generate=False)
    assert replace(verify_models(model, model), notes=()).sizes
