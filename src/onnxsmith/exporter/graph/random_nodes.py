"""Notes for the report about nodes that draw random numbers."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.graph.structure import provenance, walk

_DRAW = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}


def random_nodes(model: ir.Model) -> Iterator[str]:
    """Yields a note for each line that draws random numbers."""
    found: dict[str, str] = {}
    for node in walk.all_nodes(model):
        if _draws(node):
            origin = provenance.of(node)
            found.setdefault(origin.source or node.name or node.op_type, origin.op or node.op_type)
    for where, op in found.items():
        yield f"{where}: {op} draws random numbers; the graph draws others than PyTorch, anew in every run"


def _draws(node: ir.Node) -> bool:
    """Whether the node draws random numbers. A Dropout draws if its third input, `training_mode`, is true."""
    if node.domain or node.op_type != "Dropout":
        return node.op_type in _DRAW and not node.domain
    training = ir.convenience.get_const_tensor(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    return training is not None and bool(training.numpy())
