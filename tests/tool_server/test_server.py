"""The command `mcp`: what it needs, what it tells an agent, and how many calls run at once."""

from __future__ import annotations

import errno
import importlib.util
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.cli.commands.mcp import Mcp
from onnxsmith.cli.tool_server.answers import failure
from onnxsmith.cli.tool_server.calls import Calls, environment
from onnxsmith.cli.tool_server.command_line import Permissions
from onnxsmith.cli.tool_server.root import Root
from onnxsmith.cli.tool_server.tools import tools
from onnxsmith.cli.usage_schema import usage
from onnxsmith.fleet import step_process
from onnxsmith.runtimes import _web_package


def test_the_sdk_is_an_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without it, `onnxsmith mcp` says what to install, before it imports anything."""
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp" else known(name))
    with pytest.raises(OnnxsmithError) as raised:
        Mcp(str(tmp_path)).refuse()
    assert raised.value.problem.id == "mcp/not-installed"
    assert 'pip install "onnxsmith[mcp]"' in raised.value.problem.fix


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        Mcp(str(tmp_path / "absent")).refuse()
    assert raised.value.problem.id == "mcp/no-folder"


def test_a_full_disk_is_an_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What nobody foresaw fails the call, and says why."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/mcp")

    monkeypatch.setattr(step_process, "run", full)
    calls = Calls(tools(usage(), write=False, code=False), Root(tmp_path.resolve()), Permissions(), 60.0)
    found = calls.run("op", {"name": "Relu"}, step_process.Watch(lambda _stage: None))
    assert found.is_error
    assert "run/disk-full" in found.text
    unknown = calls.run("simplfy", {}, step_process.Watch(lambda _stage: None))
    assert "call simplify" in unknown.text


def test_node_and_python_load_nothing_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative entry of PYTHONPATH would mean the folder of the model, in which the process runs."""
    package = tmp_path / "node_modules" / "onnxruntime-web"
    monkeypatch.delenv(_web_package.VARIABLE, raising=False)
    monkeypatch.setattr(_web_package, "package", lambda: package)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["lib", "", "/opt/lib"]))
    found = environment(Root(tmp_path), Permissions())
    assert found["PYTHONSAFEPATH"] == "1"
    assert found["PYTHONPATH"].split(os.pathsep)[1:] == [str(Path.cwd() / "lib"), "/opt/lib"]
    assert found[_web_package.VARIABLE] == os.devnull
    assert environment(Root(tmp_path / "models"), Permissions())[_web_package.VARIABLE] == str(package)
    assert _web_package.VARIABLE not in environment(Root(tmp_path), Permissions(code=True))


def test_an_agent_is_told_how_to_read_a_verdict(tmp_path: Path) -> None:
    server = sdk()
    text = server.instructions(Root(tmp_path), Permissions())
    assert "is read-only" in text
    assert 'Do not say "equal"' in text
    assert "---" not in text.partition("#")[0]
    assert "keeps the files" in server.instructions(Root(tmp_path), Permissions(write=True))


def test_two_calls_run_at_once() -> None:
    import anyio

    server, lock, running, most = sdk(), threading.Lock(), [0], [0]

    def run(*_: Any) -> Any:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.02)  # the others would begin, if they could
        with lock:
            running[0] -= 1
        return failure("op", Problem("a/b", "it failed"))

    async def several() -> None:
        call = SimpleNamespace(name="op", arguments={})
        limiter = anyio.CapacityLimiter(server._AT_ONCE)
        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(server._called, SimpleNamespace(run=run), call, None, limiter)

    with ThreadPoolExecutor(1) as pool:  # playwright leaves an event loop running in the thread of the tests
        pool.submit(anyio.run, several).result()
    assert most == [2]


def sdk() -> Any:
    pytest.importorskip("mcp", reason="the SDK is an extra")
    from onnxsmith.cli.tool_server import server

    return server
