"""Counts the nodes of a model after every call of a function is replaced by its body, without replacing any.

onnx's checker, its inference and the runtimes expand the calls. A file of 2 kB whose functions call each other twice,
30 levels deep, has a billion nodes then, and no process can be told to stop while it expands them.
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterable

import onnx

from onnxsmith.base.problem import problem
from onnxsmith.base.words import first_few
from onnxsmith.graph.structure.name_validation import subgraphs

MOST = 1_000_000
"""Limits the nodes after expansion. A choice: onnx's checker with inference reads two million nodes in 7.9 s
(measured), and large models have some 100,000."""
_GROWTH = 10
"""A file may always expand to this multiple of the nodes that it has. A choice: it is large, but its functions are not
to blame."""
_MOST_BYTES = 2**31 - 1
"""Limits the bytes of the nodes after expansion, which onnx and the runtimes hold in one message."""

_SHOWN = 6
"""Limits the functions of a circle that a message names. A choice."""

_Key = tuple[str, str, str]
_Size = tuple[int, int]
"""Holds a number of nodes and their bytes."""


def refuse_endless(proto: onnx.ModelProto, where: str) -> None:
    """Raises if the functions call each other in a circle, or expand to more nodes than a process can handle.

    Raises:
        OnnxsmithError: `model/invalid` for a circle, which the ONNX IR specification forbids; `model/expands`.
    """
    if not proto.functions:
        return
    functions = {_key(one.domain, one.name, one.overload): one for one in proto.functions}
    sizes: dict[_Key, _Size] = {}
    for key in _callees_first(functions, where):
        sizes[key] = _size(functions[key].node, sizes)
    count, nbytes = _size(proto.graph.node, sizes)
    written = sum(len(holder.node) for holder in (proto.graph, *proto.functions))
    most = max(MOST, _GROWTH * written)
    if count <= most and nbytes <= _MOST_BYTES:
        return
    largest = max(sizes, key=lambda key: sizes[key])
    raise problem(
        "model/expands",
        f"the functions of the file expand to {count:,} nodes, of {nbytes:,} bytes",
        where=f"{where}, function {_shown(largest)}",
        why=f"the file has {written:,} nodes, and one call of this function expands to {sizes[largest][0]:,}. onnx and "
        f"the runtimes expand every call; the limit is {most:,} nodes and {_MOST_BYTES:,} bytes",
        fix="call these functions less often where the model is made; `onnxsmith view` shows the file without "
        "expanding it",
    )


def _key(domain: str, name: str, overload: str) -> _Key:
    return "" if domain == "ai.onnx" else domain, name, overload


def _callees_first(functions: dict[_Key, onnx.FunctionProto], where: str) -> Iterable[_Key]:
    """Returns each function after the functions that it calls."""
    order = graphlib.TopologicalSorter({key: _called(one.node) & functions.keys() for key, one in functions.items()})
    try:
        return list(order.static_order())
    except graphlib.CycleError as error:
        circle = [_shown(key) for key in reversed(error.args[1])]
    raise problem(
        "model/invalid",
        f"the function {circle[0]} calls itself",
        where=where,
        why=f"{first_few(circle, _SHOWN, ' calls ')}; functions of a model must not be recursive",
        fix="remove one of these calls where the model is made",
    )


def _shown(key: _Key) -> str:
    return "::".join(part for part in key if part)


def _called(nodes: Iterable[onnx.NodeProto]) -> set[_Key]:
    found = set()
    for node in nodes:
        found.add(_key(node.domain, node.op_type, node.overload))
        for graph in subgraphs(node):
            found |= _called(graph.node)
    return found


def _size(nodes: Iterable[onnx.NodeProto], sizes: dict[_Key, _Size]) -> _Size:
    """Returns the nodes and bytes after expansion, with those of branches and loop bodies."""
    count = nbytes = 0
    for node in nodes:
        parts = [sizes.get(_key(node.domain, node.op_type, node.overload), (0, 0))]
        parts += [_size(graph.node, sizes) for graph in subgraphs(node)]
        count += 1 + sum(part[0] for part in parts)
        nbytes += node.ByteSize() + sum(part[1] for part in parts)
    return count, nbytes
