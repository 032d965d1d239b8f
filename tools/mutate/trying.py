"""Runs test cases on a copy of the tree with a mutant in it, in forked processes: heavy libraries are imported once."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "examples", "docs", "tools", "benchmarks", "changelog.d", "viewer")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "node_modules")
LINKED = ("tests/deployment/bundles/clients/node_modules", "viewer/node_modules")


class Copy:
    """A copy of the tree in which mutants are tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / name, ignore=LEFT_OUT)
        for path in ROOT.glob("*"):
            if path.is_file():
                shutil.copy(path, folder)
        for name in LINKED:
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)

    def fails(self, cases: Sequence[str], limit: float) -> str:
        """Runs cases in a forked process until one fails; returns the name of the one that did, "…" if they took longer
        than `limit` seconds, "" if all passed.

        Raises:
            RuntimeError: pytest could not run them.
        """
        if not cases:
            return ""
        said = self.folder / ".failed"
        said.unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            _child(self.folder, cases, said)
        end = time.monotonic() + limit
        while time.monotonic() < end:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                failed = said.read_text(encoding="utf-8") if said.exists() else ""
                if status and not failed:
                    raise RuntimeError(f"{(self.folder / '.printed').read_text(encoding='utf-8')}\n{cases[:3]} …")
                return failed
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return "…"

    @contextlib.contextmanager
    def changed(self, file: str, source: str) -> Iterator[None]:
        """The file has another source while the block runs."""
        path = self.folder / file
        original = path.read_text(encoding="utf-8")
        _write(path, source)
        try:
            yield
        finally:
            _write(path, original)


def _write(path: Path, text: str) -> None:
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()
    path.write_text(text, encoding="utf-8")


class _First:
    """Notes the first case that fails."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.file.exists():
            self.file.write_text(report.nodeid, encoding="utf-8")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.file.exists():
            self.file.write_text(f"collection of {report.nodeid}", encoding="utf-8")


def _child(folder: Path, cases: Sequence[str], said: Path) -> None:
    os.chdir(folder)
    printed = os.open(folder / ".printed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "onnxsmith")]:
        del sys.modules[name]  # they are the tree's own, not the copy's
    sys.dont_write_bytecode = True
    os.environ["PYTHONPATH"] = str(folder / "src")
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["ONNXSMITH_HYPOTHESIS"] = "failing"
    sys.path[:0] = [str(folder / "src"), str(folder)]
    import pytest

    listed = folder / ".cases"
    listed.write_text("\n".join(cases), encoding="utf-8")
    try:
        quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is imported already
        command = ["-x", "-q", "-m", "not gpu", "--tier", "all", *quiet, f"@{listed}"]
        status = int(pytest.main(command, [_First(said)]))
    except BaseException:  # noqa: BLE001 — a mutant may raise anything
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(min(status, 1))
