"""Everything that is measured of one model: each tool's run, its result, a second run, and latency if asked."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from measuring.attempt import Attempt, attempt, judged
from measuring.figures import figures
from measuring.records import Log, Record, digest, version
from onnxsmith import OnnxsmithError


@dataclass(frozen=True)
class Entry:
    """A model of the corpus: its file, and the class that it is counted in."""

    path: Path
    kind: str

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return self.path.stem


@dataclass(frozen=True)
class Bench:
    """Where records and results go, and how long one tool may take on one model."""

    log: Log
    results: Path
    timeout: float

    def result(self, entry: Entry, tool: str) -> Path:
        """Where that tool's result is kept, for `--latency` and for a look at it."""
        return self.results / entry.kind / entry.name / f"{tool}.onnx"

    def original(self, entry: Entry) -> Record:
        """What the model is before anybody touched it, and whether it can be verified at all."""
        known = self.log.get(entry.kind, entry.path, "original")
        if known is None:
            status, error = judged(entry.path, entry.path, self.timeout)
            known = self._record(entry, "original", Attempt(0.0, None, "written", ""), status, error, entry.path)
            self.log.add(known)
        return known

    def tool(self, entry: Entry, tool: str) -> Record:
        """The record of that tool, measured now if it is not known."""
        known = self.log.get(entry.kind, entry.path, tool)
        if known is None or (known.status == "right" and not self.result(entry, tool).exists()):
            known = self._measured(entry, tool)
            self.log.add(known)
        return known

    def _measured(self, entry: Entry, tool: str) -> Record:
        target = self.result(entry, tool)
        shutil.rmtree(target.parent / tool, ignore_errors=True)
        target.unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        source = entry.path.absolute()
        done = attempt(tool, source, target, self.timeout)
        if done.status != "written":
            return self._record(entry, tool, done, done.status, done.error, None)
        if self.original(entry).status == "right":
            status, error = judged(source, target, self.timeout)
        else:
            status, error = "unverified", "the original cannot be verified"
        record = self._record(entry, tool, done, status, error, target)
        return self._again(record, tool, target) if status == "right" else record

    def _again(self, record: Record, tool: str, first: Path) -> Record:
        """The record with what a second run on the result changed."""
        second = first.with_suffix(".again.onnx")
        try:
            if attempt(tool, first, second, self.timeout).status != "written":
                return replace(record, same_bytes=False, same_operators=False)
            operators = figures(second).operators
            same = second.read_bytes() == first.read_bytes()
            return replace(record, same_bytes=same, same_operators=operators == record.operators)
        finally:
            second.unlink(missing_ok=True)

    def _record(self, entry: Entry, tool: str, done: Attempt, status: str, error: str, written: Path | None) -> Record:
        known = digest(entry.path)
        record = Record(
            entry.name, entry.kind, known, tool, version(tool), status, error, round(done.cpu, 3), done.peak_mib
        )
        if written is None:
            return record
        try:
            return replace(record, **asdict(figures(written)))
        except OnnxsmithError as problem:
            return replace(record, status="invalid", error=str(problem)[:300])

    def latency(self, entry: Entry, records: Sequence[Record]) -> list[Record]:
        """The records with latency, measured now for all right results of this model, if one of them has none."""
        from measuring.latency import ratios

        right = {record.tool: self.result(entry, record.tool) for record in records if record.status == "right"}
        if all(record.latency for record in records if record.tool in right):
            return list(records)
        found = ratios(entry.path, right)
        timed = [replace(record, latency=found.get(record.tool)) for record in records]
        for record in timed:
            self.log.add(record)
        return timed
