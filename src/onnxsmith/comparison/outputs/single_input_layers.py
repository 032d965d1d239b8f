"""Compares two sides layer by layer, on one input.

If a file does not record the origin of its nodes, it is compared with an export of the module: operations of a traced
program have other names and other boundaries than the nodes of such a file. The graph that the current exporter writes
has the same operators as the file, and records the module and line of each node. It represents the module only if its
outputs are the module's.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from onnxsmith.base.clock import stage
from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.comparison.outputs.difference_confirmation import with_cause
from onnxsmith.comparison.outputs.graph_matches import matches
from onnxsmith.comparison.outputs.sides import SideSource, renamed
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Feeds, Options, Program
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.verification.by_layer.layer_comparison import BUDGET, LEAST_SHARE, Request, look
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.by_layer.pair_difference import value_difference
from onnxsmith.verification.by_layer.replay import Recording, ReplayTap
from onnxsmith.verification.by_layer.side_outline import Outline
from onnxsmith.verification.by_layer.tap import Tap
from onnxsmith.verification.inputs.generate import Feed


@dataclass(frozen=True)
class LayerOptions:
    """Options of a comparison by layer. `budget` is how many bytes of tensors are compared together, `least_share` the
    share of tensors that has to be paired.

    Raises:
        OnnxsmithError: `compare/number` if an option is out of its range.
    """

    budget: int = BUDGET
    least_share: float = LEAST_SHARE

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise problem("compare/number", "no memory is left for tensors", fix="give megabytes: --memory 2048")
        if not 0 <= self.least_share <= 1:
            said = f"{self.least_share:g} is not a share of the tensors"
            raise problem("compare/number", said, fix="give a number from 0 to 1: --min-paired 0.5")


def by_layer(
    a: SideSource,
    b: SideSource,
    feed: Feed,
    options: LayerOptions,
    tolerance: float | None = None,
    *,
    equal: bool = False,
) -> Layers:
    """Compares every common tensor of the two sides on `feed`, which uses the names of `a`. `equal` says that the
    outputs are known to be equal.

    Raises:
        OnnxsmithError: `compare/unpaired`; the errors of the runtimes.
    """
    plain = without_optimisations(a, b)
    if plain is not None:
        try:
            return _by_layer(*plain, feed, options, tolerance, equal=equal)
        except OnnxsmithError as error:
            if not error.problem.id.startswith("runtime/"):
                raise
        finally:
            for one in plain:
                if one.model is not None:
                    one.close()
    return _by_layer(a, b, feed, options, tolerance, equal=equal)


def without_optimisations(a: SideSource, b: SideSource) -> tuple[SideSource, SideSource] | None:
    """Returns both sides without the optimisations of their runtimes, so that values do not depend on which tensors
    are outputs: an optimised runtime fuses fewer nodes if more of their tensors are outputs. None if a graph runs on a
    runtime without levels, or if the user chose a level."""
    graphs = [one for one in (a, b) if one.model is not None]
    if not graphs or any(
        one.options != Options() or one.runtime.chosen or "disable" not in one.runtime.levels for one in graphs
    ):
        return None
    plain = Options(optimization="disable")
    first, second = (one if one.model is None else one.with_options(plain) for one in (a, b))
    return first, second


def _by_layer(
    a: SideSource,
    b: SideSource,
    feed: Feed,
    options: LayerOptions,
    tolerance: float | None = None,
    *,
    equal: bool = False,
) -> Layers:
    """Compares every common tensor of the two sides, with their options."""
    names = renamed(b.interface, a.interface)
    feeds = feed.values, {names[name]: value for name, value in feed.values.items() if name in names}
    with ExitStack() as stack:
        with stage("trace"), no_collection():
            sides = taps(a, b, feeds, stack)
        if not equal:
            sides[0].expect_exact()
        match = cache(partial(matches, *sides))
        file = str(a.source) if isinstance(a.source, Path) and a.model is not None else ""
        request = Request(feed.label, feeds, names, options.budget, options.least_share, tolerance, match, file)
        found = look(*sides, request)
        if (found.culprits or not equal) and isinstance(sides[1], OnnxTap):
            graph = _graph_of(a, sides, feeds, stack)
            again = _of_graphs((graph, sides[1]), request, equal) if isinstance(graph, OnnxTap) else None
            if again is not None:
                return again
            if isinstance(graph, str):
                found = replace(found, notes=(*found.notes, graph))
        first, second = sides
        if isinstance(first, OnnxTap) and isinstance(second, OnnxTap) and _may_differ(found, first, second):
            return with_cause((first, second), match(), found, request, equal=equal)
        return found


def _of_graphs(sides: tuple[OnnxTap, OnnxTap], request: Request, equal: bool) -> Layers | None:
    """Compares two graphs and finds the cause; None if that names no layer."""
    match = cache(partial(matches, *sides))
    request = replace(request, match=match)
    try:
        found = look(*sides, request)
        found = with_cause(sides, match(), found, request, equal=equal)
    except OnnxsmithError:
        return None
    return found if found.culprits else None


def _graph_of(
    a: SideSource, sides: tuple[Tap, Tap], feeds: tuple[Feeds, Feeds], stack: ExitStack
) -> OnnxTap | str | None:
    """Exports a traced torch module to a graph, because only graphs can be matched and their differences undone.
    Returns a sentence if the export fails; None if no graph is needed."""
    if isinstance(sides[0], OnnxTap):
        return None  # without an import of torch
    from onnxsmith.exporter.taps.fx_tap import FxTap

    if a.exported is not None or not isinstance(sides[0], FxTap) or not says_origins(sides[1].outline):
        return None
    with stage("trace"), no_collection():
        graph = as_graph(a, feeds[0], TO_MATCH)
    return stack.enter_context(graph) if isinstance(graph, OnnxTap) else graph


def _may_differ(found: Layers, reference: OnnxTap, candidate: OnnxTap) -> bool:
    """Whether a layer errs, an output differs, or the candidate computes in a dtype that may hide a difference."""
    if found.culprits or any(layer.differs for layer in found.layers if layer.paired_by == "port"):
        return True
    ours, theirs = (
        {value.dtype for node in one.model.graph for value in node.outputs} for one in (reference, candidate)
    )
    return not theirs <= ours


def only_grown(a: SideSource, b: SideSource, feed: Feed) -> bool:
    """Whether the outputs of one file, run in two ways, differ on `feed` only because rounding grows along the graph.
    Then every single operation is correct for its inputs, and all of them were compared."""
    with closing(replace(a)) as first, closing(replace(b)) as second:  # in separate processes
        try:
            found = by_layer(first, second, feed, LayerOptions())
        except OnnxsmithError:
            return False
    ports = [layer for layer in found.layers if layer.paired_by == "port"]
    is_whole = found.share == 1.0 and not found.only_reference and not found.only_candidate
    return is_whole and not found.culprits and any(layer.differs for layer in ports)


# Makes a side of a comparison a tap, whose tensors can be compared.


def taps(a: SideSource, b: SideSource, feeds: tuple[Feeds, Feeds], stack: ExitStack) -> tuple[Tap, Tap]:
    """Returns both sides as taps, closed with `stack`. How a torch side is decomposed depends on the other side.

    Raises:
        OnnxsmithError: the errors of the runtimes.
    """
    if isinstance(a.source, Program):
        second = stack.enter_context(tap(b, feeds[1]))
        return stack.enter_context(tap(a, feeds[0], second)), second
    first = stack.enter_context(tap(a, feeds[0]))
    return first, stack.enter_context(tap(b, feeds[1], first))


def tap(side: SideSource, feeds: Feeds, other: Tap | None = None) -> Tap:
    """Returns the tap of a side. A torch module is traced as in an export. If that is impossible, it is run once on
    `feeds`, with every operation recorded. If the `other` side is a graph that does not record the origin of its nodes,
    the module is exported to a graph.

    Raises:
        OnnxsmithError: the error of the runtime.
    """
    if isinstance(side.source, Recording):
        return ReplayTap(side.source, side.label)
    if side.inferred is not None:
        return OnnxTap(side.inferred, side.preparer, side.options, side.label, feeds, is_inferred=True)
    said: tuple[str, ...] = ()
    if isinstance(other, OnnxTap) and side.exported is None and not says_origins(other.outline):
        graph = as_graph(side, feeds)
        if isinstance(graph, OnnxTap):
            return graph
        said = (graph,)
    assert isinstance(side.source, TorchProgram)
    program = side.source
    outline = None if other is None else other.outline
    if side.exported is not None:
        from onnxsmith.exporter.taps.fx_tap import FxTap
        from onnxsmith.exporter.tracing.program_operations import suited

        return FxTap(suited(side.exported, outline), program.signature, side.label)
    from onnxsmith.exporter.taps.module_tap import module_tap

    made = module_tap(program, side.example, feeds, side.label, outline)
    made.notes += said
    return made


_KNOWN = 0.5
"""Least share of a file's nodes that name their torch operation for these names to be used for pairing. A choice."""

