"""IREE gives what ONNX means, or says that it cannot."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.target_checks import Stage
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes._iree_host import CompilerError, translate
from onnxsmith.runtimes.base import Options, Session, get
from onnxsmith.runtimes.iree import Iree
from onnxsmith.targets.judges.base import Target
from tests.conftest import Refused

ABSENT = Iree().missing()
needs_iree = pytest.mark.skipif(
    ABSENT is not None, reason=f"{ABSENT.what if ABSENT else ''} (make test-iree installs it)"
)
DTYPES = [
    "bool", "double", "float", "float16", "int16", "int32", "int64", "int8", "uint16", "uint32", "uint64", "uint8",
]  # fmt: skip
FIXED = "IREE, shapes fixed to those of the inputs"
SYMBOLIC = "IREE, symbolic shapes"


def model(body: str, *, more: str = "", domains: str = "") -> ir.Model:
    return from_text(f'<ir_version: 10, opset_import: ["": 21{domains}]>\ng {body}{more}')


def prepared(body: str) -> Session:
    return get("iree").prepare(model(body))


def run(body: str, **feeds: Any) -> dict[str, Any]:
    with prepared(body) as session:
        return session.run(feeds)


def floats(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def folder_of(session: Session) -> Path:
    """Where the child's libraries write temporary files."""
    return Path(session.isolated._child.cache)  # type: ignore[attr-defined]


@needs_iree
@pytest.mark.parametrize("shape", [(3,), (0,), (1, 3), ()], ids=str)
@pytest.mark.parametrize("symbolic", [True, False])
def test_dtypes_pass_through(shape: tuple[int, ...], symbolic: bool) -> None:
    dims = ", ".join("abc"[: len(shape)]) if symbolic else ", ".join(map(str, shape))
    ins, outs = (", ".join(f"{d}[{dims}] {x}_{d}" if dims else f"{d} {x}_{d}" for d in DTYPES) for x in "xy")
    nodes = "\n".join(f"y_{dtype} = Identity(x_{dtype})" for dtype in DTYPES)
    kinds = {dtype: ir.DataType[dtype.upper()].numpy() for dtype in DTYPES}
    values = {d: np.array([1, 0, 3]).astype(k)[: int(np.prod(shape))].reshape(shape) for d, k in kinds.items()}
    found = run(f"({ins}) => ({outs}) {{ {nodes} }}", **{f"x_{dtype}": value for dtype, value in values.items()})
    for dtype, value in values.items():
        one = found[f"y_{dtype}"]
        assert (one.dtype, one.shape, one.tolist()) == (value.dtype, value.shape, value.tolist())


@needs_iree
@pytest.mark.parametrize(("dtype", "value"), [("int64", 2**53 - 1), ("uint64", 2**64 - 2), ("double", 2**53 - 1)])
def test_64_bits_stay_64_bits(dtype: str, value: int) -> None:
    x = np.array([value], ir.DataType[dtype.upper()].numpy())
    found = run(f"({dtype}[n] x, {dtype}[n] one) => ({dtype}[n] y) {{ y = Add(x, one) }}", x=x, one=np.ones_like(x))
    assert found["y"].tolist() == [value + 1]


@needs_iree
def test_outputs_keep_their_order_and_names() -> None:
    x = np.array([1, -2], np.float32)
    found = run(
        """(float[n] x, float[n] unread) => (float[n] z, float[n] x, float[n] y, float[1] w, float[n] z)
    <float[1] w = {5}> {
        y = Abs(x)
        z = Identity(y)
    }""",
        x=x,
        unread=x,
    )
    assert {name: value.tolist() for name, value in found.items()} == {
        "z": [1, 2], "x": [1, -2], "y": [1, 2], "w": [5],
    }  # fmt: skip
    assert list(found) == ["z", "x", "y", "w"]


