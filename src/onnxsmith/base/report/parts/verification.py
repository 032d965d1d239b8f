"""Describes the comparison of a candidate with its reference: verdict, outputs, and consecutive calls with a state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from onnxsmith.base.report.base import Bars, Block, Chart, Facts, Part, Places, Table, Text, Tone
from onnxsmith.base.words import first_few, several

SAME_COMPUTATION = "the same operators compute it from the same weights and from tensors that are equal to the bit"
"""Is why nothing is tolerated in an output that needs no comparison."""
ALLOWED = "share of the allowed difference"
"""Says what a bar shows beside a difference."""
BOTH_LEVELS = "the outputs agree"
"""The beginning of the note that the outputs agree with and without a runtime's optimisations."""
REFUSES = "the candidate refuses an input that the reference accepts"
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
    free: str = ""
    """In what the output is free by definition: `free up to sign`; empty if it has one right value."""


@dataclass(frozen=True)
class Power:
    """Which planted faults the check noticed.

    There are `of` weights or inputs (`kind`), and faults were planted in `tried` of them, one at a time. `seen` counts
    those whose change by the share `small` was noticed; `only_large` needed a change by `large`, `blind` a change by
    100%; `inert` changed no output at all. `slight` counts those whose change by `small` moves the outputs by no more
    than rounding. If the faults were planted in inputs, `idle` counts the weights that have no influence on any
    output."""

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
            among = f"{self.seen} of the {self.tried} {self.kind}"
        elif self.tried > 1:
            among = f"each of the {self.tried} {self.kind}"
        else:
            among = f"the one {self.kind.removesuffix('s')}"
        said = f"the check would notice a change of {self.small:.0%} in {among}"
        said += f" tried (of {self.of})" if self.tried < self.of else ""
        groups = (
            (self.only_large, f"in {{}}, it would notice only a change of {self.large:.0%}"),
            (self.blind, f"in {{}}, it would not even notice a change of {self.large:.0%}"),
            (self.inert, "no change that was tried in {} moves an output"),
            (self.slight, f"a change of {self.small:.0%} in {{}} moves the outputs by no more than rounding"),
        )
        rest = [text.format(f"{len(names)} of them ({first_few(names, 3)})") for names, text in groups if names]
        if self.idle:
            idle = f"any of the {self.idle} weights" if self.idle > 1 else "the weight"
            rest.append(f"no change that was tried in {idle} moves an output")
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
    """An output whose shape or dtype in a run is not the declared one. `declared` is its dtype and shape in the file.
    `axes` are those with another size, None if the rank differs. `examples` are runs that show it: the sizes of the
    symbolic dimensions of the inputs, and the shape of the output. `dtype` is the dtype of the runs, "" if it is the
    declared one."""

    name: str
    declared: str
    axes: tuple[int, ...] | None
    examples: tuple[tuple[dict[str, int], tuple[int, ...]], ...] = ()
    dtype: str = ""


FEW = 0.05
"""Share of the weights that a check may miss and still prove enough. A choice: 1 in 20."""


