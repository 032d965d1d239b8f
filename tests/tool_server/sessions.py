"""A client of the server over its standard input and output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

import onnxsmith
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

MODEL = (
    '<ir_version: 10, opset_import: ["": 20]> g (float[n,4] x) => (float[n,4] y) '
    "{ a = Identity(x) b = %s(a) y = Relu(b) }"
)
PATHS = os.pathsep.join(
    [str(Path(onnxsmith.__file__).parents[1]), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
)
WAITS = """
import os, subprocess, time
from pathlib import Path

def build():
    helper = subprocess.Popen(["sleep", "1000"])
    Path("new").write_text(f"{os.getpid()} {helper.pid}")
    Path("new").rename("pids")
    time.sleep(1000)
"""
"""A module whose factory starts a process, writes both process ids, and waits."""


def models(folder: Path) -> None:
    """Writes two models that differ, and a module whose factory does not return."""
    save(from_text(MODEL % "Tanh"), folder / "a.onnx")
    save(from_text(MODEL % "Sigmoid"), folder / "b.onnx")
    (folder / "waits.py").write_text(WAITS)


def run_alone(does: Callable[[], Awaitable[None]]) -> None:
    """Runs a coroutine in a thread of its own: playwright leaves an event loop running in the thread of the tests."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(anyio.run, does).result()


def with_session(folder: Path, *options: str, does: Callable[[ClientSession], Awaitable[None]]) -> str:
    """Starts a server, lets a client of the SDK do something, and ends it. Returns the server's standard error."""

    async def run() -> None:
        words = ["-m", "onnxsmith", "mcp", str(folder), *options]
        server = StdioServerParameters(command=sys.executable, args=words, env={"PYTHONPATH": PATHS})
        with (folder.parent / "errors").open("w") as errors:
            async with (
                stdio_client(server, errors) as (incoming, outgoing),
                ClientSession(incoming, outgoing) as session,
            ):
                await session.initialize()
                await does(session)

    run_alone(run)
    return (folder.parent / "errors").read_text()


def started(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """A server with which a test speaks the protocol itself, after the handshake."""
    server = subprocess.Popen(
        [sys.executable, "-m", "onnxsmith", "mcp", str(folder), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": PATHS},
    )
    send(
        server,
        "initialize",
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
        id=0,
    )
    assert received(server)["id"] == 0
    send(server, "notifications/initialized")
    return server


def send(server: subprocess.Popen[bytes], method: str, params: dict[str, Any] | None = None, **more: Any) -> None:
    assert server.stdin is not None
    message = {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {}), **more}
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()


def call(server: subprocess.Popen[bytes], id_: int, name: str, **arguments: Any) -> None:
    send(server, "tools/call", {"name": name, "arguments": arguments}, id=id_)


def received(server: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The next message of the server. Raises if the line is none."""
    assert server.stdout is not None
    message: dict[str, Any] = json.loads(server.stdout.readline())
    assert message["jsonrpc"] == "2.0"
    return message
