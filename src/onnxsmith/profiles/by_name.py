"""Finds a profile by the name that a user gives: a built-in one, a stated version of a runtime, a file."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.profiles import reading
from onnxsmith.profiles.profile import Profile
from onnxsmith.profiles.releases import AT, release

FILE = "profile:"
"""In front of the name of a user's own file."""


def by_name(name: str) -> Profile | None:
    """The profile of `tensorrt-10`, `onnxruntime@1.17` or `profile:board.toml`; None for a name of no profile.

    Raises:
        OnnxsmithError: `profile/…` for a file that is no profile, or a version that is not known.
    """
    if name.startswith(FILE):
        return reading.read(Path(name.removeprefix(FILE)))
    if AT in name:
        return release(name)
    return reading.named(name) if name in reading.built_in() else None
