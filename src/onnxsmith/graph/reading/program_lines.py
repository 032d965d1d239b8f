"""Pairs the lines of a torch program with the nodes of the model that was exported from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.capture import Program, ProgramLine, ProgramNode
from onnxsmith.base.words import pasted
from onnxsmith.graph.reading.scopes import Scope, nodes
from onnxsmith.graph.reading.weights import is_constant
from onnxsmith.graph.structure import provenance
from onnxsmith.graph.structure.walk import node_label, op_name

_CALL = re.compile(r"%(\w+) .*?target=([^\]]+)\]\(args = \((.*?),?\), kwargs = \{(.*)\}\)\Z", re.DOTALL)
"""Matches a node of torch.fx: `%relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%x,),
…)`."""
_OPERATION = re.compile(r"\btorch\.ops\.")


def of_model(model: ir.Model, where: str) -> Program:
    """Returns the program that the nodes' metadata record (`pkg.torch.onnx.*`, written by torch's exporter). It has one
    line for each operation that became a node, in the order of the nodes. Operations without a node are not recorded.

    Raises:
        OnnxsmithError: `inspect/no-program` if no node records its operation or its source line.
    """
    lines: dict[tuple[str, str], ProgramLine] = {}
    own: dict[tuple[str, str], list[ProgramNode]] = {}
    unpaired = []
    for scope, node in _computing(model):
        origin, name = provenance.of(node), (provenance.names_of(node) or [""])[0]
        if not name and not origin.source:
            unpaired.append(_named(scope, node, ""))
            continue
        key = (name, "" if name else origin.source)
        if key not in lines:
            text = shortened(provenance.program_text(node)) or origin.op or name
            lines[key] = ProgramLine(name, text, origin.source, provenance.user_code(node), origin.module, 0, ())
        found = _named(scope, node, "name" if name else "source")
        own.setdefault(key, []).append(found)
    if not lines:
        raise problem(
            "inspect/no-program",
            "no node of the model records the traced program",
            where=where,
            why="the file was not written by torch.onnx with torch.export, or its metadata was removed; the "
            "TorchScript exporter writes source lines with verbose=True only",
            fix="give the torch model in the same way as to the export: "
            f"`onnxsmith inspect file.py:factory --program --onnx {pasted(where)}`",
        )
    paired = (replace(line, nodes=tuple(own[key])) for key, line in lines.items())
    return Program("the model", tuple(paired), tuple(unpaired), True)


def beside(origin: str, lines: Sequence[ProgramLine], model: ir.Model) -> Program:
    """Returns the program with the nodes of a model assigned to its lines.

    A node belongs to the line with its operation's name, if both have the same source line: another trace may use the
    name for another operation. Otherwise it belongs to the first program line that agrees in source line, module and
    operator; else in source line and module; else in the source line; else in the module. A node that also does the
    work of other operations is added to their lines as `merged`. Source lines are compared without folders, because the
    model may have been exported elsewhere."""
    by_name = {line.name: index for index, line in reversed(list(enumerate(lines)))}
    by_place: dict[tuple[str, ...], int] = {}
    for index, line in enumerate(lines):
        for key in _places(_file_line(line.source), line.module, _operator(line.text)):
            by_place.setdefault(key, index)
    found: list[list[ProgramNode]] = [[] for _ in lines]
    unpaired = []
    for scope, node in _computing(model):
        made = provenance.of(node)
        source = _file_line(made.source)
        names = provenance.names_of(node)
        named = [by_name[name] for name in names if name in by_name]
        agreeing = [index for index in named if not source or _file_line(lines[index].source) in ("", source)]
        keys = _places(source, made.module or _scope_module(node), made.op)
        shared = [key for key in keys if key in by_place]
        if agreeing:
            found[agreeing[0]].append(_named(scope, node, "name"))
            same_trace = lines[agreeing[0]].name == names[0]
            for index in dict.fromkeys(named) if same_trace else ():
                if index != agreeing[0]:
                    found[index].append(_named(scope, node, "merged"))
        elif shared:
            found[by_place[shared[0]]].append(_named(scope, node, shared[0][0]))
        else:
            unpaired.append(_named(scope, node, ""))
    paired = [replace(line, nodes=tuple(own)) for line, own in zip(lines, found, strict=True)]
    return Program(origin, tuple(paired), tuple(unpaired), True)


def _places(source: str, module: str, operator: str) -> list[tuple[str, ...]]:
    """Returns keys for a place in the source, the most specific first. Unknown parts give no key."""
    keys: list[tuple[str, ...]] = []
    if source and operator:
        keys.append(("source", source, module, operator))
    if source:
        keys += [("source", source, module), ("source", source)]
    if module:
        keys.append(("module", module))
    return keys


def _operator(text: str) -> str:
    """Returns the operator of a line: `aten.add.Tensor`."""
    match = re.match(r"\w+ = ([\w.]+)\(", text)
    return match[1] if match else ""


def shortened(text: str) -> str:
    """Writes a node of torch.fx as a call: `relu = aten.relu.default(x)`."""
    match = _CALL.match(text)
    if match is None:
        return text
    name, target, args, kwargs = match.groups()
    named = re.sub(r"(\w+): ", r"\1=", kwargs)
    operands = ", ".join(part for part in (args, named) if part).replace("%", "")
    return f"{name} = {_OPERATION.sub('', target)}({operands})"


def _computing(model: ir.Model) -> list[tuple[Scope, ir.Node]]:
    return [(scope, node) for scope, node in nodes(model) if not is_constant(node)]


def _named(scope: Scope, node: ir.Node, pairing: str) -> ProgramNode:
    return ProgramNode(node.name or node_label(node), op_name(node), scope.path, pairing)


def _file_line(source: str) -> str:
    return source.replace("\\", "/").rpartition("/")[2]


def _scope_module(node: ir.Node) -> str:
    """Returns the module in the node's name as the TorchScript exporter writes it: `/layers/layers.0/Conv`."""
    steps = [step for step in (node.name or "").split("/") if step]
    return steps[-2] if len(steps) > 1 else ""
