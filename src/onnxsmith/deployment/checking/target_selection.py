"""Finds targets by the names that users give. A target is software to ask, or a profile."""

from __future__ import annotations

from collections.abc import Sequence

from onnxsmith.base import rooms
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import problem
from onnxsmith.targets.judges.base import Target
from onnxsmith.targets.profiles import profile_reader
from onnxsmith.targets.profiles.profile_format import Profile
from onnxsmith.targets.profiles.profile_reader import FILE, by_name

ALL = "all"


def chosen(names: Sequence[str]) -> dict[str, Target | Profile]:
    """Returns the targets of these names: software, built-in profiles, a version of a runtime (`onnxruntime@1.17`), or
    `profile:FILE.toml`. `all` stands for the software and the built-in profiles.

    Raises:
        OnnxsmithError: `target/unknown`; `profile/…` for a file that is no profile.
    """
    software = rooms.members("onnxsmith.targets.judges", Target)
    known = {**software, **dict.fromkeys(profile_reader.built_in())}
    wanted = [one for name in names for one in (known if name == ALL else [name])]
    found: dict[str, Target | Profile] = {}
    for name in dict.fromkeys(wanted):
        if name in software:
            found[name] = software[name]
        elif (profile := by_name(name)) is not None:
            found[name] = profile
        else:
            near = near_names(name, known, 1)
            raise problem(
                "target/unknown",
                f"there is no target {name!r}",
                fix=f"write {(near or list(known))[0]} in place of {name}; the targets are {', '.join(known)}, "
                f"{ALL} and {FILE}FILE.toml",
            )
    return found
