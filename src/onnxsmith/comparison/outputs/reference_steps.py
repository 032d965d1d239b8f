"""Calls the reference of a comparison several times in a row, each time with the state that it returned.

The calls become ordinary inputs of the comparison. Each has the state of the reference, so a fault of the candidate
shows in the step where it occurs. `comparison/outputs/candidate_state.py` then runs the candidate with its own state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.comparison.outputs.state_names import Fed
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure.signature import Port, Signature, is_symbol
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.explore import Plan
from onnxsmith.verification.input_search import Search, Tries, answer, has_finite_output
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.inputs.size_proposals import Sizes, batches, of_feed

FEW = 5
"""How many steps are run if neither `--steps` nor the inputs say it. A choice."""
_MOST_TRIED = 48
"""How many choices of sizes are tried for the first steps. A choice: each takes two runs."""
_BEGINNINGS = (0, 1)
"""Sizes of the past along the axes that grow, in the order of trial: first 0, then 1."""


@dataclass(frozen=True)
class Calls:
    """The request for calls in a row. `pairs` pass the state on; `count` is the number of steps, 0 if the inputs
    determine it."""

    pairs: tuple[Fed, ...]
    count: int = 0

    @property
    def state(self) -> frozenset[str]:
        """The inputs that hold the state."""
        return frozenset(pair.input for pair in self.pairs)


@dataclass(frozen=True)
class Rolled:
    """The steps of the reference. `feeds` has the inputs of each step with its state. `given` are the steps, counted
    from 0, in which a given state replaced the reference's own."""

    feeds: tuple[Feed, ...]
    outputs: tuple[Outputs, ...]
    given: frozenset[int]
    notes: tuple[str, ...] = ()


def rolled(session: Session, plan: Plan, calls: Calls) -> Rolled:
    """Runs the reference step by step on the given inputs of the plan, or on generated ones if there are none. If there
    are more steps than inputs, the last input is repeated. A given state replaces the reference's own.

    Raises:
        OnnxsmithError: `compare/step` if the reference refuses a step; the errors of the runtime.
    """
    return _Rolling(session, plan, calls).rolled()


@dataclass(frozen=True)
class _Choice:
    """Sizes of generated steps. `past` is the first size along the growing axes. `sizes` has each other symbol's size,
    and whether the past is added to it."""

    past: int
    sizes: Mapping[str, tuple[int, bool]]

    def at(self, past: int) -> Sizes:
        """Returns the sizes in a step with a past of this length."""
        return {symbol: size + (past if follows else 0) for symbol, (size, follows) in self.sizes.items()}


