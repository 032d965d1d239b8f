"""Verifies a model part by part, if its outputs show too little.

The outputs of an untrained network hardly depend on its weights: each layer loses most of the result of the layer
before it. So both models are cut at their common tensors. Each part gets the reference's values, and its result is
compared with the reference's like an output: within the rounding of that part, and with planted faults. A weight counts
as seen if a fault in it shows at the end of a part.

If a simplifier folds a normalisation into a convolution, the tensor between them has another value in the file, without
a fault. So the models are no longer cut at a tensor that differs. The pair was wrong on two conditions: later tensors
differ if they are computed from the reference's value of this tensor, and agree if they are not. If later tensors agree
either way, a wrong pair does not explain the difference, and the tensor is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace

import onnx_ir as ir

from onnxsmith.base.clock import advance
from onnxsmith.base.report.parts.verification import FEW, Power, Verification
from onnxsmith.base.words import first_few
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.graph.surgery.graph_cuts import Cut, cut
from onnxsmith.graph.surgery.weights_as_inputs import adjustable
from onnxsmith.runtimes.base import Feeds, Outputs, Session
from onnxsmith.verification.arbiter import Arbiter
from onnxsmith.verification.by_layer.part_comparison import Parts
from onnxsmith.verification.by_layer.tap import Tap
from onnxsmith.verification.detection_power import MOST
from onnxsmith.verification.explore import Plan
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.probe import Probe
from onnxsmith.verification.rounding import roundings
from onnxsmith.verification.session_view import View
from onnxsmith.verification.verify import Evidence, Side, verify

_BUDGET = 2**26
"""Limits the bytes of tensors whose parts are run together, with their copies. A choice: 64 MiB. Each planted fault is
a run that returns all these tensors."""

Prepare = Callable[[ir.Model], Session]


@dataclass(frozen=True)
class Inside:
    """Holds the results of all parts. `compared` counts the tensors that agree, without the outputs. `power` counts the
    faults planted in all parts. `apart` are tensors that differ. `undecided` are sentences on tensors about which no
    input decides. If `apart` or `undecided` has an entry, the parts verify nothing."""

    compared: int
    power: Power | None
    apart: Mapping[str, str]
    undecided: tuple[str, ...] = ()

    @property
    def shortcoming(self) -> str:
        """Returns why the parts verify nothing; "" if they verify the model."""
        if self.apart:
            reasons = [
                f"the intermediate tensor {name!r} differs from the module's, but no output shows this: {reason}"
                for name, reason in self.apart.items()
            ]
            return first_few(reasons, 1, "; ")
        if self.undecided:
            return self.undecided[0]
        if self.power is None:
            return "it is unknown how small an error the check would have noticed"
        hidden = len(self.power.inert) + len(self.power.slight)
        if hidden > FEW * self.power.tried:  # an output need not depend on a weight, but the end of its part should
            return f"no change in {hidden} of {self.power.tried} weights shows inside"
        return self.power.shortcoming()


def compared_inside(parts: Sequence[Parts], prepare: Prepare, seed: int = 0) -> Inside:
    """Compares all parts on each input: `parts` are the same models on one input each. `prepare` makes a session of a
    model on the runtime.

    Raises:
        OnnxsmithError: `runtime/…`, if a side fails.
    """
    first = parts[0]
    found = sorted_out(first)
    compared, tally, undecided = 0, Tally(), list[str]()
    apart = dict(found.apart)
    groups = [] if apart else _groups(replace(first, budget=_BUDGET), found.kept)
    for number, names in enumerate(groups):
        advance("inside", number, len(groups))
        checked = _verified(parts, found, names, prepare, tally, seed)
        apart |= {output.name: output.reason for output in checked.outputs if output.reason}
        weak = checked.power.shortcoming() if checked.power is not None else ""
        undecided += [said for said in checked.unsure if said != weak]
        compared += sum(output.name in found.kept and output.compared > 0 for output in checked.outputs)
    return Inside(compared, tally.power(len(adjustable(first.candidate.model)[1])), apart, tuple(undecided))


def _groups(parts: Parts, kept: Sequence[str]) -> list[list[str]]:
    """Groups the ends of the parts, so that each group fits into the budget and reads few weights. A fault is planted
    in each weight."""
    weights = {weight.name for weight in adjustable(parts.candidate.model)[1]}
    readers = {value.name: node for node in parts.candidate.model.graph for value in node.outputs}
    found: list[list[str]] = []
    for chunk in parts.chunks(kept):
        held: set[str] = set()
        for place, name in enumerate(chunk):
            steps, _ = parts.candidate.outline.segment(name, frozenset(kept))
            nodes = [readers[step.outputs[0]] for step in steps if step.outputs]
            own = {value.name for node in nodes for value in node.inputs if value is not None and value.name in weights}
            if not place or len(held | own) > MOST:
                found.append([])
                held = set()
            held |= {one for one in own if one is not None}
            found[-1].append(name)
    return found


_GROUPS = ("inert", "slight", "blind", "only_large", "seen")
"""Lists the effects of planted faults in a weight, from the least to the most. The names are fields of `Power`."""


class Tally:
    """Counts the effects of faults in each weight, in the parts so far. If several parts read a weight, the largest
    effect counts."""

    def __init__(self) -> None:
        self._found: dict[str, int] = {}
        self._sizes = (0.0, 0.0)

    @property
    def seen(self) -> frozenset[str]:
        """Returns the weights in which the smallest fault was seen."""
        return frozenset(self._of("seen"))

    def add(self, power: Power, tried: Set[str]) -> None:
        """Adds the faults that were planted in one part, in the weights `tried`."""
        self._sizes = max(self._sizes[0], power.small), max(self._sizes[1], power.large)
        groups = {name: group for group in _GROUPS[:-1] for name in getattr(power, group)}
        for name in tried:
            rank = _GROUPS.index(groups.get(name, "seen"))
            self._found[name] = max(rank, self._found.get(name, rank))

    def power(self, of: int) -> Power | None:
        """Sums up the effects for a model with `of` weights; None if no fault was planted."""
        if not self._found:
            return None
        return Power(
            kind="weights",
            of=max(of, len(self._found)),
            tried=len(self._found),
            seen=len(self._of("seen")),
            only_large=self._of("only_large"),
            blind=self._of("blind"),
            inert=self._of("inert"),
            slight=self._of("slight"),
            small=self._sizes[0],
            large=self._sizes[1],
        )

    def _of(self, group: str) -> tuple[str, ...]:
        return tuple(name for name, rank in self._found.items() if _GROUPS[rank] == group)


def _verified(
    parts: Sequence[Parts], found: Sorted, names: Sequence[str], prepare: Prepare, tally: Tally, seed: int
) -> Verification:
    """Compares the parts that end at these tensors. Adds the effects of planted faults to `tally`."""
    first = parts[0]
    given = first.boundary(names, found.kept)
    model = _opened(cut(first.candidate.model, given, names))
    ports = _ports(first, model)
    feeds = tuple(_feed(one, model, given, number) for number, one in enumerate(parts, 1))
    reference = _Parted(first, model, given, names, ports)
    holds_weights = any(weight.name not in tally.seen for weight in adjustable(model.model)[1])
    plan = Plan(Generator(ports), feeds, generate=False, seed=seed, random=True)
    with ExitStack() as stack:

        def prepared(made: ir.Model) -> Session:
            return _only_own(prepare(made), ports)

        session = stack.enter_context(prepared(model.model))
        probe = stack.enter_context(Probe(model.model, prepared, settled=tally.seen))
        arbiter = Arbiter(lambda: _Parted(first, model, given, names, ports, exact=True))
        evidence = Evidence.of(None, probe, arbiter, plant=holds_weights)
        sides = Side(first.reference.label, reference), Side(first.candidate.label, session)
        checked = verify(*sides, plan, roundings(model.model), evidence)
        if checked.power is not None and checked.power.kind == "weights":
            tally.add(checked.power, probe.tried)
        return checked


def _opened(made: Cut) -> Cut:
    """Returns the cut graph with inputs of any size."""
    ports = set(made.inputs.values())
    for value in made.model.graph.inputs:
        if value.name in ports and value.shape is not None:
            value.shape = ir.Shape([None] * len(value.shape))
    return made


def _ports(parts: Parts, made: Cut) -> Signature:
    """Returns the interface of a part: the given tensors, and all inputs of the whole model, because the reference
    needs the inputs."""
    own = signature(made.model)
    names = parts.names
    whole = {
        (name := names.get(port.name, port.name)): replace(port, name=name) for port in parts.reference.signature.inputs
    }
    given = tuple(port for port in own.inputs if port.name not in whole)
    return Signature((*whole.values(), *given), own.outputs)


def _feed(parts: Parts, made: Cut, given: Sequence[str], number: int) -> Feed:
    values = parts.values(given)
    inner = {made.inputs[name]: values[name] for name in given if name in made.inputs}
    whole = {parts.names.get(name, name): value for name, value in parts.feeds[0].items()}
    return Feed(f"input {number}", {}, {**whole, **inner})


def _only_own(session: Session, ports: Signature) -> View:
    """Returns a view of the session that accepts all inputs of `ports`, and ignores inputs that the session does not
    have."""
    own = {port.name: port.name for port in session.signature.inputs}
    return View(session, Signature(ports.inputs, session.signature.outputs), own, {})


class _Parted(Session):
    """Runs the parts of the reference: computes each tensor from the given values, in its own dtype or, with `exact`,
    in float64. The names are those of the candidate's cut graph."""

    def __init__(
        self,
        parts: Parts,
        made: Cut,
        given: Sequence[str],
        names: Sequence[str],
        ports: Signature,
        *,
        exact: bool = False,
    ) -> None:
        self._tap: Tap = parts.reference
        self._inputs = {theirs: own for own, theirs in parts.names.items()}
        self._given = {made.inputs[name]: parts.partner[name] for name in given if name in made.inputs}
        self._outputs = {name: parts.partner[name] for name in names}
        self._exact = exact
        self.signature = ports
        self.provider = "the reference"

    def run(self, feeds: Feeds) -> Outputs:
        inputs = {self._inputs.get(name, name): value for name, value in feeds.items() if name not in self._given}
        given = {own: feeds[name] for name, own in self._given.items()}
        if self._exact:
            wide = {name: self._tap.exact(inputs, given, own) for name, own in self._outputs.items()}
            return {name: value for name, value in wide.items() if value is not None}
        found = self._tap.forced(inputs, given, tuple(dict.fromkeys(self._outputs.values())))
        return {name: found[own] for name, own in self._outputs.items()}


