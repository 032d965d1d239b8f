"""The process of a step: however it ends, the cell has an outcome, and nothing that it started stays.

Most tests play the interpreter of the step with a shell script.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from onnxsmith.base import folders
from onnxsmith.base.system import machine, memory_limit
from onnxsmith.fleet import step_host, step_process
from onnxsmith.fleet.row import Outcome, StepResult
from tests.fleets import MINUTE, is_running, models, until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the interpreter is played by a shell script")
ROOT = Path(__file__).parents[2]
REFUSAL = {"kind": "target_checks", "checks": [{"target": "tract", "stage": "refused", "why": "no Exp"}]}
ENDED = "the process was ended from outside, which the system does when memory is short"


def run(folder: Path, python: str, verb: str = "check", seconds: float = MINUTE, memory: int = 0) -> StepResult:
    return step_process.run(
        verb, ["a.onnx"], python=python, folder=str(folder), seconds=seconds, memory=memory, variables={"MARK": "here"}
    )


def script(folder: Path, text: str) -> str:
    """An interpreter that does what a shell script says."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def report(**keys: object) -> str:
    return f"echo '{json.dumps({'schema': 1, **keys})}'"


# How a process ends


@pytest.mark.parametrize(
    ("does", "outcome", "headline", "problem"),
    [
        (report(verdict="done", headline="all is well"), Outcome.DONE, "all is well", ""),
        (
            report(verdict="different", headline="two differ", problems=[{"id": "a/b", "what": "c"}]) + "; exit 1",
            Outcome.DIFFERENT,
            "two differ",
            "a/b",
        ),
        (
            report(verdict="different", headline="tract refused", parts=[REFUSAL]),
            Outcome.REFUSED,
            "tract: no Exp",
            "",
        ),
        (report(verdict="cannot-tell", problems=[]), Outcome.CANNOT_TELL, "cannot-tell", ""),
        (
            report(verdict="failed", problems=[{"id": "a/b", "what": "it broke"}, {"id": "c/d"}]) + "; exit 2",
            Outcome.FAILED,
            "it broke",
            "a/b",
        ),
        (
            report(verdict="failed", problems=[{"id": "runtime/memory", "what": "too large"}]),
            Outcome.MEMORY,
            "too large",
            "runtime/memory",
        ),
        (
            report(verdict="failed", problems=[{"id": "a/b", "what": "c", "why": "std::bad_alloc"}]),
            Outcome.MEMORY,
            "c: std::bad_alloc",
            "a/b",
        ),
        (
            "echo first >&2; echo 'the last line' >&2; exit 3",
            Outcome.CRASHED,
            "exit status 3 without a report; last line printed: the last line",
            "",
        ),
        ("exit 0", Outcome.CRASHED, "exit status 0 without a report", ""),
        ("kill -SEGV $$", Outcome.CRASHED, "signal SIGSEGV", ""),
        ("echo why >&2; kill -ABRT $$", Outcome.CRASHED, "signal SIGABRT; last line printed: why", ""),
        ("kill -KILL $$", Outcome.CRASHED, f"signal SIGKILL: {ENDED}", ""),
        ("echo MemoryError >&2; exit 1", Outcome.MEMORY, "the process ran out of memory", ""),
        ("echo garbage", Outcome.CRASHED, "exit status 0 without a report", ""),
        ("printf '\\377\\000{\"verdict\"'", Outcome.CRASHED, "exit status 0 without a report", ""),
        ("echo '[1]'", Outcome.CRASHED, "exit status 0 without a report", ""),
        ("echo 3", Outcome.CRASHED, "exit status 0 without a report", ""),
        (report(verdict="banana"), Outcome.CRASHED, "exit status 0 without a report", ""),
        (report(verdict=["done"]), Outcome.CRASHED, "exit status 0 without a report", ""),
        (report(verdict="done", problems=[3]), Outcome.CRASHED, "exit status 0 without a report", ""),
        (report(verdict="done", problems=3), Outcome.CRASHED, "exit status 0 without a report", ""),
    ],
)  # fmt: skip
def test_endings(tmp_path: Path, does: str, outcome: Outcome, headline: str, problem: str) -> None:
    result = run(tmp_path, script(tmp_path, does))
    assert (result.outcome, result.headline, result.problem) == (outcome, headline, problem)
    assert (result.report is None) == ("verdict" not in does or outcome is Outcome.CRASHED)
    assert result.command == ("onnxsmith", "check", "a.onnx")


