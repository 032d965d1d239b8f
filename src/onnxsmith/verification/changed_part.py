"""Compares two models only where their graphs differ.

Everything else is the same computation in both. The differing part is compared on the tensors that the reference gives
it, and has to be equal to the bit. Then all outputs are, and nothing else needs to be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.clock import stage
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.verification import SAME_COMPUTATION, OutputCheck, Verification
from onnxsmith.base.settings import Verify
from onnxsmith.base.words import first_few, several
from onnxsmith.graph.files.load import message
from onnxsmith.graph.files.sharing import LARGE, held
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.graph.surgery import changed_region
from onnxsmith.graph.surgery.changed_region import Region
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Preparer, Session
from onnxsmith.verification.count_runs import counts_tried, with_counts_of
from onnxsmith.verification.explore import Explorer, Plan, Run, tried
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.output_declarations import Declarations
from onnxsmith.verification.session_view import View
from onnxsmith.verification.sessions import verify_models

_SHOWN = 3
"""Limits the tensors that a note names. A choice."""


@dataclass(frozen=True)
class Whole:
    """Holds one of the two models: its file or graph, and its interface."""

    source: Path | ir.Model
    interface: Signature

    @property
    def folder(self) -> Path | None:
        """Returns the folder of the model's data files; None for a graph, whose weights may be in several folders."""
        return self.source.absolute().parent if isinstance(self.source, Path) else None


def compared_where_changed(
    reference: Whole,
    candidate: Whole,
    outputs: Mapping[str, str],
    inputs: Mapping[str, str],
    known: Mapping[str, str],
    generator: Generator,
    settings: Verify,
    given: Sequence[Feed],
    names: tuple[str, str],
    *,
    has_run: bool,
) -> Verification | None:
    """Compares the parts in which the graphs differ, and runs the candidate as a whole on some of the same inputs.
    `outputs`, `inputs` and `known` map outputs, inputs and other tensors of the candidate to their names in the
    reference. `generator` makes inputs of the reference. `has_run` says that the candidate was run as a whole before.

    Returns None if only a comparison of the whole models can tell: the parts cannot be compared alone, or are not equal
    to the bit, or a model does not run.
    """
    ports = tuple(port.renamed(inputs.get(port.name, port.name)) for port in candidate.interface.inputs)
    if reference.interface.inputs != ports:
        return None
    theirs = [outputs[port.name] for port in candidate.interface.outputs if port.name in outputs]
    if [port.name for port in reference.interface.outputs if port.name in theirs] != theirs:
        return None  # another order is a difference of the interface
    if any(isinstance(one.source, ir.Model) and held(one.source) > LARGE for one in (reference, candidate)):
        return None  # a message would be one more copy of the weights
    with stage("compare"):
        models = message(reference.source), message(candidate.source)
        region = changed_region.find(*models, outputs, inputs, known, (reference.folder, candidate.folder))
    if region is None:
        return None
    if has_run and not region.pairs:
        note = _note(region, list(outputs))
        same = Verification(*names, verified=True, equal=True, notes=(note,))
        return replace(same, outputs=tuple(_rest(candidate.interface, outputs, same)))
    plan = Plan(with_counts_of(generator, candidate.source), tuple(given), sizes(settings.sizes), seed=settings.seed)
    chosen, options = runtimes.parse(settings.runtime or runtimes.default())
    if options == Options() and "disable" in chosen.levels:
        options = Options(optimization="disable", in_order=True)
    try:
        with folders.temporary() as folder, stage("verify"):
            with chosen.preparer(keep=2) as preparer:
                whole = _whole(candidate, inputs, ports, preparer, options)
                first = _first(region, reference, folder, preparer, options) if region.pairs else whole
                explorer = Explorer(first, plan, {})
                runs = list(explorer.runs())
                declared = Declarations(whole.signature)
                for run in (one for one in (runs if first is whole else _two_sizes(runs)) if not one.feed.zero):
                    declared.add(run.feed.values, run.outputs if first is whole else whole.run(run.feed.values))
            part = _compared(region, runs, settings, names)
    except OnnxsmithError:
        return None
    if part is None or not runs or not all(_has_values(run) for run in runs[:1]):
        return None
    note = _note(region, list(outputs))
    return replace(
        part,
        reference=part.reference or f"{names[0]} on {whole.provider}",
        candidate=part.candidate or f"{names[1]} on {whole.provider}",
        runs=tuple(run.feed.label for run in runs),
        sizes=tried(runs),
        counts=counts_tried(generator, runs),
        ranges={name: str(one) for name, one in plan.limits.declared.items()} if plan.generate else {},
        refused=explorer.refused,
        refused_sizes=explorer.refused_sizes,
        outputs=(*part.outputs, *_rest(candidate.interface, outputs, part)),
        notes=(note, *part.notes, *explorer.notes),
        untried=explorer.untried,
        misdeclared=declared.wrong(),
    )


