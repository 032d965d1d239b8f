"""onnxsmith where what POSIX has is absent: every module imports, and a model is simplified, verified and written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnxsmith

PATHS = {"PYTHONPATH": str(Path(onnxsmith.__file__).parents[1])}

ABSENT = """
import importlib, os, pkgutil, signal, subprocess, sys

EXTRAS = {"torch", "onnxruntime", "openvino", "tract", "iree", "mpmath", "cloudpickle", "mcp", "anyio"}

def all_modules():
    import onnxsmith
    failed = []
    for found in pkgutil.walk_packages(onnxsmith.__path__, "onnxsmith.", onerror=failed.append):
        if found.name != "onnxsmith.__main__":
            try:
                importlib.import_module(found.name)
            except ModuleNotFoundError as error:
                if error.name not in EXTRAS:
                    raise

def remove():
    "Other libraries are imported by now: what is gone is gone for onnxsmith."
    for name in [name for name in sys.modules if name.split(".")[0] == "onnxsmith"]:
        del sys.modules[name]
    for name in ("fcntl", "resource", "pwd", "grp", "termios"):
        sys.modules[name] = None
    for name in ("fork", "forkpty", "killpg", "sysconf", "getuid", "geteuid", "getpgid", "setsid", "fchmod", "mkfifo"):
        delattr(os, name)

def remove_signals():
    "The standard library's own use of them is gone with them."
    for name in ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "pthread_sigmask"):
        delattr(signal, name)
"""

IMPORTS = """
all_modules()
remove()
remove_signals()
all_modules()
from onnxsmith.base.system import children, disk, locks, memory_limit, usage
for module in (children, disk, locks, memory_limit, usage):
    print(type(module.HERE).__name__)
"""

WORKS = """
import onnxsmith.cli.application
import onnxsmith.optimizer.simplify, onnxsmith.comparison.reduction.reduce, onnxsmith.runtimes.reference
remove()
import onnxsmith
for _ in range(2):  # the second time over what is there
    result = onnxsmith.simplify("m.onnxtxt", output="out/small.onnx", verify=onnxsmith.Verify(runtime="reference"))
    assert result.ok, result.report
from onnxsmith.runtimes import _idle
_idle.end_all()
"""

SAYS = """
from unittest import mock
from onnxsmith.base.system import memory_limit
from onnxsmith.cli import application
for words in (["doctor"], ["fleet", "run", "p.toml"]):
    sys.argv = ["onnxsmith", *words]
    with mock.patch.object(memory_limit, "HERE", memory_limit.NoLimit()):
        try:
            application.main()
        except SystemExit as stop:
            assert not stop.code, stop.code
"""


def ran(code: str, folder: Path) -> str:
    """What the code prints, on such a system. The folder of temporary files is its own: without locks, the folders of
    other processes look like those of dead ones."""
    temporary = folder / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ABSENT + code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, **PATHS, "TMPDIR": str(temporary)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_imports_and_takes_the_ways_of_windows(tmp_path: Path) -> None:
    assert ran(IMPORTS, tmp_path).split() == ["Trees", "SyncedForWriting", "OpenFiles", "NoLimit", "Unknown"]


def test_a_model_is_simplified_verified_and_written(tmp_path: Path) -> None:
    source = (
        '<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { a = Neg(x) b = Neg(a) y = Relu(b) }'
    )
    (tmp_path / "m.onnxtxt").write_text(source, encoding="utf-8")
    (tmp_path / "out").mkdir()
    ran(WORKS, tmp_path)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["small.onnx"]


def test_a_limit_of_memory_that_does_not_hold_is_said(tmp_path: Path) -> None:
    """`doctor` says so for the runtimes, `fleet run` for the limit of a plan."""
    source = '<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { y = Neg(x) }'
    (tmp_path / "m.onnxtxt").write_text(source, encoding="utf-8")
    plan = 'models = ["m.onnxtxt"]\nsteps = ["inspect"]\nworkers = 1\nmemory_limit = "4GB"\n'
    (tmp_path / "p.toml").write_text(plan, encoding="utf-8")
    done = ran(SAYS, tmp_path)
    assert done.count("this system has no memory limit for processes") == 2
    assert "memory_limit of the plan is not enforced" in done
