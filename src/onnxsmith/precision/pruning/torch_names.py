"""Finds which parameter of the torch module a stored tensor is.

The exporter of torch merges the transposition of a Linear's weight into the weight, and gives it a new name (`val_4`).
It writes the module into the metadata of each node, so that the parameter is known by the place of the operand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.model.graph import provenance

_NORMS = ("weight", "bias", "running_mean", "running_var")
_LAYER = {1: "weight", 2: "bias"}
_OPERANDS = {
    ("Linear", "MatMul"): {1: "weight"},
    ("Linear", "Gemm"): _LAYER,
    ("Linear", "Add"): {0: "bias", 1: "bias"},
    ("Conv", "Conv"): _LAYER,
    ("ConvTranspose", "ConvTranspose"): _LAYER,
    ("BatchNorm", "BatchNormalization"): dict(enumerate(_NORMS, 1)),
    ("GroupNorm", "GroupNormalization"): _LAYER,
}
"""The parameter of a module of torch.nn, by the module's class without its number of dimensions, the operator, and the
place of the operand."""
_MERGED = {"Conv", "ConvTranspose", "Gemm"}
"""Operators into which the exporter merges a BatchNorm behind them. The node has the origin of the BatchNorm."""


@dataclass(frozen=True)
class Parameter:
    """The name of a parameter, and whether the stored tensor is its transpose."""

    name: str
    is_transposed: bool = False


def parameters(model: ir.Model) -> dict[str, list[Parameter]]:
    """The parameters that each initializer of the main graph is, where the file says so: several if the exporter made
    one of equal ones, none if it made a bias of a BatchNorm. Modules of one's own, and functions, are not
    understood."""
    found: dict[str, list[Parameter]] = {}
    for node in model.graph:
        for name, parameter in _of(node):
            known = found.setdefault(name, [])
            if parameter not in known:
                known.append(parameter)
        if _is_merged(node) and len(node.inputs) > 2:
            weight, bias = (value.name or "" if value is not None else "" for value in node.inputs[1:3])
            own = f"{weight.removesuffix('weight')}bias"
            found.setdefault(bias, [Parameter(bias)] if bias == own else [])
    return found


def merged(model: ir.Model) -> dict[str, list[str]]:
    """The parameters and buffers of each BatchNorm that the exporter merged into the layer before it, by the name of
    the layer's result. They go with its channels, on axis 1."""
    nodes = [node for node in model.graph if _is_merged(node)]
    return {node.outputs[0].name or "": [_path(node, own) for own in _NORMS] for node in nodes}


def _is_merged(node: ir.Node) -> bool:
    return node.op_type in _MERGED and _kind(node) == "BatchNorm"


def _kind(node: ir.Node) -> str:
    """The class of the module of torch.nn that a node comes from, without its number of dimensions; else empty."""
    package, _, kind = provenance.class_of(node).rpartition(".")
    if not package.startswith("torch.nn.modules"):
        return ""
    return "Linear" if kind.endswith("Linear") else kind.rstrip("123d")


def _path(node: ir.Node, own: str) -> str:
    module = provenance.module_of(node)
    return f"{module}.{own}" if module else own


def _of(node: ir.Node) -> Iterator[tuple[str, Parameter]]:
    kind = _kind(node)
    for place, own in _OPERANDS.get((kind, node.op_type), {}).items():
        value = node.inputs[place] if place < len(node.inputs) else None
        if value is None or not value.is_initializer() or value.shape is None:
            continue
        transposes = node.attributes.get("transB")
        as_stored = node.op_type == "Gemm" and transposes is not None and bool(transposes.as_int())
        is_transposed = kind == "Linear" and own == "weight" and not as_stored
        yield value.name or "", Parameter(_path(node, own), is_transposed)
