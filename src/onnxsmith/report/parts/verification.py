"""How two computations were held to each other, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.report.base import Block, Facts, Part, Table, Text, Tone


@dataclass(frozen=True)
class OutputCheck:
    """One output over all runs. `worst_rel` and `tolerance` are relative to its scale, the root mean square. One that
    is `drawn` at random has no values to compare."""

    name: str
    dtype: str
    equal: bool
    worst_abs: float
    worst_rel: float
    scale: float
    tolerance: float
    why_tolerance: str
    compared: int
    reason: str = ""
    where: str = ""
    weak: str = ""
    drawn: bool = False


@dataclass(frozen=True)
class Verification(Part):
    """What was compared with what, on which inputs.

    `equal` is True only when something was compared and nothing differed; an output of which nothing could be compared
    says so in `weak`. `verified` is False when no comparison was made, for the reason in `why_not`. `untried` are the
    gaps that a headline has to name: axes that stayed at one size, sizes that the reference does not take.
    """

    title = "Verification"

    reference: str
    candidate: str
    verified: bool
    equal: bool
    runs: tuple[str, ...] = ()
    sizes: dict[str, tuple[int, ...]] | None = None
    refused: int = 0
    outputs: tuple[OutputCheck, ...] = ()
    notes: tuple[str, ...] = ()
    why_not: str = ""
    untried: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        if not self.verified:
            yield Text(f"NOT VERIFIED: {self.why_not}", Tone.WARN)
            return
        rows = [("reference", self.reference), ("candidate", self.candidate), ("runs", str(len(self.runs)))]
        rows += [(f"sizes of {name}", ", ".join(map(str, sizes))) for name, sizes in (self.sizes or {}).items()]
        if self.refused:
            rows.append(("sizes refused", f"{self.refused} proposals that the reference itself does not take"))
        yield Facts(tuple(rows))
        yield Table(
            ("output", "dtype", "worst difference", "relative to scale", "allowed", "verdict"),
            tuple(
                (
                    o.name,
                    o.dtype,
                    f"{o.worst_abs:.3g}",
                    f"{o.worst_rel:.3g}",
                    _allowed(o),
                    "equal" if o.equal else "DIFFERENT",
                )
                for o in self.outputs
            ),
            right=(2, 3, 4),
        )
        for output in self.outputs:
            if output.reason:
                yield Text(f"{output.name}: {output.reason} ({output.where})", Tone.BAD)
            if output.weak:
                yield Text(f"{output.name}: {output.weak}", Tone.WARN)
        reasons = dict.fromkeys(o.why_tolerance for o in self.outputs if o.why_tolerance)
        yield from (Text(f"tolerance {reason}") for reason in reasons)
        yield from (Text(note, Tone.WARN) for note in (*self.untried, *self.notes))


def _allowed(output: OutputCheck) -> str:
    return f"{output.tolerance:.2g}" if output.tolerance else "exact"


def nothing_verified(reference: str, candidate: str, why: str) -> Verification:
    """The part that says that no comparison was made."""
    return Verification(reference, candidate, verified=False, equal=False, why_not=why)
