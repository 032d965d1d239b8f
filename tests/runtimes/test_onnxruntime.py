"""onnxruntime's own ways of failing, each told as what it is; and its process kept apart from the user's folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes import _idle
from onnxsmith.runtimes.base import Options, Session, get
from onnxsmith.runtimes.onnxruntime import available_providers
from tests.conftest import Refused

ABS = '<ir_version: 10, opset_import: ["": 20]>\ng (float[n] x) => (float[n] y) { y = Abs(x) }'
SLOW = """<ir_version: 10, opset_import: ["": 20]>
g (int64 n, bool c, float[600,600] x) => (float[600,600] y) {
    y = Loop(n, c, x) <body = b (int64 i, bool d, float[600,600] v) => (bool e, float[600,600] w) {
        w = MatMul(v, v)
        e = Identity(d)
    }>
}"""


def prepared(model: ir.Model, **options: object) -> Session:
    return get("onnxruntime").prepare(model, Options(**options))


def pid(session: Session) -> int:
    return session.isolated._child._process.pid


def with_ir_version(version: int) -> ir.Model:
    model = from_text(ABS)
    model.ir_version = version
    return model


def with_opset(version: int) -> ir.Model:
    model = from_text(ABS)
    model.graph.opset_imports[""] = version
    return model


@pytest.mark.parametrize(
    ("model", "problem_id", "named"),
    [
        (with_ir_version(onnx.IR_VERSION + 1), "runtime/ir-unsupported", str(onnx.IR_VERSION + 1)),
        (with_opset(onnx.defs.onnx_opset_version() + 1), "runtime/opset-unsupported", "opset"),
        (from_text(ABS.replace("Abs(x)", "Nonsense(x)")), "runtime/unknown-operator", "Nonsense"),
        (
            from_text(ABS.replace('"": 20', '"": 20, "some.domain": 1').replace("Abs(x)", "some.domain.Op(x)")),
            "runtime/unknown-operator",
            "Op",
        ),
        (
            from_text(
                '<ir_version: 10, opset_import: ["": 20]>\n'
                "g (bfloat16[2,2] a, bfloat16[2,2] b) => (bfloat16[2,2] y) { [here] y = Gemm(a, b) }"
            ),
            "runtime/no-kernel",
            "Gemm",
        ),
        (
            from_text(ABS.replace("float", "complex64").replace("Abs", "Identity")),
            "runtime/no-kernel",
            "complex64",
        ),
        (from_text(ABS.replace("Abs(x)", "Reshape(x, x)")), "runtime/failed", "Reshape"),
    ],
)
def test_a_model_that_is_not_taken_is_told_why(model: ir.Model, problem_id: str, named: str, refused: Refused) -> None:
    with refused(problem_id) as refusal:
        prepared(model)
    assert named in str(refusal.problem)


def test_a_provider_that_the_build_has_not_is_missing(refused: Refused) -> None:
    assert "CUDAExecutionProvider" not in available_providers()["providers"]
    with refused("runtime/provider-missing") as refusal:
        prepared(from_text(ABS), provider="cuda")
    assert "CPUExecutionProvider" in refusal.problem.why


@pytest.mark.parametrize("optimization", ["all", "extended", "basic", "disable"])
def test_every_level_of_optimization_runs(optimization: str) -> None:
    with prepared(from_text(ABS), optimization=optimization, threads=1) as session:
        assert np.asarray(session.run({"x": np.array([-1], np.float32)})["y"]).tolist() == [1]


def test_the_provider_of_each_node_is_known() -> None:
    with prepared(from_text(ABS)) as session:
        assert session.provider == "CPUExecutionProvider"
        assert session.nodes_by_provider == {"CPUExecutionProvider": 1}


def test_a_runtime_that_dies_leaves_the_caller_alive(refused: Refused) -> None:
    with prepared(from_text(ABS)) as session:
        os.kill(pid(session), signal.SIGSEGV)
        with refused("runtime/died") as refusal:
            session.run({"x": np.zeros(1, np.float32)})
    assert "signal SIGSEGV" in refusal.problem.what


def test_a_run_over_its_time_limit_is_stopped_and_the_next_one_works(refused: Refused) -> None:
    with prepared(from_text(SLOW)) as session:
        session.time_limit = 0.3
        feeds = {"n": np.array(10**9), "c": np.array(True), "x": np.zeros((600, 600), np.float32)}
        with refused("runtime/timeout"):
            session.run(feeds)
        session.time_limit = 60
        assert session.run({**feeds, "n": np.array(1)})["y"].shape == (600, 600)


def test_a_closed_session_runs_no_more(refused: Refused) -> None:
    session = prepared(from_text(ABS))
    session.close()
    with refused("runtime/closed"):
        session.run({"x": np.zeros(1, np.float32)})


def test_a_model_in_memory_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with prepared(from_text(ABS)) as session:
        session.run({"x": np.zeros(1, np.float32)})
    _idle.end_all()
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_refused_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with refused("runtime/unknown-operator"):
        prepared(from_text(ABS.replace("Abs(x)", "Nonsense(x)")))
    _idle.end_all()
    assert list(tmp_path.iterdir()) == []


# The child and the user's folder

SCRIPT = f"""
import numpy as np
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes.base import get
with get("onnxruntime").prepare(from_text({ABS!r})) as session:
    print(session.run({{"x": np.array([-2], np.float32)}})["y"].tolist())
"""


def script(folder: Path, cwd: Path) -> str:
    """What a script without `if __name__ == "__main__"` prints, run from `folder` in `cwd`."""
    (folder / "script.py").write_text(SCRIPT)
    root = str(Path(onnxsmith.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(folder / "script.py")],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    assert script(tmp_path, tmp_path) == "[2.0]\n"


def test_files_in_the_current_folder_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    for name in ("onnx", "numpy", "random", "json", "onnxruntime", "onnxsmith"):
        (tmp_path / "here" / f"{name}.py").write_text(f"raise SystemExit('imported {name} from the current folder')")
    assert script(tmp_path / "there", tmp_path / "here") == "[2.0]\n"


def test_a_users_module_does_not_hide_one_of_the_standard_library(tmp_path: Path) -> None:
    for name in ("ctypes", "signal", "struct"):
        (tmp_path / f"{name}.py").write_text(HIDES.format(name=name))
    assert script(tmp_path, tmp_path) == "[2.0]\n"


HIDES = """
import sys
if any("_onnxruntime_host" in argument for argument in sys.orig_argv):
    raise SystemExit("the child imported the user's {name}")
del sys.modules["{name}"]
folder = sys.path.pop(0)
import {name}
sys.path.insert(0, folder)
"""
"""A user's module that is the standard library's, except in the child."""


def test_a_session_survives_a_crash() -> None:
    with prepared(from_text(ABS)) as session:
        os.kill(pid(session), signal.SIGSEGV)
        with pytest.raises(OnnxsmithError):
            session.run({"x": np.zeros(1, np.float32)})
        assert session.run({"x": np.full(1, -2, np.float32)})["y"] == 2
