"""Reads the output of onnxruntime's profiler and of its optimiser. Runs in the child process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_SUFFIX = "_kernel_time"


def kernels(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the kernels of each run (`runs`), and the microseconds of each run (`whole`), from the profiler's events.

    A kernel is (name, operator, provider, microseconds). The event of a node with a body contains the events of the
    body. The times of the body are subtracted from the node's time. The events of one thread are nested or follow each
    other.
    """
    complete = [event for event in events if event.get("ph") == "X" and "ts" in event]
    wholes = sorted((e for e in complete if e["name"] == "model_run"), key=lambda e: e["ts"])
    # Of events that begin at the same time, the longer one contains the others.
    found = sorted((e for e in complete if e["name"].endswith(_SUFFIX)), key=lambda e: (e["ts"], -e["dur"]))
    own = _own_times(found)
    runs: list[list[tuple[str, str, str, float]]] = [[] for _ in wholes]
    at = 0
    for event, time in zip(found, own, strict=True):
        while at + 1 < len(wholes) and event["ts"] >= wholes[at]["ts"] + wholes[at]["dur"]:
            at += 1
        args = event.get("args", {})
        if runs:
            name = event["name"].removesuffix(_SUFFIX)
            runs[at].append((name, args.get("op_name", ""), args.get("provider", ""), time))
    return {"runs": runs, "whole": [float(e["dur"]) for e in wholes]}


def _own_times(found: list[dict[str, Any]]) -> list[float]:
    """Returns the duration of each event without the events inside it. `found` is sorted by the beginning of the
    events."""
    own = [float(event["dur"]) for event in found]
    open_: dict[Any, list[int]] = {}
    for index, event in enumerate(found):
        around = open_.setdefault(event.get("tid"), [])
        while around and event["ts"] >= found[around[-1]]["ts"] + found[around[-1]]["dur"]:
            around.pop()
        if around:
            own[around[-1]] -= float(event["dur"])
        around.append(index)
    return [max(time, 0.0) for time in own]  # times are rounded, so the inner ones may sum up to more


def nodes(path: Path) -> list[dict[str, Any]]:
    """Returns the nodes of a model: name, operator, inputs, outputs. Nodes of branches and bodies come after their
    owner."""
    import onnx_ir as ir

    from onnxsmith.graph.structure import walk

    return [
        {
            "name": node.name or "",
            "op": node.op_type,
            "inputs": [value.name for value in node.inputs if value is not None],
            "outputs": [value.name for value in node.outputs if value.name],
        }
        for node in walk.nodes(ir.load(path).graph)
    ]
