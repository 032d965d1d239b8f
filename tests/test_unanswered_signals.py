"""Ctrl-C and SIGTERM end a command also while native code holds the interpreter's lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxsmith.base.system import usage
from tests.graph.test_function_expansion import TWICE, nested

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

STUCK = """
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
from onnxsmith.base import folders, interrupts
interrupts.begin()
import onnx
from onnxsmith.cli.commands.inspect import Inspect
def run(self):
    with folders.beside(Path("out.onnx").absolute()):
        {body}
Inspect.run = run
from onnxsmith.__main__ import main; main()
"""
READY = "print('ready', file=sys.stderr, flush=True)"
NATIVE = f"{READY}; onnx.checker.check_model('m.onnx', full_check=True)"


def started(folder: Path, body: str) -> subprocess.Popen[str]:
    """Starts a command, and waits until `body` says that it is ready."""
    (folder / "m.onnx").write_bytes(nested(40, TWICE).SerializeToString())
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK.format(body=body), "inspect", "m.onnx"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    return process


def processor_seconds(process: subprocess.Popen[str]) -> float:
    found = usage.HERE.processor_seconds(process.pid)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sent", "again"), [(signal.SIGTERM, False), (signal.SIGHUP, False), (signal.SIGINT, False), (signal.SIGINT, True)]
)
def test_native_code_that_does_not_return_is_ended(tmp_path: Path, sent: signal.Signals, *, again: bool) -> None:
    process = started(tmp_path, NATIVE)
    begun = processor_seconds(process)
    while processor_seconds(process) < begun + 0.3:  # it is in the native code
        time.sleep(0.01)
    process.send_signal(sent)
    if again:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert said == "onnxsmith: interrupted: native code did not return, so the process was ended\n"
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_a_signal_that_python_answers_is_left_to_it(tmp_path: Path) -> None:
    body = f"try:\n            {READY}; time.sleep(60)\n        finally: time.sleep(7)"  # longer than a signal may wait
    process = started(tmp_path, body)
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2, said
    assert "run/interrupted" in said
    assert time.monotonic() - begun > 7
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_a_signal_to_a_forked_child_is_none_to_its_parent(tmp_path: Path) -> None:
    body = (
        f"{READY}\n"
        "        child = os.fork()\n"
        "        if child == 0:\n"
        "            signal.signal(signal.SIGTERM, lambda *_: None)\n"
        "            time.sleep(60)\n"
        "        time.sleep(0.5)\n"
        "        os.kill(child, signal.SIGTERM)\n"
        "        time.sleep(7)\n"
        "        os.kill(child, signal.SIGKILL)\n"
        "        os._exit(0)"
    )
    process = started(tmp_path, body)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
