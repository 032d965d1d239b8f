"""The comparison of a candidate with its reference, and its outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Facts, Part, Places, Table, Text, Tone
from onnxsmith.base.words import first_few, several

REFUSES = "the candidate refuses an input that the reference takes"
"""The beginning of a reason that says that the candidate's runtime refused an input."""


@dataclass(frozen=True)
class OutputCheck:
    """One output over all runs. `worst_rel` and `tolerance` are relative to its scale, the root mean square. An output
    that is `drawn` is random, and its values were not compared."""

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
    exact: bool = False
    """Whether the output was bit-exact on every input."""
    floor: float = 0.0
    """The difference, in the output's own units, that is allowed at any scale."""


@dataclass(frozen=True)
class Power:
    """Which planted faults the check noticed.

    Faults were planted in `tried` of `of` weights or inputs (`kind`), one at a time. `seen` counts those whose change
    by the share `small` was noticed; `only_large` needed a change by `large`, `blind` a change by 100%; `inert` changed
    no output at all. `slight` counts those whose change by `small` moves the outputs by no more than rounding. If the
    faults were planted in inputs, `idle` counts the weights that have no influence on any output.
    """

    kind: str
    of: int
    tried: int
    seen: int
    only_large: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()
    slight: tuple[str, ...] = ()
    idle: int = 0
    small: float = 0.01
    large: float = 0.05

    def __str__(self) -> str:
        if self.seen < self.tried:
            where = f"{self.seen} of {self.tried} {self.kind}"
        else:
            where = f"each of {self.tried} {self.kind}" if self.tried > 1 else f"the one {self.kind.removesuffix('s')}"
        said = f"the check would notice a change of {self.small:.0%} in {where}"
        said += f" ({self.tried} of {self.of} were tried)" if self.tried < self.of else ""
        groups = (
            (self.only_large, f"one of {self.large:.0%} in"),
            (self.blind, f"not even one of {self.large:.0%} in"),
            (self.inert, "no change moves an output in"),
            (self.slight, f"one of {self.small:.0%} moves no output by more than rounding in"),
        )
        rest = [f"{text} {len(names)} ({first_few(names, 3)})" for names, text in groups if names]
        if self.idle:
            rest.append(f"none of {self.idle} weights moves an output")
        return "; ".join([said, *rest])

    @property
    def moving(self) -> int:
        """How many of the tried weights or inputs move an output by more than rounding."""
        return self.tried - len(self.inert) - len(self.slight)

    @property
    def still(self) -> bool:
        """Whether no planted fault moved any output."""
        return len(self.inert) == self.tried

    def shortcoming(self) -> str:
        """Returns the reason why the check proves too little; "" if it proves enough."""
        moving = self.moving
        if not moving and self.kind == "inputs":
            return ""  # the outputs depend on the shapes or the dtype only, so there is nothing to plant a fault in
        if not moving:
            return f"no change in any of {self.tried} {self.kind} would have been seen, not even of 100%"
        if len(self.slight) > moving:
            few = f"{len(self.slight)} of {self.tried} {self.kind}"
            return f"a change of {self.small:.0%} in {few} is no more than rounding"
        if len(self.blind) > FEW * moving:
            return f"a change of {self.large:.0%} in {len(self.blind)} of {moving} {self.kind} would not have been seen"
        unseen = len(self.blind) + len(self.only_large)
        if unseen > FEW * moving:
            return f"a change of {self.small:.0%} in {unseen} of {moving} {self.kind} would not have been seen"
        return ""


@dataclass(frozen=True)
class Misdeclared:
    """An output whose shape in a run is not the declared one. `declared` is its dtype and shape in the file. `axes` are
    those with another size, None if the rank differs. `examples` are runs that show it: the sizes of the symbolic
    dimensions of the inputs, and the shape of the output."""

    name: str
    declared: str
    axes: tuple[int, ...] | None
    examples: tuple[tuple[dict[str, int], tuple[int, ...]], ...] = ()


