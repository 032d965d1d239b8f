"""Runs code that may crash in a child process. A crash becomes a Problem, and the caller goes on.

The child reads requests `{"do": …}` from its standard input and answers on a copy of its standard output. File
descriptor 1 itself is redirected to standard error, so that prints of native code cannot disturb the messages.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol

import onnxsmith
from onnxsmith.base import folders
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.short_traceback import without_traceback
from onnxsmith.base.system import children, memory_limit, usage
from onnxsmith.runtimes import _call_limits, _wire
from onnxsmith.runtimes.base import Outputs, Value

_BOOT = (
    "import sys; sys.path[:] += [p for p in {paths!r} if p not in sys.path]; "
    "from onnxsmith.base.system import children; children.HERE.end_with_parent({parent}); "
    "from {module} import {function} as f; f()"
)
_TAIL = 2000
"""Limits the characters of the child's last output that a problem shows. A choice."""
_READ = 2**16
"""Limits the bytes of the child's last output that are read. A choice: a stack of native frames has some 20,000
bytes."""
_PANIC = re.compile(r"panicked at [^\n]*\n[^\n]+")
"""Matches the message that Rust prints before it aborts; a stack of native frames follows the message."""
_OF_ANSWER = 4
"""Sets the memory limit of a child, in multiples of its largest answer: the caller keeps the answers to all
questions."""
_STARVED = 0.5
"""Extends the time limit of a child that has computed for a smaller share of the limit, unless the child does nothing.
A choice."""
_LONGEST = 4
"""Limits the extensions of the time limit, for a child that other processes keep from computing. A choice."""


class Server(Protocol):
    """Runs in the child, once for each request."""

    def __call__(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]: ...


_running: set[int] = set()
"""Holds the process ids of the children that were started and not closed."""
_ended = [0.0]
"""Holds the processor time of the children that were closed, in seconds."""


def processor_seconds() -> float:
    """Returns the processor time of all children of this process."""
    return _ended[0] + sum(usage.HERE.processor_seconds(process) or 0.0 for process in list(_running))


class Child:
    """Is the caller's end of a child process. `module` and `function` name the code that the child runs; the function
    calls `serve`."""

    def __init__(self, module: str, function: str, *, what: str) -> None:
        self.what = what
        self.began: object = None
        """Holds the circumstances in which the child started (`_idle`), if the caller records them."""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 — closed in close()
        root = str(Path(onnxsmith.__file__).parent.parent)
        boot = _BOOT.format(
            parent=os.getpid(), paths=[root, *(p for p in sys.path if p)], module=module, function=function
        )
        self._stack = contextlib.ExitStack()
        self.cache = self._stack.enter_context(folders.temporary())
        """Is the folder for temporary files of the child."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", boot],
            # Libraries leave files in the cache and temporary folders: these folders are deleted with the child.
            env={
                **os.environ,
                **children.SILENT,
                "XDG_CACHE_HOME": str(self.cache),
                **children.HERE.temporary(str(self.cache)),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        _running.add(self.pid)

    def ask(
        self,
        request: dict[str, Any],
        values: dict[str, Value] | None = None,
        *,
        time_limit: float | None = None,
    ) -> tuple[dict[str, Any], Outputs]:
        """Asks the child, and returns its answer.

        Raises:
            OnnxsmithError: the error that the child raised; `runtime/died` if the child crashed; `runtime/timeout` if
                it took longer than `time_limit` seconds; `runtime/memory` if the child, or its answer, needed more than
                the request's `memory`; `runtime/closed` after `close`.
        """
        stop = _Stop(self._process, time_limit)
        try:
            head, answer = self._exchange(request, values)
        except (EOFError, OSError) as error:
            raise (self._late(request, time_limit) if stop.late else self._death(request)) from error
        except BaseException as error:
            self._process.kill()  # an unread answer would be read as the answer to the next question
            if isinstance(error, _wire.TooLargeError):
                raise self._shortage(request, str(error)) from error
            raise
        finally:
            stop.cancel()
        if stop.late:  # the answer came just before the kill: the child is gone, so the next question would fail
            raise self._late(request, time_limit)
        if "problem" in head:
            told = head["problem"]
            raise OnnxsmithError(Problem(**told | {"tried": tuple(told.get("tried", ()))}))  # JSON has no tuples
        return head, answer

    def _exchange(self, request: dict[str, Any], values: dict[str, Value] | None) -> tuple[dict[str, Any], Outputs]:
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None
        assert answers is not None
        if questions.closed:
            raise problem(
                "runtime/closed",
                f"the session with {self.what} is closed",
                fix="make every call inside the session's with block, or prepare the model again",
            )
        _wire.send(questions, _wire.encode(request, values))
        return _wire.receive(answers, most=_call_limits.in_force(request.get("memory", 0)) // _OF_ANSWER)

    def _late(self, request: dict[str, Any], time_limit: float | None) -> OnnxsmithError:
        return problem(
            "runtime/timeout",
            f"{self.what} took longer than {time_limit:g} s and was stopped",
            where=_request(request),
            fix=f"allow more time: {_call_limits.TIME}={10 * (time_limit or 60):g} (0 for no limit); or give smaller "
            "inputs",
        )

    def _death(self, request: dict[str, Any]) -> OnnxsmithError:
        try:
            code = self._process.wait(timeout=20)  # pipes close before the process ends; a kill would hide the cause
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - _READ))
        said = _last_words(self._stderr.read().decode(errors="replace"))
        if _call_limits.is_shortage(said):
            return self._shortage(request, said)
        why = f"its output: {said}" if said else "a native crash, without a message"
        return _crash(f"{self.what} crashed ({children.cause_of_end(code)})", request, why)

    def _shortage(self, request: dict[str, Any], said: str) -> OnnxsmithError:
        asked = request.get("memory", 0)
        return _call_limits.shortage(self.what, _call_limits.in_force(asked), _request(request), said, asked=asked)

    @property
    def pid(self) -> int:
        """Returns the process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """Kills the child. The child has no state to save, and an orderly exit of its libraries takes a tenth of a
        second."""
        if self.pid in _running:
            _ended[0] += usage.HERE.processor_seconds(self.pid) or 0.0
            _running.discard(self.pid)
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._stderr.close()
        self._stack.close()


