"""The verifier finds every kind of wrong, and does not pass a comparison of nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes.base import Feeds, Outputs
from onnxsmith.runtimes.fake import FakeSession
from onnxsmith.verification.explore import Plan
from onnxsmith.verification.inputs.generate import Generator
from onnxsmith.verification.rounding import roundings
from onnxsmith.verification.sessions import verify_models
from onnxsmith.verification.value_comparison import difference
from onnxsmith.verification.verification_verdict import ending, verdict
from onnxsmith.verification.verify import Evidence, Side, verify

RIGHT = """
<ir_version: 10, opset_import: ["": 20]>
g (float[batch,3] x) => (float[batch,2] y, float[batch,2] z)
<float[3,2] w = {1, 2, 3, 4, 5, 6}> {
    y = MatMul(x, w)
    z = Tanh(y)
}
"""

WRONG = {
    "a changed weight": RIGHT.replace("{1, 2, 3", "{1, 2.001, 3"),
    "a dropped output": RIGHT.replace(", float[batch,2] z)", ")").replace("z = Tanh(y)", ""),
    "swapped outputs": RIGHT.replace("y = MatMul(x, w)", "z = MatMul(x, w)").replace("z = Tanh(y)", "y = Tanh(z)"),
    "a wrong dtype": RIGHT.replace("float[batch,2] z)", "double[batch,2] z)").replace(
        "z = Tanh(y)", "t = Tanh(y)\n z = Cast<to = 11>(t)"
    ),
    "a frozen axis": RIGHT.replace("batch", "2"),
    "a frozen axis behind a dynamic declaration": RIGHT.replace(
        "z = Tanh(y)", "s = Constant<value = int64[2] {2, 2}>()\n u = Reshape(y, s)\n z = Tanh(u)"
    ),
    "a renamed input": RIGHT.replace("x)", "xx)").replace("(x,", "(xx,"),
    "a renamed output": RIGHT.replace(" z)", " zz)").replace("z =", "zz ="),
    "another operator": RIGHT.replace("Tanh", "Erf"),
    "a constant": RIGHT.replace("z = Tanh(y)", "t = Sub(y, y)\n z = Tanh(t)"),
    "NaN": RIGHT.replace("z = Tanh(y)", "t = Sub(y, y)\n z = Div(t, t)"),
    "infinity": RIGHT.replace("z = Tanh(y)", "t = Sub(y, y)\n o = Div(y, t)\n z = Abs(o)"),
}


def held(wrong: str, right: str = RIGHT, settings: Verify = Verify()) -> Verification:
    return verify_models(from_text(right), from_text(wrong), settings)


def test_a_model_agrees_with_itself() -> None:
    part = held(RIGHT)
    assert part.verified
    assert part.equal
    assert part.sizes == {"batch": (0, 1, 2, 3, 4, 257)}
    assert all(output.compared > 0 for output in part.outputs)


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
def test_the_verifier_fails_on(kind: str, runtime: str) -> None:
    part = held(WRONG[kind], settings=Verify(runtime=runtime))
    assert not part.equal
    assert part.notes or any(output.reason for output in part.outputs)


def test_a_frozen_axis_is_named() -> None:
    assert any("axis 0 of input 'x' is fixed to 2" in note for note in held(WRONG["a frozen axis"]).notes)


def test_rounding_is_no_difference() -> None:
    regrouped = RIGHT.replace(
        "y = MatMul(x, w)",
        "h = Constant<value_float = 0.3>()\n a = Mul(x, h)\n b = Sub(x, a)\n"
        " p = MatMul(a, w)\n q = MatMul(b, w)\n y = Add(p, q)",
    )
    part = held(regrouped)
    assert part.equal
    assert max(output.worst_abs for output in part.outputs) > 0


def test_nan_is_equal_to_nan_only() -> None:
    log = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[n] x) => (float[n] y) { y = Log(x) }
    """
    assert held(log, log).equal
    assert not held(log.replace("y = Log(x)", "a = Abs(x)\n y = Log(a)"), log).equal


def test_of_empty_outputs_dtypes_and_shapes_agree_which_the_headline_says() -> None:
    empty = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[n] x) => (float[0] y) <int64[1] zero = {0}> { y = Slice(x, zero, zero) }
    """
    part = held(empty, empty)
    assert part.equal
    assert "every output is empty or NaN" in ending(part)
    longer = empty.replace("<int64[1] zero = {0}>", "<int64[1] zero = {0}, int64[1] one = {1}>").replace(
        "x, zero, zero", "x, zero, one"
    )
    assert not held(longer.replace("float[0] y", "float[k] y"), empty.replace("float[0] y", "float[k] y")).equal


def test_nan_everywhere_agrees_with_nan_everywhere_which_the_headline_says() -> None:
    nan = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[n] x) => (float[n] y) { a = Sub(x, x)\n y = Div(a, a) }
    """
    part = held(nan, nan)
    assert part.equal
    assert "every output is empty or NaN" in ending(part)
    assert not held(nan.replace("y = Div(a, a)", "y = Identity(a)"), nan).equal