FEW = 0.05
"""Share of the weights that a check may miss and still prove enough. A choice: 1 in 20."""


@dataclass(frozen=True)
class Verification(Part):
    """The comparison of a candidate with its reference.

    `equal` is True only if something was compared, nothing differed, and a fault would have been noticed. If a fault
    would not have been noticed, `unsure` says why. `weak` has the reason for each output without any comparable value.
    `verified` is False if no comparison was made; `why_not` says why. `untried` are gaps that the headline must name,
    such as axes that stayed at one size or sizes that the reference refuses.
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
    power: Power | None = None
    unsure: tuple[str, ...] = ()
    misdeclared: tuple[Misdeclared, ...] = ()
    """The outputs of the candidate that its runs show in another shape than the file declares."""
    inside: int = 0
    """The number of intermediate tensors compared, if the outputs show too little; `power` then counts faults that any
    of these tensors shows."""

    @property
    def differs(self) -> bool:
        """Whether a difference was found."""
        return self.verified and not self.equal and not self.unsure

    @property
    def where_compared(self) -> str:
        """Returns the clause of a headline that says where models were compared: `on 4 inputs and 141 tensors
        inside`."""
        inside = f" and {several(self.inside, 'tensor')} inside" if self.inside else ""
        return f"on {len(self.runs)} inputs{inside}"

    @property
    def exact(self) -> bool:
        """Whether every output was bit-exact."""
        return bool(self.outputs) and all(output.exact for output in self.outputs)

    def blocks(self) -> Iterator[Block]:
        if not self.verified:
            yield Text(f"NOT VERIFIED: {self.why_not}", Tone.WARN)
            return
        rows = [("reference", self.reference), ("candidate", self.candidate), ("runs", str(len(self.runs)))]
        rows += [(f"sizes of {name}", ", ".join(map(str, sizes))) for name, sizes in (self.sizes or {}).items()]
        if self.inside:
            rows.append(("tensors inside", f"{self.inside}, each computed from the reference's own"))
        if self.refused:
            sizes = several(self.refused, "generated size")
            rows.append(("sizes refused", f"{sizes} that the reference itself does not run with"))
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
                    ("equal to the bit" if o.exact else "equal") if o.equal else "DIFFERENT",
                )
                for o in self.outputs
            ),
            right=(2, 3, 4),
            places=(Places(0, "tensor", tuple(o.name for o in self.outputs)),),
            worst_first=tuple(sorted(range(len(self.outputs)), key=lambda row: self.outputs[row].equal)),
        )
        for output in self.outputs:
            if output.reason:
                yield Text(f"{output.name}: {output.reason} ({output.where})", Tone.BAD)
            if output.weak:
                yield Text(f"{output.name}: {output.weak}", Tone.WARN)
        # Where an output agrees, the column "allowed" says enough; the JSON has the formula of each.
        reasons = dict.fromkeys(o.why_tolerance for o in self.outputs if o.why_tolerance and not o.equal)
        yield from (Text(f"tolerance {reason}") for reason in reasons)
        yield from (Text(f"CANNOT TELL: {why}", Tone.WARN) for why in self.unsure)
        if self.power is not None:
            yield Text(str(self.power), Tone.WARN if self.power.shortcoming() else Tone.PLAIN)
        yield from (Text(note, Tone.WARN) for note in (*self.untried, *self.notes))


def _allowed(output: OutputCheck) -> str:
    """Returns the allowed difference in the unit that decided. An output of tiny values may differ by more than its
    scale allows, as long as rounding in its own units explains the difference."""
    if output.equal and output.worst_rel > output.tolerance and 0 < output.worst_abs <= output.floor:
        return f"{output.floor:.2g} in its own units"
    return f"{output.tolerance:.2g}" if output.tolerance else "exact"


def nothing_verified(reference: str, candidate: str, why: str) -> Verification:
    """Makes the part for the case that no comparison was made."""
    return Verification(reference, candidate, verified=False, equal=False, why_not=why)