@needs_iree
def test_symbols_are_kept_for_all_sizes() -> None:
    with prepared("(float[n,3] x) => (float[n,3] y, int64[2] s) { y = Abs(x)\n s = Shape(x) }") as session:
        assert session.is_built
        for n in (1, 4, 0):
            found = session.run({"x": floats(n, 3)})
            assert (found["y"].shape, found["s"].tolist()) == ((n, 3), [n, 3])
        assert session.provider == SYMBOLIC


@needs_iree
def test_without_a_rank_shapes_are_fixed_and_the_session_says_so() -> None:
    with prepared("(float[] x) => (float[] y) { y = Abs(x) }") as session:
        assert not session.is_built
        for shape in [(2,), (2, 3), (), (0,)]:
            x = floats(*shape)
            assert np.array_equal(session.run({"x": x})["y"], np.abs(x))
        assert session.provider == FIXED


@needs_iree
def test_sizes_that_are_broadcast_are_run_with_fixed_shapes() -> None:
    with prepared("(float[a] x, float[b] z) => (float[c] y) { y = Add(x, z) }") as session:
        assert np.array_equal(session.run({"x": floats(4), "z": floats(4)})["y"], 2 * floats(4))
        assert session.provider == SYMBOLIC
        assert np.array_equal(session.run({"x": floats(1), "z": floats(4)})["y"], floats(1) + floats(4))
        assert session.provider == FIXED
        assert np.array_equal(session.run({"x": floats(4), "z": floats(1)})["y"], floats(1) + floats(4))


@needs_iree
@pytest.mark.parametrize(
    ("body", "feeds"),
    [
        ("(float[a,b] x, float[c,d] z) => (float[a,d] y) { y = MatMul(x, z) }", {"x": floats(2, 3), "z": floats(2, 3)}),
        ("(float[a] x, float[b] z) => (float[c] y) { y = Add(x, z) }", {"x": floats(5), "z": floats(2)}),
        ("(float[a,b] x, float[c,d] z) => (float[e,b] y) { y = Concat<axis=0>(x, z) }",
         {"x": floats(2, 3), "z": floats(2, 5)}),
    ],
    ids=["MatMul", "Add", "Concat"],
)  # fmt: skip
def test_sizes_that_do_not_fit_together_are_refused(body: str, feeds: dict[str, Any], refused: Refused) -> None:
    """And never read beyond the end of an array."""
    with prepared(body) as session, refused("runtime/failed"):
        session.run(feeds)


@needs_iree
@pytest.mark.parametrize("dim", ["a b", "2*n", "-1", "s0//2", "n,m"])
def test_any_name_of_a_dimension_is_fine(dim: str) -> None:
    source = model("(float[n] x) => (float[m] y) { y = Abs(x) }")
    source.graph.inputs[0].shape = ir.Shape([dim])
    with get("iree").prepare(source) as session:
        assert session.run({"x": floats(4)})["y"].tolist() == np.abs(floats(4)).tolist()


@needs_iree
@pytest.mark.parametrize("name", ['a graph: with "quotes"', "", "module"])
def test_any_name_of_a_graph_is_fine(name: str) -> None:
    source = model("(float[n] x) => (float[n] y) { y = Neg(x) }")
    source.graph.name = name
    with get("iree").prepare(source) as session:
        assert session.run({"x": floats(2)})["y"].tolist() == (-floats(2)).tolist()


@needs_iree
def test_local_functions_are_inlined() -> None:
    more = '\n<opset_import: ["": 21], domain: "mine">\nf (a) => (b) { b = Neg(a) }'
    source = model("(float[n] x) => (float[n] y) { y = mine.f(x) }", more=more, domains=', "mine": 1')
    with get("iree").prepare(source) as session:
        assert session.run({"x": floats(2)})["y"].tolist() == (-floats(2)).tolist()
    assert source.functions