_ROUNDS = 4
"""Limits the rounds in which pairs are left out. A choice: each round is a run of both sides."""


@dataclass(frozen=True)
class Sorted:
    """Separates wrong pairs from findings. `kept` are the pairs at which the models can be cut. `otherwise` are wrong
    pairs, whose tensors hold different things on the two sides. `apart` are the other tensors that differ, with the
    reason. Names are the candidate's, in its order."""

    kept: tuple[str, ...]
    otherwise: tuple[str, ...]
    apart: Mapping[str, str]


def sorted_out(parts: Parts) -> Sorted:
    """Sorts the pairs. Raises the errors of the sides."""
    names = [pair.candidate for pair in parts.pairs]
    apart = parts.apart(names)
    plain = parts.plainly_apart() if apart else {}
    left = {name for name in _suspects(parts, names, apart) if name in plain}
    for _ in range(_ROUNDS if apart else 0):
        kept = [name for name in names if name not in left]
        apart = parts.apart(kept)
        more = _suspects(parts, kept, apart)
        if not more:
            break
        left |= more
    kept, found = _decided(parts, [name for name in names if name not in left], [n for n in names if n in left])
    apart = parts.apart(kept) | found if left else apart
    outside = left - found.keys() - set(kept)
    return Sorted(tuple(kept), tuple(name for name in names if name in outside), apart)


