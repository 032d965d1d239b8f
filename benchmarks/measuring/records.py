"""What was measured, a JSON line each, so that a run that was stopped goes on where it was.

A record is found again by the bytes of the model, the tool, and the tool's version. For onnxsmith the version is a
digest of its sources, so that a change to them measures it again and leaves the others alone.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import onnxsmith
from measuring.tool_process import TOOLS


@dataclass(frozen=True)
class Record:
    """One tool on one model; `tool` is `original` for what is known of the model itself.

    `status` is `right`, `wrong`, `interface`, `invalid`, `refused`, `crashed` or `unverified`. Figures are None where
    there is no result. `same_bytes` and `same_operators` say what a second run on the result changed; None when there
    was none.
    """

    model: str
    kind: str
    digest: str
    tool: str
    version: str
    status: str
    error: str
    cpu: float
    peak_mib: float | None
    nodes: int | None = None
    glue: int | None = None
    bytes: int | None = None
    origin: float | None = None
    operators: dict[str, int] | None = None
    same_bytes: bool | None = None
    same_operators: bool | None = None
    latency: dict[str, float] | None = None
    """Seconds of the result over seconds of the original, by optimisation level."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes two records one."""
        return (self.kind, self.digest, self.tool, self.version)


@cache
def version(tool: str) -> str:
    """The distribution's version; for onnxsmith what its sources say."""
    if tool == "original":
        return ""
    if tool == "onnxsmith":
        root = Path(onnxsmith.__file__).parent
        digest = hashlib.sha256()
        for path in sorted(root.rglob("*.py")):
            digest.update(path.read_bytes())
        return f"{onnxsmith.__version__}+{digest.hexdigest()[:12]}"
    return importlib.metadata.version(TOOLS[tool][0])


@cache
def digest(path: Path) -> str:
    """Of the file's bytes; weights beside it are not read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


class Log:
    """The file of records. The last one of a key counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records: dict[tuple[str, str, str, str], Record] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                record = Record(**json.loads(line))
                self._records[record.key] = record

    def get(self, kind: str, model: Path, tool: str) -> Record | None:
        """What is known of this tool, as it is installed, on this model, as it is."""
        return self._records.get((kind, digest(model), tool, version(tool)))

    def add(self, record: Record) -> None:
        """Writes the record at once."""
        self._records[record.key] = record
        self._path.parent.mkdir(parents=True, exist_ok=True)
        values: dict[str, Any] = asdict(record)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")
