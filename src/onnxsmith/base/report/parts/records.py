"""Describes a verification record that was checked: its files, and the fields that a second run gave otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Part, Table, Text, Tone, facts
from onnxsmith.base.words import shortened

AS_RECORDED, CHANGED, MISSING, REPLACED = "as recorded", "changed", "missing", "replaced by the command"
"""Are the results of a file. A file is replaced if the command read it and wrote another one in its place."""
_LONGEST = 60
"""Limits the characters of a value in a table. A choice: two values and a name fit into a line of a terminal."""


@dataclass(frozen=True)
class RecordedFile:
    """A file of a record. `role` is `read` or `about`: the record is about files that the command wrote or judged.
    `again` is the result of the second run for a written file: `same bytes`, `other bytes`, `other bytes, the models
    agree`, …; "" if nothing was run."""

    name: str
    role: str
    result: str
    again: str = ""


@dataclass(frozen=True)
class RecordedField:
    """A field with another value after the second run. It is `explained` if another version, another machine or the
    time that a check may take explains it."""

    field: str
    recorded: str
    now: str
    explained: bool = False


@dataclass(frozen=True)
class RecordCheck(Part):
    """A record that was checked. `command` is the command that it describes, `replayed` whether that was run again.
    `circumstances` are versions and facts about the machine that are others than recorded."""

    title: ClassVar[str] = "Record"

    record: str
    command: str
    verdict: str
    files: tuple[RecordedFile, ...]
    replayed: bool = False
    fields: tuple[RecordedField, ...] = ()
    circumstances: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield facts([("command", f"onnxsmith {self.command}"), ("verdict", self.verdict)])
        order = sorted(range(len(self.files)), key=lambda at: self.files[at].result == AS_RECORDED)
        yield Table(
            ("file", "role", "result", *(("run again",) if self.replayed else ())),
            tuple(
                (one.name, one.role, one.result, *((one.again,) if self.replayed else ()))
                for one in (self.files[at] for at in order)
            ),
        )
        if self.fields:
            rows = tuple(
                (one.field, shortened(one.recorded, _LONGEST), shortened(one.now, _LONGEST)) for one in self.fields
            )
            yield Table(("field", "recorded", "now"), rows, is_key=True)
        yield from (Text(f"not as recorded: {one}", Tone.WARN) for one in self.circumstances)
        if not self.replayed:
            yield Text("the command was not run again: only the files were compared", Tone.WARN)
