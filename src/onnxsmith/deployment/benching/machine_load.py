"""Measures how busy other processes keep the machine during a measurement."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from onnxsmith.base.system import machine
from onnxsmith.base.system.machine import Counters

_BUSY = 0.1
"""Names the share of processor time taken by other processes from which a machine is called busy. A choice: an idle
desktop takes 1 to 3 percent."""


@dataclass(frozen=True)
class Busy:
    """Holds shares of processor time taken by other processes (`others`) and, in a virtual machine, by other machines
    on the host (`stolen`). Also holds the load average at the beginning. None is unknown."""

    load: float | None
    others: float | None
    stolen: float | None

    @property
    def disturbs(self) -> bool:
        """Whether other processes disturb the measurement."""
        return any(share is not None and share > _BUSY for share in (self.others, self.stolen))


@dataclass
class Watch:
    """Watches the load from its creation on. Counts the time of this process, and of its children once they have
    ended."""

    load: float | None = field(default_factory=lambda: machine.HERE.load())
    _wall: float = field(default_factory=time.monotonic)
    _all: Counters | None = field(default_factory=lambda: machine.HERE.counters())
    _own: float = field(default_factory=lambda: sum(os.times()[:4]))

    def seen(self) -> Busy:
        """Returns the shares since the beginning."""
        now, wall = machine.HERE.counters(), (time.monotonic() - self._wall) * machine.HERE.cores()
        if now is None or self._all is None or wall <= 0:
            return Busy(self.load, None, None)
        others = (now.busy - self._all.busy - (sum(os.times()[:4]) - self._own)) / wall
        return Busy(self.load, min(max(others, 0.0), 1.0), max((now.stolen - self._all.stolen) / wall, 0.0))
