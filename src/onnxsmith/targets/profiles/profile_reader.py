"""Reads profiles by name: the built-in tables, releases of runtimes, and files of users."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from onnxsmith.base import user_files
from onnxsmith.base.problem import problem
from onnxsmith.graph.files.load import near_files
from onnxsmith.targets.profiles import mistakes
from onnxsmith.targets.profiles.profile_format import Profile
from onnxsmith.targets.profiles.releases import AT, release
from onnxsmith.targets.profiles.rules.base import GraphRule, kinds


def built_in() -> tuple[str, ...]:
    """Returns the names of the built-in profiles: `coreml-mlprogram`, `tensorrt-10`."""
    return tuple(sorted(one.name.removesuffix(".toml") for one in _folder().iterdir() if one.name.endswith(".toml")))


@cache
def named(name: str) -> Profile:
    """Returns a built-in profile.

    Raises:
        OnnxsmithError: `profile/unknown` if there is none of this name.
    """
    if name not in built_in():
        near = mistakes.meant_name(name, built_in())
        raise problem(
            "profile/unknown",
            f"there is no built-in profile {name!r}",
            why=f"the built-in profiles are {', '.join(built_in())}",
            fix=f"write {near}" if near else f"write one of {', '.join(built_in())}, or the path of a .toml file",
        )
    file = _folder() / f"{name}.toml"
    return parsed(file.read_text(encoding="utf-8"), f"{name}.toml", name)


def _either() -> str:
    return f"give the path of a .toml file, or a built-in profile: {', '.join(built_in())}"


def read(path: str | Path) -> Profile:
    """Reads the profile of a file.

    Raises:
        OnnxsmithError: `profile/unreadable`, `profile/unknown-key`, `profile/unknown-name`, `profile/invalid`.
    """
    file = Path(path)
    try:
        text = user_files.read_utf8(file)
    except (OSError, UnicodeDecodeError) as error:
        near = mistakes.meant_name(str(path), built_in())
        raise problem(
            "profile/unreadable",
            "the profile cannot be read",
            where=str(file),
            why=str(error),
            fix=f"write {near}, a built-in profile" if near else near_files(file) or _either(),
        ) from error
    return parsed(text, str(file), file.stem)


def parsed(text: str, where: str, id_: str = "") -> Profile:
    """Reads a profile from text. `where` names the file in problems.

    Raises:
        OnnxsmithError: the errors of `read`.
    """
    try:
        content = user_files.parse_toml(text)
    except ValueError as error:
        raise problem(
            "profile/unreadable", "the profile is not TOML", where=where, why=str(error), fix=_START
        ) from error
    if "extends" in content:
        content = _extended(content, where)
    rules = content.pop("rules", [])
    if not isinstance(rules, list) or not all(isinstance(one, dict) for one in rules):
        raise mistakes.invalid("rules has to be tables", f"{where}, rules", 'write:\n[[rules]]\nuse = "strong-typing"')
    made = [_rule(one, f"{where}, rules {number}") for number, one in enumerate(rules, 1)]
    if "id" in content:
        raise mistakes.unknown_key(("id",), content, where)
    try:
        profile = Profile.model_validate({**content, "id": id_, "rules": made})
    except ValidationError as error:
        raise mistakes.translated(error.errors()[0], content, where) from error
    mistakes.check_names(profile, where)
    return profile


def _extended(content: dict[str, Any], where: str) -> dict[str, Any]:
    """Merges the tables of a built-in profile with the tables of the given profile. Given keys replace the built-in
    keys, `operators` replace the entries of the same operators, `refused` and `rules` are added."""
    base: Any = content.pop("extends")
    own = content.get("operators", [])
    lists = (own, content.get("rules", []), content.get("refused", []))
    if not isinstance(base, str) or base not in built_in():
        near = mistakes.meant_name(str(base), built_in()) or built_in()[0]
        names = ", ".join(built_in())
        raise problem(
            "profile/unknown-name",
            f"extends names no built-in profile: {base!r}",
            where=f"{where}, extends",
            why=f"the built-in profiles are {names}",
            fix=f'write extends = "{near}"',
        )
    below = tomllib.loads((_folder() / f"{base}.toml").read_text(encoding="utf-8"))
    if "extends" in below:
        below = _extended(below, f"{base}.toml")
    if not all(isinstance(one, list) for one in lists):
        return content  # the check of the whole profile refuses it
    taken = {str(name) for entry in own if isinstance(entry, dict) for name in mistakes.as_list(entry.get("names"))}
    more = content.get("refused", [])
    taken.update(map(str, more))
    kept: list[dict[str, Any]] = []
    for entry in below.get("operators", []):
        left = [name for name in entry["names"] if name not in taken]
        kept += [{**entry, "names": left}] if left else []
    refused = {"refused": [name for name in below.get("refused", ()) if name not in taken] + more}
    rules = [*below.get("rules", []), *content.get("rules", [])]
    return {**below, **content, **refused, "operators": [*own, *kept], "rules": rules}


_START = 'start with:\ntitle = "My board"\nunlisted = "refused"'


def _folder() -> Any:
    return files("onnxsmith.targets.profiles") / "tables"


def _rule(table: Mapping[str, Any], where: str) -> GraphRule:
    name = table.get("use")
    if not isinstance(name, str) or name not in kinds():
        near = mistakes.meant_name(name, kinds()) if isinstance(name, str) else None
        raise problem(
            "profile/unknown-name",
            f"there is no rule {name!r}" if "use" in table else "a rule has no key `use`",
            where=where,
            why=f"the rules are {', '.join(kinds())}",
            fix=f'write use = "{near or next(iter(kinds()))}"',
        )
    kind = kinds()[name]
    fields = [field.name for field in dataclasses.fields(kind)]
    given = {key: value for key, value in table.items() if key != "use"}
    for key in given.keys() - set(fields):
        raise mistakes.no_such_key(key, ["use", *fields], where)
    try:
        return TypeAdapter(kind).validate_python(given)
    except ValidationError as error:
        found = error.errors()[0]
        key = ".".join(map(str, found["loc"]))
        raise mistakes.invalid(f"{key} is not valid: {found['msg']}", f"{where}, {key}", f"correct {key}") from error


FILE = "profile:"
"""Is the prefix of the name of a user's own file."""


def by_name(name: str) -> Profile | None:
    """Returns the profile of a name such as `tensorrt-10`, `onnxruntime@1.17` or `profile:board.toml`; None if there is
    no such profile.

    Raises:
        OnnxsmithError: `profile/…` for a file that is no profile, or an unknown version.
    """
    if name.startswith(FILE):
        return read(Path(name.removeprefix(FILE)))
    if AT in name:
        return release(name)
    return named(name) if name in built_in() else None
