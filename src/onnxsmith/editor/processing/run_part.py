"""Runs the part of a model between given tensors, such as a picture and the model's input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.settings import Verify
from onnxsmith.editor.graph_cleanup import remove_unneeded
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options
from onnxsmith.verification import runtime_choice


def part(model: ir.Model, starts: Sequence[ir.Value], ends: Sequence[ir.Value]) -> ir.Model:
    """Returns a copy of the nodes between tensors of a model, with the constants that they read. The copy shares the
    weights. `starts` and `ends` belong to the main graph."""
    copy = cloned(model)
    graph = copy.graph
    values = {value.name: value for node in graph for value in node.outputs} | {one.name: one for one in graph.inputs}
    inputs = [ir.Value(name=one.name, type=one.type, shape=one.shape) for one in starts]
    for one in inputs:
        old = values[one.name]
        old.name = None
        old.replace_all_uses_with(one, replace_graph_outputs=True)
    graph.outputs.clear()
    graph.outputs.extend(values[one.name] for one in ends)
    graph.inputs.clear()
    graph.inputs.extend(inputs)
    remove_unneeded(copy)
    copy.ir_version = max(copy.ir_version or 0, walk.FIRST_WITH_CONSTANTS)
    return copy


def answers(
    model: ir.Model, feeds: Iterable[Mapping[str, Any]], settings: Verify
) -> Iterator[tuple[Mapping[str, Any], list[Any]]]:
    """Returns each feed with the outputs of a model, in their order, on the runtime of the settings.

    Raises:
        OnnxsmithError: the errors of the runtime.
    """
    names, held = [value.name or "" for value in model.graph.outputs], list(feeds)

    def on(name: str) -> list[tuple[Mapping[str, Any], list[Any]]]:
        with stage("verify"), runtimes.get(name).prepare(model, runtimes.patient(Options())) as session:
            runs = [(feed, session.run(dict(feed))) for feed in held]
        return [(feed, [outputs[one] for one in names]) for feed, outputs in runs]

    return iter(runtime_choice.judged(settings.runtime, [model], on)[0])
