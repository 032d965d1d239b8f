"""Fixes of runtimes, and of what the doctor finds in an environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.library_versions import NEWEST_TESTED
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes.base import get
from onnxsmith.viewer.inspection.doctor import OLDEST_ONNXRUNTIME, OLDEST_TORCH, Found, findings
from tests.fixes.harness import Call, Case, helps, parameters

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
NARROW = """<ir_version: 10, opset_import: ["": 20]>
g (float[n,8] x) => (float[n,5] y) <bool[8] k = {1, 1, 1, 1, 1, 1, 1, 1}> { y = Compress<axis = 1>(x, k) }"""
RELU = HEAD + "g (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }"
LRN = HEAD + "g (double[1,3,8,8] x) => (double[1,3,8,8] y) { y = LRN<size = 3>(x) }"
MINE = '<ir_version: 10, opset_import: ["": 20, "mine": 1]>\ng (float[2] x) => (float[2] y) { y = mine.Relu(x) }'
INT4 = '<ir_version: 10, opset_import: ["": 21]>\ng (int4[2,4] x) => (float[2,4] y) { y = Cast<to = 1>(x) }'
GATHER = HEAD + "g (float[3] x, int64[1] i) => (float[1] y) { y = Gather(x, i) }"
WIDE = (
    HEAD
    + """g () => (float[] y) { s = Constant<value_ints = [20000, 20000]>() o = Constant<value_float = 1.0>()
  e = Expand(o, s) r = Relu(e) y = ReduceMax<keepdims = 0>(r) }"""
)
NEW = NEWEST_TESTED["onnxruntime"]
RUN = "onnxsmith run m.onnx --random"
M = {"m.onnx": RELU}
_NAMES = ("onnx", "onnx-ir", "onnx-shape-inference", "onnxscript", "numpy", "ml_dtypes", "safetensors")
CORE = {name: NEWEST_TESTED[name] for name in _NAMES}


def closed() -> None:
    with get("onnxruntime").prepare(from_text(RELU)) as session:
        feeds = {"x": np.ones((2, 3), np.float32)}
        session.run(feeds)
    session.run(feeds)


def opened() -> None:
    with get("onnxruntime").prepare(from_text(RELU)) as session:
        feeds = {"x": np.ones((2, 3), np.float32)}
        session.run(feeds)
        session.run(feeds)


def limited(value: str | None) -> None:
    """Runs with a limit in the environment, as a shell sets it."""
    os.environ.pop("ONNXSMITH_MEMORY_LIMIT", None)
    if value is not None:
        os.environ["ONNXSMITH_MEMORY_LIMIT"] = value
    onnxsmith.run(from_text(RELU), {"x": np.ones((2, 3), np.float32)})


def squared(limit: str) -> None:
    """Multiplies what takes more memory than a small limit allows."""
    os.environ["ONNXSMITH_MEMORY_LIMIT"] = limit
    onnxsmith.run(from_text(WIDE))


def found(versions: dict[str, str], without: str = "", only: str = "", **seen: Any) -> None:
    """Raises the first problem that the doctor finds in an environment with these packages."""
    packages = {name: version for name, version in (CORE | versions).items() if name != without}
    for one in findings(Found(packages, **seen)):
        if one.id.startswith(only):
            raise OnnxsmithError(one)


CASES: list[Case | Call] = [
    Case(
        "runtime/unknown",
        f"{RUN} --runtime onxruntime",
        M,
        by_hand=f"{RUN} --runtime onnxruntime",
        says=["write onnxruntime"],
    ),
    Case(
        "runtime/unknown-option",
        "onnxsmith compare m.onnx@onnxruntime:disabled m.onnx",
        M,
        by_hand="onnxsmith compare m.onnx@onnxruntime:disable m.onnx",
        says=["write disable in place of disabled"],
    ),
    Case("runtime/provider-missing", f"{RUN} --provider cuda", M),
    Case("runtime/provider-missing", f"{RUN} --runtime reference --provider cuda", M, name="reference"),
    Case("runtime/provider-missing", f"{RUN} --runtime openvino --provider gpu", M, name="openvino"),
    Case("runtime/no-kernel", f"{RUN} --runtime onnxruntime", {"m.onnx": LRN}),
    Case("runtime/unknown-operator", RUN, {"m.onnx": MINE}, changes={"m.onnx": RELU}, says=["standard operators"]),
    Case(
        "runtime/failed",
        "onnxsmith run m.onnx --input i.npz --runtime onnxruntime",
        {"m.onnx": GATHER, "i.npz": {"x": np.ones(3, np.float32), "i": np.array([5])}},
        changes={"i.npz": {"x": np.ones(3, np.float32), "i": np.array([2])}},
        says=["indices from 0 to 2"],
    ),
    Case(
        "runtime/failed",
        "onnxsmith bench m.onnx --dim n=2 --seconds 0.05",
        {"m.onnx": NARROW},
        fill={"MODEL": "m.onnx"},
        then="onnxsmith bench corrected.onnx --dim n=2 --seconds 0.05",
        name="an output that is declared wrongly",
    ),
    Case("runtime/dtype-unsupported", f"{RUN} --runtime openvino", {"m.onnx": RELU.replace("float", "double")}),
    Case("runtime/dtype-unsupported", f"{RUN} --runtime onnxruntime", {"m.onnx": INT4}, name="int4"),
    Case(
        "runtime/wrong-source",
        "onnxsmith compare m.onnx@torch-eager m.onnx",
        M,
        by_hand="onnxsmith compare m.onnx@reference m.onnx",
        says=["reference"],
    ),
    Case(
        "runtime/not-installed",
        f"{RUN} --runtime iree",
        M,
        by_hand=f"{RUN} --runtime reference",
        says=['pip install "onnxsmith[iree]"'],
    ),
    Call("runtime/closed", closed, opened, ["make every call inside the session's with block"]),
    Call("runtime/bad-limit", lambda: limited("lots"), lambda: limited("16GB"), ["16GB"]),
    Call("runtime/memory", lambda: squared("400MB"), lambda: squared("8GB"), ["ONNXSMITH_MEMORY_LIMIT=8GB"]),
    Call("doctor/core-missing", lambda: found({}, without="onnx-ir"), lambda: found({}), ["`pip install onnx-ir`"]),
    Call(
        "doctor/two-onnxruntimes",
        lambda: found({"onnxruntime": NEW, "onnxruntime-gpu": NEW}),
        lambda: found({"onnxruntime-gpu": NEW}),
        ['`pip uninstall -y onnxruntime onnxruntime-gpu && pip install "onnxsmith[gpu]"`'],
    ),
    Call(
        "doctor/old-onnxruntime",
        lambda: found({"onnxruntime": "1.9.0"}),
        lambda: found({"onnxruntime": ".".join(map(str, OLDEST_ONNXRUNTIME))}),
        [f"'onnxruntime>={'.'.join(map(str, OLDEST_ONNXRUNTIME))}'"],
    ),
    Call(
        "doctor/old-torch",
        lambda: found({"torch": "2.8.0"}),
        lambda: found({"torch": ".".join(map(str, OLDEST_TORCH))}),
        [f"'torch>={'.'.join(map(str, OLDEST_TORCH))}'"],
    ),
    Call(
        "doctor/tensorrt-version",
        lambda: found({"onnxruntime-gpu": NEW, "tensorrt": "11.0"}),
        lambda: found({"onnxruntime-gpu": NEW, "tensorrt": "10.9"}),
        ["'tensorrt>=10,<11'"],
    ),
    Call(
        "doctor/gpu-hidden",
        lambda: found({"onnxruntime-gpu": NEW}, providers={"CPUExecutionProvider": True}),
        lambda: found({"onnxruntime-gpu": NEW}, providers={"CUDAExecutionProvider": True}),
        ["&& pip install onnxruntime-gpu`"],
    ),
    Call(
        "doctor/newer-than-tested",
        lambda: found({"numpy": "9.0.0"}),
        lambda: found({"numpy": NEWEST_TESTED["numpy"]}),
        [f"'numpy~={'.'.join(NEWEST_TESTED['numpy'].split('.')[:2])}.0'"],
    ),
    Call(
        "doctor/onnx-ahead",
        lambda: found({}, onnx_ir=14, onnx_opset=28, runtime_ir=10, runtime_opset=22),
        lambda: found({}, onnx_ir=10, onnx_opset=22, runtime_ir=10, runtime_opset=22),
        ["opset 22", "IR version 10", "`onnxsmith opset MODEL 22 --ir-version 10 -o older.onnx`"],
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