_LONG = 200
"""How many characters of an error a note shows. A choice."""
_NOTE = "{} was exported for this comparison, {}; the outputs of the exported graph agree with the module"
NO_ORIGINS = "because the file does not say which operations of the module its nodes come from"
TO_MATCH = "because graphs can be matched node by node"


def says_origins(outline: Outline) -> bool:
    """Whether most nodes of a graph name the operation of the traced program from which they come."""
    named = sum(bool(step.origin) for step in outline.steps)
    return named >= _KNOWN * len(outline.steps)


def as_graph(side: SideSource, feeds: Feeds, why: str = NO_ORIGINS) -> OnnxTap | str:
    """Exports the module of a side to a graph, on onnxruntime. `why` is the purpose of the export, for the note.
    Returns a sentence instead if the export fails, or if the graph's outputs on `feeds` are not the module's."""
    from onnxsmith.exporter.graph.program_capture import capture
    from onnxsmith.exporter.strategies.torch_export import TorchExport
    from onnxsmith.exporter.taps.module_tap import fixed

    assert isinstance(side.source, TorchProgram)
    program = side.source
    tries: tuple[tuple[TorchProgram, Mapping[str, Any]], ...] = (program, side.example), (fixed(program, feeds), feeds)
    said = "the outputs of the exported graph differ from those of the module"
    for asked, example in tries:
        with ExitStack() as stack:
            try:
                model = capture(TorchExport(), asked, example, None).model
                preparer = runtimes.get("onnxruntime").preparer(keep=2)
                made = stack.enter_context(OnnxTap(model, preparer, Options(), side.label, feeds))
                agrees = _agrees(side, made, feeds)
            except Exception as error:  # noqa: BLE001 — a module that cannot be exported is compared as traced
                said = " ".join(str(error).split())[:_LONG]
                continue
            if agrees:
                stack.pop_all()
                made.notes += (_NOTE.format(side.label, why),)
                return made
    return f"{side.label} could not be exported for this comparison, {why}: {said}"


def _agrees(side: SideSource, made: OnnxTap, feeds: Feeds) -> bool:
    """Whether a graph gives the outputs of the module, except for rounding."""
    names = made.outline.outputs
    try:
        with side.prepare() as session:
            ours = session.run(feeds)
        theirs = made.values(feeds, names)
    except OnnxsmithError:
        return False
    allowed = made.roundings(frozenset(), names)
    return ours.keys() == theirs.keys() and all(
        name in allowed and not value_difference(ours[name], theirs[name], allowed[name]).reason for name in names
    )
