"""Makes the memory limit of a plan hold in the runtimes of a step, too, and names it where memory ran out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from onnxsmith.base.words import byte_count
from onnxsmith.runtimes._call_limits import MEMORY, OF_PLAN, beyond, in_force, is_shortage, shortage


def variables(limit: int) -> Mapping[str, str]:
    """Returns the environment variables of a step under a limit in bytes; 0 for none. A runtime in its own process
    takes its limit from a variable, which may allow less than the plan, and not more."""
    if not limit:
        return {}
    own = _own()
    if own is None:  # the step refuses it, and says why
        return {}
    return {MEMORY: str(own)} if own and own < limit else {MEMORY: str(limit), OF_PLAN: "1"}


def _own() -> int | None:
    """Returns the limit of the environment variable in bytes, 0 for none; None if it is no size."""
    text = os.environ.get(MEMORY, "").strip()
    return byte_count(text) if text else 0


def told(report: dict[str, Any], verb: str, limit: int) -> dict[str, Any]:
    """Returns the report of a step, as plain data. If its first error is a lack of memory in the process of the step
    itself, under a limit in bytes, the problem becomes one that names the limit."""
    first, *others = report.get("problems") or [{}]
    said = ": ".join(str(first.get(name)) for name in ("what", "why") if first.get(name))
    if not limit or report["verdict"] != "failed" or first.get("id") == "runtime/memory" or not is_shortage(said):
        return report
    where = str(first.get("where") or "")
    found = shortage(verb, in_force(limit), where, said, asked=limit, of_plan=True).problem
    remedies = [vars(one) for one in found.remedies]
    return {**report, "problems": [{**vars(found), "tried": [], "remedies": remedies}, *others]}


def ran_out(limit: int) -> str:
    """Returns how a process ended that ran out of memory without a report. `limit` is in bytes, 0 for none."""
    if not limit:
        return "the process ran out of memory"
    if in_force(limit) < limit:
        return "the process ran out of the memory that this machine had free"
    return f"the process needed {beyond(limit, is_free=False, of_plan=True)}"