@dataclass(frozen=True)
class Verification(Part):
    """The comparison of a candidate with its reference.

    `equal` is True only if something was compared, nothing differed, and a fault would have been noticed; or without
    runs, if both are the same bytes or the same computation. If a fault would not have been noticed, `unsure` says why.
    `weak` has the reason for each output without any comparable value. `verified` is False if no comparison was made;
    `why_not` says why. `untried` are gaps that the headline must name, such as axes that stayed at one size or sizes
    that the reference refuses.
    """

    title = "Verification"
    recorded = (
        "reference",
        "candidate",
        "verified",
        "equal",
        "runs",
        "sizes",
        "ranges",
        "counts",
        "refused",
        "outputs",
        "inside",
        "power",
        "untried",
        "unsure",
        "notes",
        "why_not",
    )

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
    """The outputs of the candidate that its runs show in another shape or dtype than the file declares."""
    declared: tuple[str, ...] = ()
    """Sentences on declarations that were wrong and what became of them. They are in `untried`, too."""
    inside: int = 0
    """The number of intermediate tensors compared, if the outputs show too little; `power` then counts faults that any
    of these tensors shows."""
    ranges: dict[str, str] = field(default_factory=dict)
    """The range of each dimension that the user or the file limits: `64..1024`."""
    counts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The values of each input of one element that may be a count: of iterations, of elements, of copies."""
    refused_sizes: tuple[str, ...] = ()
    """The first sizes that the reference refused, such as `batch=1, height=3`."""

    @property
    def differs(self) -> bool:
        """Whether a difference was found."""
        return self.verified and not self.equal and not self.unsure

    @property
    def where_compared(self) -> str:
        """Returns the clause of a headline that says where models were compared: `on 4 inputs and 141 tensors
        inside`. Without runs, the graphs alone show that both are equal."""
        if not self.runs:
            return "without a run: both models compute the compared tensors with the same operators and weights"
        inside = f" and {several(self.inside, 'tensor')} inside" if self.inside else ""
        return f"on {several(len(self.runs), 'input')}{inside}"

    @property
    def exact(self) -> bool:
        """Whether every output was bit-exact."""
        return bool(self.outputs) and all(output.exact for output in self.outputs)

    def card(self) -> tuple[tuple[str, str], ...]:
        if not self.verified or not self.runs:
            return ()
        sizes = (f"{name} {min(of)} to {max(of)}" for name, of in (self.sizes or {}).items() if of)
        many = several(len(self.runs), "input")
        rows = [("against", self.reference), ("compared on", ", ".join([many, *sizes]))]
        compared = [output for output in self.outputs if not _is_uncompared(output)]
        if compared:
            count = several(len(self.outputs), "output")
            rows.append(("worst error", _worst(compared) + (f" (of {count})" if len(self.outputs) > 1 else "")))
        if self.power is not None and not self.power.shortcoming():
            rows.append(("how sure", str(self.power)))
        return tuple(rows)

    def _refused(self) -> str:
        """Counts the generated inputs that the reference refused, and names the first sizes."""
        listed = "; ".join((*self.refused_sizes, *(("…",) if self.refused > len(self.refused_sizes) else ())))
        said = f"{several(self.refused, 'generated size')} that the reference refuses"
        return f"{said}: {listed}" if self.refused_sizes else said

    def line(self) -> str:
        if not self.verified:
            return "NOT VERIFIED"
        if not self.runs:
            return "; ".join(self.notes)
        wrong = [output.name for output in self.outputs if not output.equal]
        if wrong:
            return f"{len(wrong)} of {several(len(self.outputs), 'output')} DIFFERENT: {first_few(wrong, _NAMES)}"
        return ""  # the card says it all

    def blocks(self) -> Iterator[Block]:
        if not self.verified:
            yield Text(f"NOT VERIFIED: {self.why_not}", Tone.WARN)
            return
        if self.equal and not self.runs and all(output.why_tolerance == SAME_COMPUTATION for output in self.outputs):
            yield from (Text(note, Tone.GOOD) for note in self.notes)
            return
        rows = [("reference", self.reference), ("candidate", self.candidate), ("runs", str(len(self.runs)))]
        rows += [(f"range of {name}", text) for name, text in self.ranges.items()]
        rows += [(f"sizes of {name}", ", ".join(map(str, sizes))) for name, sizes in (self.sizes or {}).items()]
        rows += [(f"values of {name}", ", ".join(map(str, values))) for name, values in self.counts.items()]
        free: dict[str, list[str]] = {}
        for output in self.outputs:
            if output.free:
                free.setdefault(output.free, []).append(output.name)
        rows += [(said, ", ".join(names)) for said, names in free.items()]
        if self.inside:
            rows.append(("tensors inside", f"{self.inside}, each computed from tensors of the reference"))
        if self.refused:
            rows.append(("sizes refused", self._refused()))
        yield Facts(tuple(rows))
        yield Table(
            ("output", "dtype", "worst difference", "relative to scale", "allowed", "verdict"),
            tuple(
                (
                    o.name,
                    o.dtype,
                    *_differences(o),
                    _allowed(o),
                    _verdict(o),
                )
                for o in self.outputs
            ),
            right=(2, 3, 4),
            places=(Places(0, "tensor", tuple(o.name for o in self.outputs)),),
            worst_first=tuple(sorted(range(len(self.outputs)), key=lambda row: -_used(self.outputs[row]))),
            bars=(Bars(3, tuple(() if _is_uncompared(o) else (_used(o),) for o in self.outputs), ALLOWED),),
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
        for note in (*self.untried, *self.notes):
            yield Text(note, Tone.PLAIN if note.startswith(BOTH_LEVELS) else Tone.WARN)


_NAMES = 3
"""Outputs that one line names. A choice."""


def _used(output: OutputCheck) -> float:
    """Returns the share of its allowed difference that an output used; above 1 if it differs."""
    share = output.worst_rel / output.tolerance if output.tolerance else 0.0
    if not output.equal:
        return max(share, 2.0) if share == share else math.inf  # NaN is a difference, too
    return min(share, 1.0)


def _worst(outputs: Sequence[OutputCheck]) -> str:
    """Names the output that used most of its allowed difference, with both numbers."""
    worst = max(outputs, key=_used)
    if all(output.exact for output in outputs):
        return "none, equal to the bit"
    absolute, relative = _differences(worst)
    share = f"{relative} of the scale of {worst.name}" if relative else f"{absolute} in {worst.name}"
    allowed = _allowed(worst)
    return f"{share}, {allowed} allowed" if allowed != "exact" else f"{share}, nothing allowed"


def _differences(output: OutputCheck) -> tuple[str, str]:
    """Returns the worst difference and its share of the scale; no numbers if the candidate gave none."""
    if output.reason.startswith(REFUSES):
        return "no result", ""
    if _is_uncompared(output):
        return "", ""
    return f"{output.worst_abs:.3g}", f"{output.worst_rel:.3g}"


def _is_uncompared(output: OutputCheck) -> bool:
    """Whether no value of the output was compared, because it is random, or empty or NaN on every input."""
    return output.equal and not output.compared and output.why_tolerance != SAME_COMPUTATION


def _verdict(output: OutputCheck) -> str:
    if _is_uncompared(output):
        return "not compared"
    if not output.equal:
        return "DIFFERENT"
    return "equal to the bit" if output.exact else "equal"


def _allowed(output: OutputCheck) -> str:
    """Returns the allowed difference in the unit that decided. An output of tiny values may differ by more than its
    scale allows, as long as rounding in its own units explains the difference."""
    if _is_uncompared(output):
        return ""
    if output.equal and output.worst_rel > output.tolerance and 0 < output.worst_abs <= output.floor:
        return f"{output.floor:.2g} in its own units"
    return f"{output.tolerance:.2g}" if output.tolerance else "exact"


def nothing_verified(reference: str, candidate: str, why: str) -> Verification:
    """Makes the part for the case that no comparison was made."""
    return Verification(reference, candidate, verified=False, equal=False, why_not=why)


@dataclass(frozen=True)
class OutputArray:
    """One output. `low`, `mean` and `high` are over the finite numbers, None for other types; `written` is its file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: float | None = None
    mean: float | None = None
    high: float | None = None
    nonfinite: int = 0
    written: str = ""


