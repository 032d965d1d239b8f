"""What was judged, a JSON line each, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import onnxsmith


@cache
def code() -> str:
    """A digest of onnxsmith's sources: what was judged by others is judged again."""
    root = Path(onnxsmith.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


class Log:
    """Records by suite, case and seed. The last one counts; `any_code` finds what earlier sources were asked, too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: dict[tuple[str, str, int], dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._keep(json.loads(line))

    def _keep(self, record: dict[str, Any]) -> None:
        self._records[record["suite"], record["case"], record["seed"]] = record

    def get(self, suite: str, case: str, seed: int, any_code: bool = False) -> dict[str, Any] | None:
        """What is known of the case."""
        found = self._records.get((suite, case, seed))
        return found if found is not None and (any_code or found["code"] == code()) else None

    def add(self, suite: str, case: str, seed: int, values: dict[str, Any]) -> dict[str, Any]:
        """Writes the record at once."""
        record = {"suite": suite, "case": case, "seed": seed, "code": code(), **values}
        self._keep(record)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        return record
