"""A command that is killed leaves nothing for ever: the next command removes its temporary folders, and the processes
that it started end."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

MODEL = """<ir_version: 10, opset_import: ["": 20]>
g (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 2}> { a = Neg(x) b = Neg(a) c = Add(b, w) y = Relu(c) }"""
WAIT = 120.0
"""Seconds that only a broken program takes."""
MAKERS = {"TemporaryDirectory", "mkdtemp", "mkstemp", "NamedTemporaryFile", "SpooledTemporaryFile"}


def command(words: list[str], folder: Path) -> subprocess.Popen[bytes]:
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-m", "onnxsmith", *words],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=nowhere,
        stderr=nowhere,
    )


def left(folder: Path) -> list[str]:
    """The folders of onnxsmith among the temporary files and beside the outputs."""
    return sorted(path.name for place in (folder, folder / "temporary") for path in place.glob("*onnxsmith-*"))


def killed_after(folders: int, words: list[str], folder: Path) -> None:
    """Runs the command, and kills it when it holds, or has held, this number of folders. It may end before."""
    process, seen, end = command(words, folder), set[str](), time.monotonic() + WAIT
    while process.poll() is None and len(seen) < folders:
        assert time.monotonic() < end
        seen |= {str(lock.parent) for place in (folder, folder / "temporary") for lock in place.glob("*/.owner")}
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()


def users(folder: Path) -> list[str]:
    """The processes whose temporary files are in the folder."""
    text = f"TMPDIR={folder / 'temporary'}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(one.startswith(text) for one in (process / "environ").read_bytes().split(b"\0")):
                found.append((process / "cmdline").read_text())
        except OSError:  # it has ended, or is another user's
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="asks Linux for processes")
@pytest.mark.parametrize(
    "words",
    [["simplify", "m.onnx", "-o", "new.onnx"], ["compare", "m.onnx", "m.onnx", "--per-layer"]],
    ids=["simplify", "compare"],
)
def test_the_next_command_clears_what_a_killed_one_left(tmp_path: Path, words: list[str]) -> None:
    save(from_text(MODEL), tmp_path / "m.onnx")
    for folders in (1, 2, 3, 4):
        killed_after(folders, words, tmp_path)
    end = time.monotonic() + WAIT
    while running := users(tmp_path):
        assert time.monotonic() < end, running
        time.sleep(0.05)
    assert command(words, tmp_path).wait(WAIT) == 0
    assert left(tmp_path) == []


def test_temporary_folders_are_made_in_one_place() -> None:
    """Only `base/folders.py` makes folders that are removed after a kill, too."""
    root = Path(onnxsmith.__file__).parent
    found = []
    for file in root.rglob("*.py"):
        if file == root / "base" / "folders.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = node.attr if isinstance(node, ast.Attribute) else node.name if isinstance(node, ast.alias) else ""
            if name in MAKERS:
                found.append(f"{file.relative_to(root)}: {name}")
    assert not found, "use folders.temporary() or folders.beside()"
