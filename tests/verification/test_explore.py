"""What is tried: sizes beyond the numbers of a graph, 0, several symbols at once; what limits is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Feeds, Outputs
from onnxsmith.runtimes.fake import Answer, FakeSession
from onnxsmith.verification.explore import Explorer, Plan, Run, untried_clauses
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.size_constraints import numbers
from onnxsmith.verification.sessions import verify_models
from onnxsmith.verification.verify import Side, verify

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
WINDOW = """g (float[batch,seq] x) => (float[batch,seq] y)
<int64 zero = {0}, int64 one = {1}, int64 window = {32}, float none = {0}, int64[1] first = {0}> {
    s = Shape<start = 1, end = 2>(x)
    n = Squeeze(s, first)
    at = Range(zero, n, one)
    near = Less(at, window)
    y = Where(near, x, none)
}"""
GUARD = """g (float[n] x) => (float y, float z) <int64 one = {1}, int64[1] first = {0}> {
    s = Shape(x)
    k = Squeeze(s, first)
    m = Max(k, one)
    f = Cast<to = 1>(m)
    t = ReduceSum<keepdims = 0>(x)
    y = Div(t, f)
    z = Identity(t)
}"""


def held(wrong: str, right: str) -> Verification:
    return verify_models(from_text(HEAD + right), from_text(HEAD + wrong))


def fake(answer: Answer, provider: str = "fake", text: str = "g (float[n] x) => (float[n] y) { y = Neg(x) }") -> Side:
    session = FakeSession(signature(from_text(HEAD + text)), answer)
    session.provider = provider
    return Side(provider, session)


def plan(text: str = "g (float[n] x) => (float[n] y) { y = Neg(x) }") -> Plan:
    model, _ = inferred(from_text(HEAD + text))
    return Plan(Generator.for_model(model))


def negative(feeds: Feeds) -> Outputs:
    return {"y": -np.asarray(feeds["x"])}


def test_a_fault_beyond_a_window_is_seen() -> None:
    assert held(WINDOW, WINDOW).equal
    part = held(WINDOW.replace("none)", "x)").replace("near, x, x", "near, x, x"), WINDOW)
    assert not part.equal
    assert max((part.sizes or {})["seq"]) > 32


def test_a_fault_at_size_0_is_seen() -> None:
    assert held(GUARD, GUARD).equal
    part = held(GUARD.replace("m = Max(k, one)", "m = Identity(k)"), GUARD)
    assert not part.equal
    assert "n=0" in part.outputs[0].where


def test_several_symbols_move_in_one_run() -> None:
    text = "g (float[a,b] x, float[c,d] z) => (float[a,b] y, float[c,d] w) { y = Neg(x)\n w = Abs(z) }"
    part = held(text, text)
    assert all({0, 1} <= set(sizes) and len(sizes) >= 5 for sizes in (part.sizes or {}).values())
    assert len(part.runs) <= 3 + 3 + 1 + 4 + 1


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (WINDOW, {32}),
        ("g (float[n] x) => (float[k] y) <int64[1] a = {-20}, int64[1] e = {99}> { y = Slice(x, a, e) }", {20, 99}),
        ("g (float[n,3] x) => (float[n,3] y) <float[7,1] w = {1,1,1,1,1,1,1}> { y = Add(x, w) }", {7}),
        ("g (float[n,3] x) => (float[n,3] y) <float[1] w = {512}> { y = Mul(x, w) }", set()),
        (
            (
                "g (float[n] x) => (float16[n] y) <int64 a = {0}, int64 d = {1}, int64[1] i = {0}> "
                "{ s = Shape(x) t = Squeeze(s, i) r = Range(a, t, d) y = Cast<to = 10>(r) }"
            ),
            {2049},
        ),
    ],
)
def test_numbers_that_a_size_runs_against_are_found(text: str, wanted: set[int]) -> None:
    found = numbers(inferred(from_text(HEAD + text))[0])
    assert set().union(found.free, *found.of_dims.values()) == wanted


def test_numbers_of_a_slice_before_opset_10() -> None:
    text = """<ir_version: 6, opset_import: ["": 9]>
    g (float[n] x) => (float[k] y) { y = Slice <starts = [-20], ends = [99]> (x) }"""
    assert numbers(inferred(from_text(text))[0]).of_dims == {"n": {20, 99}}


def test_a_number_that_is_too_dear_is_said() -> None:
    text = WINDOW.replace("{32}", "{1000000}").replace(
        "y = Where(near, x, none)", "a = Unsqueeze(x, last)\n b = Transpose<perm = [0, 2, 1]>(a)\n c = MatMul(a, b)\n"
        " d = ReduceMax<keepdims = 0>(c, two)\n y = Where(near, d, none)"
    ).replace("int64[1] first = {0}", "int64[1] first = {0}, int64[1] last = {2}, int64[1] two = {2}")  # fmt: skip
    assert any("was not tried above 1000000" in clause for clause in held(text, text).untried)


def test_the_headline_names_what_limits(tmp_path: Path) -> None:
    text = "g (float[n,3] x) => (float[n,3] y) <float[4,1] w = {1,2,3,4}> { y = Add(x, w) }"
    save(from_text(HEAD + text), tmp_path / "m.onnx")
    save(from_text(HEAD + text.replace("x, w", "w, x")), tmp_path / "turned.onnx")
    files = str(tmp_path / "m.onnx"), str(tmp_path / "turned.onnx")
    report = onnxsmith.compare(*files).report
    assert "n was accepted at 1 and 4 only" in report.headline
    fixed = onnxsmith.compare(*files, sizes={"n": 4}).report
    assert "n was tried at 4 only" in fixed.headline


@pytest.mark.parametrize(
    ("taken", "refused", "wanted"),
    [
        ([4], [1, 2, 5], "n was tried at 4 only"),
        ([1, 4], [2, 3, 5, 8], "n was accepted at 1 and 4 only"),
        ([1, 2, 16], [17, 32], "n was refused above 16"),
        ([1, 2, 4], [11], "n was accepted up to 4 and refused at 11"),
        ([32, 64, 128], [65, 1], ""),
        ([1, 2, 3], [], ""),
        ([0, 1, 2], [], ""),
    ],
)
def test_clauses_say_what_limits(taken: list[int], refused: list[int], wanted: str) -> None:
    session = fake(negative).session
    explorer = Explorer(session, plan(), {})
    runs = [explorer._tries.run({"n": size}, 0, {}, explorer._search.manner) for size in taken]
    base = runs[0]
    outcomes = [({"n": size}, False) for size in refused]
    assert "; ".join(untried_clauses([run for run in runs if run], base, outcomes)) == wanted


# Inputs without elements, on two runtimes


def refuses_empty(feeds: Feeds) -> Outputs:
    if not np.asarray(feeds["x"]).size:
        raise problem("runtime/failed", "nothing empty")
    return negative(feeds)


def dies_of_empty(feeds: Feeds) -> Outputs:
    if not np.asarray(feeds["x"]).size:
        raise problem("runtime/died", "crashed")
    return negative(feeds)


@pytest.mark.parametrize("answer", [refuses_empty, dies_of_empty])
def test_another_runtime_need_not_take_what_is_empty(answer: Answer) -> None:
    part = verify(fake(negative), fake(answer, "other"), plan(), {})
    assert part.equal
    assert part.untried == ("n = 0 is not accepted by other",)
    assert 0 not in (part.sizes or {})["n"]
    said = {refuses_empty: "nothing empty", dies_of_empty: "crashed"}[answer]
    assert f"n = 0 is not accepted by other: {said}" in part.notes


def test_another_runtime_may_answer_differently_to_what_is_empty() -> None:
    def one_for_none(feeds: Feeds) -> Outputs:
        return negative(feeds) if np.asarray(feeds["x"]).size else {"y": np.zeros(1, np.float32)}

    part = verify(fake(negative), fake(one_for_none, "other"), plan(), {})
    assert part.equal
    assert part.untried == ("n = 0 is answered differently by other",)
    assert not [note for note in part.notes if "n = 0" in note]


def test_the_same_runtime_has_to() -> None:
    assert not verify(fake(negative), fake(refuses_empty), plan(), {}).equal
    assert not verify(fake(negative), fake(dies_of_empty), plan(), {}).equal


# Messages


def test_a_message_names_the_models_own_inputs() -> None:
    text = (
        "g (float[n,2] image, int64[k] ids) => (float[7,11,13] y) <int64[3] s = {7, 11, 13}> { y = Reshape(image, s) }"
    )
    with pytest.raises(OnnxsmithError) as caught:
        held(text, text)
    said = caught.value.problem
    assert said.id == "verify/no-valid-input"
    assert "image" in said.fix
    assert "ids" in said.fix
    assert "height" not in said.fix


def test_a_generated_input_that_is_refused_is_replaced(tmp_path: Path) -> None:
    text = "g (float[n,3] x) => (float[m,6] y) <int64[2] s = {-1, 6}> { y = Reshape(x, s) }"
    result = onnxsmith.run(from_text(HEAD + text), random=True)
    assert result.outputs["y"].shape[1] == 6
    assert any("refused the first generated input" in note for note in result.report.notes)


@pytest.mark.parametrize("limit", [40, 100, 300])
def test_a_fault_where_two_sizes_are_large_together_is_seen(limit: int) -> None:
    """In every other run at least one of height and width is small, or a little larger than the example's."""
    text = f"""g (float[b,h,w] x) => (float[b,h,w] y) <int64 limit = {{{limit}}}> {{
        s = Shape<start = 1, end = 3>(x)
        least = ReduceMin<keepdims = 0>(s)
        is_large = Greater(least, limit)
        z = Neg(x)
        y = Where(is_large, z, x)
    }}"""
    assert held(text, text).equal
    assert not held(text.replace("Where(is_large, z, x)", "Identity(x)"), text).equal


