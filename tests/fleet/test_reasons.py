"""Why a step ended as it did, in one line that tells the outputs, the error or the process."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.target_checks import NodeCheck, Stage, TargetCheck, TargetChecks
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.comparison.outputs.compare import compare
from onnxsmith.fleet import reasons
from tests.fleets import TEXT, models


def reason(verdict: Verdict, *parts: Part, headline: str = "m.onnx: onnxruntime ran", **problem: str) -> str:
    problems = (Problem(**problem),) if problem else ()
    return reasons.of_report(Report("check", verdict, parts, problems, headline=headline).to_dict())


def test_the_reason_of_a_report() -> None:
    absent = TargetCheck("iree", "", "", True, Stage.NOT_TRIED, why="IREE is not installed")
    ran = TargetCheck("onnxruntime", "", "1", True, Stage.RAN, why="its numbers differ: output y")
    target = TargetChecks((absent, ran))
    refused = TargetChecks((absent, ran, TargetCheck("tract", "", "1", True, Stage.REFUSED, why="no Exp")))
    assert reason(Verdict.DIFFERENT, refused) == "tract: no Exp"
    assert reason(Verdict.DIFFERENT, TargetChecks((absent,))) == "m.onnx: onnxruntime ran"
    told = "onnxruntime: its numbers differ: output y"
    assert reason(Verdict.DONE, target) == "m.onnx: onnxruntime ran"
    assert reason(Verdict.DIFFERENT, target) == reason(Verdict.CANNOT_TELL, target) == told
    assert reason(Verdict.DIFFERENT, headline="", id="a/b", what="node c is gone") == "node c is gone"
    assert reason(Verdict.DIFFERENT) == "m.onnx: onnxruntime ran"
    assert reason(Verdict.CANNOT_TELL, headline="") == "cannot-tell"
    factory = {"id": "a/b", "what": "the factory raised an error", "why": "ValueError: no weights\nin two lines"}
    assert reason(Verdict.FAILED, target, **factory) == "the factory raised an error: ValueError: no weights"
    assert len(reason(Verdict.FAILED, id="a/b", what="x" * 9999)) == 2000


def test_a_refusal_is_told_from_numbers_that_differ() -> None:
    refused = TargetCheck("tract", "", "1", True, Stage.REFUSED, why="no Exp")
    changed = TargetCheck("tract", "", "1", True, Stage.AGREED, changed="without dynamic sizes")
    ran = TargetCheck("onnxruntime", "", "1", True, Stage.RAN, why="its numbers differ: output y")
    differs = replace(ran, differs=True, nodes=(NodeCheck("n", "Exp", Stage.RAN, "its numbers differ"),))

    def is_refusal(*checks: TargetCheck) -> bool:
        return reasons.is_refusal(Report("check", Verdict.DIFFERENT, (TargetChecks(checks),)).to_dict())

    assert [is_refusal(one) for one in (refused, changed, ran, differs)] == [True, True, False, False]
    assert not is_refusal(refused, differs)
    assert reason(Verdict.DIFFERENT, TargetChecks((refused, differs))).startswith("onnxruntime: ")
    assert not reasons.is_refusal({"parts": [{"kind": "target_checks", "checks": 3}]})


def test_numbers_that_differ_are_named_with_the_tolerance(tmp_path: Path) -> None:
    models(tmp_path, "a.onnx", text=TEXT.format("y = Exp(x)"))
    models(tmp_path, "b.onnx", text=TEXT.format("y = Sinh(x)"))
    report = compare(tmp_path / "a.onnx", tmp_path / "b.onnx").report
    said = reasons.of_report(report.to_dict())
    assert said.startswith("output 'y' differs: ")
    (output,) = (one for part in report.parts for one in getattr(part, "outputs", ()))
    assert f"the largest difference is {output.worst_rel:.3g} of its scale" in said
    assert said.endswith(f"the tolerance {output.tolerance:.3g}")


@pytest.mark.parametrize("number", [None, "NaN", math.inf, 0.0])
def test_a_difference_without_a_size(number: Any) -> None:
    output = {"name": "y", "equal": False, "reason": "the shapes are not the same", "worst_rel": number, "tolerance": 1}
    part = {"kind": "verification", "outputs": [{"name": "x", "equal": True}, output]}
    said = reasons.of_report({"verdict": "different", "headline": "m", "parts": [part]})
    assert said == "output 'y' differs: the shapes are not the same"


@pytest.mark.parametrize("parts", [3, [3], [{"kind": "verification", "outputs": 3}], [{"kind": "target_checks"}], None])
def test_parts_of_another_version(parts: Any) -> None:
    report = {"verdict": "different", "headline": "m", "parts": parts, "problems": parts}
    assert reasons.of_report(report) == "m"


def test_the_end_of_a_process() -> None:
    assert reasons.of_end("signal SIGSEGV", "") == "signal SIGSEGV"
    assert reasons.of_end("signal SIGSEGV", "a\nb\n \n") == "signal SIGSEGV; last line printed: b"


def test_the_end_of_a_process_that_printed_its_stack(tmp_path: Path) -> None:
    """As Python's faulthandler prints it, with that of another thread before."""
    (tmp_path / "net.py").write_text(
        "import os, threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "def build():\n    os.abort()\nprint('hello', flush=True)\nbuild()\n"
    )
    words = [sys.executable, "-X", "faulthandler", str(tmp_path / "net.py")]
    ended = subprocess.run(
        words, cwd=tmp_path, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=False
    )
    said = reasons.of_end("signal SIGABRT", ended.stdout)
    assert said == f"signal SIGABRT in build ({tmp_path / 'net.py'}, line 4); last line printed: hello"
    assert reasons.of_end("exit status 2", "a") == "exit status 2 without a report; last line printed: a"


def test_the_frame_of_the_user_is_named() -> None:
    """The innermost frame may be in a library that only does what the user's code asks for."""
    stack = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x01 (most recent call first):\n"
        '  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at\n'
        '  File "/env/lib/python3.11/site-packages/torch/nn/module.py", line 3 in forward\n{}'
        '  File "/w/src/onnxsmith/fleet/step_host.py", line 42 in main\n  File "<frozen runpy>", line 88 in _run_code\n'
    )
    of_user = '  File "/w/nets.py", line 6 in crash\n  File "/w/other.py", line 7 in build\n'
    assert reasons.of_end("signal SIGSEGV", stack.format(of_user)) == "signal SIGSEGV in crash (/w/nets.py, line 6)"
    assert "in string_at (/usr/lib" in reasons.of_end("signal SIGSEGV", stack.format(""))