def test_the_system_ended_the_step_for_lack_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = itertools.count()
    monkeypatch.setattr(type(machine.HERE), "memory_kills", lambda self: next(counts))
    result = run(tmp_path, script(tmp_path, "kill -KILL $$"))
    assert (result.outcome, result.headline) == (Outcome.MEMORY, "the system ended the process for lack of memory")
    assert run(tmp_path, script(tmp_path, "kill -SEGV $$")).outcome is Outcome.CRASHED


def test_the_end_of_standard_error_is_kept(tmp_path: Path) -> None:
    result = run(tmp_path, script(tmp_path, "seq 100000 >&2; exit 1"))
    assert result.said.endswith("99999\n100000\n")
    assert len(result.said) <= 16_000
    assert result.headline == "exit status 1 without a report; last line printed: 100000"


def test_how_a_step_is_started(tmp_path: Path) -> None:
    """In the folder of the plan, with the variables of the cell; the words are those of the command line."""
    python = script(tmp_path, 'echo "$PWD $MARK $ONNXSMITH_PROGRESS $@" >&2; exit 1')
    result = run(tmp_path, python, verb="baseline check", memory=77)
    assert result.said.split() == [
        str(tmp_path), "here", "none", "-P", "-X", "faulthandler", "-m", "onnxsmith.fleet.step_host", "77", "baseline",
        "check", "--json", "a.onnx",
    ]  # fmt: skip


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"):
        run(tmp_path, str(tmp_path / "gone"))


# Limits


def test_a_limit_of_time_ends_a_process_that_ignores_signals(tmp_path: Path) -> None:
    python = script(tmp_path, "trap '' TERM INT HUP; echo $$ > pid; while true; do sleep 1000 & wait; done")
    result = run(tmp_path, python, seconds=0.3)
    assert (result.outcome, result.headline) == (Outcome.TIMEOUT, "stopped after 0.3 s")
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_step_that_was_stopped_says_what_it_was_doing(tmp_path: Path) -> None:
    python = script(tmp_path, f'printf verify > "${step_host.STAGE}"; sleep 1000')
    result = run(tmp_path, python, seconds=2)
    assert (result.headline, result.problem) == ("stopped after 2 s in the stage 'verify'", "runtime/timeout")


def test_the_host_tells_the_stage(tmp_path: Path) -> None:
    """The last one, also if its name is shorter; the command itself does not see the file."""
    code = "import json, os; from onnxsmith.base.clock import stage\n"
    code += "with stage('simplify the model'), stage('verify'): "
    code += f"said = [open(os.environ['COPY']).read(), os.environ.get('{step_host.STAGE}')]\n"
    code += "print(json.dumps({'verdict': 'done', 'headline': repr(said)}))"
    python = script(tmp_path, f'export COPY="${step_host.STAGE}"; {hosted(code)}')
    assert run(tmp_path, python).headline == "['verify', None]"


def test_a_report_after_the_limit_does_not_count(tmp_path: Path) -> None:
    result = run(tmp_path, script(tmp_path, f"{report(verdict='done')}; sleep 1000"), seconds=0.3)
    assert (result.outcome, result.report) == (Outcome.TIMEOUT, None)


@pytest.mark.parametrize("rest", ["exit 1", "kill -SEGV $$", report(verdict="done"), "sleep 1000"])
def test_what_a_step_started_ends_with_it(tmp_path: Path, rest: str) -> None:
    """Also what keeps its standard output open."""
    python = script(tmp_path, f"(trap '' TERM HUP; sleep 1000) & echo $! > pid; {rest}")
    run(tmp_path, python, seconds=0.5)
    until(lambda: not is_running(int((tmp_path / "pid").read_text())))


def test_what_left_the_group_of_a_step_does_not_hold_it_up(tmp_path: Path) -> None:
    """A process in a session of its own keeps the standard output of the step."""
    python = script(tmp_path, f"setsid sh -c 'echo $$ > pid; exec sleep 1000' & until [ -s pid ]; do :; done; "
                              f"{report(verdict='done')}")  # fmt: skip
    try:
        assert run(tmp_path, python).outcome is Outcome.DONE
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_all_steps_are_stopped(tmp_path: Path) -> None:
    python = script(tmp_path, "echo $$ >> pids; sleep 1000")
    raised: list[BaseException] = []

    def one() -> None:
        try:
            run(tmp_path, python)
        except step_process.StoppedError as error:
            raised.append(error)

    with step_process.stoppable():
        threads = [threading.Thread(target=one) for _ in range(3)]
        for thread in threads:
            thread.start()
        until(lambda: (tmp_path / "pids").exists() and len((tmp_path / "pids").read_text().split()) == 3)
        step_process.stop_all()
        for thread in threads:
            thread.join(MINUTE)
        assert len(raised) == 3
        assert not any(is_running(int(text)) for text in (tmp_path / "pids").read_text().split())
        with pytest.raises(step_process.StoppedError):
            run(tmp_path, python)
    assert run(tmp_path, script(tmp_path, report(verdict="done"))).outcome is Outcome.DONE


