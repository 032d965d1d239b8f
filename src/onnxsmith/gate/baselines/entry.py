"""What a baseline holds of a model: plain data, as the text file has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class StoredOutput:
    """A recorded output. `tolerance` is the allowed difference relative to its largest magnitude, None if it has to be
    equal. Of an output that is drawn at `random` only dtype and shape are recorded."""

    value: dict[str, Any]
    tolerance: float | None = None
    random: bool = False


@dataclass(frozen=True)
class StoredCase:
    """A recorded input with its outputs. Values are described as `golden_files.described` does; their bytes are in the
    data file."""

    label: str
    sizes: dict[str, int]
    inputs: dict[str, dict[str, Any]]
    outputs: dict[str, StoredOutput]


@dataclass(frozen=True)
class StoredPort:
    """An input or output of the model. `shape` is None if the rank is unknown."""

    name: str
    dtype: str
    shape: list[int | str] | None
    kind: str = "tensor"
    default: bool = False
    keys: str = ""
    many: bool = False


@dataclass(frozen=True)
class StoredTarget:
    """The stage that a target reached, for which sizes, in which version. `changed` is the change that it needed."""

    stage: str
    shapes: str = "dynamic"
    version: str = ""
    changed: str = ""


@dataclass(frozen=True)
class StoredTimes:
    """The time of a run in seconds with its interval, the peak of the memory in bytes, and the figures that `bench`
    saves. The interval is None if there were too few rounds. `one_thread` are the figures of one thread; None on a
    machine of one core, and for a runtime that accepts no number of threads."""

    median: float
    low: float | None
    high: float | None
    memory: int | None
    figures: dict[str, Any]
    one_thread: dict[str, Any] | None = None


@dataclass(frozen=True)
class Acceptance:
    """A change that was accepted: when, why, and what had changed."""

    date: str
    reason: str
    changed: list[str]


@dataclass(frozen=True)
class Dropped:
    """A model whose entry was dropped: when, and why."""

    model: str
    date: str
    reason: str


@dataclass(frozen=True)
class Entry:
    """All that is recorded of a model. `file` is the digest of its file and of its external data; `graph`, `weights`
    and `whole` are those of `digests`. `bytes` counts those of the `model` and of its `data` files. `not_stored` names
    values of dtypes that cannot be stored. `sizes` and `tolerance` are those that were asked for. `outline` names the
    outline of the model in the data file. `digest` is that of all other fields (`baseline_text.sealed`)."""

    interface: dict[str, list[StoredPort]]
    nodes: dict[str, int]
    bytes: dict[str, int]
    digests: dict[str, str]
    runtime: str
    versions: dict[str, str]
    machine: dict[str, str]
    cases: list[StoredCase]
    targets: dict[str, StoredTarget] = field(default_factory=dict)
    times: StoredTimes | None = None
    not_stored: list[str] = field(default_factory=list)
    history: list[Acceptance] = field(default_factory=list)
    sizes: dict[str, str] = field(default_factory=dict)
    tolerance: float | None = None
    outline: str = ""
    digest: str = ""

    def names(self, which: str) -> list[str]:
        """Returns the names of the `inputs` or `outputs`."""
        return [port.name for port in self.interface[which]]

    @property
    def size(self) -> int:
        """Returns the bytes of the file and its external data."""
        return sum(self.bytes.values())

    @property
    def node_count(self) -> int:
        """Returns the number of nodes."""
        return sum(self.nodes.values())


Entries = Mapping[str, Entry]
"""Maps the names of models, relative to the folder of the baseline, to what is recorded."""


def paired(before: Sequence[str], after: Sequence[str]) -> dict[str, str]:
    """Maps recorded names of inputs or outputs to those of now: the same name if there is one. Other names are paired
    in their order, if there are as many."""
    gone = [name for name in before if name not in after]
    fresh = [name for name in after if name not in before]
    found = {name: name for name in before if name in after}
    return found | (dict(zip(gone, fresh, strict=True)) if len(gone) == len(fresh) else {})