@needs_iree
def test_weights_in_any_form_are_read() -> None:
    body = "(float[2] x) => (float[2] y, float16[2] h, int16[2] i, bool[2] b, float[0] e, int64 s)"
    body += " <float[2] w = {1, 2}, float16[2] h0 = {15360, 16384}, int16[2] i0 = {7, -2}, bool[2] b0 = {1, 0},"
    body += " float[0] e0 = {}, int64 s0 = {5}> { y = Add(x, w)\n h = Identity(h0)\n i = Identity(i0)"
    body += "\n b = Identity(b0)\n e = Identity(e0)\n s = Identity(s0) }"
    found = run(body, x=np.zeros(2, np.float32))
    assert {name: value.tolist() for name, value in found.items()} == {
        "y": [1, 2], "h": [1, 2], "i": [7, -2], "b": [True, False], "e": [], "s": 5,
    }  # fmt: skip


@needs_iree
@pytest.mark.parametrize("dtype", ["uint8", "uint64"])
def test_unsigned_constants_are_refused(dtype: str, refused: Refused) -> None:
    with refused("runtime/no-kernel") as refusal:
        prepared(f"({dtype}[2] x) => ({dtype}[2] y) <{dtype}[2] w = {{7, 255}}> {{ y = Identity(w) }}")
    assert refusal.problem.what == f"IREE cannot compile constants of {dtype}"
    assert refusal.problem.where == "tensor 'w'"


@needs_iree
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("(bfloat16[n] x) => (bfloat16[n] y) { y = Identity(x) }", "bfloat16"),
        ("(string[n] x) => (string[n] y) { y = Identity(x) }", "string"),
        ("(float[n] x) => (seq(float[n]) y) { y = SequenceConstruct(x) }", "tensors"),
        ("(optional(float[n]) x) => (bool y) { y = OptionalHasElement(x) }", "tensors"),
        ("(float8e4m3fn[n] x) => (float[n] y) { y = Cast<to = 1>(x) }", "float8"),
        ("(int4[n] x) => (float[n] y) { y = Cast<to = 1>(x) }", "int4"),
    ],
)
def test_what_it_has_not_is_refused(body: str, named: str, refused: Refused) -> None:
    with refused("runtime/dtype-unsupported") as refusal:
        prepared(body)
    assert named in refusal.problem.why


@needs_iree
def test_a_default_cannot_be_overridden(refused: Refused) -> None:
    body = "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {2, 3}> { y = Add(x, w) }"
    ones = np.ones(2, np.float32)
    assert run(body, x=ones)["y"].tolist() == [3, 4]
    with refused("runtime/dtype-unsupported"):
        run(body, x=ones, w=ones)


@needs_iree
@pytest.mark.parametrize("dim", ["4", "n"])
def test_an_operator_that_it_cannot_compile(dim: str, refused: Refused) -> None:
    body = (
        f'(float[1,1,{dim},4,4] x, float[1,2,2,2,3] g) => (float[1,1,2,2,2] y) {{ y = GridSample<mode="cubic">(x, g) }}'
    )
    with refused("runtime/unknown-operator") as refusal:
        run(body, x=floats(1, 1, 4, 4, 4), g=floats(1, 2, 2, 2, 3))
    assert "GridSample" in refusal.problem.what
    assert refusal.problem.where == "node 'y'"
    assert '{mode = "cubic"} : (f32[1,1,4,4,4], f32[1,2,2,2,3])' in refusal.problem.why


@needs_iree
def test_an_operator_of_another_domain_is_not_taken_for_onnxs(refused: Refused) -> None:
    source = model("(float[n] x) => (float[n] y) { y = mine.Relu(x) }", domains=', "mine": 1')
    with refused("runtime/unknown-operator") as refusal:
        get("iree").prepare(source)
    assert "mine::Relu" in refusal.problem.what


@needs_iree
def test_a_function_that_it_has_not_in_double_is_refused(refused: Refused) -> None:
    with refused("runtime/no-kernel") as refusal:
        prepared("(double[2] x) => (double[2] y) { y = Sin(x) }")
    assert "sin" in refusal.problem.what


