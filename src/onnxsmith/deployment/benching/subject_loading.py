"""Opens a subject in a new process, and measures the time and memory of loading it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxsmith.base.system import usage
from onnxsmith.deployment.benching.subject_preparation import Ready
from onnxsmith.runtimes._timing import Timer
from onnxsmith.runtimes.base import Preparer, Session


@dataclass(eq=False)
class Opened:
    """Holds a prepared session. `load` is in seconds; `imported` and `loaded` are the process's memory in bytes, before
    and after loading. Both memory figures are None for a runtime without a process of its own."""

    ready: Ready
    session: Session
    preparer: Preparer
    process: int | None
    load: float
    imported: int | None
    loaded: int | None
    timer: Timer | None = None

    def hold(self, values: Mapping[str, Any]) -> Timer:
        """Returns the timer for these inputs, given under the lead's names."""
        self.timer = self.session.timer(self.ready.own(values))
        return self.timer

    def peak(self) -> int | None:
        """Returns the largest memory of the process so far, in bytes above its memory with only the library
        imported."""
        most = usage.HERE.peak(self.process) if self.process is not None else None
        return None if most is None or self.imported is None else max(most - self.imported, 0)

    def close(self) -> None:
        """Ends the session and the process."""
        self.session.close()
        self.preparer.close()


def opened(ready: Ready) -> Opened:
    """Prepares the subject in a process that has imported only its library.

    Raises:
        OnnxsmithError: the errors of the runtime.
    """
    preparer = ready.subject.preparer(ready.side)
    try:
        process = preparer.start()
        imported = usage.HERE.resident(process) if process is not None else None
        begin = time.perf_counter()
        session = preparer.prepare(ready.side.source, ready.subject.options, interface=ready.side.interface)
        around = time.perf_counter() - begin
        load = float(getattr(session, "head", {}).get("seconds", around))
        loaded = usage.HERE.resident(process) if process is not None else None
        above = None if loaded is None or imported is None else max(loaded - imported, 0)
        return Opened(ready, session, preparer, process, load, imported, above)
    except BaseException:
        preparer.close()
        raise
