"""A process that is killed at any step leaves every output as a whole, and nothing for ever; see
`benchmarks/stressing/stops.py`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from stressing import stop_driver, stop_lines, stop_places
from stressing.stop_trial import Trial, kept_signals, possible

import onnxsmith
from onnxsmith.base import folders
from onnxsmith.graph.files.save import save

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
MOST = 100
"""More steps than any of these functions takes."""


def model(value: float) -> ir.Model:
    made = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 20]>
    g (float[N,600] x) => (float[N,600] y) { y = Mul(x, w) }""")
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.full(600, value, np.float32), "w"))
    return ir.from_proto(made)


def killed_at_each_step(place: Path, begin: Callable[[], None], work: Callable[[], None]) -> list[dict[str, object]]:
    """Calls `work` in forked processes that are killed before their first, second, … change in `place`, after `begin`.
    Returns what is in the folder after each kill and a following write."""
    found = []
    for step in range(1, MOST):
        begin()
        child = os.fork()
        if child == 0:
            try:
                stop_driver.watch(str(place), step, signal.SIGKILL, False)
                work()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        with folders.replacing(place / "next.txt") as aside:
            aside.write_text("next")
        found.append({name: stop_places.state(place / name) for name in sorted(file.name for file in place.iterdir())})
        if os.waitstatus_to_exitcode(status) == 0:
            return found
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    raise AssertionError("the work does not end")


def test_a_model_and_its_data_file_are_the_old_or_the_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"

    def begin() -> None:
        for file in tmp_path.iterdir():
            file.unlink()
        save(model(1), path, external_data=True)

    states, names = set(), set()
    for found in killed_at_each_step(tmp_path, begin, lambda: save(model(2), path, external_data=True)):
        states.add(found["m.onnx"])
        names.add(tuple(found))
    assert len(states) == 2
    assert not any(str(one).startswith(stop_places.BROKEN) for one in states)
    assert names == {("m.onnx", f"m.onnx{number}.data", "next.txt") for number in ("", ".2")}


def test_a_users_data_file_stays(tmp_path: Path) -> None:
    """It has the name of one that a killed process wrote, or another model reads it."""
    path, other = tmp_path / "m.onnx", tmp_path / "other.onnx"

    def begin() -> None:
        for file in tmp_path.iterdir():
            file.unlink()
        save(model(1), path, external_data=True)
        other.write_bytes(path.read_bytes())

    for found in killed_at_each_step(tmp_path, begin, lambda: save(model(2), path, external_data=True)):
        assert not str(found["other.onnx"]).startswith(stop_places.BROKEN)
    hidden = tmp_path / ".m.onnx.onnxsmith-12345678"
    hidden.mkdir()
    data = tmp_path / "m.onnx.9.data"
    data.write_bytes(b"mine")
    folders.note(hidden, path, stale=[data])
    (hidden / ".owner").touch()
    os.utime(data, (1, 1))  # written again
    folders.clear(tmp_path)
    assert data.read_bytes() == b"mine"
    assert not hidden.exists()


def test_a_folder_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    target = tmp_path / "bundle"

    def write(text: str) -> None:
        with folders.beside(target) as hidden:
            place = hidden / "bundle"
            place.mkdir()
            (place / "one.txt").write_text(text)
            folders.move(place, target, hidden)

    texts = set()
    for found in killed_at_each_step(tmp_path, lambda: write("old"), lambda: write("new")):
        assert list(found) == ["bundle", "next.txt"]
        texts.add((target / "one.txt").read_text())
        assert texts <= {"old", "new"}
    assert texts == {"new"}  # the last state is the one of the last step


@pytest.mark.parametrize("name", ["onnxsmith-projects", ".m.onnx.onnxsmith-abc", "onnxsmith-12345678"])
def test_an_empty_folder_of_the_user_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(0o700)
    folders.clear(tmp_path)
    assert (tmp_path / name).is_dir()


PROGRAM = """
import sys
from onnxsmith.base.system import children
children.HERE.run([sys.executable, "-c", sys.argv[1], *sys.argv[2:]])
"""
SLEEPS = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'w'), flush=True); time.sleep(600)"


@pytest.mark.parametrize("whole_group", [False, True])
def test_a_program_ends_with_the_process_that_runs_it(tmp_path: Path, *, whole_group: bool) -> None:
    file = tmp_path / "process"
    parent = subprocess.Popen([sys.executable, "-c", PROGRAM, SLEEPS, str(file)], start_new_session=True)
    end = time.monotonic() + 60
    while not file.exists() or not file.read_text():
        assert time.monotonic() < end
        time.sleep(0.01)
    program = int(file.read_text())
    (os.killpg if whole_group else os.kill)(parent.pid, signal.SIGKILL)
    parent.wait()
    while _runs(program):
        assert time.monotonic() < end
        time.sleep(0.01)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_programs_are_started_in_one_place() -> None:
    """Only programs that `base/system/children.py` starts end with a killed process. Two others look for the end of
    their parent themselves, and `ps` ends at once."""
    root = Path(onnxsmith.__file__).parent
    known = {
        "base/system/children.py",
        "runtimes/_child.py",
        "exporter/strategies/_separate_process.py",
        "base/system/usage.py",
    }
    texts = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in root.rglob("*.py")}
    starts = re.compile(r"^[^#\"]*\bsubprocess\.(run|Popen|call|check_call|check_output)\(", re.MULTILINE)
    found = [place for place, text in texts.items() if place not in known and starts.search(text)]
    assert not found, "use children.HERE.start() or children.HERE.run()"


@pytest.mark.whole
@pytest.mark.parametrize("verb", ["strip", "bundle", "split", "baseline record"])
def test_stops_of_a_verb(tmp_path: Path, verb: str) -> None:
    lines = stop_lines.prepared(tmp_path, [verb])
    assert lines
    with kept_signals():
        for number in range(10):
            outcome = Trial(tmp_path, lines, possible(), "test", number).run()
            assert not outcome.faults, (outcome.kind, outcome.moment, outcome.faults, outcome.said)