@dataclass(frozen=True)
class Outputs(Part):
    """A run on one input. `nodes` counts nodes by execution provider, if the runtime reports it."""

    title = "Run"

    model: str
    runtime: str
    provider: str
    inputs: dict[str, str]
    outputs: tuple[OutputArray, ...]
    nodes: dict[str, int]

    def blocks(self) -> Iterator[Block]:
        rows = [("model", self.model), ("runtime", f"{self.runtime}, {self.provider}")]
        rows += [(f"nodes on {name}", str(count)) for name, count in self.nodes.items()]
        rows += [(f"input {name}", text) for name, text in self.inputs.items()]
        yield Facts(tuple(rows))
        yield Table(
            ("output", "dtype and shape", "min", "mean", "max", "not finite", "written to"),
            tuple(
                (
                    o.name,
                    f"{o.dtype}{list(o.shape)}",
                    _number(o.low),
                    _number(o.mean),
                    _number(o.high),
                    str(o.nonfinite or ""),
                    o.written,
                )
                for o in self.outputs
            ),
            right=(2, 3, 4, 5),
        )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


@dataclass(frozen=True)
class StatePair:
    """An input of the graph, and the output whose value it gets in the next call. `of` is the tensor of the module;
    `first` describes the input's value in the first call."""

    input: str
    output: str
    of: str
    first: str


