"""Describes files that were looked at before they are committed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Part, Table
from onnxsmith.base.report.case import Case
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import size


@dataclass(frozen=True)
class FileFindings:
    """A file: `kind` is `model`, `pickle`, `safetensors` or `other`, `findings` are the ids of its problems."""

    path: str
    kind: str
    bytes: int
    findings: tuple[str, ...] = ()


@dataclass(frozen=True)
class GuardedFiles(Part):
    """A row for each file with what is wrong with it."""

    title: ClassVar[str] = "Files to commit"

    files: tuple[FileFindings, ...]

    def blocks(self) -> Iterator[Block]:
        rows = tuple((one.path, one.kind, size(one.bytes), ", ".join(one.findings) or "none") for one in self.files)
        first = sorted(range(len(rows)), key=lambda at: not self.files[at].findings)
        is_any_bad = any(one.findings for one in self.files)
        yield Table(("file", "kind", "size", "findings"), rows, right=(2,), worst_first=tuple(first), is_key=is_any_bad)

    def cases(self) -> Iterator[Case]:
        for one in self.files:
            verdict = Verdict.DIFFERENT if one.findings else Verdict.DONE
            yield Case(one.path, one.path, "fit to be committed", verdict, rules=one.findings)
