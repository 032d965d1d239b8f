"""Shows the program that a model was captured from, beside the nodes that came from each line."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.program import Program
from onnxsmith.graph.reading.program_lines import of_model
from onnxsmith.graph.reading.scopes import nodes
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.walk import node_label
from onnxsmith.viewer import scene


def recorded(source: ir.Model) -> Program | None:
    """Returns the program as the metadata of the nodes records it; None if they do not."""
    if not any(node.metadata_props or node.doc_string for node in walk.all_nodes(source)):
        return None
    try:
        return of_model(source, "the model")
    except OnnxsmithError:
        return None


def listed(
    program: Program, origin: str, source: ir.Model, model: scene.Model, numbers: dict[ir.Node, int]
) -> scene.Program:
    """Makes the lines of the page. Source lines and modules that the scene lacks are added to it."""
    by_name: dict[tuple[str, str], list[int]] = {}
    for scope, node in nodes(source):
        if node in numbers:
            by_name.setdefault((scope.path, node.name or node_label(node)), []).append(numbers[node])
    sources = {f"{one['file']}:{one['line']}": at for at, one in reversed(list(enumerate(model.sources)))}
    modules = {one["path"]: at for at, one in reversed(list(enumerate(model.modules)))}
    lines = []
    for line in program.lines:
        held = [number for one in line.nodes for number in by_name.get((one.scope, one.name), ())]
        lines.append(
            {
                "name": line.name,
                "text": "  " * line.depth + (line.text or line.code),
                "source": _source(line.source, line.code, sources, model),
                "module": _module(line.module, modules, model),
                "nodes": list(dict.fromkeys(held)),
            }
        )
    return scene.Program(origin, lines)


def _source(place: str, code: str, known: dict[str, int], model: scene.Model) -> int:
    file, _, line = place.rpartition(":")
    if not file or not line.isdigit():
        return -1
    if place not in known:
        known[place] = len(model.sources)
        model.sources.append({"file": file, "line": int(line), "text": code})
    return known[place]


def _module(path: str, known: dict[str, int], model: scene.Model) -> int:
    if not path:
        return -1
    if path not in known:
        known[path] = len(model.modules)
        model.modules.append({"path": path, "type": ""})
    return known[path]
