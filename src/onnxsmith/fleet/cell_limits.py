"""Makes the memory limit of a plan hold in the runtimes of a step, too, and names it where memory ran out."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from onnxsmith.base.words import byte_count, size
from onnxsmith.runtimes._call_limits import MEMORY, in_force, is_shortage, shortage

_ADVICE = re.compile(rf"{MEMORY}=(\w+)(?: \(0 for no limit\))?")
_ALLOWS = f"{MEMORY} allows"
_OF_PLAN = "memory_limit of the plan"


def variables(limit: int) -> Mapping[str, str]:
    """Returns the environment variables of a step under a limit in bytes; 0 for none. A runtime in its own process
    takes its limit from a variable, which may allow less than the plan, and not more."""
    if not limit:
        return {}
    own = _own()
    if own is None:  # the step refuses it, and says why
        return {}
    return {MEMORY: str(min(limit, own or limit))}


def _own() -> int | None:
    """Returns the limit of the environment variable in bytes, 0 for none; None if it is no size."""
    text = os.environ.get(MEMORY, "").strip()
    return byte_count(text) if text else 0


def advice(text: str, limit: int) -> str:
    """Returns a text with the key of the plan in place of the variable, if the plan's limit was in force: `limit` in
    bytes, 0 for none."""
    own = _own()
    if not limit or (own and own < limit):
        return text
    return _ADVICE.sub(r'memory_limit = "\1" in the plan', text.replace(_ALLOWS, f"{_OF_PLAN} allows"))


def told(report: dict[str, Any], verb: str, limit: int) -> dict[str, Any]:
    """Returns the report of a step, as plain data. If its first error is a lack of memory in the process of the step
    itself, under a limit in bytes, the problem becomes one that names the limit."""
    first, *others = report.get("problems") or [{}]
    said = ": ".join(str(first.get(name)) for name in ("what", "why") if first.get(name))
    if not limit or report["verdict"] != "failed" or first.get("id") == "runtime/memory" or not is_shortage(said):
        return report
    where = str(first.get("where") or "")
    found = shortage(verb, in_force(limit), where, said, asked=limit, by=_OF_PLAN).problem
    remedies = [vars(one) for one in found.remedies]
    return {**report, "problems": [{**vars(found), "tried": [], "remedies": remedies}, *others]}


def ran_out(limit: int) -> str:
    """Returns how a process ended that ran out of memory without a report. `limit` is in bytes, 0 for none."""
    if not limit:
        return "the process ran out of memory"
    if in_force(limit) < limit:
        return "the process ran out of the memory that this machine had free"
    return f"the process needed more than the {size(limit)} that {_OF_PLAN} allows"
