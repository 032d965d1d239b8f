"""Measures the cases of one package: `python -m packages.worker PACKAGE`, a request on each line of standard input.

The package is imported once. Each exporter, and the judge, runs in a process forked from that one, under a limit of
time and of memory; what it leaves behind ends with it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS = 90
"""Processor time for one export; a choice: ten times what most models take. It is kept on a busy machine too."""
WALL = 5 * SECONDS
"""Ends what waits without computing."""
MEMORY = 8 << 30
"""Bytes of private memory (RLIMIT_DATA) that an exporter may take. A choice: the largest model here has 60 MB."""


def main() -> None:
    """Reads `{"case": NAME, "tools": […]}`, answers with a record for each tool."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what exporters print is no answer
    warm()
    from packages.case import cases

    known = cases(sys.argv[1])
    print(json.dumps(list(known)), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(measured(known[asked["case"]], asked["tools"])), file=answers, flush=True)


def warm() -> None:
    """Imports what every export needs, before the fork."""
    import torch

    torch.set_num_threads(1)
    import onnxscript  # noqa: F401
    import torch.onnx._internal.exporter._core
    import torch.onnx.symbolic_opset18
    import torchvision  # noqa: F401

    import onnxsmith.exporter.export_run  # noqa: F401


def measured(case: Any, tools: list[str]) -> dict[str, dict[str, Any]]:
    """A record for each tool: verdict, why, warned, seconds."""
    from packages.exporters import EXPORTERS
    from packages.judge import judge

    with tempfile.TemporaryDirectory(prefix="packages-") as folder:
        records: dict[str, dict[str, Any]] = {}
        case.module()  # imports what the package imports late, whose warnings are no exporter's
        for tool in tools:
            path = Path(folder) / f"{tool}.onnx"
            records[tool] = apart(lambda tool=tool, path=path: exported(EXPORTERS[tool], case, path), Path(folder))
            if "error" in records[tool] or not path.exists():
                why = records[tool].pop("error", "no error, and no file")
                records[tool] |= {"verdict": "none", "why": why}
        files = {tool: Path(folder) / f"{tool}.onnx" for tool in tools if "verdict" not in records[tool]}
        judged = apart(lambda: judge(case, files), Path(folder)) if files else {}
        for tool in files:
            records[tool] |= judged.get(tool, {"verdict": "unjudged", "why": judged.get("error", "")})
    return records


def exported(export: Callable[[Any, Path], str], case: Any, path: Path) -> dict[str, Any]:
    """Exports once; what it warned of, and how long it took."""
    heard: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    for name in ("torch", "onnxscript"):
        logging.getLogger(name).addHandler(handler)
    began = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        notes = export(case, path)
    heard += [str(one.message) for one in caught if not issubclass(one.category, (DeprecationWarning, FutureWarning))]
    return {"seconds": round(time.monotonic() - began, 1), "warned": [notes, *heard] if notes else heard}


def apart(work: Callable[[], dict[str, Any]], folder: Path) -> dict[str, Any]:
    """What `work` returns in a forked process; `{"error": why}` if it raised, died or took too long."""
    answer = folder / "answer.json"
    answer.unlink(missing_ok=True)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        try:
            found = work()
        except BaseException as error:  # noqa: BLE001  # that is what is measured
            found = {"error": said(error), "trace": traceback.format_exc()[-3000:]}
        answer.write_text(json.dumps(found))
        os._exit(0)
    status = waited(child, began)
    if answer.exists():
        found = json.loads(answer.read_text())
    elif status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        found = {"error": f"took longer than {SECONDS} s of processor time, or {WALL} s"}
    else:
        found = {"error": f"died with status {status}"}
    found.setdefault("seconds", round(time.monotonic() - began, 1))
    return found


def waited(child: int, began: float) -> int | None:
    """The exit status; None if the process was killed because its time was over."""
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # its own children
            return status
        if time.monotonic() - began > WALL:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.05)


def said(error: BaseException) -> str:
    """The message with its cause, cut."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    problem = getattr(error, "problem", None)
    name = problem.id if problem is not None else type(error).__name__
    text = " ".join(f"{name}: {problem.what if problem is not None else error}".split())
    if cause is not error and problem is None:
        text += f" | {type(cause).__name__}: {' '.join(str(cause).split())}"
    return text if len(text) < 600 else f"{text[:300]} … {text[-300:]}"


if __name__ == "__main__":
    main()
