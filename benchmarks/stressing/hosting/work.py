"""Calls in a host: each has a time limit, has to raise or not to raise, and must leave the host's state as it was."""

from __future__ import annotations

import faulthandler
import os
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stressing.hosting import calls, growth, process_state

LIMIT = 60.0
"""Seconds that a call may take. A call that waits for a lock which nobody holds any more never ends."""
SAMPLES = 4
"""The samples from which the growth of memory counts: those of 60 calls."""
HUNG = 70
"""The exit status of a process in which a call took longer."""


@dataclass
class Finding:
    """What a process found about itself: `samples` after some calls, and what went wrong."""

    who: str
    samples: list[growth.Sample] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    memory: bool = True

    def all_wrong(self) -> list[str]:
        """Returns what went wrong, and what grew. The memory counts from `SAMPLES` samples on: a slope through fewer is
        that of the last warm-up."""
        memory = self.memory and len(self.samples) >= SAMPLES
        return [
            *dict.fromkeys(self.wrong),
            *(growth.complaints(self.samples, memory=memory) if self.samples else ()),
        ]

    def data(self) -> dict[str, Any]:
        """Returns the finding as JSON data."""
        return {
            "who": self.who,
            "wrong": self.all_wrong(),
            "grown": growth.grown(self.samples, memory=self.memory) if self.samples else {},
            "calls": self.samples[-1].calls if self.samples else 0,
        }


class Work:
    """Makes calls in this process, and in the processes that it forks."""

    def __init__(self, models: Path, *, limit: float = LIMIT) -> None:
        self.models, self.limit = models, limit
        self.wrong: list[str] = []
        self.active: dict[int, float] = {}
        """Holds when each call that runs now began, by its thread."""
        self._watched = 0
        self.slowest = (0.0, "")

    def call(self, number: int, *, alone: bool = True) -> None:
        """Makes call `number`. If it is not `alone`, other calls of this process run at the same time: then only the
        state of this thread is compared."""
        name, call, round_ = calls.at(number)
        self._watch()
        state = process_state.state if alone else process_state.of_thread
        folder = Path(tempfile.mkdtemp(prefix="out-", dir=self.models))
        before, thread = state(), threading.get_ident()
        self.active[thread] = begun = time.monotonic()
        raised: BaseException | None = None
        try:
            call(calls.Files(self.models, folder, round_))
        except Exception as error:  # noqa: BLE001 — what it raises is compared
            raised = error
        finally:
            del self.active[thread]
            self.slowest = max(self.slowest, (time.monotonic() - begun, name))
            shutil.rmtree(folder)
        if (raised is not None) != (call in calls.REFUSED):
            self.wrong.append(f"{name}: {'no error' if raised is None else ' '.join(repr(raised).split())[:300]}")
        del raised
        self.wrong += [f"{name} changed: {one}" for one in process_state.changed(before, state())]

    def quiet(self) -> None:
        """Waits until no call runs, such as that of a cancelled task."""
        while self.active:
            time.sleep(0.01)

    def finding(self, who: str, samples: list[growth.Sample], *, memory: bool = True) -> Finding:
        """Returns what was found until now."""
        return Finding(who, samples, self.wrong, memory)

    def _watch(self) -> None:
        if self._watched != os.getpid():  # a fork has no threads of its parent
            self._watched = os.getpid()
            self.active, self.wrong = {}, []
            threading.Thread(target=self._end_if_hung, name="time limit", daemon=True).start()

    def _end_if_hung(self) -> None:
        while True:
            time.sleep(0.5)
            if any(time.monotonic() - begun > self.limit for begun in list(self.active.values())):
                print(f"a call took longer than {self.limit:g} s", file=sys.__stderr__, flush=True)
                faulthandler.dump_traceback(sys.__stderr__ or 2)
                os._exit(HUNG)


def in_rounds(work: Work, count: int, *, warm: int = calls.WARM) -> list[growth.Sample]:
    """Makes `warm` calls, then `count` more. Returns a sample for each round."""
    for number in range(warm):
        work.call(number)
    samples = [growth.sample(0, settle=True)]
    types = growth.largest_types() if "ONNXSMITH_HOSTS_EXPLAIN" in os.environ else None
    for number in range(count):
        work.call(warm + number)
        if (number + 1) % len(calls.ROUND) == 0 and number + 1 < count:
            samples.append(growth.sample(number + 1))
    samples.append(growth.sample(count, settle=True))
    if types is not None:
        growth.explain(types)
        print([round(one.megabytes, 1) for one in samples], file=sys.stderr)
    return samples
