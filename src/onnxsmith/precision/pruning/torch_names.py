"""Finds which parameter of the torch module a stored tensor is.

The exporter of torch merges the transposition of a Linear's weight into the weight, and gives it a new name (`val_4`).
It writes the module into the metadata of each node, so that the parameter is known by the place of the operand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.model.graph import provenance

_NORM = {1: "weight", 2: "bias", 3: "running_mean", 4: "running_var"}
_OPERANDS = {
    ("Linear", "MatMul"): {1: "weight"},
    ("Linear", "Gemm"): {1: "weight", 2: "bias"},
    ("Linear", "Add"): {0: "bias", 1: "bias"},
    ("Conv1d", "Conv"): {1: "weight", 2: "bias"},
    ("Conv2d", "Conv"): {1: "weight", 2: "bias"},
    ("Conv3d", "Conv"): {1: "weight", 2: "bias"},
    ("BatchNorm1d", "BatchNormalization"): _NORM,
    ("BatchNorm2d", "BatchNormalization"): _NORM,
    ("BatchNorm3d", "BatchNormalization"): _NORM,
    ("GroupNorm", "GroupNormalization"): {1: "weight", 2: "bias"},
}
"""The parameter of a module of torch.nn, by the module's class, the operator, and the operand's place."""


@dataclass(frozen=True)
class Parameter:
    """The name of a parameter, and whether the stored tensor is its transpose."""

    name: str
    is_transposed: bool = False


def parameters(model: ir.Model) -> dict[str, list[Parameter]]:
    """The parameters that each initializer of the main graph is, where the file says so: several if the exporter made
    one of equal ones. Modules of one's own, and functions, are not understood."""
    found: dict[str, list[Parameter]] = {}
    for node in model.graph:
        for name, parameter in _of(node):
            known = found.setdefault(name, [])
            if parameter not in known:
                known.append(parameter)
    return found


def _of(node: ir.Node) -> Iterator[tuple[str, Parameter]]:
    package, _, kind = provenance.class_of(node).rpartition(".")
    if not package.startswith("torch.nn.modules"):
        return
    kind = "Linear" if kind.endswith("Linear") else kind
    module = provenance.module_of(node)
    for place, own in _OPERANDS.get((kind, node.op_type), {}).items():
        value = node.inputs[place] if place < len(node.inputs) else None
        if value is None or not value.is_initializer() or value.shape is None:
            continue
        transposes = node.attributes.get("transB")
        as_stored = node.op_type == "Gemm" and transposes is not None and bool(transposes.as_int())
        is_transposed = kind == "Linear" and own == "weight" and not as_stored
        yield value.name or "", Parameter(f"{module}.{own}" if module else own, is_transposed)
