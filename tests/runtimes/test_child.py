"""A child process that crashes, hangs, talks or is interrupted is a problem of its own, not of its caller."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.comparison.reduction import folder
from onnxsmith.comparison.reduction.checks.base import Failure
from onnxsmith.deployment.bundles import clients
from onnxsmith.runtimes._child import Child, serve
from onnxsmith.runtimes.base import Outputs, Value
from tests.conftest import Refused


def misbehave(request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
    """What the child of these tests does, by request."""
    match request["do"]:
        case "echo":
            return {"said": request.get("say")}, values
        case "variable":
            return {"said": os.environ.get(request["name"])}, {}
        case "signal":
            os.write(2, b"last words\n")
            os.kill(os.getpid(), request["number"])
            time.sleep(60)
        case "exit":
            os._exit(7)
        case "exit slowly":
            os.closerange(3, 256)
            time.sleep(0.3)
            os._exit(3)
        case "hang":
            time.sleep(60)
        case "print":
            os.write(1, b"native code prints\n")
            sys.stdout.write("so does Python\n")
            return {}, {}
        case "refuse":
            raise problem("a/b", "it broke", where="here", fix="mend it")
        case "break":
            raise SystemError("a call returned NULL without setting an exception")
        case "nonsense":
            return {}, {"x": object()}
    raise RuntimeError("unexpected")


def translate(error: Exception) -> OnnxsmithError:
    return problem("c/d", f"{type(error).__name__}: {error}")


def main() -> None:
    serve(misbehave, translate)


@pytest.fixture
def child() -> Iterator[Child]:
    made = Child(__name__, "main", what="the test's child")
    yield made
    made.close()


def test_no_program_that_loads_a_runtime_sends_anything(child: Child, tmp_path: Path) -> None:
    """onnxruntime 1.32 reports its use to its maker as soon as it is imported, unless this variable is set."""
    name = "ORT_DISABLE_TELEMETRY"
    assert child.ask({"do": "variable", "name": name})[0] == {"said": "1"}
    program = f"import os; print(os.environ[{name!r}])"
    assert clients.run([sys.executable, "-c", program], folder=tmp_path).output == "1\n"
    (tmp_path / "repro.py").write_text(program)
    oracle: Any = SimpleNamespace(bench=SimpleNamespace(time_limit=60), check=SimpleNamespace(shows=lambda *_: True))
    assert folder._run(tmp_path, oracle, Failure("", frozenset())) == (0, "1\n")


def test_values_come_back(child: Child) -> None:
    head, values = child.ask({"do": "echo", "say": "ß"}, {"x": np.arange(3)})
    assert head == {"said": "ß"}
    assert np.asarray(values["x"]).tolist() == [0, 1, 2]


def test_a_large_value_crosses(child: Child) -> None:
    large = np.arange(3_000_000)
    _, values = child.ask({"do": "echo"}, {"x": large})
    np.testing.assert_array_equal(np.asarray(values["x"]), large)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL", "SIGFPE"])
def test_a_crash_is_told_with_its_signal(child: Child, name: str, refused: Refused) -> None:
    with refused("runtime/died") as refusal:
        child.ask({"do": "signal", "number": getattr(signal, name)})
    assert f"the test's child crashed (signal {name})" in refusal.problem.what
    assert "last words" in refusal.problem.why


def test_a_real_time_signal_has_a_number_only(child: Child, refused: Refused) -> None:
    with refused("runtime/died") as refusal:
        child.ask({"do": "signal", "number": signal.SIGRTMIN + 1})
    assert f"signal {signal.SIGRTMIN + 1}" in refusal.problem.what


def test_an_exit_is_told_with_its_status(child: Child, refused: Refused) -> None:
    with refused("runtime/died") as refusal:
        child.ask({"do": "exit"})
    assert "exit status 7" in refusal.problem.what


def test_a_child_that_ends_after_its_pipes_is_waited_for(child: Child, refused: Refused) -> None:
    with refused("runtime/died") as refusal:
        child.ask({"do": "exit slowly"})
    assert "exit status 3" in refusal.problem.what


def test_a_dead_child_stays_dead(child: Child, refused: Refused) -> None:
    for _ in range(2):
        with refused("runtime/died"):
            child.ask({"do": "exit"})


def test_a_child_that_takes_too_long_is_stopped(child: Child, refused: Refused) -> None:
    with refused("runtime/timeout") as refusal:
        child.ask({"do": "hang"}, time_limit=0.2)
    assert "0.2 s" in refusal.problem.what


def test_a_time_limit_that_is_kept_harms_nobody(child: Child) -> None:
    for _ in range(2):
        child.ask({"do": "echo"}, time_limit=60)


def test_what_the_child_prints_does_not_disturb(child: Child) -> None:
    child.ask({"do": "print"})
    assert child.ask({"do": "echo", "say": 1})[0] == {"said": 1}


def test_a_problem_of_the_child_is_the_callers(child: Child, refused: Refused) -> None:
    with refused("a/b") as refusal:
        child.ask({"do": "refuse"})
    assert (refusal.problem.where, refusal.problem.fix) == ("here", "mend it")


def test_another_error_of_the_child_is_translated(child: Child, refused: Refused) -> None:
    with refused("c/d") as refusal:
        child.ask({"do": "other"})
    assert refusal.problem.what == "RuntimeError: unexpected"


def test_a_failure_of_python_itself_may_be_a_lack_of_memory(child: Child, refused: Refused) -> None:
    with refused("runtime/died") as refusal:
        child.ask({"do": "break", "memory": 2**40})
    assert "NULL without setting an exception" in refusal.problem.why
    assert "if memory was short" in refusal.problem.fix


def test_an_answer_that_cannot_cross_is_an_error_of_the_child(child: Child, refused: Refused) -> None:
    with refused("c/d"):
        child.ask({"do": "nonsense"})
    assert child.ask({"do": "echo", "say": 1})[0] == {"said": 1}


def test_an_answer_that_nobody_waited_for_is_not_given_to_the_next_question(child: Child, refused: Refused) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            child.ask({"do": "hang"})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with refused("runtime/died"):
        child.ask({"do": "echo"})


def test_an_interrupt_from_the_keyboard_is_the_callers_to_handle(child: Child) -> None:
    child.ask({"do": "echo"})
    os.kill(child._process.pid, signal.SIGINT)
    assert child.ask({"do": "echo", "say": 1})[0] == {"said": 1}


def test_a_closed_child_answers_no_more(child: Child, refused: Refused) -> None:
    child.close()
    with refused("runtime/closed"):
        child.ask({"do": "echo"})


def test_a_closed_child_is_gone(child: Child) -> None:
    child.ask({"do": "echo"})
    child.close()
    child.close()
    assert child._process.returncode is not None


def test_a_hanging_child_is_ended_by_closing(child: Child, refused: Refused) -> None:
    child.ask({"do": "echo"})
    child._process.stdin.write(b"\x01")
    child.close()
    assert child._process.returncode is not None
