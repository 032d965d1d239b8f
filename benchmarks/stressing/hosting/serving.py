"""Hosts that serve requests: a Jupyter kernel, and a server that forks its workers as gunicorn does."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from stressing.hosting import calls, growth
from stressing.hosting.work import Finding, Work

WARM, ROUND = calls.WARM, len(calls.ROUND)
RESTARTS = 5
"""How often the workers are replaced."""
_CELLS = """
import json, sys
from pathlib import Path
sys.path.insert(0, {path!r})
from stressing.hosting import growth, libraries
from stressing.hosting.work import Work
libraries.start(Path({models!r}), "after")
work = Work(Path({models!r}), limit={limit})
"""


def jupyter(work: Work, count: int) -> list[Finding]:
    """A kernel of Jupyter: each call is a cell. The kernel has an event loop, streams without a file, and threads."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", extra_arguments=["--HistoryManager.enabled=False"])
    printed: list[str] = []

    def hook(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    def cell(code: str) -> str:
        printed.clear()
        done = client.execute_interactive(code, output_hook=hook, timeout=3 * work.limit)
        if done["content"]["status"] != "ok":
            raise RuntimeError(
                f"{done['content'].get('evalue')}: {' '.join(done['content'].get('traceback', ()))[-900:]}"
            )
        return "".join(printed)

    def sample(done: int, *, settle: bool) -> growth.Sample:
        text = cell(f"print('[SAMPLE]' + json.dumps(growth.sample({done}, settle={settle}).data()))")
        return growth.Sample(**{name: as_tuple(one) for name, one in json.loads(text.partition("[SAMPLE]")[2]).items()})

    try:
        root = str(Path(__file__).parents[2])
        cell(_CELLS.format(path=root, models=str(work.models), limit=work.limit))
        for number in range(WARM):
            cell(f"work.call({number})")
        samples = [sample(0, settle=True)]
        for number in range(count):
            cell(f"work.call({WARM + number})")
            if (number + 1) % ROUND == 0:
                samples.append(sample(number + 1, settle=number + 1 >= count))
        wrong = json.loads(cell("print('[WRONG]' + json.dumps(work.wrong))").partition("[WRONG]")[2])
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return [Finding("kernel", samples, wrong)]


def as_tuple(value: Any) -> Any:
    """Returns a list of JSON as a sample holds it."""
    return tuple(value) if isinstance(value, list) else value


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers `GET /17` with what call 17 did."""

    work: Work
    samples: list[growth.Sample]
    answered: list[str]

    def do_GET(self) -> None:
        self.work.call(int(self.path[1:]))
        self.answered.append(self.path)
        said, self.work.wrong[:] = list(self.work.wrong), []
        if len(self.answered) % 5 == 0:
            self.samples.append(growth.of_worker(len(self.answered)))
            said += growth.complaints([self.samples[0], self.samples[-1]], memory=False)
        body = json.dumps({"pid": os.getpid(), "wrong": said}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Prints nothing."""


def _worker(listening: socket.socket, work: Work) -> None:
    """Serves requests until SIGTERM, which lets the current request end."""
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    server = http.server.HTTPServer(listening.getsockname(), _Handler, bind_and_activate=False)
    server.socket.close()
    server.socket, server.timeout = listening, 0.2
    _Handler.work, _Handler.samples, _Handler.answered = work, [], []
    while not ended:
        server.handle_request()
    sys.exit(0)


def _asked(port: int, number: int, limit: float) -> dict[str, Any]:
    for _ in range(20):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=limit)
        try:
            connection.request("GET", f"/{number}")
            found: dict[str, Any] = json.loads(connection.getresponse().read())
            return found
        except (ConnectionError, http.client.BadStatusLine):  # a worker was replaced
            time.sleep(0.1)
        except TimeoutError:
            return {"pid": 0, "wrong": [f"request {number} had no answer in {limit:g} s"]}
        finally:
            connection.close()
    return {"pid": 0, "wrong": [f"request {number}: no worker accepts it"]}


def _client(port: int, count: int, master: int, report: Path, limit: float) -> None:
    """Sends requests, two at a time, and signals to the master; writes what was wrong."""
    from concurrent.futures import ThreadPoolExecutor

    wrong, pids = [], set()
    with ThreadPoolExecutor(2) as pool:
        each = max(1, count // RESTARTS)
        for first in range(0, count, each):
            for found in pool.map(lambda n: _asked(port, n, limit + 30), range(first, min(count, first + each))):
                pids.add(found["pid"])
                wrong += found["wrong"]
            os.kill(master, signal.SIGHUP)
            time.sleep(1)
    report.write_text(json.dumps({"wrong": wrong, "pids": len(pids)}))
    os.kill(master, signal.SIGTERM)


class _Master:
    """Keeps two workers. SIGHUP replaces them, one of them by SIGKILL; SIGTERM ends everything."""

    def __init__(self, listening: socket.socket, work: Work) -> None:
        self.listening, self.work = listening, work
        self.workers: list[int] = []
        self.asked: list[int] = []
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, lambda number, _: self.asked.append(number))

    def start(self) -> None:
        """Forks a worker."""
        pid = os.fork()
        if pid:
            self.workers.append(pid)
            return
        try:
            _worker(self.listening, self.work)
        except SystemExit:
            import atexit

            atexit._run_exitfuncs()  # as a worker of gunicorn, which ends like a program
            os._exit(0)
        finally:
            os._exit(1)

    def end(self) -> None:
        """Ends the workers, the first one by SIGKILL, and waits for them."""
        for pid, number in zip(self.workers, (signal.SIGKILL, signal.SIGTERM), strict=True):
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                os.kill(pid, number)  # again, because a new worker still has the handler of the master
                time.sleep(0.1)
        self.workers.clear()

    def serve(self) -> list[growth.Sample]:
        """Keeps the workers until SIGTERM. Returns a sample for each replacement."""
        samples = []
        while True:
            while len(self.workers) < 2:
                self.start()
            while not self.asked:
                time.sleep(0.05)
            number = self.asked.pop(0)
            if number in (signal.SIGHUP, signal.SIGTERM):
                self.end()
                samples.append(growth.sample(len(samples)))
            if number == signal.SIGTERM:
                return samples


def prefork(work: Work, count: int) -> list[Finding]:
    """A master that imports everything, makes calls, and forks two workers. They answer requests over HTTP; SIGHUP
    replaces them."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.2)
    report, master = work.models / "client.json", os.getpid()
    client = os.fork()
    if client == 0:
        try:
            while not report.with_suffix(".ready").exists():
                time.sleep(0.1)
            _client(listening.getsockname()[1], count, master, report, work.limit)
        finally:
            os._exit(0)
    for number in range(WARM):
        work.call(number)
    first = growth.sample(0, settle=True)
    serving = _Master(listening, work)
    report.with_suffix(".ready").touch()
    served = serving.serve()
    os.waitpid(client, 0)
    said = json.loads(report.read_text())
    last = growth.sample(count, settle=True)
    print(f"{said['pids']} workers answered, {len(served)} times replaced")
    return [Finding("master", [first, last], [*work.wrong, *said["wrong"]], memory=False)]
