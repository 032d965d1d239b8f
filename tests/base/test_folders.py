"""Folders of a process that was killed go with the next one; those of a living one stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxsmith.base import folders
from onnxsmith.base.folders import beside, replacing

HOLD = """
import sys, time
from pathlib import Path
from onnxsmith.base.folders import beside
with beside(Path(sys.argv[1])) as folder:
    (folder / "half").write_bytes(b"1" * 1000)
    print(folder, flush=True)
    time.sleep(600)
"""


def holder(path: Path, program: str = HOLD) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_stays(tmp_path: Path) -> None:
    dead, left = holder(tmp_path / "a.onnx")
    end(dead)
    alive, held = holder(tmp_path / "b.onnx")
    try:
        assert left.parent == held.parent == tmp_path
        with beside(tmp_path / "c.onnx") as own:
            assert not left.exists()
            assert (held / "half").read_bytes() == b"1" * 1000
            assert own.is_dir()
    finally:
        end(alive)
    with beside(tmp_path / "b.onnx"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [".m.onnx.onnxsmith-abc", ".m.onnx.abcdefgh", "m.onnx.onnxsmith-abc", ".git"])
def test_folders_that_no_process_marked_stay(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "file").write_text("")
    with beside(tmp_path / "m.onnx"):
        pass
    assert (tmp_path / name / "file").is_file()


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    dead, left = holder(tmp_path / "sub.onnx")
    end(dead)
    there = tmp_path / "elsewhere"
    there.mkdir()
    moved = there / "content"
    left.rename(moved)
    (tmp_path / ".m.onnx.onnxsmith-link").symlink_to(moved)
    with beside(tmp_path / "m.onnx"):
        pass
    assert (moved / "half").is_file()


def test_long_names_and_names_that_are_no_text(tmp_path: Path) -> None:
    for name in ("ü" * 120 + ".onnx", os.fsdecode(b"a\xff\n.onnx")):
        with beside(tmp_path / name) as folder:
            assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


def write_half(path: Path) -> None:
    with replacing(path) as aside:
        aside.write_text("ne")
        raise RuntimeError


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(RuntimeError):
        write_half(path)
    assert path.read_text() == "old"
    link = tmp_path / "link.html"
    link.symlink_to(path)
    with replacing(link) as aside:
        aside.write_text("new")
    assert path.read_text() == "new"
    assert link.is_symlink()
    with replacing(Path(os.devnull)) as aside:
        aside.write_text("nowhere")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.html", "report.html"]


IN_TEMPORARY = HOLD.replace("import beside", "import temporary").replace("beside(Path(sys.argv[1]))", "temporary()")


@pytest.fixture
def temporary_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(folders, "_cleared", set())
    return tmp_path


def test_temporary_folders_of_killed_processes_are_removed_by_the_next_process(temporary_place: Path) -> None:
    dead, left = holder(temporary_place, IN_TEMPORARY)
    end(dead)
    alive, held = holder(temporary_place, IN_TEMPORARY)  # removes the first, as each process does
    try:
        assert not left.exists()
        with folders.temporary() as own:
            assert own.parent == held.parent == temporary_place
            assert (held / "half").is_file()
    finally:
        end(alive)
    with folders.temporary():  # the second call of this process looks no more
        assert held.is_dir()


FORKING = """
import os, sys, time
from pathlib import Path
from onnxsmith.base.folders import temporary
def work():
    with temporary() as folder:
        begun, begin = os.pipe()
        if child := os.fork():
            os.read(begun, 1)  # the child is past what a fork does first
            print(folder, child, flush=True)
            if sys.argv[1] == "wait":
                os.waitpid(child, 0)
            return folder.is_dir()
        os.write(begin, b".")
        if sys.argv[1] == "wait":
            return None
        time.sleep(600)
kept = work()
if kept is not None:
    print(kept, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX only")
def test_a_fork_that_leaves_the_block_leaves_the_folder_to_its_parent(temporary_place: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKING, "wait"], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "True"
    assert list(temporary_place.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX only")
def test_a_fork_does_not_hold_the_folder_of_a_killed_parent(temporary_place: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", FORKING, "sleep"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder, child = process.stdout.readline().split()
    process.kill()
    process.wait()
    process.stdout.close()
    try:
        with folders.temporary():
            assert not Path(folder).exists()
    finally:
        os.kill(int(child), signal.SIGKILL)


PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())], stdin=subprocess.DEVNULL)
print(child.pid, flush=True)
child.wait()
"""
CHILD = """
import sys, time
from onnxsmith.base.system import children
children.HERE.end_with_parent(int(sys.argv[1]), "")
time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="POSIX only")
def test_a_child_ends_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + 60
    while Path(f"/proc/{child}/stat").exists() and _state(child) != "Z":
        assert time.monotonic() < end
        time.sleep(0.05)


def _state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
