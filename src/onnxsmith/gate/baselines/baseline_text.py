"""The text file of a baseline: sorted and indented JSON for reviewers, in which each entry has a digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any

from onnxsmith.gate.baselines.entry import Dropped, Entry

FORMAT = 2


def text(entries: Mapping[str, Entry], dropped: Sequence[Dropped] = ()) -> str:
    """Returns the text of a baseline: sorted, indented, without fields that have their default."""
    more = {"dropped": _plain(list(dropped))} if dropped else {}
    return _indented({"format": FORMAT, "models": _plain(dict(entries)), **more}, "\n") + "\n"


def sealed(entry: Entry) -> Entry:
    """Returns the entry with the digest of its content."""
    return replace(entry, digest=_digest(entry))


def edited(entries: Mapping[str, Entry]) -> Collection[str]:
    """Returns the names of the entries whose digest is not that of their content."""
    return frozenset(name for name, entry in entries.items() if entry.digest != _digest(entry))


def _digest(entry: Entry) -> str:
    """Returns the SHA-256 of the content, in a form in which neither the order of keys nor white space counts."""
    plain = _plain(replace(entry, digest=""))
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _indented(data: Any, line: str) -> str:
    """Writes JSON with sorted keys. A list of numbers or texts stays on one line."""
    inner = f"{line} "
    if isinstance(data, dict) and data:
        rows = (f"{json.dumps(key)}: {_indented(data[key], inner)}" for key in sorted(data))
        return f"{{{inner}{f',{inner}'.join(rows)}{line}}}"
    if isinstance(data, list) and any(isinstance(one, dict | list) for one in data):
        return f"[{inner}{f',{inner}'.join(_indented(one, inner) for one in data)}{line}]"
    return json.dumps(data)


def _plain(data: Any) -> Any:
    if is_dataclass(data):
        held = {one: getattr(data, one.name) for one in fields(data)}
        return {one.name: _plain(value) for one, value in held.items() if value != _default(one)}
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    return [_plain(one) for one in data] if isinstance(data, list | tuple) else data


def _default(one: Field[Any]) -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default
