"""What the actions of a baseline can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnxsmith.base.problem import problem
from onnxsmith.deployment.benching.bench_options import refuse_no_time
from onnxsmith.graph.structure.dim_ranges import Asked, Size, read
from onnxsmith.verification.inputs.user_inputs import Inputs
from onnxsmith.verification.rounding import is_usable, refuse_unusable

SECONDS = 2.0
"""Sets the seconds in which a model is measured. A choice: with eight rounds, of which each starts a process, a small
model takes three to five seconds. docs/benchmarks.md has the intervals."""
ALLOW = 0.05
"""Sets the share by which a time may grow. A choice, that of `bench`."""
ALLOW_SIZE = 0.05
"""Sets the share by which a file may grow, beside the bytes that any file may grow by. A choice."""


@dataclass(frozen=True)
class Settings:
    """Holds the options: what is recorded, and what is allowed. `sizes` are those of generated inputs; `tolerance` is
    the allowed difference of all float outputs, None for the one that rounding explains. `allow_size` is the share by
    which a file may grow, exactly; None for `ALLOW_SIZE` or 1 KiB, whichever is more.

    Raises:
        OnnxsmithError: `verify/tolerance`, `input/syntax` for a limit with which nothing could be found.
    """

    inputs: Inputs = ()
    sizes: Asked = ()
    runtime: str | None = None
    targets: Sequence[str] = ()
    tolerance: float | None = None
    times: bool = True
    seconds: float = SECONDS
    seed: int = 0
    allow: float = ALLOW
    allow_size: float | None = None

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            refuse_unusable(self.tolerance)
        if self.times:
            refuse_no_time(self.seconds)
        for name, share in (("allow", self.allow), ("allow_size", self.allow_size)):
            if share is not None and not is_usable(share):
                raise problem("input/syntax", f"{name}={share:g} is not a share", fix=f"write {name}=0.05 for 5%")

    def time_option(self, *, timed: bool) -> str:
        """Returns what a proposed command needs at its end so that it adds no times: if this run has measured none, and
        none are recorded (`timed`)."""
        return "" if self.times or timed else " --no-time"


USUAL = Settings()


def size_texts(asked: Asked) -> dict[str, str]:
    """Returns sizes as the texts that a baseline stores: `4`, `1..16` or `1:4:16`.

    Raises:
        OnnxsmithError: the errors of reading the sizes.
    """
    return {name: _text(size) for name, size in read(asked).items()}


def _text(size: Size) -> str:
    usual = None if isinstance(size, int) else size.usual
    return str(size) if isinstance(size, int) or usual is None else f"{size.least}:{usual}:{size.most}"
