"""`onnxsmith mcp` with a client over its standard input and output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the SDK is an extra; make test-pythons leaves it out")

from tests.fleets import MINUTE, is_running, until
from tests.tool_server.sessions import call, models, received, send, started, with_session

OUTSIDE = {
    "absolute": ("inspect", {"model": "/etc/passwd"}),
    "runtime": ("compare", {"reference": "a.onnx", "candidate": "../outside.onnx@reference"}),
    "named-input": ("compare", {"reference": "a.onnx", "candidate": "b.onnx", "input": ["x=../x.npy"]}),
    "link": ("inspect", {"model": "link.onnx"}),
    "page": ("inspect", {"model": "a.onnx", "html": "../page.html"}),
    "output": ("simplify", {"model": "a.onnx", "output": "link.onnx"}),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    models(root)
    (tmp_path / "outside.onnx").write_bytes((root / "a.onnx").read_bytes())
    (root / "link.onnx").symlink_to("../outside.onnx")
    return root


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts servers, which end with the test."""
    servers: list[subprocess.Popen[bytes]] = []

    def begin(*words: Any) -> subprocess.Popen[bytes]:
        servers.append(started(*words))
        return servers[-1]

    yield begin
    for server in servers:
        server.kill()
        server.communicate()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_read_only_session(folder: Path) -> None:
    """Reads, compares and simplifies. The folder is as it was, and a verdict is an answer."""
    before, stages = names(folder), []

    async def progress(_done: float, _total: float | None, stage: str | None) -> None:
        stages.append(stage)

    async def steps(session: Any) -> None:
        listed = (await session.list_tools()).tools
        assert [one.name for one in listed] == [
            "export", "simplify", "compare", "inspect", "explain", "op", "diff", "check",
        ]  # fmt: skip
        found = await session.call_tool("inspect", {"model": "a.onnx"})
        assert (found.is_error, found.structured_content["verdict"]) == (False, "done")
        assert "Tanh" in found.content[0].text
        given = {"reference": "a.onnx", "candidate": "b.onnx"}
        found = await session.call_tool("compare", given, progress_callback=progress)
        assert (found.is_error, found.structured_content["verdict"]) == (False, "different")
        assert "verify/different" in found.content[0].text
        found = await session.call_tool("simplify", {"model": "a.onnx", "output": "small.onnx"})
        assert (found.structured_content["verdict"], found.structured_content["server"]["removed"]) == ("done", True)
        assert "no file was kept" in found.content[0].text
        written = next(one for one in found.structured_content["parts"] if one["kind"] == "written")
        assert list(written["files"]) == ["(not kept)/small.onnx"]
        found = await session.call_tool("export", {"model": "waits.py:build"})
        assert (found.is_error, found.structured_content["problems"][0]["id"]) == (True, "mcp/code")

    errors = with_session(folder, does=steps)
    assert names(folder) == before
    assert "verify" in stages
    assert "read-only" in errors
    assert "4 calls; the client has left" in errors


def test_a_session_that_writes(folder: Path) -> None:
    """A model and a whole report are kept. Nothing outside of the folder is read or written."""
    beside = names(folder.parent)

    async def steps(session: Any) -> None:
        given = {"model": "a.onnx", "output": "small.onnx", "report": ["report.json"]}
        found = await session.call_tool("simplify", given)
        assert (found.is_error, found.structured_content["server"]["removed"]) == (False, False)
        for name, arguments in OUTSIDE.values():
            found = await session.call_tool(name, arguments)
            assert (found.is_error, found.structured_content["problems"][0]["id"]) == (True, "mcp/outside"), arguments

    with_session(folder, "--write", does=steps)
    assert names(folder) == ["a.onnx", "b.onnx", "link.onnx", "report.json", "small.onnx", "waits.py"]
    assert names(folder.parent) == sorted([*beside, "errors"])


@pytest.mark.parametrize("leaves", ["closes", "kills", "terminates"])
def test_nothing_runs_when_the_client_has_left(folder: Path, start: Start, leaves: str) -> None:
    server = start(folder, "--allow-code")
    call(server, 1, "export", model="waits.py:build")
    until(lambda: (folder / "pids").exists())
    processes = [int(text) for text in (folder / "pids").read_text().split()]
    assert all(map(is_running, processes))
    if leaves == "closes":
        server.communicate(timeout=MINUTE)
    else:
        server.send_signal(signal.SIGKILL if leaves == "kills" else signal.SIGTERM)
        server.wait(MINUTE)
    until(lambda: not any(map(is_running, processes)))
    assert names(folder) == ["a.onnx", "b.onnx", "link.onnx", "pids", "waits.py"]


def test_a_cancelled_call_ends_its_process_and_the_session_goes_on(folder: Path, start: Start) -> None:
    """Standard output has the messages of the protocol only."""
    server = start(folder, "--allow-code")
    call(server, 1, "export", model="waits.py:build")
    until(lambda: (folder / "pids").exists())
    processes = [int(text) for text in (folder / "pids").read_text().split()]
    send(server, "notifications/cancelled", {"requestId": 1})
    until(lambda: not any(map(is_running, processes)))
    call(server, 2, "explain", id="save/no-folder")
    answers = [received(server)]
    while answers[-1]["id"] != 2:
        answers.append(received(server))
    assert answers[-1]["result"]["structuredContent"]["verdict"] == "done"
    assert server.communicate(timeout=MINUTE)[0] == b""


def test_half_of_a_character_is_answered(folder: Path, start: Start) -> None:
    server = start(folder)
    call(server, 1, "inspect", model="half\ud800.onnx")
    answer = received(server)
    assert answer["id"] == 1
    assert answer["result"]["structuredContent"]["problems"][0]["id"] == "model/not-found"


def test_a_client_that_reads_no_answers_has_left(folder: Path, start: Start) -> None:
    server = start(folder)
    assert server.stdout is not None
    server.stdout.close()
    call(server, 1, "explain", id="save/no-folder")
    assert server.wait(MINUTE) == 0
    server.stdout = None  # for communicate()


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_server_without_a_client_ends(folder: Path, closed: str) -> None:
    command = f"echo | {sys.executable} -m onnxsmith mcp . {closed}"
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("0 calls; the client has left\n")


def test_a_process_without_a_report(folder: Path) -> None:
    """It takes too long, it crashes, or it prints something else."""
    crash = "import os, signal\n\ndef build():\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    (folder / "crashes.py").write_text(crash)
    ids = []

    async def steps(session: Any) -> None:
        for model in ("waits.py:build", "crashes.py:build"):
            found = await session.call_tool("export", {"model": model})
            assert found.is_error
            ids.append(found.structured_content["problems"][0]["id"])

    with_session(folder, "--allow-code", "--time-limit", "15", does=steps)
    assert ids == ["mcp/time-limit", "mcp/no-report"]


def test_code_in_the_folder_is_not_loaded(folder: Path) -> None:
    """Modules of the folder hide no module of onnxsmith, of a library or of the standard library."""
    for name in ("numpy", "onnxsmith", "json", "typing", "onnxruntime", "sitecustomize"):
        (folder / f"{name}.py").write_text(f"open({os.fspath(folder / 'loaded')!r}, 'w')\n")

    async def steps(session: Any) -> None:
        found = await session.call_tool("compare", {"reference": "a.onnx", "candidate": "a.onnx"})
        assert found.structured_content["verdict"] == "done"
        assert not (folder / "loaded").exists()

    with_session(folder, does=steps)
