"""Makes the memory limit of a plan hold in the runtimes of a step, too, and lets their advice name it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from onnxsmith.base.words import byte_count
from onnxsmith.runtimes._call_limits import MEMORY

_ADVICE = re.compile(rf"{MEMORY}=(\w+)(?: \(0 for no limit\))?")


def variables(limit: int) -> Mapping[str, str]:
    """Returns the environment variables of a step under a limit in bytes; 0 for none. A runtime in its own process
    takes its limit from a variable, which may allow less than the plan, and not more."""
    if not limit:
        return {}
    text = os.environ.get(MEMORY, "").strip()
    own = byte_count(text) if text else 0
    if own is None:  # the step refuses it, and says why
        return {}
    return {MEMORY: str(min(limit, own or limit))}


def advice(text: str) -> str:
    """Returns a text with the key of the plan in place of the variable that would raise the limit."""
    return _ADVICE.sub(r'memory_limit = "\1" in the plan', text)
