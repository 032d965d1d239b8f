"""OpenVINO gives what ONNX means, or says that it cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes.base import Options, get
from tests.conftest import Refused


def model(body: str, *, opset: int = 21) -> ir.Model:
    return from_text(f'<ir_version: 10, opset_import: ["": {opset}]>\ng {body}')


def run(body: str, **feeds: Any) -> dict[str, Any]:
    with get("openvino").prepare(model(body)) as session:
        return session.run(feeds)


@pytest.mark.parametrize(
    "dtype",
    [
        np.float32, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
        np.bool_, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(3,), (0,), (1, 3), ()], ids=str)
def test_dtypes_pass_through(dtype: Any, shape: tuple[int, ...]) -> None:
    name = ir.DataType.from_numpy(np.dtype(dtype)).name.lower()
    dims = ", ".join("abc"[: len(shape)])
    typed = f"{name}[{dims}]" if dims else name
    value = np.array([1, 0, 3]).astype(dtype)[: int(np.prod(shape))].reshape(shape)
    found = run(f"({typed} x) => ({typed} y) {{ y = Identity(x) }}", x=value)["y"]
    assert (found.dtype, found.shape) == (value.dtype, value.shape)
    np.testing.assert_array_equal(found.astype(np.float64), value.astype(np.float64))


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


def test_nothing_is_computed_in_less_than_float() -> None:
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 64)
    w = np.linspace(1, 2, 4096, dtype=np.float32).reshape(64, 64)
    found = run("(float[a,64] x, float[64,64] w) => (float[a,64] y) { y = MatMul(x, w) }", x=x, w=w)["y"]
    # sums of 64 products in float32; in float16 or bfloat16 one number alone is off by 2**-12 and more
    np.testing.assert_allclose(found, x.astype(np.float64) @ w.astype(np.float64), rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("(double[n] x) => (double[n] y) { y = Neg(x) }", "double"),
        ("(string[n] x) => (string[n] y) { y = Identity(x) }", "numbers"),
        ("(float[n] x) => (seq(float[n]) y) { y = SequenceConstruct(x) }", "returns only tensors"),
        ("(optional(float[n]) x) => (float[n] y) { y = OptionalGetElement(x) }", "returns only tensors"),
    ],
)
def test_what_it_has_not_is_refused(body: str, named: str, refused: Refused) -> None:
    with refused("runtime/dtype-unsupported") as refusal:
        get("openvino").prepare(model(body))
    assert named in refusal.problem.why


def test_integers_beyond_32_bits_are_refused(refused: Refused) -> None:
    body = "(int64[n] x) => (int64[n] y) { y = Add(x, x) }"
    assert run(body, x=np.array([2**30 - 1, -(2**30)]))["y"].tolist() == [2**31 - 2, -(2**31)]
    with refused("runtime/dtype-unsupported"):
        run(body, x=np.array([2**31]))


def test_a_default_cannot_be_overridden(refused: Refused) -> None:
    body = "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {2, 3}> { y = Add(x, w) }"
    ones = np.ones(2, np.float32)
    assert run(body, x=ones)["y"].tolist() == [3, 4]
    with refused("runtime/dtype-unsupported"):
        run(body, x=ones, w=ones)


def test_an_operator_that_it_does_not_know(refused: Refused) -> None:
    with refused("runtime/unknown-operator") as refusal:
        get("openvino").prepare(model("(float[2,2] x) => (float y) { y = Det(x) }"))
    assert "Det" in refusal.problem.what


def test_an_unknown_rank_is_refused(refused: Refused) -> None:
    with refused("runtime/failed") as refusal:
        get("openvino").prepare(model("(float[] x) => (float[] y) { y = Neg(x) }"))
    assert "rank" in refusal.problem.why


def test_a_device_that_is_not_here(refused: Refused) -> None:
    with refused("runtime/provider-missing"):
        get("openvino").prepare(model("(float[n] x) => (float[n] y) { y = Neg(x) }"), Options(provider="npu"))


def test_a_crash_is_told_and_survived(refused: Refused) -> None:
    with get("openvino").prepare(model("(float[n] x) => (float[n] y) { y = Neg(x) }")) as session:
        os.kill(session.isolated._child._process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        x = np.ones(2, np.float32)
        with refused("runtime/died"):
            session.run({"x": x})
        np.testing.assert_array_equal(session.run({"x": x})["y"], -x)


def test_the_child_forks_nothing_that_outlives_it() -> None:
    """On import OpenVINO forks a process to report its use; it would hold our pipes, and a crash would not be seen."""
    code = (
        "import os; os.fork = None\n"
        "from onnxsmith.runtimes._openvino_host import Host\n"
        "Host()({'do': 'about'}, {})\n"
        "import sys; raise SystemExit('openvino_telemetry.main' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
