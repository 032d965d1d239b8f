"""The processes in which the exporter traces, forked off one that has imported torch: a new one takes two seconds of
imports, a forked one none.

The process that forks imports and computes nothing, so a fork has no thread and no state but what an import leaves. It
forks one process at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

_SERVER = """
import gc, json, os, sys, traceback
import onnxscript, onnxsmith.exporter.strategies.torchscript, torch.onnx.utils

gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    process = os.fork()
    if process:
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
        continue
    code = 0
    try:
        output = os.open(asked["output"], os.O_WRONLY | os.O_APPEND)
        for place, stream in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
            os.dup2(place, stream)
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        exec(asked["code"], vars(sys.modules["__main__"]))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
"""


class Server:
    """The process that forks. It is started when it is first needed, and serves one fork at a time: `lock`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""

    def fork(self, **asked: Any) -> int:
        """Forks a process; returns its number."""
        if self._process is None:
            paths = os.pathsep.join(path for path in sys.path if path)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": paths},
            )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        process = self.answer(None)
        assert process is not None
        return process

    def answer(self, limit: float | None) -> int | None:
        """The next number that the process says; None after `limit` seconds."""
        assert self._process is not None
        assert self._process.stdout is not None
        while b"\n" not in self._said:
            if not select.select([self._process.stdout], [], [], limit)[0]:
                return None
            more = self._process.stdout.read(100)
            assert more, "the process that forks has ended"
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return int(line)

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()


class _Forked:
    """What `_apart` uses of `subprocess.Popen`."""

    def __init__(self, server: Server, command: list[str], stdout: BinaryIO) -> None:
        self._server = server
        self._code: int | None = None
        asked = {"code": command[-1], "output": stdout.name, "environment": dict(os.environ), "folder": str(Path.cwd())}
        server.lock.acquire()
        try:
            self._process = server.fork(**asked)
        except BaseException:
            server.lock.release()
            raise

    def wait(self, limit: float | None = None) -> int:
        if self._code is None:
            self._code = self._server.answer(limit)
            if self._code is None:
                raise subprocess.TimeoutExpired("a forked process", limit or 0)
            self._server.lock.release()
        return self._code

    def kill(self) -> None:
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)


def forked(server: Server) -> SimpleNamespace:
    """What `_apart` uses instead of `subprocess`."""

    def begin(command: list[str], *, stdout: BinaryIO, **_: Any) -> _Forked:
        return _Forked(server, command, stdout)

    return SimpleNamespace(**{**vars(subprocess), "Popen": begin})