def test_random_operators_of_an_opset_that_cannot_fix_them_are_noticed() -> None:
    random = """
    <ir_version: 4, opset_import: ["": 8]>
    g (float[n] x) => (float[n] y) { p = RandomNormalLike(x)\n y = Add(x, p) }
    """
    with pytest.raises(OnnxsmithError) as caught:
        held(random, random)
    assert caught.value.problem.id == "verify/nondeterministic"


def test_random_operators_in_a_branch_are_fixed_on_both_sides() -> None:
    random = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[n] x, bool c) => (float[n] y) {
        y = If(c) <then_branch = t () => (float[n] p) { p = RandomNormalLike(x) },
                   else_branch = e () => (float[n] q) { q = Neg(x) }>
    }
    """
    assert held(random, random).equal
    assert not held(random, random.replace("Neg", "Abs")).equal


def test_an_output_that_never_moves_is_said_so() -> None:
    still = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[n] x) => (float[n] y, float[n] z) { y = Neg(x)\n a = Sub(x, x)\n z = Cos(a) }
    """
    part = held(still, still)
    assert part.equal
    assert "the same for different inputs" in part.outputs[1].weak


def test_a_tolerance_does_not_decide_where_no_floats_change() -> None:
    """A wrong weight of a classifier whose answers are all alike."""
    text = """<ir_version: 10, opset_import: ["": 20]> g (float[n,3] x) => (bool[n,2] y)
    <float[3,2] w = {1, 2, -1, 3, 1, 1}, float most = {1e9}> { t = MatMul(x, w) y = Less(t, most) }"""
    for tolerance in (None, 0.01):
        part = held(text.replace("{1, 2,", "{2, 4,"), text, Verify(tolerance=tolerance))
        assert verdict(part) is Verdict.CANNOT_TELL


def test_an_output_of_vanishing_scale_is_said_so() -> None:
    tiny = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[n] x) => (float[n] y) <float c = {1e-22}> { y = Mul(x, c) }
    """
    part = held(tiny, tiny)
    assert part.equal
    assert "values are as small as" in part.outputs[0].weak
    assert not held(tiny.replace("1e-22", "2e-22"), tiny).equal


def test_sizes_that_the_reference_refuses_are_passed_over_and_counted() -> None:
    even = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[n,w] x) => (float[n,m,2] y) <int64[3] s = {0, -1, 2}> { y = Reshape(x, s) }
    """
    part = held(even, even)
    assert part.refused > 0
    assert part.sizes is not None
    assert all(size % 2 == 0 for size in part.sizes["w"])
    assert len(part.sizes["w"]) > 1


def test_dimensions_that_go_together_are_moved_together() -> None:
    tied = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[a,4] x, float[b,4] y) => (float[a,4] z) { c = Concat<axis = 1>(x, y)\n z = Add(x, y)\n d = Neg(c) }
    """
    part = held(tied, tied)
    assert part.equal
    assert part.sizes is not None
    assert len(part.sizes["a"]) > 1


def test_no_valid_input_says_what_was_refused() -> None:
    impossible = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[n,2] x) => (float[7,11,13] y) <int64[3] s = {7, 11, 13}> { y = Reshape(x, s) }
    """
    with pytest.raises(OnnxsmithError) as caught:
        held(impossible, impossible)
    assert caught.value.problem.id == "verify/no-valid-input"
    assert "--input" in caught.value.problem.fix


def test_a_given_size_makes_it_possible() -> None:
    narrow = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[n] x) => (float[7,11,13] y) <int64[3] s = {7, 11, 13}> { y = Reshape(x, s) }
    """
    part = held(narrow, narrow, Verify(sizes={"n": 1001}))
    assert part.equal
    assert part.sizes == {"n": (1001,)}


def test_each_value_that_the_graph_asks_for_is_fed() -> None:
    branches = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[n] x, int64 rate) => (float[n] y) {
        fast = Constant<value_int = 16000>()
        c = Equal(rate, fast)
        y = If(c) <
            then_branch = t () => (float[n] a) { a = Neg(x) },
            else_branch = e () => (float[n] b) { b = Exp(x) }
        >
    }
    """
    assert held(branches, branches).equal
    assert not held(branches.replace("Neg", "Abs"), branches).equal
    assert not held(branches.replace("Exp", "Cos"), branches).equal


