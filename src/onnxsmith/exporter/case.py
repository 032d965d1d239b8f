"""What a comparison is of: two sides, what is fed to them, and how far apart they may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxsmith.comparison.explore import Plan
from onnxsmith.comparison.rounding import Rounding, asked, roundings
from onnxsmith.exporter.sides import SideSource, as_programs, check_pairing, paired, renamed, side
from onnxsmith.feeds import given as inputs_given
from onnxsmith.feeds.generate import Feed, Generator

Inputs = Mapping[str, Any] | Sequence[str] | Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Case:
    """`tolerances` are by output, in the names of the reference, `a`; `tolerance` is the one that was asked for."""

    a: SideSource
    b: SideSource
    plan: Plan
    tolerances: Mapping[str, Rounding]
    tolerance: float | None
    notes: tuple[str, ...]

    def close(self) -> None:
        """Ends what the sides started."""
        self.a.close()
        self.b.close()


def case(
    reference: Any,
    candidate: Any,
    *,
    inputs: Inputs,
    sizes: Mapping[str, int] | None,
    runtime: str | None,
    generate: bool,
    seed: int,
    tolerance: float | None,
) -> Case:
    """Reads both sides; the arguments are those of `compare`.

    Raises:
        OnnxsmithError: what either side raises on loading; `verify/…` where their interfaces do not go together.
    """
    a, b = as_programs(side(reference, runtime), side(candidate, runtime))
    notes = check_pairing(a, b)
    tolerances, generator = _from_graph(a, b)
    if tolerance is not None:
        tolerances = {port.name: asked(tolerance) for port in a.interface.outputs}
    feeds = _feeds(inputs, a)
    for one in (a, b):
        if one.only_input is not None and not feeds:
            feeds, generate = _saved(one, a), False
    plan = Plan(generator, feeds, known=sizes or {}, start=a.example_sizes, generate=generate, seed=seed)
    return Case(a, b, plan, tolerances, tolerance, notes)


def _saved(bundle: SideSource, a: SideSource) -> tuple[Feed, ...]:
    """The input of a bundle, in the names of the reference."""
    names = renamed(bundle.interface, a.interface)
    held = bundle.only_input or {}
    values = {mine: held[theirs] for mine, theirs in names.items() if theirs in held}
    return (Feed(f"the input in {bundle.label}", {}, values),)


def _feeds(inputs: Inputs, a: SideSource) -> tuple[Feed, ...]:
    """One feed from arrays by name or from texts, one for each item of any other iterable."""
    if isinstance(inputs, Mapping):
        return (Feed("the given input", {}, dict(inputs)),) if inputs else ()
    items: list[Any] = list(inputs)
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) == len(items):
        values = inputs_given.values(texts, a.interface)
        return (Feed("the given input", {}, values),) if values else ()
    return tuple(Feed(f"input {number} of those given", {}, dict(item)) for number, item in enumerate(items, 1))


def _from_graph(a: SideSource, b: SideSource) -> tuple[Mapping[str, Rounding], Generator]:
    """Tolerances and values come from the ONNX graph; two torch modules have none and must agree to the bit."""
    inferred = a.inferred or b.inferred
    if inferred is None:
        return {}, Generator(a.interface)
    found = Generator.for_model(inferred)
    new = {theirs.name: mine.name for theirs, mine in paired(found.signature.inputs, a.interface.inputs)}
    by_output = roundings(inferred)
    outs = {theirs.name: mine.name for theirs, mine in paired(found.signature.outputs, a.interface.outputs)}
    generator = Generator(
        a.interface,
        {new.get(name, name): limits for name, limits in found.allowed.items()},
        {new.get(name, name): texts for name, texts in found.texts.items()},
    )
    return {outs.get(name, name): rounding for name, rounding in by_output.items()}, generator
