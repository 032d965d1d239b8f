"""Constants are computed once; what is not constant, not repeatable or would grow is left alone."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base.problem import problem
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.passes.unused import Unused
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.optimizer import constant_evaluation
from onnxsmith.optimizer.folding import Folding
from onnxsmith.optimizer.journal import Journal
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.optimizer.simplification_state import State
from onnxsmith.runtimes.base import get
from onnxsmith.verification.sessions import verify_models

HEAD = '<ir_version: 10, opset_import: ["": 20]>'


def folded(
    body: str, head: str = HEAD, *, check: bool = True, runtime: str = "reference"
) -> tuple[ir.Model, dict[str, str]]:
    """The folded model, and why what was refused was."""
    model = from_text(f"{head} g {body}")
    copy = cloned(model)
    facts.spread_opsets(copy)
    state = State(copy, Inference(copy), Journal())
    folding = Folding(state, runtime=runtime)
    while folding.run():
        Unused().run(copy)
        state.refresh()
    folding.finish()
    if check:
        assert verify_models(model, copy, Verify(runtime="reference")).equal
    return copy, {entry.where.removeprefix("-> "): entry.why_not for entry in state.journal.refused}


def ops(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


def test_a_chain_of_constants_is_one_initializer() -> None:
    model, _ = folded(
        "(float[2] x) => (float[2] y) <float[2] w = {1, 4}> { a = Neg(w)\n b = Abs(a)\n c = Sqrt(b)\n y = Add(x, c) }"
    )
    assert ops(model) == ["Add"]
    assert model.graph.initializers["c"].const_value is not None
    assert model.graph.initializers["c"].const_value.numpy().tolist() == [1, 2]
    assert set(model.graph.initializers) == {"c"}


def test_both_runtimes_fold() -> None:
    for runtime in ("onnxruntime", ""):
        body = "(float[2] x) => (float[2] y) <float[2] w = {1, 4}> { c = Sqrt(w)\n y = Add(x, c) }"
        assert ops(folded(body, runtime=runtime)[0]) == ["Add"]


def test_all_is_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    honest = constant_evaluation._run
    monkeypatch.setattr(
        constant_evaluation, "_run", lambda model, runtime: (runs.append(model), honest(model, runtime))[1]
    )
    lines = "\n".join(f"c{i} = Sum(c{i - 1}, w)\n d{i} = Max(d{i - 1}, c{i})" for i in range(1, 500))
    model, _ = folded(
        "(float[2] x) => (float[2] y) <float[2] c0 = {1, 4}, float[2] d0 = {0, 0}, float[2] w = {1, 1}> {"
        f"{lines}\n y = Add(x, d499) }}"
    )
    assert (ops(model), len(runs)) == (["Add"], 1)


def test_what_a_branch_reads_is_folded() -> None:
    model, _ = folded(
        """(float[2] x, bool c) => (float[2] y) <float[2] w = {1, 4}> {
            k = Sqrt(w)
            y = If(c) <then_branch = t () => (float[2] p) { p = Add(x, k) },
                       else_branch = e () => (float[2] q) { q = Mul(x, k) }>
        }"""
    )
    assert ops(model) == ["If"]


@pytest.mark.parametrize(
    "op",
    ["RandomNormalLike(w)", "RandomUniformLike<seed = 1.0>(w)", "Bernoulli<seed = 1.0>(w)", "Dropout(w, r, t)",
     "Multinomial<dtype = 7>(m)"],
)  # fmt: skip
def test_random_ones_are_never_folded(op: str) -> None:
    model, _ = folded(
        "(float[2] x) => (float[A] y) <float[2] w = {0.5, 0.5}, float r = {0.5}, bool t = {1}, float[1,2] m = {1, 1}>"
        f"{{ a = {op}\n b = Cast<to = 1>(a)\n y = Add(x, b) }}",
        check=False,
    )
    assert len(ops(model)) == 3


def test_functions_with_random_numbers_and_foreign_operators_stay() -> None:
    model, _ = folded(
        """(float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
            a = f.noise(w)\n b = f.noise(w)\n c = Sub(a, b)\n y = Add(x, c) }
        <domain: "f", opset_import: ["": 20]> noise (x) => (y) { y = RandomNormalLike(x) }""",
        '<ir_version: 10, opset_import: ["": 20, "f": 1]>',
        check=False,
    )
    assert len(ops(model)) == 4


def test_normalisation_in_training_stays() -> None:
    model, _ = folded(
        """(float[1,1,1] x) => (float[1,1,1] y) <float[1,1,1] w = {2}, float[1] s = {3}> {
            a, m, v = BatchNormalization<training_mode = 1>(w, s, s, s, s)\n y = Add(x, a) }"""
    )
    assert "BatchNormalization" in ops(model)


def test_int8_weights_stay_int8() -> None:
    model, _ = folded(
        """(float[2] x) => (float[2] y) <int8[2] w = {1, 2}, float s = {0.5}> {
            a = DequantizeLinear(w, s)\n y = Add(x, a) }"""
    )
    assert ops(model) == ["DequantizeLinear", "Add"]


def test_defaults_that_a_caller_may_replace_stay() -> None:
    model, _ = folded("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { a = Neg(w)\n y = Add(x, a) }")
    assert ops(model) == ["Neg", "Add"]


def test_ir_version_3_is_left_alone() -> None:
    text = "(float[2] x) => (float[2] y) { w = Constant<value = float[2] {1, 2}>()\n a = Neg(w)\n y = Add(x, a) }"
    model, _ = folded(text, '<ir_version: 3, opset_import: ["": 8]>')
    assert ops(model) == ["Constant", "Neg", "Add"]


def test_a_graph_output_becomes_a_constant() -> None:
    model, _ = folded("(float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> { z = Neg(w)\n y = Neg(x) }")
    assert ops(model) == ["Constant", "Neg"]
    assert model.graph.outputs[1].name == "z"


def test_a_large_graph_output_stays_and_is_noted() -> None:
    model, why = folded(
        "(float[2] x) => (float[2] y, float z) <int64[1] n = {1000000}> { z = ConstantOfShape(n)\n y = Neg(x) }"
    )
    assert ops(model) == ["ConstantOfShape", "Neg"]
    assert "large graph output" in why["z"]


GROWS = {
    "ConstantOfShape": "<int64[1] n = {1000000}> { a = ConstantOfShape(n)\n"
    " b = ReduceSum<keepdims = 0>(a)\n c = Add(a, b)",
    "Expand": "<int64[1] n = {1000000}, float[1] w = {1}> { c = Expand(w, n)",
    "Tile": "<int64[1] n = {1000000}, float[1] w = {1}> { c = Tile(w, n)",
    "Range": "<float n = {1000000}, float w = {1}> { c = Range(w, n, w)",
    "a chain": "<int64[1] n = {1000000}, float[1] w = {1}> { a = Expand(w, n)\n b = Neg(a)\n c = Abs(b)",
    "an outer product": "<float[1] w = {1}, int64[2] n = {1000, 1}, int64[2] m = {1, 1000}, int64[1] l = {1000000}> {"
    "p = Expand(w, n)\n q = Expand(w, m)\n r = Mul(p, q)\n c = Reshape(r, l)",
}  # fmt: skip


@pytest.mark.parametrize("case", GROWS)
def test_nothing_grows(case: str) -> None:
    model, why = folded(f"(float[1] x) => (float[M] y) {GROWS[case]}\n y = Add(x, c) }}")
    assert sum(tensor.nbytes for value in model.graph.initializers.values() if (tensor := value.const_value)) < 12_000
    assert any("larger" in reason for reason in why.values())


def test_a_large_value_on_the_way_to_a_small_one_is_fine() -> None:
    model, _ = folded(
        "(float[1] x) => (float[1] y) <int64[1] n = {100000}> { a = ConstantOfShape(n)\n"
        "b = ReduceSum<keepdims = 0>(a)\n y = Add(x, b) }"
    )
    assert ops(model) == ["Add"]


def test_a_widened_weight_stays_narrow_and_a_transposed_one_is_folded() -> None:
    ones = ", ".join(["1"] * 8192)
    for op, wanted in (("Cast<to = 1>(w)", ["Cast", "MatMul"]), ("Transpose(v)", ["MatMul"])):
        model, _ = folded(
            f"(float[N,64] x) => (float[N,128] y) <float16[64,128] w = {{{ones}}}, float[128,64] v = {{{ones}}}>"
            f"{{ a = {op}\n y = MatMul(x, a) }}"
        )
        assert ops(model) == wanted


def test_a_shared_weight_is_not_doubled() -> None:
    ones = ", ".join(["1"] * 4096)
    model, why = folded(
        f"(float[N,64] x) => (float[N,64] y) <float[64,64] w = {{{ones}}}> "
        "{ a = Transpose(w)\n b = MatMul(x, a)\n y = MatMul(b, w) }"
    )
    assert "Transpose" in ops(model)
    assert "larger" in why["a"]


def test_one_failure_does_not_stop_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, runs = constant_evaluation._run, []

    def failing(model: ir.Model, runtime: str) -> dict[str, object]:
        runs.append(model)
        if any(node.op_type == "Sin" for node in model.graph):
            raise problem("runtime/crashed", "the process died")
        return dict(honest(model, runtime))

    monkeypatch.setattr(constant_evaluation, "_run", failing)
    lines = "\n".join(f"c{i} = Neg(c{i - 1})" for i in range(1, 40))
    model, why = folded(
        f"""(float[2] x) => (float[2] y) <float[2] c0 = {{1, 4}}> {{ {lines}\n s = Sin(c20)\n t = Abs(s)
            u = Add(x, t)\n y = Add(u, c39) }}"""
    )
    assert ops(model) == ["Sin", "Abs", "Add", "Add"]
    assert "the process died" in why["s"]
    assert len(runs) < 20


def test_a_result_of_another_dtype_or_shape_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "(float[2] x) => (float[2] y) <float[2] w = {1, 4}> { c = Exp(w)\n y = Add(x, c) }"
    for lie in (np.ones(2, np.float64), np.ones((1, 2), np.float32)):
        monkeypatch.setattr(constant_evaluation, "_run", lambda model, runtime, lie=lie: {"v0": lie})
        model, why = folded(body)
        assert ops(model) == ["Exp", "Add"]
        assert "inferred" in why["c"]


def test_bits_are_kept() -> None:
    model, _ = folded(
        """(float[5] x) => (float[5] y) <float[5] w = {0.0, -1.0, 1.0, 0.5, 3.0}> {
            a = Neg(w)\n b = Log(w)\n c = Mul(a, b)\n d = Add(a, c)\n y = Add(x, d) }""",
        check=False,
    )
    assert ops(model) == ["Add"]
    found = model.graph.initializers["d"].const_value
    assert found is not None
    assert np.isnan(found.numpy()[1])


def test_small_floats_of_other_kinds_are_folded_as_they_are() -> None:
    for dtype, number in (("bfloat16", 16), ("float8e4m3fn", 17), ("float16", 10)):
        body = f"""(float[2] x) => (float[2] y) <float[2] w = {{1.1, 1000.0}}> {{
            a = Cast<to = {number}>(w)\n b = Cast<to = 1>(a)\n y = Add(x, b) }}"""
        model, why = folded(body, runtime="onnxruntime", check=dtype != "float8e4m3fn")
        assert ops(model) == ["Add"], (dtype, why)
        found = model.graph.initializers["b"].const_value
        assert found is not None
        assert found.numpy()[0] != np.float32(1.1)


def test_strings_stay() -> None:
    model, why = folded(
        """(float[2] x) => (float[2] y, string[M] z) {
            w = Constant<value_strings = ["a", "b"]>()\n v = Concat<axis = 0>(w, w)\n z = Identity(v)\n y = Neg(x) }"""
    )
    assert "Concat" in ops(model)
    assert "string" in why["v"]


def test_known_sizes_run_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constant_evaluation, "_run", lambda model, runtime: pytest.fail("something was run"))
    model, _ = folded(
        """(float[N,3,4] x) => (float[K,12] y) <int64[1] one = {1}, int64[1] two = {2}, int64[1] minus = {-1}> {
            s = Shape(x)\n a = Gather(s, one)\n b = Gather(s, two)\n c = Mul(a, b)\n t = Concat<axis = 0>(minus, c)
            y = Reshape(x, t) }"""
    )
    assert ops(model) == ["Reshape"]
    assert [v.const_value.numpy().tolist() for v in model.graph.initializers.values() if v.const_value] == [[-1, 12]]


def test_shape_with_start_and_end() -> None:
    model, _ = folded(
        "(float[N,3,4] x) => (int64[1] y) { s = Shape<start = 1, end = -1>(x)\n y = Neg(s) }",
    )
    assert ops(model) == ["Constant"]
    with get("reference").prepare(model) as session:
        assert session.run({"x": np.zeros((2, 3, 4), np.float32)})["y"].tolist() == [-3]  # type: ignore[union-attr]


def test_an_unknown_size_stays() -> None:
    assert ops(folded("(float[N,3] x) => (int64[2] y) { s = Shape(x)\n y = Neg(s) }")[0]) == ["Shape", "Neg"]


def test_computed_pads_keep_their_order() -> None:
    model, _ = folded(
        """(float[1,1,4,4] x) => (float[A,B,C,D] y) <
            int64[4] z = {0, 0, 0, 0}, int64[4] p = {1, 2, 3, 4}, int64[2] r = {-1, 2},
            int64[1] from = {-1}, int64[1] to = {-9223372036854775807}, int64[1] ax = {0}, int64[1] flat = {-1}> {
            c = Concat<axis = 0>(p, z)\n m = Reshape(c, r)\n s = Slice(m, from, to, ax, from)
            t = Transpose<perm = [1, 0]>(s)\n pads = Reshape(t, flat)\n y = Pad(x, pads) }"""
    )
    assert ops(model) == ["Pad"]


def test_the_shape_of_a_scalar_is_folded() -> None:
    """It is an empty vector, which is known."""
    text = """<ir_version: 8, opset_import: ["": 16]>
        g (float p, float[N] u) => (float[N] y) { s = Shape(p)\n e = Expand(u, s)\n y = Neg(e) }"""
    result, _ = simplified(from_text(text))
    assert [node.op_type for node in result.graph] == ["Neg"]


def test_constants_are_moved_without_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        raise AssertionError("a runtime was asked")

    monkeypatch.setattr(constant_evaluation, "_run", run)
    model, refused = folded(
        "(float[2,3] x) => (float[2,3] y) <float[3,2] w = {1, 2, 3, 4, 5, 6}, int64[2] to = {2, 3}> "
        "{ a = Transpose<perm = [1, 0]>(w)\n b = Add(x, a)\n c = Reshape(w, to)\n y = Mul(b, c) }"
    )
    held = {name: value.const_value for name, value in model.graph.initializers.items()}
    assert not refused
    assert held["a"] is not None
    assert held["c"] is not None
    assert held["a"].numpy().tolist() == [[1, 3, 5], [2, 4, 6]]
    assert held["c"].numpy().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_only_what_a_result_needs_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[list[str]] = []
    batch = constant_evaluation._batch

    def noted(model: ir.Model, nodes: list[ir.Node], *rest: object) -> ir.Model:
        batches.append([node.op_type for node in nodes])
        return batch(model, nodes, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(constant_evaluation, "_batch", noted)
    folded(
        "(float[2] x) => (float[2] y) <float[2] w = {1, 4}> "
        "{ a = Neg(w)\n unread = Exp(w)\n still = Sqrt(unread)\n y = Add(x, a) }"
    )
    assert batches == [["Neg"]]


def test_a_reshape_that_does_not_fit_is_left_to_the_runtime() -> None:
    node = ir.node("Reshape", [None, None])
    node.outputs[0].shape = ir.Shape([4])
    assert constant_evaluation.moved(node, ir.tensor(np.zeros(6, np.float32))) is None
    turned = ir.node("Transpose", [None], {"perm": [0, 0]})
    assert constant_evaluation.moved(turned, ir.tensor(np.zeros((2, 3), np.float32))) is None