def test_token_ids_stay_inside_the_table() -> None:
    table = ", ".join(str(number) for number in range(40))
    embedding = f"""
    <ir_version: 10, opset_import: ["": 20]>
    g (int64[batch,sequence] ids) => (float[batch,sequence,4] y) <float[10,4] w = {{{table}}}> {{ y = Gather(w, ids) }}
    """
    part = held(embedding, embedding)
    assert part.equal
    assert part.refused == 0


def test_a_candidate_that_answers_differently_once_is_caught() -> None:
    model = from_text(RIGHT)
    weight = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    calls = []

    def right(feeds):  # type: ignore[no-untyped-def]
        y = feeds["x"] @ weight
        return {"y": y, "z": np.tanh(y)}

    def wrong_at_three(feeds):  # type: ignore[no-untyped-def]
        calls.append(feeds["x"].shape)
        answer = right(feeds)
        return {**answer, "z": answer["z"] + 1} if len(feeds["x"]) == 3 else answer

    interface = signature(model)
    plan = Plan(Generator.for_model(model))
    part = verify(
        Side("right", FakeSession(interface, right)),
        Side("wrong", FakeSession(interface, wrong_at_three)),
        plan,
        roundings(model),
    )
    assert not part.equal
    assert part.outputs[0].equal
    assert "batch=3" in part.outputs[1].where
    assert (3, 3) in calls


@pytest.mark.parametrize(("drawn", "error"), [(False, None), (True, "verify/nondeterministic")])
def test_the_reference_is_run_again_where_the_two_differ(drawn: bool, error: str | None) -> None:
    model = from_text('<ir_version: 10, opset_import: ["": 20]> g (float[3] x) => (float[3] y) { y = Neg(x) }')
    ran: list[int] = []

    def reference(feeds: Feeds) -> Outputs:
        ran.append(len(ran))
        return {"y": -np.asarray(feeds["x"]) + drawn * len(ran)}

    def candidate(off: float) -> Side:
        return Side("candidate", FakeSession(signature(model), lambda feeds: {"y": -np.asarray(feeds["x"]) + off}))

    right, plan = Side("reference", FakeSession(signature(model), reference)), Plan(Generator.for_model(model))
    if error is None:
        runs = len(verify(right, candidate(0), plan, roundings(model)).runs)
        assert len(ran) == runs
        assert not verify(right, candidate(1), plan, roundings(model)).equal
        assert len(ran) == 2 * runs + 1
    else:
        with pytest.raises(OnnxsmithError) as caught:
            verify(right, candidate(0), plan, roundings(model))
        assert caught.value.problem.id == error


def test_an_output_that_agreed_before_it_was_seen_to_be_drawn_counts_as_not_compared() -> None:
    model = from_text('<ir_version: 10, opset_import: ["": 20]> g (float[3] x) => (float[3] y) { y = Neg(x) }')
    ran: list[int] = []

    def reference(feeds: Feeds) -> Outputs:
        ran.append(len(ran))
        return {"y": -np.asarray(feeds["x"]) + (len(ran) > 1) * len(ran)}

    sides = Side("a", FakeSession(signature(model), reference)), Side("b", FakeSession(signature(model), _shaken()))
    part = verify(*sides, Plan(Generator.for_model(model), random=True), roundings(model))
    assert part.equal
    assert (part.outputs[0].drawn, part.outputs[0].compared) == (True, 0)


def _shaken() -> Callable[[Feeds], Outputs]:
    """Draws from its second run on."""
    ran: list[int] = []

    def answer(feeds: Feeds) -> Outputs:
        ran.append(len(ran))
        return {"y": -np.asarray(feeds["x"]) + (len(ran) > 1) * 100 * len(ran)}

    return answer


def test_weights_in_external_data_are_verified_too(tmp_path: Path) -> None:
    right, wrong = from_text(RIGHT), from_text(RIGHT)
    big = np.arange(3 * 400, dtype=np.float32).reshape(3, 400)
    for model, array in ((right, big), (wrong, big + (big == 7))):
        model.graph.initializers["w"].const_value = ir.tensor(array)
        model.graph.initializers["w"].shape = ir.Shape(array.shape)
        for output in model.graph.outputs:
            output.shape = ir.Shape(["batch", 400])
    save(right, tmp_path / "a.onnx", external_data=True)
    save(wrong, tmp_path / "b.onnx", external_data=True)
    assert (tmp_path / "a.onnx.data").exists()
    assert verify_models(tmp_path / "a.onnx", tmp_path / "a.onnx").equal
    assert not verify_models(tmp_path / "a.onnx", tmp_path / "b.onnx").equal


