"""Speaks the Model Context Protocol over standard input and output, with the official SDK."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from typing import Any, TextIO, cast

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from onnxsmith._version import __version__
from onnxsmith.base.printable import json_printable
from onnxsmith.base.system import children, unanswered_signals
from onnxsmith.cli.tool_server.calls import Calls
from onnxsmith.cli.tool_server.command_line import Permissions
from onnxsmith.cli.tool_server.root import Root
from onnxsmith.cli.tool_server.tools import Tool, tools
from onnxsmith.fleet.step_process import StoppedError, Watch

_AT_ONCE = 2
"""Limits the calls that run at once; others wait. A choice: a call may use all cores and much memory."""

_CHUNK = 65_536
"""Limits the bytes that are read at once. The same as the buffer of a pipe under Linux."""


def serve(root: Root, permissions: Permissions, seconds: float, output: TextIO) -> int:
    """Serves until the client closes standard input, and returns the number of calls. `seconds` limits the time of each
    call. `output` takes the messages of the protocol."""
    calls = Calls(tools(_usage(), write=permissions.write, code=permissions.code), root, permissions, seconds)
    with _source() as (source, leave):
        count: int = anyio.run(_serve, calls, source, cast("TextIO", _Answers(output, leave)))
        return count


@contextmanager
def _source() -> Iterator[tuple[TextIO, Callable[[], None]]]:
    """Yields what the client writes to standard input, and a function that ends it as if the client had left. SIGINT,
    SIGTERM and SIGHUP do the same: a thread that reads standard input cannot be stopped, and the server would wait for
    it."""
    inner, outer = socket.socketpair()

    def copy() -> None:
        with suppress(OSError):
            while data := os.read(0, _CHUNK):
                outer.sendall(data)
            outer.shutdown(socket.SHUT_WR)

    def leave() -> None:
        with suppress(OSError):
            outer.shutdown(socket.SHUT_WR)

    before = {number: signal.signal(number, lambda *_: leave()) for number in unanswered_signals.ENDING}
    threading.Thread(target=copy, daemon=True).start()
    try:
        with inner, inner.makefile("r", encoding="utf-8", errors="replace", newline="\n") as source:
            yield cast("TextIO", _Lines(source)), leave
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        outer.close()


class _Lines:
    """Reads lines without halves of characters. JSON can write such a half, as in `"\\ud800"`, but the SDK does not
    read it, and the client would wait for an answer for ever."""

    def __init__(self, source: TextIO) -> None:
        self._source = source

    def readline(self) -> str:
        """Returns the next line, with `?` in place of halves of characters."""
        line = self._source.readline()
        if r"\ud" in line.lower():
            with suppress(ValueError, RecursionError):  # the SDK says what is wrong with such a line
                line = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace").decode() + "\n"
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class _Answers:
    """Writes answers until nobody reads them. Then the client has left, also if it has not closed standard input."""

    def __init__(self, stream: TextIO, leave: Callable[[], None]) -> None:
        self._stream = stream
        self._leave = leave

    def write(self, text: str) -> None:
        """Writes an answer."""
        self._unless_closed(self._stream.write, json_printable(text))

    def flush(self) -> None:
        """Sends what was written."""
        self._unless_closed(self._stream.flush)

    def _unless_closed(self, send: Callable[..., object], *given: str) -> None:
        try:
            send(*given)
        except BrokenPipeError:
            self._leave()


def instructions(root: Root, permissions: Permissions) -> str:
    """Returns what the server tells an agent: its limits, and the package's `SKILL.md`."""
    skill = (files("onnxsmith") / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)[-1].strip()
    writes = "keeps the files that calls write" if permissions.write else "is read-only: no file is kept"
    code = "runs Python files" if permissions.code else "refuses what runs Python files (`export`, `file.py:factory`)"
    return (
        f"This server runs onnxsmith's commands as tools in the folder {root.folder}. It {writes}, and {code}. Paths "
        "are relative to that folder, and none may lead out of it. Arguments are called as the options of the command "
        f"line, with _ in place of -. The answer has the report as data, so --json is not needed.\n\n{skill}"
    )


def _usage() -> dict[str, Any]:
    """Returns the description of the command line, which a process prints: commands do not know their own list."""
    printed = children.HERE.run(
        [sys.executable, "-P", "-m", "onnxsmith", "--json-usage"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    printed.check_returncode()
    usage: dict[str, Any] = json.loads(printed.stdout)
    return usage


async def _serve(calls: Calls, source: TextIO, output: TextIO) -> int:
    limiter = anyio.CapacityLimiter(_AT_ONCE)
    count = 0

    async def listed(_context: Any, _parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(one, calls.permissions) for one in calls.tools.values()])

    async def called(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        nonlocal count
        count += 1
        return await _called(calls, parameters, context.session.report_progress, limiter)

    server: Server[Any] = Server(
        "onnxsmith",
        version=__version__,
        instructions=instructions(calls.root, calls.permissions),
        on_list_tools=listed,
        on_call_tool=called,
    )
    streams = stdio_server(anyio.wrap_file(source), anyio.wrap_file(output))
    async with streams as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
    return count


async def _called(
    calls: Calls, parameters: types.CallToolRequestParams, progress: Callable[..., Any], limiter: anyio.CapacityLimiter
) -> types.CallToolResult:
    """Runs a call in a thread. Ends its process if the client cancels the call or leaves."""
    stages = 0

    def hear(stage: str) -> None:
        nonlocal stages
        stages += 1
        with suppress(RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError):  # the client has left
            anyio.from_thread.run(progress, float(stages), None, stage)

    watch = Watch(hear)
    try:
        answer = await anyio.to_thread.run_sync(
            calls.run, parameters.name, parameters.arguments or {}, watch, abandon_on_cancel=True, limiter=limiter
        )
    except StoppedError:
        raise anyio.get_cancelled_exc_class() from None
    finally:
        watch.stop()
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=answer.data,
        is_error=answer.is_error,
    )


def _listed(tool: Tool, permissions: Permissions) -> types.Tool:
    is_safe = not permissions.write and not permissions.code
    return types.Tool(
        name=tool.verb,
        description=tool.description,
        input_schema=tool.schema(),
        annotations=types.ToolAnnotations(read_only_hint=is_safe, open_world_hint=permissions.code),
    )