def _whole(
    candidate: Whole, inputs: Mapping[str, str], ports: tuple[Port, ...], preparer: Preparer, options: Options
) -> Session:
    """Prepares the candidate. Its inputs are `ports`, under the reference's names, to which `inputs` maps their own."""
    session = preparer.prepare(candidate.source, options, interface=candidate.interface)
    if candidate.interface.inputs == ports:
        return session
    names = {inputs.get(port.name, port.name): port.name for port in candidate.interface.inputs}
    return View(session, replace(candidate.interface, inputs=ports), names, {})


def _first(region: Region, whole: Whole, folder: OwnPath, preparer: Preparer, options: Options) -> Session:
    """Prepares the part of the reference that computes the tensors before and at the end of the changes."""
    source, outputs = region.prefix(OwnPath(folder / "before.onnx"))
    ports = tuple(Port(name, "undefined", None) for name in outputs)
    return preparer.prepare(source, options, interface=replace(whole.interface, outputs=ports))


def _compared(region: Region, runs: Sequence[Run], settings: Verify, names: tuple[str, str]) -> Verification | None:
    """Compares both parts on the reference's tensors; None if they are not equal to the bit."""
    if not region.pairs:
        return Verification("", "", verified=True, equal=True)
    tensors = [{**run.feed.values, **run.outputs} for run in runs]
    needed = (*region.given, *region.pairs.values())
    if not tensors or any(not isinstance(one.get(name), np.ndarray) for one in tensors for name in needed):
        return None
    if any(len({one[name].ndim for one in tensors}) > 1 for name in needed):
        return None
    pair = region.parts(tensors[0])
    feeds = tuple(
        Feed(run.feed.label, {}, region.renamed(one), at_edges=run.feed.at_edges, meant=run.feed.meant)
        for run, one in zip(runs, tensors, strict=True)
    )
    part = verify_models(*pair, Verify(settings.runtime, settings.seed), given=feeds, generate=False, names=names)
    complete = len(part.runs) == len(runs) and all(output.compared for output in part.outputs)
    return replace(part, untried=()) if part.equal and part.exact and complete else None


def _rest(interface: Signature, outputs: Mapping[str, str], part: Verification) -> Iterator[OutputCheck]:
    """Yields the outputs that were not compared: both models compute them in the same way from equal tensors."""
    dtypes = {port.name: port.dtype for port in interface.outputs}
    seen = {output.name for output in part.outputs}
    for name, old in outputs.items():
        if old not in seen:
            yield OutputCheck(
                old, dtypes.get(name, ""), True, 0.0, 0.0, 0.0, 0.0, SAME_COMPUTATION, compared=0, exact=True
            )


def _two_sizes(runs: Sequence[Run]) -> list[Run]:
    """Returns the smallest runs that together have two sizes of each symbol, as far as the runs do."""
    seen: dict[str, set[int]] = {}
    found: list[Run] = []
    for run in sorted(runs, key=lambda run: (run.is_empty, sum(run.feed.sizes.values()))):
        new = [
            name
            for name, size in run.feed.sizes.items()
            if len(seen.get(name, ())) < 2 and size not in seen.get(name, ())
        ]
        if new or not found:
            found.append(run)
        for name in new:
            seen.setdefault(name, set()).add(run.feed.sizes[name])
    return found


def _has_values(run: Run) -> bool:
    return any(np.size(value) for value in run.outputs.values() if isinstance(value, np.ndarray))


def _note(region: Region, outputs: Sequence[str]) -> str:
    """Says what was compared, and what follows for the outputs."""
    follows = f"{first_few(list(outputs), _SHOWN)} {'is' if len(outputs) == 1 else 'are'}"
    if not region.pairs:
        return (
            f"{follows} computed by the same operators from the same weights in both models; the edited model was run"
        )
    before, now = region.nodes
    tensors = first_few(list(region.pairs.values()), _SHOWN)
    return (
        f"compared where the graphs differ, {several(before, 'node')} and {now}, at {tensors}: bit-identical; "
        f"{follows} computed from these tensors by the same operators and weights in both"
    )
