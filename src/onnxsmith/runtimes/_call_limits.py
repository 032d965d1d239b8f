"""Limits the memory and time of one call of a runtime.

A model of two hundred bytes can ask for terabytes, or for an endless loop. A runtime in its own process runs under
limits, so such a model ends in a Problem and does not make the machine swap.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.system import machine, memory_limit
from onnxsmith.base.words import byte_count, size

MEMORY = "ONNXSMITH_MEMORY_LIMIT"
"""Names the environment variable for the limit in bytes: `500MB`, `16GB` in units of 1000, `16GiB` in units
of 1024; 0 for no limit."""
OF_PLAN = "_ONNXSMITH_MEMORY_LIMIT_OF_PLAN"
"""Names the environment variable that `fleet` sets in a step whose memory limit is `memory_limit` of the plan: messages
name this key, and not the variable."""
TIME = "ONNXSMITH_TIME_LIMIT"
"""Names the environment variable for the limit in seconds; 0 for no limit."""
PATIENCE = 600.0
"""Limits the seconds of a run that the user asked for; runs on a verification's own inputs get less time. A choice."""

_LEAST_MEMORY = 4 * 2**30
"""Counts the bytes that every process may take. A choice: 4 GiB."""
_BY_MODEL = 8
"""Counts the bytes of memory for each byte of the model. A runtime holds the file, its weights, and a copy of the
weights packed for its kernels; in float64 all of these take twice as much."""
_BY_FEEDS = 64
"""Counts the bytes of memory for each byte of input. An image of 3 channels becomes a tensor of 64 channels, which a
convolution may unroll. A choice."""
_LEAST_TIME = 60.0
"""Counts the seconds that every call may take. A choice."""
_BYTES_A_SECOND = 10_000_000
"""Counts the bytes of model and input for which each further second is allowed. A choice: a slow runtime on a slow
machine."""
_REFUSALS = re.compile(
    r"std::bad_alloc|std::length_error|MemoryError|[Ff]ailed to allocate|Unable to allocate|[Cc]annot allocate memory"
    r"|vector::_M_default_append|vector::reserve|array is too big|out of memory|memory allocation of \d+ bytes failed"
    r"|RESOURCE_EXHAUSTED|Tensor shape is too large|Array buffer allocation failed|Arena alloc failed"
)
_PERHAPS = re.compile(r"can't start new thread|failed to map segment from shared object")


_end: ContextVar[tuple[float, float] | None] = ContextVar("end", default=None)
"""Holds the time at which the calls of a block have to end, and the seconds of the block."""


@contextmanager
def within(budget: float) -> Iterator[None]:
    """Limits the seconds of all calls in the block together. A call after the end raises `runtime/timeout`. An outer
    block may end earlier."""
    outer = _end.get()
    end = time.monotonic() + budget
    token = _end.set((end, budget) if outer is None or end < outer[0] else outer)
    try:
        yield
    finally:
        _end.reset(token)


def is_over() -> bool:
    """Whether the seconds of `within` have passed."""
    end = _end.get()
    return end is not None and time.monotonic() >= end[0]


def remaining() -> float:
    """Returns the seconds that `within` leaves, at least 0; infinity outside such a block."""
    end = _end.get()
    return math.inf if end is None else max(0.0, end[0] - time.monotonic())


def left(limit: float) -> float:
    """Returns the seconds of one call: `limit` (0 for no limit), or what `within` leaves if that is less.

    Raises:
        OnnxsmithError: `runtime/timeout` if nothing is left.
    """
    end = _end.get()
    if end is None:
        return limit
    rest = end[0] - time.monotonic()
    if rest <= 0:
        raise problem(
            "runtime/timeout",
            f"all runs of this check together took longer than the limit of {end[1]:g} seconds",
            fix="give a smaller input, or name a faster runtime",
        )
    return min(limit, rest) if limit else rest


def memory(asked: int | None, *, model: int, feeds: int = 0) -> int:
    """Returns the bytes of memory that the process may take, 0 for no limit. This is `asked`, else the environment
    variable, else a limit that grows with `model` and `feeds` (both in bytes).

    Raises:
        OnnxsmithError: `runtime/bad-limit` if the environment variable is not a size.
    """
    if asked is not None:
        return asked
    text = os.environ.get(MEMORY, "").strip()
    if not text:
        return max(_LEAST_MEMORY, _BY_MODEL * model + _BY_FEEDS * feeds)
    count = byte_count(text)
    if count is None:
        raise _bad(MEMORY, text, "a size: 16GB, 500MB, 16GiB, or 0 for no limit")
    return count


def seconds(asked: float | None, *, model: int, feeds: int = 0, slowness: float = 1.0) -> float:
    """Returns the seconds that one call may take, 0 for no limit. The limit is chosen as in `memory`. `slowness` is the
    runtime's, as in `Isolated.slowness`."""
    if asked is not None:
        return asked
    return _seconds_by_environment(slowness * (_LEAST_TIME + (model + feeds) / _BYTES_A_SECOND))


def patient() -> float:
    """Returns the seconds for a call that the user asked for, on the user's own inputs."""
    return _seconds_by_environment(PATIENCE)


