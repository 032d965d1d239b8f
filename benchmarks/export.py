"""`export` beside plain torch: the same modules, each file held to its module by ONNX Runtime.

    python benchmarks/export.py [--suites ops modules transformers_models opsets torchvision_models] [--only NAME …]
                                [--tools torch torchscript ours capture] [--jobs 2] [--timeout 300]
                                [--folder .bench-export] [--list STATUS]

A case is right when every call of it is: the file is written, loads, and answers as the module does, with the same
dtypes and shapes, at other sizes of a dynamic axis too. It is `wrong` when a file was written that answers otherwise,
`invalid` when ONNX Runtime does not take it, `refused` when nothing was written, `crashed` when the process died.
What was measured is kept in FOLDER/SUITE.jsonl by a hash of the sources, and is not measured again; `--list` names the
cases of a status and why.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from queue import Empty, Queue
from typing import Any

HERE = Path(__file__).parent
ORDER = ("crashed", "wrong", "invalid", "refused", "right")
"""The worst call of a case is the case's status."""


class Worker:
    """A process of `exporting.worker`, begun anew when it dies or takes too long."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.process: subprocess.Popen[str] | None = None

    def measure(self, suite: str, name: str, tools: Sequence[str]) -> list[dict[str, Any]]:
        """A record for each call and tool; tools one by one, so that one that dies takes no other along."""
        return [record for tool in tools for record in self._tool(suite, name, tool)]

    def _tool(self, suite: str, name: str, tool: str) -> list[dict[str, Any]]:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(self.timeout, process.kill)
        timer.start()
        records: dict[str, dict[str, Any]] = {}
        try:
            process.stdin.write(json.dumps({"suite": suite, "name": name, "tools": [tool]}) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                found = json.loads(line)
                if "done" in found:
                    return list(records.values())
                records[found["call"]] = found
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
        code = process.wait()
        self.process = None
        why = f"crashed: exit {code}, or longer than {self.timeout:g} s"
        return [
            {**record, "status": why if record["status"] == "started" else record["status"]}
            for record in records.values()
        ] or [{"call": "-", "tool": tool, "status": why}]

    def _running(self) -> subprocess.Popen[str]:
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "exporting.worker"],
                cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        return self.process


def sources() -> str:
    """A hash of what decides a result."""
    digest = hashlib.sha256()
    for path in sorted([*(HERE.parent / "src").rglob("*.py"), *(HERE / "exporting").glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def run(suite: str, names: Sequence[str], tools: Sequence[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures what is not known for these sources, and gives every record."""
    store = options.folder / f"{suite}.jsonl"
    options.folder.mkdir(parents=True, exist_ok=True)
    stamp = sources()
    known: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in store.read_text().splitlines() if store.exists() else []:
        record = json.loads(line)
        if record["sources"] == stamp or record["tool"] in ("torch", "torchscript"):
            known.setdefault((record["name"], record["tool"]), []).append(record)
    queue: Queue[tuple[str, list[str]]] = Queue()
    for name in names:
        missing = [tool for tool in tools if (name, tool) not in known]
        if missing:
            queue.put((name, missing))
    lock, total = threading.Lock(), queue.qsize()

    def work() -> None:
        worker = Worker(options.timeout)
        while True:
            try:
                name, missing = queue.get_nowait()
            except Empty:
                return
            found = [{**r, "name": name, "sources": stamp} for r in worker.measure(suite, name, missing)]
            with lock, store.open("a") as file:
                for record in found:
                    known.setdefault((name, record["tool"]), []).append(record)
                    file.write(json.dumps(record) + "\n")
                said = ", ".join(f"{tool} {worst(known.get((name, tool), []))[:90]}" for tool in missing)
                print(f"{total - queue.qsize()}/{total} {name}: {said}", flush=True)

    threads = [threading.Thread(target=work) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [record for (name, tool), found in known.items() if name in set(names) and tool in tools for record in found]


def worst(records: Sequence[dict[str, Any]]) -> str:
    """The status of a case: that of its worst call; `none` when eager PyTorch takes no call of it."""
    return min((r["status"] for r in records), key=lambda s: ORDER.index(s.partition(":")[0]), default="none")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suites", nargs="+", default=["ops", "modules", "transformers_models", "opsets"])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--tools", nargs="+", default=["torch", "ours"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--folder", type=Path, default=Path(".bench-export"))
    parser.add_argument("--list", dest="listed", nargs="*", default=[])
    options = parser.parse_args()
    sys.path.insert(0, str(HERE))
    for suite in options.suites:
        names = import_module(f"exporting.{suite}").names()
        if options.only:
            names = [name for name in names if name in options.only]
        records = run(suite, names, options.tools, options)
        for tool in options.tools:
            by_name = {name: worst([r for r in records if r["name"] == name and r["tool"] == tool]) for name in names}
            counts = Counter(status.partition(":")[0] for status in by_name.values())
            said = ", ".join(f"{status} {count}" for status, count in counts.most_common())
            print(f"{suite} of {len(names)}, {tool}: {said}")
            for name, status in by_name.items():
                if status.partition(":")[0] in options.listed:
                    print(f"  {name}: {status}")


if __name__ == "__main__":
    main()