def test_what_is_short_is_tried_long_where_that_is_cheap() -> None:
    text = "g (float[n,3] x) => (float[n,3] y) { y = Neg(x) }"
    assert max((held(text, text).sizes or {})["n"]) > 200
    dear = (
        "g (float[n,3] x) => (float[n,k] y) <int64[2] wide = {1, 6000}, int64[1] a = {1}> "
        "{ m = ReduceMax(x, a) z = Expand(m, wide) y = Neg(z) }"
    )
    assert max((held(dear, dear).sizes or {})["n"]) < 200


# What the reference is asked


RATE = """g (float[n] x, int64 rate, int64[m] mask) => (float[n] y) {
    fast = Constant<value_int = 16000>() slow = Constant<value_int = 8000>()
    c = Equal(rate, fast) d = Equal(rate, slow) e = Equal(mask, fast) y = Neg(x) }"""


def explorer(answer: Answer, text: str = RATE, **how: object) -> Explorer:
    return Explorer(fake(answer, text=text).session, replace(plan(text), **how), {})


def test_each_number_that_the_graph_compares_an_input_with_is_fed_or_said_to_be_refused() -> None:
    def without_8000(feeds: Feeds) -> Outputs:
        if np.any(np.asarray(feeds["rate"]) == 8000):
            raise problem("runtime/failed", "not at this rate")
        return negative(feeds)

    assert explorer(negative)._plan.generator.choices().keys() == {"rate", "mask"}
    found = explorer(negative)
    rates = {int(np.asarray(run.feed.values["rate"])) for run in found.runs()}
    assert {16000, 8000} <= rates
    assert not [note for note in found.notes if "compares with" in note]
    found = explorer(without_8000)
    assert 8000 not in {int(np.asarray(run.feed.values["rate"])) for run in found.runs()}
    assert (
        "rate = 8000 is a value to which the graph compares rate, but it was refused at every size that was tried"
    ) in found.notes
    masks = [np.asarray(run.feed.values["mask"]) for run in found.runs()]
    assert any(len(np.unique(mask)) > 1 for mask in masks)  # each element gets its own choice once


