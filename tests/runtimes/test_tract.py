"""Tract gives what ONNX means, or says that it cannot."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes._tract_host import DTYPES, translate
from onnxsmith.runtimes.base import Options, Session, get
from tests.conftest import Refused


def model(body: str, *, more: str = "", domains: str = "") -> ir.Model:
    return from_text(f'<ir_version: 10, opset_import: ["": 21{domains}]>\ng {body}{more}')


def prepared(body: str) -> Session:
    return get("tract").prepare(model(body))


def run(body: str, **feeds: Any) -> dict[str, Any]:
    with prepared(body) as session:
        return session.run(feeds)


def floats(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("shape", [(3,), (0,), (1, 3), ()], ids=str)
@pytest.mark.parametrize("symbolic", [True, False])
def test_dtypes_pass_through(dtype: str, shape: tuple[int, ...], symbolic: bool) -> None:
    dims = ", ".join("abc"[: len(shape)]) if symbolic else ", ".join(map(str, shape))
    typed = f"{dtype}[{dims}]" if dims else dtype
    kind = ir.DataType[dtype.upper()].numpy()
    value = np.array([1, 0, 3]).astype(kind)[: int(np.prod(shape))].reshape(shape)
    found = run(f"({typed} x) => ({typed} y) {{ y = Identity(x) }}", x=value)["y"]
    assert (found.dtype, found.shape, found.tolist()) == (value.dtype, value.shape, value.tolist())


@pytest.mark.parametrize("dtype", ["int64", "uint64", "double"])
def test_64_bits_stay_64_bits(dtype: str) -> None:
    value = np.array([2**53 - 1]).astype(ir.DataType[dtype.upper()].numpy())
    found = run(f"({dtype}[n] x) => ({dtype}[n] y) {{ y = Identity(x) }}", x=value)["y"]
    assert found.tolist() == value.tolist()


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
    assert list(found) == ["z", "x", "y", "w"]
    assert {name: value.tolist() for name, value in found.items()} == {
        "z": [1, 2], "x": [1, -2], "y": [1, 2], "w": [5],
    }  # fmt: skip


def test_dimensions_that_are_results_are_int64() -> None:
    found = run("(float[n,3] x) => (int64[2] s, int64 k) { s = Shape(x)\n k = Size(x) }", x=floats(2, 3))
    assert (found["s"].tolist(), found["s"].dtype) == ([2, 3], np.int64)
    assert (int(found["k"]), found["k"].shape) == (6, ())


def test_symbols_are_kept_for_all_sizes() -> None:
    with prepared("(float[n,3] x) => (float[n,3] y) { y = Abs(x) }") as session:
        assert session.provider == "tract, symbolic shapes"
        for n in (1, 4, 0):
            assert session.run({"x": floats(n, 3)})["y"].shape == (n, 3)
        assert session.provider == "tract, symbolic shapes"


@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        ("(float[] x) => (float[] y) { y = Abs(x) }", [(2,), (2, 3), ()]),
        ("(float[n] x) => (int64[1] y) { y = Shape(x) }", [(2,), (5,), (1,), (3,), (4,), (2,)]),
    ],
    ids=["unknown rank", "a size as a result"],
)
def test_else_shapes_are_fixed_and_the_session_says_so(body: str, sizes: list[tuple[int, ...]]) -> None:
    with prepared(body) as session:
        assert "fixed" in session.provider
        for shape in sizes:
            x = floats(*shape)
            wanted = np.array(shape) if "Shape" in body else np.abs(x)
            assert np.array_equal(session.run({"x": x})["y"], wanted)
        assert "fixed" in session.provider


def test_sizes_at_which_symbols_fail_are_run_with_fixed_shapes() -> None:
    with prepared("(float[n] x, float[n] z) => (float[m] y) { y = Concat<axis=0>(x, z) }") as session:
        assert session.run({"x": floats(2), "z": floats(2)})["y"].shape == (4,)
        assert session.provider == "tract, symbolic shapes"
        assert session.run({"x": floats(2), "z": floats(5)})["y"].shape == (7,)
        assert session.provider == "tract, shapes fixed to those of the inputs"


def test_a_model_without_symbols_says_nothing_of_shapes() -> None:
    with prepared("(float[2] x) => (float[2] y) { y = Abs(x) }") as session:
        assert session.provider == "tract"


@pytest.mark.parametrize("dim", ["a b", "2*n", "-1", "s0//2", "n,m"])
def test_any_name_of_a_dimension_is_fine(dim: str) -> None:
    source = model("(float[n] x) => (float[m] y) { y = Abs(x) }")
    source.graph.inputs[0].shape = ir.Shape([dim])
    with get("tract").prepare(source) as session:
        assert session.run({"x": floats(4)})["y"].tolist() == np.abs(floats(4)).tolist()


@pytest.mark.parametrize("n", [1, 4, 0])
def test_declared_shapes_inside_the_model_do_not_matter(n: int) -> None:
    source = model("(float[n] x) => (float[n] y) { a = Neg(x)\n y = Neg(a) }")
    inner = source.graph.node(0).outputs[0]
    inner.shape, inner.type = ir.Shape(["n"]), ir.TensorType(ir.DataType.FLOAT)
    with get("tract").prepare(source) as session:
        assert session.run({"x": floats(n)})["y"].tolist() == floats(n).tolist()
        assert session.provider == "tract, symbolic shapes"
    assert inner.shape is not None


def test_local_functions_are_inlined() -> None:
    more = '\n<opset_import: ["": 21], domain: "mine">\nf (a) => (b) { b = Neg(a) }'
    source = model("(float[n] x) => (float[n] y) { y = mine.f(x) }", more=more, domains=', "mine": 1')
    with get("tract").prepare(source) as session:
        assert session.run({"x": floats(2)})["y"].tolist() == (-floats(2)).tolist()
    assert source.functions


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("(bfloat16[n] x) => (bfloat16[n] y) { y = Identity(x) }", "bfloat16"),
        ("(string[n] x) => (string[n] y) { y = Identity(x) }", "string"),
        ("(float[n] x) => (seq(float[n]) y) { y = SequenceConstruct(x) }", "tensors"),
        ("(float8e4m3fn[n] x) => (float[n] y) { y = Cast<to = 1>(x) }", "float8"),
    ],
)
def test_what_it_has_not_is_refused(body: str, named: str, refused: Refused) -> None:
    with refused("runtime/dtype-unsupported") as refusal:
        prepared(body)
    assert named in refusal.problem.why


def test_a_dtype_inside_the_model_is_named(refused: Refused) -> None:
    with refused("runtime/no-kernel") as refusal:
        prepared("(float[n] x) => (float[n] y) { b = Cast<to = 16>(x)\n y = Cast<to = 1>(b) }")
    assert "bfloat16" in refusal.problem.what
    assert "(Cast)" in refusal.problem.where


def test_a_default_cannot_be_overridden(refused: Refused) -> None:
    body = "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {2, 3}> { y = Add(x, w) }"
    ones = np.ones(2, np.float32)
    assert run(body, x=ones)["y"].tolist() == [3, 4]
    with refused("runtime/dtype-unsupported"):
        run(body, x=ones, w=ones)


def test_an_operator_that_it_does_not_know(refused: Refused) -> None:
    with refused("runtime/unknown-operator") as refusal:
        prepared("(float[n,n] x) => (float y) { y = Det(x) }")
    assert "Det" in refusal.problem.what
    assert refusal.problem.where == "node 'y'"


def test_a_refusal_names_the_node_and_the_innermost_cause(refused: Refused) -> None:
    body = "(float[a,b] x, float[c,d] z) => (float[a,d] y) { y = MatMul(x, z) }"
    with prepared(body) as session, refused("runtime/failed") as refusal:
        session.run({"x": floats(2, 3), "z": floats(2, 3)})
    assert refusal.problem.where == "node 'y' (MatMulInference)"
    assert "Inconsistent matmul" in refusal.problem.why
    assert "backtrace" not in refusal.problem.why


def test_a_message_without_causes() -> None:
    said = translate(ValueError("Clashing resolution\n\nStack backtrace:\n   0: here"))
    assert said.problem.why == "Clashing resolution"


def test_another_device_is_refused(refused: Refused) -> None:
    with refused("runtime/provider-missing"):
        get("tract").prepare(model("(float[n] x) => (float[n] y) { y = Neg(x) }"), Options(provider="cuda"))


def test_a_crash_is_told_and_survived(refused: Refused) -> None:
    with prepared("(float[n] x) => (float[n] y) { y = Neg(x) }") as session:
        os.kill(session.isolated._child._process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        x = np.ones(2, np.float32)
        with refused("runtime/died"):
            session.run({"x": x})
        np.testing.assert_array_equal(session.run({"x": x})["y"], -x)


def test_an_allocation_beyond_the_limit_is_a_problem() -> None:
    body = "(int64[2] s) => (float[a,b] y) { y = ConstantOfShape(s) }"
    with pytest.raises(OnnxsmithError) as refusal, prepared(body) as session:
        session.run({"s": np.array([100_000, 100_000])})
    assert refusal.value.problem.id in {"runtime/memory", "runtime/died", "runtime/failed"}
