"""Finds the parameter of the torch module for each stored tensor, and its saliency.

torch's exporter merges the transposition of a Linear's weight into the weight, and gives it a new name (`val_4`). But
it writes the module into the metadata of each node, so that the index of the operand tells the parameter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.files import array_files
from onnxsmith.graph.structure import provenance
from onnxsmith.precision.pruning.channel_links import Indices, static
from onnxsmith.precision.pruning.moved_weights import Moved
from onnxsmith.verification.metrics.base import Floats

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
    ("GroupNorm", "InstanceNormalization"): {1: "", 2: ""},
    ("GroupNorm", "Mul"): {1: "weight"},
    ("GroupNorm", "Add"): {1: "bias"},
    ("InstanceNorm", "InstanceNormalization"): _LAYER,
    ("PReLU", "PRelu"): {1: "weight"},
}
"""The parameter of a module of torch.nn, by the module's class without its number of dimensions, the operator, and the
index of the operand. It is "" for a constant that the exporter adds."""
_MERGED = {"Conv", "ConvTranspose", "Gemm"}
"""Operators into which the exporter merges a BatchNorm that follows. The node then has the metadata of the
BatchNorm."""


@dataclass(frozen=True)
class Parameter:
    """The name of a parameter, and whether the stored tensor is its transpose. The stored weight of a recurrent layer
    holds several parameters one after the other, with the gates in another order. `rows` are the rows of one of them,
    which loses the same units in each gate."""

    name: str
    is_transposed: bool = False
    rows: int | None = None
    is_vector: bool = False
    """Whether the parameter is a vector, even if the stored tensor has several axes."""

    @property
    def is_part(self) -> bool:
        """Whether the stored tensor also has elements of other parameters."""
        return self.rows is not None

    def kept(self, axis: int, indices: Indices) -> tuple[int, list[int]]:
        """Translates an axis of the stored tensor, and the indices that stay along it, to those of the parameter."""
        if self.rows is not None:
            return axis - 1, [int(index) for index in indices if axis > 1 or index < self.rows]
        own = 0 if self.is_vector else 1 - axis if self.is_transposed else axis
        return own, [int(index) for index in indices]


def parameters(model: ir.Model, copies: Mapping[str, str] | None = None) -> dict[str, list[Parameter]]:
    """Returns the parameters of each initializer of the main graph, as far as the file tells them. There are several if
    the exporter merged equal parameters, and none for a bias that it made from a BatchNorm. Functions are not
    understood. Custom modules are understood only for copies of vectors: `copies` has the original of each copy. If the
    original is named after the module of its reader, the copy is the parameter of the same name in the module of the
    copy's reader."""
    found: dict[str, list[Parameter]] = {}
    for copy, original in (copies or {}).items():
        own = _alike(model, copy, original)
        if own:
            found[copy] = [Parameter(own)]
    layers: dict[str, list[str]] = {}
    for node in model.graph:
        for name, parameter in _of(node):
            known = found.setdefault(name, [])
            if parameter.name and parameter not in known:
                known.append(parameter)
        for name, parameter in _recurrent(node, layers):
            found.setdefault(name, []).append(parameter)
        if _is_merged(node) and len(node.inputs) > 2:
            weight, bias = (value.name or "" if value is not None else "" for value in node.inputs[1:3])
            own = f"{weight.removesuffix('weight')}bias"
            found.setdefault(bias, [Parameter(bias)] if bias == own else [])
    return found


def _recurrent(node: ir.Node, layers: dict[str, list[str]]) -> Iterator[tuple[str, Parameter]]:
    """Yields the stored tensors of a recurrent layer, each with its parameter. `layers` are, by module, the weights of
    the earlier layers, from which the number of the layer follows."""
    if node.op_type not in _RECURRENT or _kind(node) != node.op_type:
        return
    weight, recurrent, bias = (node.inputs[place] if place < len(node.inputs) else None for place in (1, 2, 3))
    before = layers.setdefault(provenance.module_of(node), [])
    if weight is None or weight.shape is None or (weight.name or "") in before:
        return
    before.append(weight.name or "")
    rows, ways = static(weight, 1), ("", "_reverse")[: 2 if static(weight, 0) == 2 else 1]
    for value, owns in ((weight, ("weight_ih",)), (recurrent, ("weight_hh",)), (bias, ("bias_ih", "bias_hh"))):
        if value is not None and rows is not None:
            for name in (f"{own}_l{len(before) - 1}{way}" for own in owns for way in ways):
                yield value.name or "", Parameter(_path(node, name), rows=rows)


_RECURRENT = ("GRU", "LSTM", "RNN")


def _alike(model: ir.Model, copy: str, original: str) -> str:
    """Returns the name of the parameter of a copied vector; "" if it is unknown."""
    value, first = model.graph.initializers.get(copy), model.graph.initializers.get(original)
    if value is None or first is None:
        return ""
    module, _, own = original.rpartition(".")
    readers = [provenance.module_of(use.node) for use in value.uses()]
    same = module in [provenance.module_of(use.node) for use in first.uses()]
    return ".".join(filter(None, (readers[0], own))) if same and len(set(readers)) == 1 else ""


