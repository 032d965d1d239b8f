"""Folders of a process that was killed go with the next one; those of a living one stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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


def holder(path: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
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