def _suspects(parts: Parts, cuts: Sequence[str], apart: Collection[str]) -> set[str]:
    """Returns the tensors that differ and whose reference value makes a later tensor differ."""
    known = frozenset(cuts)
    return {name for name in cuts if name in apart and any(one in apart for one in parts.readers(name, known))}


def _decided(parts: Parts, kept: Sequence[str], left: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Decides on each pair that was left out; pairs that do not affect each other are tested together. Returns the
    pairs at which the models can be cut after all, and the tensors that differ, with the reason."""
    cuts = frozenset(kept)
    apart: dict[str, str] = {}
    for group in _independent(parts, cuts, left):
        together = cuts | group.keys()
        found = parts.apart(
            together, list(dict.fromkeys([*group, *(one for behind in group.values() for one in behind)]))
        )
        for name, behind in group.items():
            differs = any(one in found for one in behind)
            if name in found and not differs:
                apart[name] = found[name]
            elif not differs:
                cuts |= {name}
    return [name for name in parts.partner if name in cuts], apart


def _independent(parts: Parts, cuts: frozenset[str], left: Sequence[str]) -> list[dict[str, list[str]]]:
    """Returns groups of tensors, each tensor with its readers. Within a group, no tensor reads two tensors of the
    group."""
    groups: list[dict[str, list[str]]] = []
    for name in left:
        behind = parts.readers(name, cuts)
        for group in groups:
            if not any(set(behind) & set(others) for others in group.values()):
                group[name] = behind
                break
        else:
            groups.append({name: behind})
    return groups