def merged(model: ir.Model) -> dict[str, list[str]]:
    """Returns the parameters and buffers of each BatchNorm that the exporter merged into the layer before it, by the
    name of the layer's result. They lose the channels on axis 1 of this result."""
    nodes = [node for node in model.graph if _is_merged(node)]
    return {node.outputs[0].name or "": [_path(node, own) for own in _NORMS] for node in nodes}


def norms(model: ir.Model) -> dict[str, list[str]]:
    """Returns the parameters of each GroupNorm and InstanceNorm, by the name of its result. They are listed even if the
    module has none, because it remembers the number of channels. They lose the channels on axis 1 of the result."""
    last = {provenance.module_of(node): node for node in model.graph if _kind(node) in ("GroupNorm", "InstanceNorm")}
    return {node.outputs[0].name or "": [_path(node, own) for own in _NORMS[:2]] for node in last.values()}


def _is_merged(node: ir.Node) -> bool:
    return node.op_type in _MERGED and _kind(node) == "BatchNorm"


def _kind(node: ir.Node) -> str:
    """Returns the class of the torch.nn module from which a node comes, without its number of dimensions; "" if there
    is none."""
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
        yield (
            value.name or "",
            Parameter(_path(node, own) if own else "", is_transposed, is_vector=kind in ("GroupNorm", "PReLU")),
        )


Saliency = Mapping[str, Floats]


def read(given: str | Path | Mapping[str, Any] | None, by: str) -> Saliency:
    """Reads the saliency by name of the parameter, from an `.npz` or a mapping to arrays: numbers of 0 or more, in the
    shape of the parameter. Returns an empty mapping for None.

    Raises:
        OnnxsmithError: `prune/saliency` if it cannot be read, if the measure `by` needs a saliency and there is none,
            or if it does not use one.
    """
    if (given is None) == (by == "first-order"):
        raise _unfit(
            "the measure first-order needs a saliency" if given is None else f"the measure {by} reads no saliency",
            "--saliency saliency.npz" if given is None else f"--by {by}",
            "give --by first-order --saliency saliency.npz: `onnxsmith explain prune/saliency` prints the lines of "
            "torch code that write this file",
        )
    if given is None:
        return {}
    where = str(given) if isinstance(given, str | Path) else "the given mapping"
    arrays = _arrays(Path(given)) if isinstance(given, str | Path) else dict(given)
    return {name: _checked(name, array, where) for name, array in arrays.items()}


def of_initializers(model: ir.Model, saliency: Saliency, places: Moved | None = None) -> dict[str, Floats]:
    """Returns the saliency of each initializer that is a parameter, in the axes of the initializer. If several
    parameters became one initializer, their saliencies are added. For weights whose elements were moved, `places` leads
    to the parameters.

    Raises:
        OnnxsmithError: `prune/saliency` if a shape is not that of the parameter.
    """
    known = parameters(model)
    found: dict[str, Floats] = {}
    for name in places.results if places is not None else ():
        assert places is not None
        sources = places.sources(name)
        if all(source in saliency for source in sources):
            for source in sources:
                _refuse_shape(source, source, saliency[source].shape, places.shapes[source])
            found[name] = places.made(name, lambda source: saliency[source])
    for name, value in model.graph.initializers.items():
        for one in (known.get(name) or [Parameter(name)]) if name not in found else ():
            own = saliency.get(one.name)
            if own is None or value.shape is None or one.is_part:
                continue
            turned = own.T if one.is_transposed else own
            if one.is_vector and own.size == math.prod(value.shape.numpy()):
                turned = own.reshape(tuple(value.shape.numpy()))
            _refuse_shape(one.name, name, turned.shape, tuple(value.shape.numpy()))
            found[name] = found[name] + turned if name in found else turned
    return found


def _refuse_shape(parameter: str, name: str, shape: tuple[int, ...], stored: tuple[int, ...]) -> None:
    """Refuses a saliency with another shape than the stored tensor. `shape` is in the axes of the stored tensor."""
    if shape != stored:
        raise _unfit(
            "the saliency has another shape than the parameter",
            f"{parameter} has {list(shape)}, but the model has {list(stored)} as {name}",
            "compute the saliency with the module that the model was exported from",
        )


def _arrays(path: Path) -> dict[str, Any]:
    try:
        return array_files.ArrayFile(path).arrays()
    except (*array_files.DAMAGED, OSError) as error:
        raise _unfit(
            "the saliency cannot be read",
            f"{path}: {error}"[:200],
            "write the saliency with numpy.savez, one array for each parameter",
        ) from error


def _checked(name: str, array: Any, where: str) -> Floats:
    found = np.asarray(array)
    if found.dtype.kind not in "fiu" or not np.isfinite(found).all() or (found < 0).any():
        raise _unfit(
            "a saliency is not a number of 0 or more",
            f"{where}, {name}",
            "give the squares of weight times gradient; a loss of NaN has no gradient",
        )
    return found.astype(np.float64)


def _unfit(what: str, where: str, fix: str) -> OnnxsmithError:
    return problem("prune/saliency", what, where=where, fix=fix)
