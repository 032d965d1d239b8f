"""A process of its own for code that may crash: the crash becomes a Problem, not a dead caller.

The child serves requests `{"do": …}` on its standard input and answers on what was its standard output; native code
that prints cannot disturb the messages, because file descriptor 1 is turned to standard error first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol

import onnxsmith
from onnxsmith.problem import OnnxsmithError, Problem, problem
from onnxsmith.runtimes import _wire
from onnxsmith.runtimes.base import Outputs, Value

_BOOT = (
    "import sys; sys.path[:] += [p for p in {paths!r} if p not in sys.path]; from {module} import {function} as f; f()"
)
_TAIL = 2000


class Server(Protocol):
    """What runs in the child: called once per request."""

    def __call__(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]: ...


class Child:
    """The caller's end. `module` and `function` name what the child runs; that function calls `serve`."""

    def __init__(self, module: str, function: str, *, what: str) -> None:
        self.what = what
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 — closed in close()
        root = str(Path(onnxsmith.__file__).parent.parent)
        boot = _BOOT.format(paths=[root, *(p for p in sys.path if p)], module=module, function=function)
        self._cache = tempfile.TemporaryDirectory(prefix="onnxsmith-", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", boot],
            # libraries leave device ids and logs in the cache and temporary folders: theirs go when the child goes
            env={**os.environ, "XDG_CACHE_HOME": self._cache.name, "TMPDIR": self._cache.name},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )

    def ask(
        self,
        request: dict[str, Any],
        values: dict[str, Value] | None = None,
        *,
        time_limit: float | None = None,
    ) -> tuple[dict[str, Any], Outputs]:
        """The child's answer.

        Raises:
            OnnxsmithError: what the child raised; `runtime/died` when it crashed; `runtime/timeout` when it took longer
                than `time_limit` seconds; `runtime/closed` after `close`.
        """
        late = threading.Event()

        def expire() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(time_limit, expire) if time_limit else None
        if timer:
            timer.start()
        try:
            head, answer = self._exchange(request, values)
        except (EOFError, OSError) as error:
            raise (self._late(request, time_limit) if late.is_set() else self._death(request)) from error
        except BaseException:
            self._process.kill()  # an answer that nobody read would be taken for the next question's
            raise
        finally:
            if timer:
                timer.cancel()
        if late.is_set():
            raise self._late(request, time_limit)
        if "problem" in head:
            raise OnnxsmithError(Problem(**head["problem"]))
        return head, answer

    def _exchange(self, request: dict[str, Any], values: dict[str, Value] | None) -> tuple[dict[str, Any], Outputs]:
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None
        assert answers is not None
        if questions.closed:
            raise problem("runtime/closed", f"the session with {self.what} is closed", fix="prepare the model again")
        _wire.send(questions, _wire.encode(request, values))
        return _wire.receive(answers)

    def _late(self, request: dict[str, Any], time_limit: float | None) -> OnnxsmithError:
        return problem(
            "runtime/timeout",
            f"{self.what} took longer than {time_limit:g} s and was stopped",
            where=_request(request),
            fix="give it more time, or a smaller input",
        )

    def _death(self, request: dict[str, Any]) -> OnnxsmithError:
        try:
            code = self._process.wait(timeout=20)  # its pipes close before it has ended; a kill would hide the cause
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        cause = f"signal {_signal_name(-code)}" if code < 0 else f"exit status {code}"
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - _TAIL))
        said = self._stderr.read().decode(errors="replace").strip()
        return problem(
            "runtime/died",
            f"{self.what} crashed ({cause})",
            where=_request(request),
            why=f"it said: {said}" if said else "a native crash; it said nothing",
            fix="try another runtime (--runtime reference), or lower the optimisation level; report it to that runtime",
        )

    def close(self) -> None:
        """Ends the child. It is killed: it keeps nothing, and libraries take a tenth of a second to say good-bye."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._stderr.close()
        self._cache.cleanup()


def _request(request: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in request.items() if isinstance(value, str))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def serve(server: Server, translate: Callable[[Exception], OnnxsmithError]) -> None:
    """The child's loop: until the caller goes away. `translate` turns the library's errors into problems."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's to handle; it closes us
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while True:
        try:
            request, values = _wire.receive(requests)
        except EOFError:
            return
        try:
            message = _wire.encode(*server(request, values))
        except Exception as error:  # noqa: BLE001 — whatever a library raises has to cross to the caller
            known = error if isinstance(error, OnnxsmithError) else translate(error)
            message = _wire.encode({"problem": vars(known.problem)})
        with contextlib.suppress(BrokenPipeError):
            _wire.send(answers, message)
