"""Reads and writes keep-lists: the names of nodes that are not as narrow as the others.

A name alone means that the node stays as it is. `*` in a name stands for any characters. A line that begins with `#` is
a comment. A name that would be misread is written as a JSON string. `quantize` also writes and reads:

- `weights-alone: ` before a name: the layer's weights become narrow, its activations do not (int8)
- `8-bits: ` before a name: the layer's weights have 8 bits where those of others have 4 (int4)
- `scheme: `, `form: ` and `model: `: how all other layers were made, so that the list gives the same file again
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from onnxsmith.base import name_patterns, user_files
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, several

ALONE = "weights-alone: "
"""Prefix of a layer of which only the weights become narrow."""
EIGHT = "8-bits: "
"""Prefix of a layer whose weights have 8 bits, not 4."""
SCHEME, WAY, MODEL = "scheme: ", "form: ", "model: "
"""Prefixes of the settings: the scheme of the method, the form of the layers in `weights-alone`, whether the model was
simplified."""
SIMPLIFIED, AS_GIVEN = "simplified", "as given"
"""The values of `MODEL`."""
_KINDS = (ALONE, EIGHT)
_SETTINGS = (SCHEME, WAY, MODEL)
_KEYS = {prefix: prefix.removesuffix(": ") for prefix in _SETTINGS}
"""The keys of the settings in JSON."""
_MEANINGS = {
    ALONE: "the layer stores its weights in 8 bits, but computes in float",
    EIGHT: "the layer stores its weights in 8 bits, not 4",
    SCHEME: "how the other layers were made; the same list and data give the same file",
}


class Entry(str):
    """An entry of a keep-list that was read from a file."""

    file: str
    line: int | None
    """The number of the line; None in JSON."""

    @staticmethod
    def of(text: str, file: Path, line: int | None = None) -> Entry:
        """Makes the entry that stands on a line of a file."""
        made = Entry(text)
        made.file, made.line = str(file), line
        return made


@dataclass(frozen=True)
class Wishes:
    """The entries of a keep-list by kind: `wide` layers stay as they are, of `weights` layers only the weights become
    narrow, `eight` layers get 8 bits. The settings are "" if the list has none."""

    wide: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    eight: tuple[str, ...] = ()
    scheme: str = ""
    way: str = ""
    model: str = ""


def wishes(entries: Iterable[str]) -> Wishes:
    """Sorts the entries of a keep-list by kind. Layers keep their prefix; `bare` removes it."""
    listed = tuple(entries)
    held = {
        prefix: one.removeprefix(prefix).strip() for one in listed for prefix in _SETTINGS if one.startswith(prefix)
    }
    return Wishes(
        tuple(one for one in listed if not one.startswith((*_KINDS, *_SETTINGS))),
        tuple(one for one in listed if one.startswith(ALONE)),
        tuple(one for one in listed if one.startswith(EIGHT)),
        held.get(SCHEME, ""), held.get(WAY, ""), held.get(MODEL, ""),
    )  # fmt: skip


def named(entries: Iterable[str]) -> tuple[str, ...]:
    """Returns the entries that name layers, without settings."""
    return tuple(one for one in entries if not one.startswith(_SETTINGS))


def text(entries: Sequence[str], to: str, *, as_json: bool = False, layers: bool = False) -> str:
    """Returns the content of the file. `entries` are names with their prefixes. With `layers` it is a list of
    `quantize`, and its header explains the entries."""
    names = named(entries)
    if as_json:
        settings = {
            key: one.removeprefix(prefix) for one in entries for prefix, key in _KEYS.items() if one.startswith(prefix)
        }
        return json.dumps({"to": to, **settings, "keep": list(names)}, ensure_ascii=False, indent=2) + "\n"
    head = [f"nodes that stay in float32 while the rest of the model is {to}"]
    if layers:
        head = [
            f"layers that differ from the other {to} layers, for `onnxsmith quantize --to {to} --keep` with this file",
            "a name without more: the layer stays unchanged",
        ]
        head += [
            f"{prefix.strip()} {said}"
            for prefix, said in _MEANINGS.items()
            if any(one.startswith(prefix) for one in entries)
        ]
    return "".join(f"# {line}\n" for line in head) + "".join(f"{_line(one)}\n" for one in entries)


def read(path: str | Path) -> tuple[str, ...]:
    """Reads the entries of a keep-list, each an `Entry`.

    Raises:
        OnnxsmithError: `input/unreadable` if there is no such file, `bisect/keep-list` if the file is no keep-list.
    """
    file = Path(path)
    if not file.is_file():
        raise problem(
            "input/unreadable",
            "there is no such keep-list" if not file.exists() else "the keep-list is no file",
            where=str(path),
            why="a keep-list is a file with the name of a node on each line",
            fix="correct the path; `quantize` with --keep-list, and `bisect` with -o, write one",
        )
    try:
        content = user_files.read_utf8(file)
        if file.suffix == ".json":
            held = user_files.parse_json(content)
            names = _names(_listed(held))
            settings = _names([prefix + held[key] for prefix, key in _KEYS.items() if key in held])
            return tuple(Entry.of(one, file) for one in (*settings, *names))
        lines = [(line.strip(), number) for number, line in enumerate(content.split("\n"), 1)]
        return tuple(Entry.of(_name(line), file, number) for line, number in lines if line and line[0] != "#")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(file, str(error)) from error


def _listed(content: object) -> object:
    """Returns the names in a JSON keep-list."""
    if isinstance(content, dict) and "keep" in content:
        return content["keep"]
    if isinstance(content, dict) and content and all(isinstance(axes, dict) for axes in content.values()):
        raise ValueError(
            "the file comes from `onnxsmith prune --keep-list`: it has the kept indices of each weight, for "
            "`onnxsmith.shrink`, but no names of layers"
        )
    raise ValueError('the file has no list "keep" of names')


def matching(pattern: str, names: Iterable[str]) -> set[str]:
    """Returns the names that an entry of a keep-list means: the name itself, or all that match it, with `*` for any
    characters."""
    return set(name_patterns.fitting(names, pattern))


def unreadable(file: Path, why: str) -> OnnxsmithError:
    """Makes the problem for a file that is no keep-list."""
    return problem(
        "bisect/keep-list",
        "this file is not a keep-list",
        where=str(file),
        why=why,
        fix='write the name of a node on each line, or {"keep": ["name", …]} into a .json file',
    )


def _names(found: object) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError("the names are not a list of strings")
    return tuple(found)


def bare(entry: str) -> str:
    """Returns the name or pattern of an entry, without its prefix."""
    return next((str(entry)[len(kind) :] for kind in _KINDS if entry.startswith(kind)), str(entry))


def _line(entry: str) -> str:
    for kind in _KINDS:
        if entry.startswith(kind):
            return kind + _line(entry[len(kind) :])
    plain = entry == entry.strip() and entry.isprintable() and entry and entry[0] not in '#"'
    return entry if plain else json.dumps(entry)


def _name(line: str) -> str:
    for kind in _KINDS:
        if line.startswith(kind):
            return kind + _name(line[len(kind) :].strip())
    return str(user_files.parse_json(line)) if line.startswith('"') else line


_MOST = 10
"""The most entries that are listed. A choice."""
_LOOKED_UP = 3
"""The most entries for which similar names are looked up. A choice: in a list for another model all names are
unknown."""


class Told(NamedTuple):
    """The parts of a Problem that are the same for every keep-list."""

    what: str
    where: str
    near: str
    """Names of the model that are similar to the unknown names, as the end of a sentence; "" if there are none."""


def unknown_names(entries: Sequence[str], names: Collection[str], none: str = "no node is called") -> Told:
    """Makes the parts of a Problem on entries that name none of the `names` of a model. `none` begins the sentence for
    a single entry."""
    return Told(_what(entries, none), _where(entries), _near(entries, names))


def _what(entries: Sequence[str], none: str) -> str:
    """Makes the sentence on entries that name nothing. `none` begins the sentence for a single entry."""
    listed = first_few([repr(bare(one)) for one in entries], _MOST)
    if len(entries) == 1:
        return f"{none} {listed}"
    return f"{several(len(entries), 'name')} of the keep-list are unknown: {listed}"


def _where(entries: Sequence[str]) -> str:
    """Returns the file and the lines of the entries; "" if they were not read from a file."""
    read = [one for one in entries if isinstance(one, Entry)]
    if not read:
        return ""
    lines = [str(one.line) for one in read if one.line is not None]
    said = f", line{'s' if len(lines) > 1 else ''} {first_few(lines, _MOST)}" if lines else ""
    return f"{read[0].file}{said}"


def _near(entries: Sequence[str], names: Collection[str]) -> str:
    """Lists names of the model that are similar to the first entries, as the end of a sentence; "" if there are
    none."""
    said = ""
    known = sorted(name for name in names if name)
    for one in entries[:_LOOKED_UP]:
        found = near_names(bare(one), known, most=2)
        said += f"; near to {bare(one)!r}: {', '.join(map(repr, found))}" if found else ""
    return said
