"""A process that exports and judges what it is told, a case a line: `python -m exporting.worker`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any


def main() -> None:
    """Reads `{"suite", "name", "tools"}` and writes a line for each call and tool, then `{"done": name}`."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what exporters print is no answer
    sys.path.insert(0, str(Path(__file__).parent.parent))
    import torch

    torch.set_num_threads(1)
    for line in sys.stdin:
        asked = json.loads(line)
        for found in _measured(asked):
            print(json.dumps(found), file=answer, flush=True)
        print(json.dumps({"done": asked["name"]}), file=answer, flush=True)


def _measured(asked: dict[str, Any]) -> Any:
    from exporting.exporters import export
    from exporting.judge import judge

    suite = import_module(f"exporting.{asked['suite']}")
    for call in _calls(suite, asked["name"]):
        for tool in asked["tools"]:
            began = time.process_time()
            with tempfile.TemporaryDirectory(prefix="export-") as folder:
                path = Path(folder) / "model.onnx"
                yield {"call": call.label, "tool": tool, "status": "started"}
                try:
                    export(tool, call, path)
                    status = judge(call, path)
                except Exception as error:  # noqa: BLE001 — that is what is measured
                    status = f"refused: {_say(error)}"
            seconds = round(time.process_time() - began, 3)
            yield {"call": call.label, "tool": tool, "status": status, "cpu": seconds}


def _calls(suite: Any, name: str) -> Any:
    """The calls; none where this machine cannot make them, as of an operator for GPUs."""
    try:
        yield from suite.calls(name)
    except Exception as error:  # noqa: BLE001 — torch's own samples
        print(f"{name}: no calls, {_say(error)}", file=sys.stderr)


def _say(error: BaseException) -> str:
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    text = " ".join(f"{error} | {type(cause).__name__}: {cause}".split())
    return text if len(text) < 700 else f"{text[:300]} … {text[-400:]}"


if __name__ == "__main__":
    main()