class _Rolling:
    def __init__(self, session: Session, plan: Plan, calls: Calls) -> None:
        self._session, self._plan, self._calls = session, plan, calls
        interface = replace(session.signature, inputs=plan.generator.signature.inputs)
        self._interface = interface
        self._ports = {port.name: port for port in interface.inputs}
        self._growing = _growing(interface, calls)
        self._search: Search | None = None
        self._notes: list[str] = []

    def rolled(self) -> Rolled:
        given = self._plan.given
        count = self._calls.count or (len(given) if len(given) > 1 else FEW)
        if 0 < count < len(given):
            self._notes.append(f"the first {count} of {len(given)} given inputs were used")
        sets = [given[min(at, len(given) - 1)].values for at in range(count)] if given else [{}] * count
        starts = frozenset(
            at for at, values in enumerate(sets[: len(given)]) if at and self._calls.state & values.keys()
        )
        names = [self._name(at, count) for at in range(count)]
        choice = self._chosen(sets)
        feeds: list[Feed] = []
        outputs: list[Outputs] = []
        for at, name in enumerate(names):
            feed = self._feed(name, sets[at], at, outputs[-1] if outputs else None, choice, at in starts or at == 0)
            found, refusal = answer(self._session, feed)
            if found is None:
                assert refusal is not None
                raise self._refused(name, refusal, feed)
            feeds.append(feed)
            outputs.append(found)
        return Rolled(tuple(feeds), tuple(outputs), starts, tuple(self._notes))

    def _name(self, at: int, count: int) -> str:
        given = self._plan.given
        _, bracket, file = given[at].label.partition("(") if at < len(given) and len(given) > 1 else ("", "", "")
        return f"step {at + 1} of {count}" + (f" ({file}" if bracket else "")

    def _feed(
        self,
        label: str,
        own: Mapping[str, Any],
        at: int,
        before: Outputs | None,
        choice: _Choice,
        starts: bool,
    ) -> Feed:
        """Returns the inputs of a step: the given ones, the state, and generated values for the rest."""
        held = {name: value for name, value in own.items() if starts or name not in self._calls.state}
        if before is not None:
            states = {pair.input: before[pair.output] for pair in self._calls.pairs}
        else:
            states = self._first({**choice.at(choice.past), **of_feed(self._interface, held)}, choice.past)
        held = {**states, **held}
        missing = [port.name for port in self._interface.required() if port.name not in held]
        sizes = of_feed(self._interface, held)
        if missing and not own:
            past = max((sizes[symbol] for symbol in self._growing if symbol in sizes), default=0)
            sizes = {**choice.at(past), **sizes}
            made = self._made(sizes, at)
            held |= {name: made[name] for name in missing if name in made}
        return Feed(label, of_feed(self._interface, held), held)

    def _made(self, sizes: Sizes, at: int) -> dict[str, Any]:
        """Returns generated values for all inputs."""
        assert self._search is not None
        ones = {name: 1 for name, values in self._plan.generator.choices().items() if 1 in values}
        chosen = {**self._search.chosen, **ones}
        manner, seed = self._search.manner, self._plan.seed + at
        return self._plan.generator.feed(sizes, seed=seed, chosen=chosen, manner=manner).values

    def _first(self, sizes: Sizes, past: int) -> dict[str, Any]:
        """Returns the state before the first step: as the file says, or else zeros, empty along the axes that grow."""
        return {pair.input: self._beginning(pair, sizes, past) for pair in self._calls.pairs}

    def _beginning(self, pair: Fed, sizes: Sizes, past: int) -> Any:
        port = self._ports[pair.input]
        stored = None if pair.first is None else np.asarray(pair.first)
        if port.kind != "tensor" or port.shape is None:
            return [] if stored is None and port.kind == "sequence" else stored
        shape = [self._size(dim, sizes, past) for dim in port.shape]
        if stored is None:
            return np.zeros(shape, ir.DataType[port.dtype.upper()].numpy())
        uniform = stored.size and stored.dtype.kind in "fiub" and bool((stored == stored.flat[0]).all())
        if not uniform or stored.ndim != len(shape):
            return stored
        own = [
            size if isinstance(dim, str) and dim in sizes else held
            for dim, size, held in zip(port.shape, shape, stored.shape, strict=True)
        ]
        return np.full(own, stored.flat[0], stored.dtype)

    def _size(self, dim: Any, sizes: Sizes, past: int) -> int:
        known = dims.evaluate(dim, {**dict.fromkeys(self._growing, past), **self._plan.known, **sizes})
        return 1 if known is None else known

    def _chosen(self, sets: Sequence[Mapping[str, Any]]) -> _Choice:
        """Returns the first sizes with which the reference accepts the first steps, preferably with finite outputs. If
        it accepts none, returns the first choice."""
        choices = list(itertools.islice(self._choices(generated=not sets[0]), _MOST_TRIED))
        if len(choices) == 1:
            return choices[0]
        taken = []
        for choice in choices:
            found = self._tried(sets[:2], choice)
            if found is not None and has_finite_output(found):
                return choice
            taken += [choice] if found is not None else []
        return (taken or choices)[0]

    def _tried(self, sets: Sequence[Mapping[str, Any]], choice: _Choice) -> Outputs | None:
        """Returns the outputs of the last of a few steps; None if the reference refuses one."""
        outputs: Outputs | None = None
        for at, own in enumerate(sets):
            try:
                feed = self._feed(f"step {at + 1}", own, at, outputs, choice, at == 0)
                outputs, _ = answer(self._session, feed)
            except OnnxsmithError as error:
                if error.problem.id not in ("feeds/unknown-size", "runtime/died"):
                    raise
                return None
            if outputs is None:
                return None
        return outputs

    def _choices(self, *, generated: bool) -> Iterator[_Choice]:
        beginnings = _BEGINNINGS if self._growing else (0,)
        if not generated:
            yield from (_Choice(past, {}) for past in beginnings)
            return
        base = self._base()
        free = [symbol for symbol in dims.symbols(self._interface) if symbol not in self._growing]
        sizes = [self._sizes(symbol, base) for symbol in free]
        for past in beginnings:
            for some in itertools.product(*sizes):
                yield _Choice(past, dict(zip(free, some, strict=True)))

    def _base(self) -> Sizes:
        """Returns sizes at which the reference accepts generated inputs, with any state."""
        self._search = Search(Tries(self._session, self._plan))
        found = self._search.base()
        if found is None and not self._growing:
            raise self._search.nothing_taken()
        return {} if found is None else found.feed.sizes

    def _sizes(self, symbol: str, base: Sizes) -> list[tuple[int, bool]]:
        """Returns sizes to try for a symbol in a generated step, the likeliest first: one token, growing with the past,
        or as in the base."""
        known = self._plan.known.get(symbol)
        if known is not None:
            return [(known, False)]
        usual = base.get(symbol, 1)
        if symbol in batches(self._interface) or not self._growing:
            return [(usual, False)] if usual == 1 or not self._growing else [(1, False), (usual, False)]
        grows = any(symbol == gave for pair in self._calls.pairs for gave in pair.shape or () if isinstance(gave, str))
        both = [(1, True), (1, False)] if grows else [(1, False), (1, True)]
        return [*both, *([(usual, False)] if usual > 1 else [])]

    def _refused(self, name: str, refusal: Problem, feed: Feed) -> OnnxsmithError:
        shapes = ", ".join(
            f"{one} {list(value.shape)}" for one, value in feed.values.items() if isinstance(value, np.ndarray)
        )
        return OnnxsmithError(
            replace(
                problem("compare/step", "").problem,
                what=f"the reference refuses {name}: {refusal.what}",
                where=shapes,
                why=refusal.why or refusal.where,
                fix="give the inputs of every step, one --input for each step, with sizes that fit the state: a "
                "mask is as "
                "long as the past and the new tokens together; give a first state that is not empty with the "
                "first step",
            )
        )


def _growing(interface: Signature, calls: Calls) -> frozenset[str]:
    """Returns the symbols of state axes that change from call to call. The output names such an axis differently, and
    no other input has the symbol."""
    inputs = {port.name: port for port in interface.inputs}
    fixed = {dim for port in interface.inputs if port.name not in calls.state for dim in port.shape or ()}
    found: set[str] = set()
    for pair in calls.pairs:
        took, gave = inputs[pair.input].shape or (), pair.shape
        for axis, dim in enumerate(took):
            is_free = isinstance(dim, str) and is_symbol(dim) and dim not in fixed
            if is_free and (gave is None or axis >= len(gave) or gave[axis] != dim):
                found.add(str(dim))
    return frozenset(found - batches(Signature(_others(interface, calls), ())))


def _others(interface: Signature, calls: Calls) -> tuple[Port, ...]:
    return tuple(port for port in interface.inputs if port.name not in calls.state)
