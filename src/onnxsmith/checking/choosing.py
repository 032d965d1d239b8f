"""Finds targets by the names that users give: software to ask, and profiles."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from onnxsmith import rooms
from onnxsmith.problem import problem
from onnxsmith.profiles import reading
from onnxsmith.profiles.profile import Profile
from onnxsmith.profiles.releases import AT, release
from onnxsmith.targets.base import Target

ALL = "all"
PROFILE = "profile:"
"""In front of the name of a user's own file."""


def chosen(names: Sequence[str]) -> dict[str, Target | Profile]:
    """The targets of these names: software, built-in profiles, a version of a runtime (`onnxruntime@1.17`),
    `profile:FILE.toml`. For `all` the software and the built-in profiles.

    Raises:
        OnnxsmithError: `target/unknown`; `profile/…` for a file that is no profile.
    """
    software = rooms.members("onnxsmith.targets", Target)
    known = {**software, **dict.fromkeys(reading.built_in())}
    wanted = [one for name in names for one in (known if name == ALL else [name])]
    found: dict[str, Target | Profile] = {}
    for name in dict.fromkeys(wanted):
        if name.startswith(PROFILE):
            found[name] = reading.read(Path(name.removeprefix(PROFILE)))
        elif AT in name:
            found[name] = release(name)
        elif name in software:
            found[name] = software[name]
        elif name in known:
            found[name] = reading.named(name)
        else:
            near = difflib.get_close_matches(name, known, 1)
            raise problem(
                "target/unknown",
                f"there is no target {name!r}",
                fix=f"write --target {(near or list(known))[0]}; there are {', '.join(known)}, {ALL} and "
                f"{PROFILE}FILE.toml",
            )
    return found