def test_a_watch_ends_its_own_step(tmp_path: Path) -> None:
    """It hears the stages that the step writes. Other steps go on."""
    stages: list[str] = []
    watch = step_process.Watch(lambda stage: (stages.append(stage), watch.stop())[0])
    python = script(tmp_path, f'printf verify > "${step_host.STAGE}"; echo $$ > pid; sleep 1000')
    with pytest.raises(step_process.StoppedError):
        step_process.run(
            "check", [], python=python, folder=str(tmp_path), seconds=MINUTE, memory=0, variables={}, watch=watch
        )
    assert stages == ["verify"]
    assert not is_running(int((tmp_path / "pid").read_text()))
    other = step_process.Watch(stages.append)
    python = script(tmp_path, report(verdict="done"))
    found = step_process.run(
        "check", [], python=python, folder=str(tmp_path), seconds=MINUTE, memory=0, variables={}, watch=other
    )
    assert found.outcome is Outcome.DONE


# The host of a step


def hosted(code: str) -> str:
    """A shell script that runs the host, which runs `code` in place of a command of onnxsmith."""
    program = f"""import runpy
runpy.run_module = lambda *_, **__: exec({code!r}, {{}})
from onnxsmith.fleet import step_host
step_host.main()
"""
    return f'shift 5; exec {sys.executable} -P -c "$(cat <<\'EOF\'\n{program}EOF\n)" "$@"'


def test_the_host_runs_a_command(tmp_path: Path) -> None:
    models(tmp_path, "a.onnx")
    result = run(tmp_path, sys.executable, verb="inspect")
    assert (result.outcome, result.said) == (Outcome.DONE, "")
    assert result.report is not None
    assert result.report["command"] == "inspect"


def test_only_the_report_goes_to_standard_output(tmp_path: Path) -> None:
    """Native code and processes print where they like; the command line keeps standard output for the report."""
    kept = "import os; from onnxsmith.base.system import standard_output; standard_output.keep(); "
    code = kept + "os.write(1, b'native'); os.system('echo from a process'); print('{\"verdict\": \"done\"}')"
    result = run(tmp_path, script(tmp_path, hosted(code)))
    assert result.outcome is Outcome.DONE
    code = kept + "os.write(1, b'native'); os.abort()"
    assert run(tmp_path, script(tmp_path, hosted(code))).headline == "signal SIGABRT; last line printed: native"


def test_standard_input_is_empty(tmp_path: Path) -> None:
    code = "import sys, json; print(json.dumps({'verdict': 'done', 'headline': repr(sys.stdin.read())}))"
    assert run(tmp_path, script(tmp_path, hosted(code))).headline == "''"


@pytest.mark.skipif(isinstance(memory_limit.HERE, memory_limit.NoLimit), reason="the system has no limit")
def test_a_limit_of_memory(tmp_path: Path) -> None:
    python = script(tmp_path, hosted("print(len(bytearray(2**30)))"))
    result = run(tmp_path, python, memory=2**29)
    allowed = "the process needed more than the 537 MB that memory_limit of the plan allows"
    assert (result.outcome, result.headline) == (Outcome.MEMORY, allowed)


DRIVER = """
import sys
from pathlib import Path
from onnxsmith.fleet import cell_run, environments
from tests.fleets import cells_of
environments.interpreter = lambda environment: str(Path("python").absolute())
environments.versions_of = lambda python: {}
(cell,) = cells_of(Path("p.toml"))
cell_run.run(cell)
"""


def test_a_step_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    """However busy the step is, with what it started; its temporary folder goes with the next cell."""
    models(tmp_path, "a.onnx")
    (tmp_path / "p.toml").write_text('models = ["a.onnx"]\nsteps = ["check"]')
    (tmp_path / "tmp").mkdir()
    code = "import os, subprocess, pathlib as p; c = subprocess.Popen(['sleep', '1000']); "
    code += "p.Path('new').write_text(f'{os.getpid()} {c.pid}'); os.rename('new', 'pids')\nwhile True: pass"
    script(tmp_path, hosted(code))
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(tmp_path / "tmp")}
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], cwd=tmp_path, env=environment)
    try:
        until((tmp_path / "pids").exists)
    finally:
        driver.kill()
        driver.wait()
    for text in (tmp_path / "pids").read_text().split():
        until(lambda process=int(text): not is_running(process))
    folders.clear(tmp_path / "tmp")
    assert not list((tmp_path / "tmp").iterdir())
