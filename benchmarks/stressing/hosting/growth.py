"""What a process holds, and whether that grows from call to call."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

MOST_MEGABYTES = 2.0
"""The megabytes that 200 calls may add."""
CALLS = 200
_PATIENCE = 60.0
"""Seconds in which everything that belongs to past calls has to end. A runtime waits 20 s for the next model."""


@dataclass(frozen=True)
class Sample:
    """What a process holds after some calls. Lists are names: folders, files in shared memory, open files."""

    calls: int
    megabytes: float
    descriptors: tuple[str, ...]
    threads: int
    children: tuple[str, ...]
    folders: tuple[str, ...]
    shared: tuple[str, ...]
    hooks: int

    def data(self) -> dict[str, Any]:
        """Returns the sample as JSON data."""
        return asdict(self)


def sample(calls: int, *, settle: bool = False) -> Sample:
    """Measures this process. With `settle`, waits until no child and no folder of past calls is left."""
    end = time.monotonic() + _PATIENCE
    while settle and (_runtimes() or _has_own(os.environ["TMPDIR"])) and time.monotonic() < end:
        time.sleep(0.2)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    threads = len(_names("/proc/self/task"))
    folders, shared = _names(os.environ["TMPDIR"]), _names("/dev/shm")
    return Sample(calls, _megabytes(), _descriptors(), threads, _children(), folders, shared, atexit._ncallbacks())


def _names(folder: str) -> tuple[str, ...]:
    return tuple(sorted(one.name for one in Path(folder).iterdir()))


def of_worker(calls: int) -> Sample:
    """Measures one of several processes that use the same folder of temporary files. Ends its idle runtimes first, so
    that their files and threads are not counted."""
    from onnxsmith.runtimes import _idle

    _idle.end_all()
    for one in threading.enumerate():
        if isinstance(one, threading.Timer):
            one.join(5)
    return replace(sample(calls), folders=())


def _has_own(folder: str) -> bool:
    return any(name.startswith("onnxsmith-") for name in _names(folder))


def _megabytes() -> float:
    """Returns the anonymous memory. Private memory says nothing about a fork: it grows as the fork writes to pages that
    it shared with its parent. The anonymous memory of a fork has these pages from the start."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    return int(lines["Anonymous"].split()[0]) / 1024


def _descriptors() -> tuple[str, ...]:
    found = []
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the descriptor of the listing
            found.append(str(file.readlink()))
    return tuple(sorted(found))


def _runtimes() -> list[str]:
    """Returns the children that are not of `multiprocessing`, whose resource tracker lives as long as its parent."""
    return [one for one in _children() if "multiprocessing" not in one and "main;main(" not in one]


def _children() -> tuple[str, ...]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            numbers = (task / "children").read_text().split()
            found += [Path(f"/proc/{one}/cmdline").read_text().replace("\0", " ")[-60:] or "zombie" for one in numbers]
    return tuple(sorted(found))


def slope(samples: Sequence[Sample]) -> float:
    """Returns the megabytes that 200 calls add: the slope of a least-squares line through the samples."""
    mean = sum(one.calls for one in samples) / len(samples)
    over = sum((one.calls - mean) ** 2 for one in samples)
    return CALLS * sum((one.calls - mean) * one.megabytes for one in samples) / over if over else 0.0


def _more(before: Sequence[str], after: Sequence[str]) -> list[str]:
    left = list(after)
    for one in before:
        if one in left:
            left.remove(one)
    return left


def grown(samples: Sequence[Sample], *, memory: bool = True) -> dict[str, float]:
    """Returns what 200 calls added, by its kind: megabytes, and counts from the first sample to the last one."""
    first, last = samples[0], samples[-1]
    counts = {
        "descriptors": len(last.descriptors) - len(first.descriptors),
        "threads": last.threads - first.threads,
        "children": len(last.children) - len(first.children),
        "folders": len(last.folders) - len(first.folders),
        "shared": len(_more(first.shared, last.shared)),
        "hooks": last.hooks - first.hooks,
    }
    return {"MB": slope(samples) if memory else 0.0, **counts}


def complaints(samples: Sequence[Sample], *, memory: bool = True) -> list[str]:
    """Returns what grew, with names where there are names."""
    found = grown(samples, memory=memory)
    megabytes = found.pop("MB")
    said = [f"{megabytes:.1f} MB more in {CALLS} calls"] if megabytes > MOST_MEGABYTES else []
    for kind, count in found.items():
        if count > 0:
            names = (
                _more(getattr(samples[0], kind), getattr(samples[-1], kind)) if kind not in ("threads", "hooks") else []
            )
            said.append(f"{count:g} {kind} more" + (f": {'; '.join(names[:3])}" if names else ""))
    return said


def largest_types() -> dict[str, int]:
    """Returns how many objects of each type the collector knows."""
    counts: dict[str, int] = {}
    for one in gc.get_objects():
        name = f"{type(one).__module__}.{type(one).__qualname__}"
        counts[name] = counts.get(name, 0) + 1
    return counts


def explain(before: dict[str, int]) -> None:
    """Prints the types whose objects became more."""
    after = largest_types()
    more = sorted(((count - before.get(name, 0), name) for name, count in after.items()), reverse=True)
    print("objects:", ", ".join(f"{name} +{count}" for count, name in more[:15] if count > 0), file=sys.stderr)
