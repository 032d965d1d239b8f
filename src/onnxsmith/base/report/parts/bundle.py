"""A bundle, and which parts of it ran in their client, the program that will load them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, Text, Tone, facts


@dataclass(frozen=True)
class BundleCheck:
    """A check of one part of a bundle in its client, the program that will load it.

    `state` is `equal`, `different` or `not run`. `detail` names the client and its version, or says why it was not run.
    `largest` is the largest difference relative to the largest magnitude of the expected output; None if none was
    measured. `tolerance` is the largest difference that was allowed; None if everything had to be equal.
    """

    name: str
    state: str
    detail: str
    largest: float | None = None
    tolerance: float | None = None

    def __str__(self) -> str:
        if self.state == "not run":
            return f"{self.name}: not run: {self.detail}"
        within = f" to {self._allowed}" if self.state == "equal" and self.tolerance is not None else ""
        return f"{self.name}: ran, {self.state}{within} ({self.detail})"

    @property
    def _allowed(self) -> str:
        return "" if self.tolerance is None else f"{self.tolerance:.2g}".replace("e-0", "e-")


@dataclass(frozen=True)
class Bundle(Part):
    """A bundle of one form. `golden` describes the recorded inputs, `licence` what is known about the model's
    licence."""

    title = "Bundle"

    model: str
    form: str
    task: str
    golden: tuple[str, ...]
    checks: tuple[BundleCheck, ...]
    licence: str
    notes: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                ("model", self.model),
                ("form", self.form),
                ("task", self.task),
                ("golden inputs", "; ".join(self.golden)),
                ("licence", self.licence),
            ]
        )
        rows = []
        for check in self.checks:
            largest = "" if check.largest is None else f"{check.largest:.2g}"
            rows.append((check.name, check.state, largest, check._allowed, check.detail))
        yield Table(("part", "result", "largest difference", "allowed", "detail"), tuple(rows), right=(2, 3))
        for note in self.notes:
            yield Text(note, Tone.WARN)