def test_the_largest_values_that_give_numbers_are_tried() -> None:
    def largest(answer: Answer) -> list[float]:
        text = "g (float[n] x) => (float[n] y) { y = Neg(x) }"
        found = Explorer(fake(answer).session, plan(text), {})
        return [float(np.abs(run.feed.values["x"]).max(initial=0)) for run in list(found.runs())[:2]]

    def overflowing(feeds: Feeds) -> Outputs:
        x = np.asarray(feeds["x"])
        return {"y": np.where(np.abs(x).max(initial=0) > 6, np.nan, x)}

    usual, large = largest(negative)
    assert large > 10 > usual
    usual, other = largest(overflowing)
    assert max(usual, other) < 6
    assert usual != other


def test_given_inputs_stand_alone_where_the_reference_takes_no_other() -> None:
    given = Feed("mine", {}, {"x": np.zeros(3, np.float32)})

    def only_mine(feeds: Feeds) -> Outputs:
        if np.asarray(feeds["x"]).any():
            raise problem("runtime/failed", "not this one")
        return negative(feeds)

    found = Explorer(fake(only_mine).session, replace(plan(), given=(given,)), {})
    runs = list(found.runs())
    assert [(run.feed.label, run.feed.sizes, run.generated) for run in runs] == [("mine", {"n": 3}, False)]
    assert found.notes[0] == "only the given inputs were compared: the reference refused all generated inputs"
    assert found.untried[-1] == "no generated input was accepted"
    alone = Explorer(fake(negative).session, replace(plan(), given=(given,), generate=False), {})
    assert len(list(alone.runs())) == 1
    assert (alone.notes, alone.untried) == ([], ("n was tried at 3 only",))