def test_a_sigmoid_is_rounded_as_a_half_is() -> None:
    """Kernels compute it around a half: far down its tail its last digits are not there."""
    text = '<ir_version: 10, opset_import: ["": 20]> g (float[a,b] x) => (float y, float z) { s = Sigmoid(x)\n %s }'
    found = roundings(from_text(text % "y = Transpose(s)\n z = Tanh(s)"))
    tail = np.full(100, 5e-8, np.float32)
    assert not difference(tail, tail + np.float32(1e-7), *found["y"].bounds).reason
    assert difference(tail, tail + np.float32(1e-6), *found["y"].bounds).reason
    assert difference(tail, tail + np.float32(1e-7), *found["z"].bounds).reason


class _Dies(FakeSession):
    """Of large inputs."""

    most = 2

    def run(self, feeds: Feeds) -> Outputs:
        if feeds["x"].shape[0] > self.most:  # type: ignore[union-attr]
            raise problem("runtime/died", "onnxruntime crashed (signal SIGFPE)")
        return super().run(feeds)


def test_an_input_that_crashes_the_reference_is_left_out_and_noted() -> None:
    model = from_text(RIGHT)
    plan = Plan(Generator.for_model(model))

    def side(kind: type[FakeSession]) -> Side:
        answers = {"y": np.zeros((3, 2), np.float32), "z": np.ones((3, 2), np.float32)}
        return Side("a", kind(signature(model), lambda _: answers))

    part = verify(side(_Dies), side(FakeSession), plan, roundings(model))
    assert part.equal
    assert any("crash the reference" in note for note in part.notes)
    part = verify(side(FakeSession), side(_Dies), plan, roundings(model))
    assert "refuses an input that the reference accepts: onnxruntime crashed" in part.outputs[0].reason


def test_sizes_below_those_that_crash_the_reference_are_not_tried() -> None:
    model = from_text('<ir_version: 10, opset_import: ["": 20]> g (float[1,n] x) => (float[1,n] y) { y = Neg(x) }')
    tried: list[int] = []

    class _DiesOfLittle(FakeSession):
        def run(self, feeds: Feeds) -> Outputs:
            tried.append(np.shape(feeds["x"])[1])
            if tried[-1] < 600:
                raise problem("runtime/died", "onnxruntime crashed (signal SIGFPE)")
            return super().run(feeds)

    side = Side("a", _DiesOfLittle(signature(model), lambda feeds: {"y": -np.asarray(feeds["x"])}))
    assert verify(side, side, Plan(Generator.for_model(model)), roundings(model)).equal
    crashed = [size for size in tried if size < 600]
    assert len(crashed) == len(set(crashed)) < 12


def test_what_the_candidates_runtime_takes_of_neither_model_counts_for_nothing() -> None:
    model = from_text(RIGHT)
    refusal = Problem("runtime/failed", "no kernel for so many")

    class _Refuses(FakeSession):
        least = -1

        def run(self, feeds: Feeds) -> Outputs:
            if np.shape(feeds["x"])[0] > self.least:
                raise OnnxsmithError(refusal)
            return super().run(feeds)

    class _RefusesMany(_Refuses):
        least = 2

    def part(kind: type[FakeSession], refused: Problem | None) -> Verification:
        answers = {"y": np.zeros((3, 2), np.float32), "z": np.ones((3, 2), np.float32)}
        a, b = (Side("a", one(signature(model), lambda _: answers)) for one in (FakeSession, kind))
        return verify(a, b, Plan(Generator.for_model(model)), {}, Evidence(elsewhere=lambda _: refused))

    assert not part(_RefusesMany, None).equal
    some = part(_RefusesMany, refusal)
    assert some.equal
    assert any("the candidate's runtime refuses" in clause for clause in some.untried)
    assert verdict(part(_Refuses, refusal)) is Verdict.CANNOT_TELL


def test_a_reference_that_always_crashes_is_given_up() -> None:
    model = from_text(RIGHT)

    class _DiesAlways(_Dies):
        most = -1

    side = Side("a", _DiesAlways(signature(model), lambda _: {}))
    with pytest.raises(OnnxsmithError) as caught:
        verify(side, side, Plan(Generator.for_model(model)), roundings(model))
    assert caught.value.problem.id in ("runtime/died", "verify/no-valid-input")
