"""What the actions of a baseline can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnxsmith.verification.inputs.user_inputs import Inputs

SECONDS = 3.0
"""Sets the seconds in which a model is measured. A choice: enough for eight rounds of a model of some megabytes."""
ALLOW = 0.05
"""Sets the share by which a file may grow, and a time. A choice, that of `bench`."""


@dataclass(frozen=True)
class Settings:
    """Holds the options: what is recorded, and what is allowed."""

    inputs: Inputs = ()
    runtime: str | None = None
    targets: Sequence[str] = ()
    times: bool = True
    seconds: float = SECONDS
    seed: int = 0
    allow: float = ALLOW
    allow_size: float = ALLOW


USUAL = Settings()