def _seconds_by_environment(otherwise: float) -> float:
    text = os.environ.get(TIME, "").strip()
    if not text:
        return otherwise
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise _bad(TIME, text, "a number of seconds, or 0 for no limit")
    return found


def _bad(name: str, text: str, wanted: str) -> OnnxsmithError:
    return problem(
        "runtime/bad-limit", f"{name} is {text!r}", where=f"the environment variable {name}", fix=f"give {wanted}"
    )


_WANTED = re.compile(
    r"buffer of size (\d+)|tried to allocate (\d+) bytes|Unable to allocate (\d[\d.]* [KMGT]iB)"
    r"|allocation of (\d+) bytes"
)
"""Matches the bytes that could not be had, as onnxruntime, torch, numpy and Rust write them."""


def is_shortage(said: str) -> bool:
    """Whether a library's message says that memory ran out."""
    return _REFUSALS.search(said) is not None


def is_perhaps_shortage(said: str) -> bool:
    """Whether a library's message says that the process broke in a way that a lack of memory explains, among others."""
    return _PERHAPS.search(said) is not None


def shortage(what: str, limit: int, where: str, why: str, *, asked: int = 0, of_plan: bool = False) -> OnnxsmithError:
    """Returns the problem of a runtime that needed more than `limit` bytes. `asked` is the limit that was asked for, 0
    for `limit`: a lower one comes from the memory that the machine had free. `of_plan` says that the limit is that of
    a fleet's plan, although this process is none of its steps."""
    is_free, of_plan = limit < asked, of_plan or OF_PLAN in os.environ
    return problem(
        "runtime/memory",
        f"{what} needed {beyond(limit, is_free=is_free, of_plan=of_plan)}",
        where=where,
        why=why,
        fix=f"give a smaller input; or {_of_machine(why) if is_free else _more(limit, why, of_plan=of_plan)}",
    )


def beyond(limit: int, *, is_free: bool, of_plan: bool) -> str:
    """Returns which limit in bytes was not enough: that of the free memory, of the plan, or of this process."""
    if not limit:
        return "more memory than the machine has"
    if is_free:
        share = "the share of this machine's free memory that the process may use, within `ulimit -v`"
        return f"more than {size(limit)}: {share}"
    by = "memory_limit of the plan" if of_plan else MEMORY if os.environ.get(MEMORY, "").strip() else ""
    return f"more than the {size(limit)} that {f'{by} allows' if by else 'the process may use'}"


def setting(limit: str, *, of_plan: bool | None = None) -> str:
    """Returns how to set the memory limit: by the environment variable, or in the plan of the fleet."""
    of_plan = OF_PLAN in os.environ if of_plan is None else of_plan
    return f'memory_limit = "{limit}" in the plan' if of_plan else f"{MEMORY}={limit}"


def in_force(asked: int) -> int:
    """Returns the limit of a process that was started under the limit `asked`: no more than a share of the free memory.
    0 for none."""
    most = memory_limit.HERE.most()
    return min(asked, most) if asked and most is not None else asked


def perhaps_short(limit: int) -> str:
    """Returns further advice for a crash without a message: a library may also crash because it gets no memory."""
    if not limit:
        return ""
    limit = in_force(limit)
    return f"; if memory was short (the process may use {size(limit)}), {_more(limit, of_plan=OF_PLAN in os.environ)}"


def _more(limit: int, said: str = "", *, of_plan: bool) -> str:
    """Returns advice to raise the limit, within what the machine has."""
    if _is_too_large(said):
        return _other_machine()
    wanted, total = _next(limit, said), machine.HERE.memory()
    if total is not None and total < wanted * 10**9:
        wanted = total // 10**9
        if wanted * 10**9 <= limit:
            return _other_machine()
    none = " (0 for no limit)" if said and not of_plan else ""
    return f"allow more: {setting(f'{wanted}GB', of_plan=of_plan)}{none}"


def _of_machine(said: str) -> str:
    """Returns advice where the free memory of the machine was the limit: a higher limit would change nothing."""
    if _is_too_large(said):
        return _other_machine()
    return "end other programs, or run fewer at the same time, so that more memory is free; or use a larger machine"


def _is_too_large(said: str) -> bool:
    """Whether the allocation that failed, which the message names, is larger than the machine."""
    total, wanted = machine.HERE.memory(), _allocation(said)
    return total is not None and wanted > 0 and wanted > total


def _other_machine() -> str:
    total = machine.HERE.memory() or 0
    return f"use a machine with more memory than {size(total)}"


def _allocation(said: str) -> int:
    """Returns the bytes that the message says could not be had, 0 if it names none."""
    return sum(byte_count(text) or 0 for found in _WANTED.findall(said) for text in found if text)


def _next(limit: int, said: str = "") -> int:
    """Returns the limit to try next, in GB: twice the limit, or room for the allocation that failed if the message
    names it."""
    wanted = _allocation(said)
    return max(8, 2 * math.ceil(limit / 1e9), math.ceil((limit + 2 * wanted) / 1e9) if wanted else 0)
