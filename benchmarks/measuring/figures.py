"""What is counted of a model file, the same way for every tool's result.

Nodes: all but Constant, subgraphs and functions counted.

Shape glue: nodes that compute sizes rather than values. A node (Constant left out, subgraphs counted) is glue when it
is a Shape, Size, Range or ConstantOfShape, or when each of its outputs has an integer or bool type and a known rank of
0 or 1. Types and ranks come from onnxsmith's shape inference, run on a copy of the model whose declared shapes of
intermediate values were forgotten, so that a tool that writes them has no advantage over one that does not.

Origin: whether a node says which torch module made it, in its metadata (`pkg.torch.onnx.name_scopes`,
`pkg.torch.onnx.stack_trace`, `namespace`) or in its doc string.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from onnxsmith import load
from onnxsmith.graph.shapes.symbolic_inference import infer
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned

GLUE = frozenset({"Shape", "Size", "Range", "ConstantOfShape"})
ORIGIN = ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.stack_trace", "namespace")


@dataclass(frozen=True)
class Figures:
    """Counts of one file; `operators` has Constant in it, `origin` is the share of nodes that say where from."""

    nodes: int
    glue: int
    bytes: int
    origin: float
    operators: dict[str, int]


def figures(path: Path) -> Figures:
    """Reads the file and counts. Raises OnnxsmithError for a file that is no model."""
    model = load(path)
    nodes = [node for node in walk.all_nodes(model) if node.op_type != "Constant" or node.domain]
    return Figures(
        nodes=len(nodes),
        glue=glue(model),
        bytes=size(path, model),
        origin=sum(map(has_origin, nodes)) / len(nodes) if nodes else 1.0,
        operators=walk.histogram(model),
    )


def size(path: Path, model: ir.Model) -> int:
    """Bytes of the file and of the files beside it that hold its weights."""
    beside = {Path(tensor.path).resolve() for tensor in walk.tensors(model) if isinstance(tensor, ir.ExternalTensor)}
    return sum(file.stat().st_size for file in (path, *beside))


def has_origin(node: ir.Node) -> bool:
    """Whether the node says where it comes from."""
    return bool(node.doc_string) or any(node.metadata_props.get(key) for key in ORIGIN)


def glue(model: ir.Model) -> int:
    """How many nodes compute sizes, as the module says."""
    bare = cloned(model)
    outputs = {id(value) for graph in walk.graphs(bare) for value in graph.outputs}
    for node in walk.all_nodes(bare):
        for value in node.outputs:
            if id(value) not in outputs:
                value.shape = value.type = None
    infer(bare)
    return sum(map(_is_glue, walk.all_nodes(bare)))


def _is_glue(node: ir.Node) -> bool:
    if node.domain == "" and node.op_type == "Constant":
        return False
    if node.domain == "" and node.op_type in GLUE:
        return True
    made = [value for value in node.outputs if value.name]
    return bool(made) and all(map(_is_small_integer, made))


def _is_small_integer(value: ir.Value) -> bool:
    if value.dtype is None or value.shape is None or len(value.shape) > 1:
        return False
    return value.dtype.is_integer() or value.dtype == ir.DataType.BOOL