def drawing(feeds: Feeds) -> Outputs:
    drawing.count = getattr(drawing, "count", 0) + 1  # type: ignore[attr-defined]
    return {"y": np.asarray(feeds["x"]) + drawing.count}  # type: ignore[attr-defined]


def test_an_output_that_changes_from_run_to_run_is_an_error_unless_it_may_draw() -> None:
    found = Explorer(fake(drawing).session, replace(plan(), random=True), {})
    run = next(found.runs())
    assert found.unsteady(run) == {"y"}
    assert found.repeated(run) == found.drawn == {"y"}
    strict = Explorer(fake(drawing).session, plan(), {})
    run = next(strict.runs())
    with pytest.raises(OnnxsmithError) as caught:
        strict.repeated(run)
    assert caught.value.problem.id == "verify/nondeterministic"
    assert caught.value.problem.what == "output 'y' differs between two runs on the same input"
    steady = Explorer(fake(negative).session, plan(), {})
    assert steady.repeated(next(steady.runs())) == set()


def test_what_is_drawn_on_a_given_input_alone_does_not_count_as_drawn() -> None:
    def draws_on_zeros(feeds: Feeds) -> Outputs:
        return negative(feeds) if np.asarray(feeds["x"]).any() else drawing(feeds)

    given = Feed("mine", {}, {"x": np.zeros(3, np.float32)})
    found = Explorer(fake(draws_on_zeros).session, replace(plan(), random=True), {})
    runs = list(found.runs())
    mine = Run(given, draws_on_zeros(given.values), generated=False)
    assert found.repeated(mine) == set()
    assert found.unsteady(mine) == {"y"}
    assert found.unsteady(runs[0]) == set()


def test_memory_that_a_kernel_does_not_fill_is_unsteady_only_without_elements() -> None:
    last = [0.0]

    def leftover(feeds: Feeds) -> Outputs:
        x = np.asarray(feeds["x"])
        if x.size:
            last[0] = float(x[0])
            return negative(feeds)
        return {"y": np.array([last[0]], np.float32)}

    found = Explorer(fake(negative).session, plan(), {})
    empty = next(run for run in found.runs() if run.is_empty)
    usual = next(run for run in found.runs() if not run.is_empty)
    candidate = fake(leftover, "other").session
    assert found.unsteady_in(candidate, empty) == {"y"}
    assert found.unsteady_in(candidate, usual) == set()
    assert found.unsteady_in(candidate, replace(empty, generated=False)) == set()
    assert found.unsteady_in(fake(negative, "other").session, empty) == set()


def test_inputs_that_neither_side_takes_on_the_candidates_runtime_are_counted() -> None:
    found = Explorer(fake(negative).session, plan(), {})
    runs = list(found.runs())[:2]
    refusal = Problem("runtime/failed", "it is too large.", why="a limit")
    for run in runs:
        found.leave_out(run, "other", refusal)
    label = runs[0].feed.label
    assert found.notes == [f"other runs neither model on {label}: it is too large. a limit"]
    assert found.untried[-1] == f"the candidate's runtime refuses 2 inputs, first {label}"
    assert all(run.left_out for run in runs)


MASKED = """<ir_version: 10, opset_import: ["": 20]>
g (float[n,4] x, int64[n,4] mask) => (float[n,4] y) <float[4,4] w = {
  1,2,3,4, 4,3,2,1, 1,1,2,2, 2,1,2,1}, int64 zero = {0}, float low = {-inf}, float none = {0}> {
  hidden = Equal(mask, zero)
  bias = Where(hidden, low, none)
  p = MatMul(x, w)
  s = Add(p, bias)
  y = Softmax(s)
}"""


def test_a_mask_that_hides_everything_is_not_the_usual_input() -> None:
    """Its first value, 0, gives NaN. Inputs like it show no fault."""
    model = from_text(MASKED)
    generator = Generator.for_model(inferred(model)[0]).under(signature(model))
    with runtimes.get("onnxruntime").prepare(model) as session:
        runs = list(Explorer(session, Plan(generator), {}).runs())
    assert np.isfinite(runs[0].outputs["y"]).all()
    masks = {tuple(np.unique(run.feed.values["mask"]).tolist()) for run in runs if run.feed.values["mask"].size}
    assert {(0,), (1,)} <= masks
    part = verify_models(model, from_text(MASKED))
    assert part.equal
    assert part.power is not None
    assert part.power.seen == part.power.tried
