"""Finds a profile by the name that a user gives: a built-in one, a stated version of a runtime, a file."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.targets.profiles import profile_reader
from onnxsmith.targets.profiles.profile_format import Profile
from onnxsmith.targets.profiles.releases import AT, release

FILE = "profile:"
"""In front of the name of a user's own file."""


def by_name(name: str) -> Profile | None:
    """The profile of `tensorrt-10`, `onnxruntime@1.17` or `profile:board.toml`; None for a name of no profile.

    Raises:
        OnnxsmithError: `profile/…` for a file that is no profile, or a version that is not known.
    """
    if name.startswith(FILE):
        return profile_reader.read(Path(name.removeprefix(FILE)))
    if AT in name:
        return release(name)
    return profile_reader.named(name) if name in profile_reader.built_in() else None
