"""Checks of a node that neither onnx's checker nor onnx-ir makes: the names of operators, the ports of bodies."""

from __future__ import annotations

import onnx

from onnxsmith.base.problem import problem
from onnxsmith.base.words import several

_LONGEST = 1_000
"""Limits the characters in the name of an operator or a domain. A choice: public models have fewer than 100, and
onnxruntime takes a minute to load a model with a domain of 10 MB."""
_BODIES = {"If": (0, None), "Loop": (1, 0), "Scan": (0, 0), "SequenceMap": (0, 0)}
"""Maps operators with bodies to the outputs that a body has besides those of its node, and to the inputs that it has
besides those of its node; None if a body has no inputs."""


def refuse_long(name: str, where: str) -> None:
    """Raises `model/invalid` if the name of an operator or a domain is longer than any library expects."""
    if len(name) > _LONGEST:
        raise problem(
            "model/invalid",
            f"the name of an operator or of its domain has {len(name):,} characters",
            where=where,
            why=f"it begins with {name[:40]!r}; at most {_LONGEST:,} are read",
            fix="export the model again",
        )


def check_bodies(node: onnx.NodeProto, described: str, place: str) -> None:
    """Raises `model/invalid` if a body of a node has fewer outputs or inputs than the node."""
    if node.op_type not in _BODIES or node.domain not in ("", "ai.onnx"):
        return
    more_outputs, more_inputs = _BODIES[node.op_type]
    for attribute in node.attribute:
        if attribute.type != onnx.AttributeProto.GRAPH:
            continue
        body = attribute.g
        pairs = [("output", len(node.output) + more_outputs, len(body.output))]
        if more_inputs is not None:
            pairs.append(("input", len(node.input) + more_inputs, len(body.input)))
        for what, wanted, count in pairs:
            if count < wanted and not _has_lengths(node, what, wanted, count):
                raise problem(
                    "model/invalid",
                    f"the {attribute.name} of {described} has {several(count, what)}, but the node needs {wanted}",
                    where=f"{place}, node {described}",
                    why="a body returns each output of its node, and takes each input",
                    fix="export the model again",
                )


def _has_lengths(node: onnx.NodeProto, what: str, wanted: int, count: int) -> bool:
    """Whether the missing input is the first one of a Scan of opset 8: lengths of sequences, which no body takes."""
    return node.op_type == "Scan" and what == "input" and wanted - count == 1
