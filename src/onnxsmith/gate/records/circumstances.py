"""The versions and the machine on which the numbers of a record depend."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata

from onnxsmith._version import __version__
from onnxsmith.base import rooms
from onnxsmith.base.system import machine
from onnxsmith.gate.records.record_file import Record
from onnxsmith.runtimes.base import Runtime

_ALWAYS = ("onnx", "onnx-ir", "numpy", "onnxruntime", "onnxruntime-gpu")
_IF_USED = ("torch", "transformers", "onnxscript", "onnx-shape-inference")


def versions(words: Iterable[str]) -> dict[str, str]:
    """Returns the versions of onnxsmith, Python, the libraries that every command uses, torch and its relatives if this
    process imported them, and the packages of runtimes that the words of the command name."""
    named = {part for word in words for part in re.split(r"[@:=,]", word)}
    runtimes = rooms.members("onnxsmith.runtimes", Runtime).items()
    packages = [one.package for name, one in runtimes if one.package and name in named]
    packages += [name for name in _IF_USED if name.replace("-", "_") in sys.modules]
    known = ((name, _installed(name)) for name in dict.fromkeys((*_ALWAYS, *packages)))
    found = {name: version for name, version in known if version}
    return {"onnxsmith": __version__, "python": platform.python_version(), **found}


def here() -> dict[str, str]:
    """Returns facts about the machine: numbers differ within rounding on other processors."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": machine.HERE.processor(),
        "cores": str(machine.HERE.cores()),
    }


def changed(record: Record) -> list[str]:
    """Returns what is another version or machine than recorded, as `onnx 1.22.0, here 1.23.2`."""
    return [
        *_changed(record.versions, {name: _version(name) for name in record.versions}),
        *_changed(record.platform, here()),
    ]


def _changed(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    pairs = ((name, value, now.get(name) or "not installed") for name, value in sorted(recorded.items()))
    return [f"{name} {value}, here {other}" for name, value, other in pairs if value != other]


def _version(name: str) -> str:
    own = {"onnxsmith": __version__, "python": platform.python_version()}
    return own.get(name) or _installed(name)


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
