"""Reads releases of a runtime by version. Each runtime has a file with the newest opset and IR version that each
release reads."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure import schema
from onnxsmith.targets.profiles.profile_format import Operators, Profile
from onnxsmith.targets.profiles.value_limit import Limit

AT = "@"
"""Separates the name of a runtime from its version: `onnxruntime@1.17`."""


_PROMISE = "The makers say that a release runs every operator of its opset; kernels for some dtypes can be missing."


def release(name: str) -> Profile:
    """Returns the profile of a release such as `onnxruntime@1.17`. The profile limits the opset and the IR version.
    ONNX's own operators fit, because the runtime's makers say so for each release. Other operators are unknown.

    Raises:
        OnnxsmithError: `profile/unknown` if there is no such runtime or version.
    """
    runtime, _, version = name.partition(AT)
    known = _known()
    if runtime not in known:
        raise problem(
            "profile/unknown",
            f"no versions are known for {runtime!r}",
            why=f"versions are known for {', '.join(known)}",
            fix=f"write {runtime}, or {next(iter(known))}{AT}VERSION",
        )
    table = known[runtime]
    short = ".".join(version.split(".")[:2])
    if short not in table["versions"]:
        raise problem(
            "profile/unknown",
            f"there is no {runtime} {version!r} in the table",
            why=f"it has {', '.join(table['versions'])}",
            fix=f"write {runtime}{AT}{_nearest(short, list(table['versions']))}, the nearest",
        )
    row = table["versions"][short]
    return Profile(
        id=name,
        title=f"{runtime} {short}",
        version=version,
        date=table["date"],
        sources=tuple(table["sources"]),
        unsaid=("Which dtypes and shapes each operator accepts.", "Which operators of other domains it has."),
        notes=(
            "The makers say that a release runs every operator of its opset; kernels for some dtypes can be missing.",
        ),
        unlisted="unknown",
        operators=(Operators(names=schema.operators("", row["opset"])),),
        opset=Limit(None, None, row["opset"]),
        max_ir_version=row["ir_version"],
    )


def _nearest(version: str, known: list[str]) -> str:
    """Returns the known release that is nearest to a version; the newest for a text that is no version."""

    def number(text: str) -> int:
        major, _, minor = text.partition(".")
        return 1000 * int(major) + int(minor or 0)

    try:
        wanted = number(version)
    except ValueError:
        return known[-1]
    return min(known, key=lambda one: abs(number(one) - wanted))


@cache
def _known() -> dict[str, dict[str, Any]]:
    folder = files(__name__)
    found = sorted((one for one in folder.iterdir() if one.name.endswith(".toml")), key=lambda one: one.name)
    return {one.name.removesuffix(".toml"): tomllib.loads(one.read_text(encoding="utf-8")) for one in found}
