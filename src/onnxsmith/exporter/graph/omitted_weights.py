"""Leaves the module's weights out of a file; finds them in the graph even if the exporter renamed them.

A weight is a parameter, a buffer or any other tensor that the module or a submodule holds. It is found by its name, or
by its values in any order, because the exporter may transpose a weight or turn it into a constant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.base.words import first_few
from onnxsmith.exporter.tracing.flat_module import own_name
from onnxsmith.graph.structure import walk
from onnxsmith.graph.surgery import graph_input_edits
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.runtimes.torch_eager import to_array


@dataclass(frozen=True)
class Weights:
    """The weights of a module: name → digest of its values, empty if the values do not identify it. `counters` are the
    weights that are not floats, such as counts of batches."""

    digests: Mapping[str, str]
    counters: frozenset[str]

    @classmethod
    def of(cls, module: torch.nn.Module) -> Weights:
        """Collects every tensor that the module holds. A tensor with two names counts once."""
        found = {id(tensor): (name, tensor) for name, tensor in reversed(list(_tensors(module)))}
        named = dict(reversed(found.values()))
        counters = frozenset(name for name, tensor in named.items() if not tensor.dtype.is_floating_point)
        return cls({name: _digest(to_array(tensor)) for name, tensor in named.items()}, counters)

    def simplified(self, model: ir.Model, **options: Any) -> tuple[ir.Model, Simplification]:
        """Simplifies the model without changing its weights: the simplifier sees them as graph inputs."""
        lifted = {value: value.const_value for value in self._initializers(model)}
        for value in lifted:
            _make_input(model.graph, value)
        names = [value.name for value in lifted]
        made, part = simplified(model, **options)
        values = {value.name: value for value in made.graph.inputs}
        for name, constant in zip(names, lifted.values(), strict=True):
            value = values[name]
            made.graph.inputs.remove(value)
            value.const_value = constant
            made.graph.register_initializer(value)
        return made, part

    def left_out(self, model: ir.Model) -> tuple[ir.Model, str]:
        """Returns a copy of the model in which each weight is an input without a value, and a clause for the headline.

        Raises:
            OnnxsmithError: `export/weights-stay` if the module has weights and none could be left out.
        """
        found = {value.name or "": name for value, name in self._initializers(model).items()}
        gone = set(found.values())
        missing = [name for name in self.digests if name not in gone | self.counters]
        made = graph_input_edits.without_weights(model, found)
        others = [label for label, array in _constants(made) if _digest(array)]
        if missing and others and not found:
            raise problem(
                "export/weights-stay",
                f"none of {len(missing)} weights could be left out",
                where=", ".join(others[:3]),
                why="the exporter replaced these weights by constants that it computed from them",
                fix="in forward, compute with the parameter itself, not with a tensor or numbers made from the "
                "parameter; or leave --no-weights out",
            )
        said = f"{len(gone)} of {len(gone) + len(missing)} weights left out"
        if missing and others:
            said += f" ({first_few(missing, 3)} unused, or in the constants {others[0]}, …)"
        elif missing:
            said += f" (the graph does not use {first_few(missing, 3)})"
        return made, said

    def _initializers(self, model: ir.Model) -> dict[ir.Value, str]:
        """Returns the initializers that are weights, with the weights' names. Turns Constant nodes that hold a weight
        into initializers, in place."""
        digests = {digest: name for name, digest in reversed(list(self.digests.items())) if digest}
        for node in list(model.graph):
            tensor = _held(node)
            if tensor is not None and _digest(tensor.numpy()) in digests:
                value = node.outputs[0]
                if value.is_graph_output():
                    continue
                kind = ir.TensorType(tensor.dtype)
                shape = ir.Shape(tensor.shape)
                initializer = ir.Value(name=f"{value.name}_weight", type=kind, shape=shape, const_value=tensor)
                ir.convenience.replace_all_uses_with(value, initializer)
                model.graph.register_initializer(initializer)
                model.graph.remove(node, safe=True)
        found: dict[ir.Value, str] = {}
        for name, value in model.graph.initializers.items():
            own = own_name(name)
            # A weight that kept its name is found by it, whatever the exporter did to its values.
            if own in self.digests:
                found[value] = own
            elif value.const_value is not None:
                known = digests.get(_digest(value.const_value.numpy()))
                if known is not None:
                    found[value] = known
        return found


def _make_input(graph: ir.Graph, value: ir.Value) -> None:
    assert value.name is not None
    del graph.initializers[value.name]
    value.const_value = None
    graph.inputs.append(value)


def _tensors(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)
    plain = vars(torch.nn.Module()).keys()  # a module's own bookkeeping, which holds the parameters and buffers again
    for path, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            continue
        for name, held in vars(part).items():
            if name in plain:
                continue
            for at, leaf in enumerate(pytree.tree_leaves(held)):
                if isinstance(leaf, torch.Tensor):
                    own = name if leaf is held else f"{name}.{at}"
                    yield f"{path}.{own}" if path else own, leaf


def _held(node: ir.Node) -> Any:
    """Returns the tensor of a Constant node; None for any other node."""
    attribute = node.attributes.get("value") if node.op_type == "Constant" and not node.domain else None
    return attribute.as_tensor() if attribute is not None else None


def _constants(model: ir.Model) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for graph in walk.main_graphs(model):
        for name, value in graph.initializers.items():
            if value.const_value is not None:
                yield name, value.const_value.numpy()
        for node in graph:
            tensor = _held(node)
            if tensor is not None:
                yield node.outputs[0].name or "", tensor.numpy()


def _digest(array: np.ndarray[Any, Any]) -> str:
    """Returns a digest that does not depend on the order of the numbers. Empty for integers, and for one repeated
    number: many weights share these."""
    flat = np.asarray(array).reshape(-1)
    if flat.dtype.kind not in "fcV" or flat.size < 2 or bool((flat == flat[0]).all()):
        return ""
    # Sorted, because the exporter may have transposed the weight.
    wide = flat.astype(np.float64) if flat.dtype.kind != "c" else flat
    return hashlib.sha256(np.sort(wide).tobytes()).hexdigest()