class _Stop:
    """Kills a process when its time is over. On a busy machine, a process that could compute only for a part of the
    time gets more time."""

    def __init__(self, process: subprocess.Popen[bytes], limit: float | None) -> None:
        self.late = False
        self._process, self._limit, self._left = process, limit or 0.0, _LONGEST
        self._begun = self._seen = usage.HERE.processor_seconds(process.pid) or 0.0
        self._timer: threading.Timer | None = None
        self._over = False
        self._lock = threading.Lock()
        if limit:
            self._arm()

    def _arm(self) -> None:
        self._timer = threading.Timer(self._limit, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def _expire(self) -> None:
        with self._lock:
            if self._over:
                return
            used = usage.HERE.processor_seconds(self._process.pid)
            self._left -= 1
            # It computed since the last look, but so little that other processes must have kept it from computing.
            starved = used is not None and self._seen < used < self._begun + _STARVED * self._limit
            if starved and self._left:
                self._seen = used or 0.0
                self._arm()
                return
            self.late = True
            self._process.kill()

    def cancel(self) -> None:
        """Stops the timer, because the process has answered or ended."""
        with self._lock:
            self._over = True
            if self._timer is not None:
                self._timer.cancel()


def _last_words(said: str) -> str:
    """Returns the message of a Rust panic, the last line of a traceback, else the end of the output."""
    panic = _PANIC.search(said)
    return " ".join(panic[0].split()) if panic is not None else without_traceback(said)[-_TAIL:]


def _request(request: dict[str, Any]) -> str:
    """Returns what was asked for: `its run call`, with the texts of the request."""
    told = [(key, value) for key, value in request.items() if isinstance(value, str) and key != "of"]
    return ", ".join(f"its {value} call" if key == "do" else f"{key} {value}" for key, value in told)


def serve(server: Server, translate: Callable[[Exception], OnnxsmithError]) -> None:
    """Answers requests in the child until the caller closes the pipe. `translate` turns the library's errors into
    problems."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller handles Ctrl-C, and then ends this process
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while True:
        try:
            request, values = _wire.receive(requests)
        except EOFError:
            return
        limit = memory_limit.HERE.hold(request["memory"]) if "memory" in request else 0
        try:
            message = _wire.encode(*server(request, values))
        except Exception as error:  # noqa: BLE001 — any error of a library has to reach the caller
            message = _wire.encode({"problem": vars(_known(error, translate, request, limit).problem)})
        with contextlib.suppress(BrokenPipeError):
            _wire.send(answers, message)


def _known(
    error: Exception, translate: Callable[[Exception], OnnxsmithError], request: dict[str, Any], limit: int
) -> OnnxsmithError:
    """Turns a library's error into a problem. A shortage of memory becomes the same problem for every library."""
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, SystemError) or _call_limits.is_perhaps_shortage(said):
        return _crash(f"{request.get('of', 'it')} failed with a Python exception", request, said)
    known = error if isinstance(error, OnnxsmithError) else translate(error)
    if known.problem.id == "runtime/failed" and (
        _call_limits.is_shortage(said) or _call_limits.is_shortage(known.problem.why)
    ):
        what, asked = request.get("of", "it"), request.get("memory", 0)
        return _call_limits.shortage(what, limit, _request(request), known.problem.why, asked=asked)
    return known


def _crash(what: str, request: dict[str, Any], why: str) -> OnnxsmithError:
    return problem(
        "runtime/died",
        what,
        where=_request(request),
        why=why,
        fix=(
            "try another runtime (--runtime reference), or lower the optimisation level; report the crash to the "
            "makers of the runtime"
        )
        + _call_limits.perhaps_short(request.get("memory", 0)),
    )
