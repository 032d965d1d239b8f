"""Exports a torch module to a graph, for a comparison by layer with a file that does not record the origin of its
nodes.

Operations of a traced program have other names and other boundaries than the nodes of such a file. The graph that the
current exporter writes has the same operators as the file, and records the module and line of each node. It represents
the module only if its outputs are the module's.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Feeds, Options
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.by_layer.pair_difference import value_difference
from onnxsmith.verification.by_layer.side_outline import Outline

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
    said = "its outputs are not those of the module"
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