@needs_iree
def test_an_unknown_rank_inside_is_refused(refused: Refused) -> None:
    body = """(bool c, float[2] x) => (float y) {
        b = If(c) <then_branch = p () => (t) { t = Neg(x) }, else_branch = q () => (f) { f = Unsqueeze(x, zero) }>
        y = ReduceSum<keepdims = 0>(b)
    }""".replace("{\n        b", "<int64[1] zero = {0}> {\n        b", 1)
    with refused("runtime/failed") as refusal:
        prepared(body)
    assert refusal.problem.where == "tensor 'b'"


@pytest.mark.parametrize("gone", ["iree", "iree.compiler", "iree.runtime"])
def test_without_iree_the_extra_is_named(gone: str, monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    monkeypatch.setattr("onnxsmith.runtimes._lacking.find_spec", lambda name: None if name == gone else object())
    with refused("runtime/not-installed") as refusal:
        get("iree")
    assert "onnxsmith[iree]" in refusal.problem.fix


@needs_iree
def test_another_device_is_refused(refused: Refused) -> None:
    with refused("runtime/provider-missing"):
        get("iree").prepare(model("(float[n] x) => (float[n] y) { y = Neg(x) }"), Options(provider="cuda"))


@needs_iree
def test_a_crash_is_told_and_survived(refused: Refused) -> None:
    with prepared("(float[n] x) => (float[n] y) { y = Neg(x) }") as session:
        os.kill(session.isolated._child._process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        x = np.ones(2, np.float32)
        with refused("runtime/died"):
            session.run({"x": x})
        np.testing.assert_array_equal(session.run({"x": x})["y"], -x)


@needs_iree
def test_a_compilation_has_a_time_limit(refused: Refused) -> None:
    with refused("runtime/timeout"):
        get("iree").prepare(model("(float[n] x) => (float[n] y) { y = Neg(x) }"), Options(time_limit=0.02))


@needs_iree
def test_a_compilation_has_a_memory_limit() -> None:
    with pytest.raises(OnnxsmithError) as refusal:
        get("iree").prepare(model("(float[n] x) => (float[n] y) { y = Neg(x) }"), Options(memory_limit=2**26))
    assert refusal.value.problem.id in {"runtime/memory", "runtime/died"}


@needs_iree
def test_an_allocation_beyond_the_limit_is_a_problem() -> None:
    body = "(int64[2] s) => (float[a,b] y) { y = ConstantOfShape(s) }"
    with pytest.raises(OnnxsmithError) as refusal, prepared(body) as session:
        session.run({"s": np.array([100_000, 100_000])})
    assert refusal.value.problem.id in {"runtime/memory", "runtime/died", "runtime/failed"}


@needs_iree
def test_the_compiler_leaves_no_files() -> None:
    with get("iree").preparer() as preparer:
        preparer.prepare(model("(float[n] x) => (float[n] y) { y = Exp(x) }")).run({"x": floats(2)})
        with pytest.raises(OnnxsmithError):
            preparer.prepare(model("(double[2] x) => (double[2] y) { y = Sin(x) }"))
        session = preparer.prepare(model("(float[n] x) => (float[n] y) { y = Neg(x) }"))
        folder = folder_of(session)
        assert [path for path in folder.rglob("*") if path.is_file()] == []


@needs_iree
def test_a_timer_runs_what_the_session_runs() -> None:
    with prepared("(float[a] x, float[b] z) => (float[c] y) { y = Add(x, z) }") as session:
        for feeds in ({"x": floats(4), "z": floats(4)}, {"x": floats(1), "z": floats(4)}):
            assert min(session.timer(feeds).samples(3, 1, 1.0)) > 0


@needs_iree
def test_the_target_says_how_far_it_came() -> None:
    body = "(float[n] x) => (float[n] y) {{ y = {}(x) }}"
    with rooms.members("onnxsmith.targets.judges", Target)["iree"].judging() as judge:
        assert judge.ask(model(body.format("Abs"))).reached is Stage.BUILT
        assert judge.ask(model(body.format("Abs")), {"x": floats(2)}).reached is Stage.RAN
        unsure = judge.ask(model(body.format("Unheard")))
        assert (unsure.reached, unsure.refusal) == (Stage.PARSED, None)
        refused = judge.ask(model(body.format("Unheard")), {"x": floats(2)})
        assert refused.refusal is not None
        assert "the operator Unheard" in refused.refusal.why


LOOP = (
    "noise\n<unknown>:0: error: loc(\"n\"): failed to legalize operation 'torch.operator' that was explicitly marked "
    'illegal: %1:2 = "torch.operator"(%arg0, %arg1) <{name = "onnx.Loop"}> ({...}) : (!torch.vtensor<[],si64>, '
    "!torch.vtensor<[?,2],f32>) -> (!torch.vtensor<[2],f32>)\n<unknown>:0: note: x"
)

CUMSUM = (
    "<unknown>:0: error: loc(\"y\"): failed to legalize operation 'torch.aten.cumsum' that was explicitly marked "
    'illegal: %7 = "torch.aten.cumsum"(%arg0, %6, %0) : (!torch.vtensor<[5],si32>, !torch.int) -> !torch.int'
)


@pytest.mark.parametrize(
    ("said", "problem_id", "what", "where", "why"),
    [
        (
            LOOP,
            "runtime/unknown-operator",
            "IREE cannot compile the operator Loop in this form",
            "node 'n'",
            "({...}) : (si64[], f32[?,2]) -> (f32[2])",
        ),
        (
            CUMSUM,
            "runtime/unknown-operator",
            "IREE cannot compile torch.aten.cumsum, a part of the node's operator, in this form",
            "node 'y'",
            "(si32[5], !torch.int) -> !torch.int",
        ),
        (
            "iree-lld: error: undefined symbol: sin\n>>> referenced by -:0\nLinking failed",
            "runtime/no-kernel",
            "IREE's programs for the CPU have no function sin",
            "",
            "IREE's compiler expands such functions for float, but not for double",
        ),
        (
            "<unknown>:0: error: loc(\"graph:main\"): 'linalg.matmul' op inferred operand #1 to be 3, but found 2",
            "runtime/failed",
            "IREE refused or failed",
            "",
            "'linalg.matmul' op inferred operand #1 to be 3, but found 2",
        ),
        ("", "runtime/failed", "IREE refused or failed", "", "CompilerError"),
    ],
    ids=["operator", "part", "symbol", "other", "silence"],
)
def test_diagnostics(said: str, problem_id: str, what: str, where: str, why: str) -> None:
    found = translate(CompilerError(said)).problem
    assert (found.id, found.what, found.where, found.why) == (problem_id, what, where, why)


def test_an_error_of_the_runtime() -> None:
    said = (
        "Error invoking function: c/runtime/src/iree/vm/ops.c:12: FAILED_PRECONDITION; mismatching contracting "
        "dimension for torch.aten.mm; while invoking native function\n[ 0] bytecode module@1:64 -"
    )
    found = translate(RuntimeError(said)).problem
    assert found.why == "FAILED_PRECONDITION; mismatching contracting dimension for torch.aten.mm"


@needs_iree
def test_a_crash_of_the_compiler_is_told_without_what_it_said_before(refused: Refused) -> None:
    body = "(float[0,3,4] x) => (float[3,4,0] y) <int64[3] s = {3, 4, 0}> { y = Reshape<allowzero = 1>(x, s) }"
    with get("iree").preparer() as preparer:
        with refused("runtime/unknown-operator"):
            preparer.prepare(model("(float[2] x) => (float[2] y) { y = Unheard(x) }"))
        with pytest.raises(OnnxsmithError) as refusal:
            preparer.prepare(model(body))
        assert refusal.value.problem.id in {"runtime/died", "runtime/failed", "runtime/unknown-operator"}
        assert "Unheard" not in refusal.value.problem.why
        assert preparer.prepare(model("(float[2] x) => (float[2] y) { y = Neg(x) }")).run({"x": floats(2)})
