"""Finds a profile by the user's name for it: a built-in profile, a release of a runtime, or a file."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.targets.profiles import profile_reader
from onnxsmith.targets.profiles.profile_format import Profile
from onnxsmith.targets.profiles.releases import AT, release

FILE = "profile:"
"""Is the prefix of the name of a user's own file."""


def by_name(name: str) -> Profile | None:
    """Returns the profile of a name such as `tensorrt-10`, `onnxruntime@1.17` or `profile:board.toml`; None if there is
    no such profile.

    Raises:
        OnnxsmithError: `profile/…` for a file that is no profile, or an unknown version.
    """
    if name.startswith(FILE):
        return profile_reader.read(Path(name.removeprefix(FILE)))
    if AT in name:
        return release(name)
    return profile_reader.named(name) if name in profile_reader.built_in() else None
