"""Writes the page of targets: software that onnxsmith can ask, and profiles that it can read."""

from __future__ import annotations

import inspect
import re

from onnxsmith.base import rooms
from onnxsmith.targets.judges.base import Target
from onnxsmith.targets.profiles import profile_reader
from onnxsmith.targets.profiles.profile_format import Profile
from tools.documentation.markdown import code, escaped, from_docstring, table

_HEAD = """\
# Targets

This page lists the targets of `onnxsmith check`: software that is asked, and profiles that are read.
[Targets](../targets.md) says how to use them, [Profiles](../profiles.md) how to write a profile.

## Software

The version is that of the installed software; `onnxsmith check` and `onnxsmith doctor` show it.
"""


def pages() -> dict[str, str]:
    """Returns the page by its path on the site."""
    judges = rooms.classes("onnxsmith.targets.judges", Target)
    profiles = {name: profile_reader.named(name) for name in profile_reader.built_in()}
    parts = [
        _HEAD.strip(),
        table(
            ("target", "software", "what it reaches"),
            [(f"[`{id_}`](#{id_})", escaped(target.title), _reached(target)) for id_, target in judges.items()],
        ),
        *(f"### {id_}\n\n{from_docstring(inspect.getdoc(target) or '')}" for id_, target in judges.items()),
        "## Profiles",
        "A profile is written `profile:NAME`. It holds what a target accepts by its public tables.",
        table(
            ("profile", "target", "version", "date", "operators"),
            [
                (
                    f"[`{id_}`](#profile-{id_})",
                    escaped(profile.title),
                    escaped(profile.version),
                    str(profile.date or ""),
                    _count(profile),
                )
                for id_, profile in profiles.items()
            ],
        ),
        *(_profile(id_, profile) for id_, profile in profiles.items()),
    ]
    return {"reference/targets.md": "\n\n".join(parts) + "\n"}


def _reached(target: type[Target]) -> str:
    return "reads, builds and runs a model" if target.runs else escaped(target.reaches)


def _count(profile: Profile) -> str:
    return str(len(profile.listed))


def _profile(id_: str, profile: Profile) -> str:
    sources = "\n".join(f"- {_source(source)}" for source in profile.sources)
    remarks = "\n".join(f"- {escaped(remark)}" for remark in (*profile.notes, *profile.unsaid))
    return "\n\n".join(
        (
            f"### profile:{id_} {{ #profile-{id_} }}",
            f"{escaped(profile.title)}. An operator that the profile does not list is {code(profile.unlisted)}.",
            *(["Sources:", sources] if sources else []),
            *(["Remarks, and questions that the sources leave open:", remarks] if remarks else []),
        )
    )


def _source(text: str) -> str:
    return re.sub(r"https?://[^\s,;)]+", lambda match: f"<{match[0].replace(chr(92), '')}>", escaped(text))