@dataclass(frozen=True)
class State(Part):
    """The pairs of inputs and outputs that carry a state from call to call. `metadata` is the key of the file's
    metadata that lists them. `steps` counts the consecutive calls that were compared with the module."""

    title = "State"

    pairs: tuple[StatePair, ...]
    metadata: str
    steps: int = 0

    def line(self) -> str:
        pairs = first_few([f"{pair.output} → {pair.input}" for pair in self.pairs], _NAMES)
        return pairs + (f"; {self.steps} successive calls compared" if self.steps else "")

    def blocks(self) -> Iterator[Block]:
        yield Table(
            ("input", "gets in the next call", "of the module", "in the first call"),
            tuple((pair.input, pair.output, pair.of, pair.first) for pair in self.pairs),
        )
        yield Text(f"the file's metadata {self.metadata!r} lists these pairs and the values of the first call")
        if self.steps:
            yield Text(
                f"{self.steps} successive calls were compared, each with the state that the call before it returned"
            )


_ROWS_IN_TERMINAL = 8
"""Rows in a terminal. A choice: a third of a screen."""
_PAIRS = 4
"""Largest number of pairs of a state that are listed. A choice: a decoder has two for each of its layers."""


@dataclass(frozen=True)
class Step:
    """One call. `difference` is the largest difference of an output from the reference's, relative to its scale, if
    both sides get the reference's state; `output` is that output, and `reason` says how it differs beyond rounding.
    `own` and `own_output` are the same if each side has kept its own state since the first step; None if not run."""

    label: str
    output: str
    difference: float
    reason: str
    own: float | None = None
    own_output: str = ""


@dataclass(frozen=True)
class Steps(Part):
    """The comparison of consecutive calls. `state` pairs each state input with the output that it gets in the next
    call. `steps` are in order. `first` is the label of the first step that differs when given the reference's state;
    empty if none does. `drift` describes the effect of the candidate's own state; `drifts` is whether that effect is a
    difference beyond that."""

    title = "Steps"
    recorded = ("state", "steps", "first", "drift", "drifts", "notes")

    state: tuple[StatePair, ...]
    steps: tuple[Step, ...]
    first: str = ""
    drift: str = ""
    drifts: bool = False
    notes: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield Table(
            ("state", "gets in the next step", "in the first step"),
            tuple((pair.input, pair.output, pair.first) for pair in self.state),
            rows_in_terminal=tuple(range(min(len(self.state), _PAIRS))),
        )
        yield self._verdict()
        if self.drift:
            yield Text(self.drift, Tone.BAD if self.drifts else Tone.PLAIN)
        yield Chart(
            "difference from the reference, step by step",
            tuple(step.label for step in self.steps),
            (
                ("with the reference's state", tuple(step.difference for step in self.steps)),
                ("with its own state", tuple(step.own for step in self.steps)),
            ),
            x="steps",
            y="difference, relative to the output's scale",
        )
        yield self._table()
        yield from (Text(note, Tone.WARN) for note in self.notes)

    def _verdict(self) -> Text:
        for step in self.steps:
            if step.label == self.first:
                said = f"first difference: {step.label}, output {step.output}: {step.reason}"
                return Text(f"{said}, with the state of the reference", Tone.BAD)
        return Text(f"{len(self.steps)} steps agree, each started from the state of the reference", Tone.GOOD)

    def _table(self) -> Table:
        rows = tuple(
            (
                step.label,
                step.output,
                f"{step.difference:.2g}",
                "" if step.own is None else f"{step.own:.2g}",
                "DIFFERENT" if step.reason else "equal",
            )
            for step in self.steps
        )
        worst = sorted(range(len(rows)), key=lambda at: (not self.steps[at].reason, -self.steps[at].difference))
        begin = next((at for at, step in enumerate(self.steps) if step.label == self.first), 0)
        near = (0, begin - 1, begin, begin + 1, len(rows) - 1)
        shown = [at for at in dict.fromkeys((*near, *worst)) if 0 <= at < len(rows)][:_ROWS_IN_TERMINAL]
        return Table(
            ("step", "output", "difference", "with its own state", "verdict"),
            rows,
            right=(2, 3),
            rows_in_terminal=tuple(sorted(shown)),
        )
