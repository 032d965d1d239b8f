"""Wraps a module of any interface as a function from tensors to tensors, and restores the module's names in the graph.

Exporters treat keywords, nested arguments, classes and None differently. `Flat` rebuilds all of them inside, so that
every module looks the same to an exporter: a sequence of tensors.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from onnxsmith.exporter.module.evaluation import set_evaluating
from onnxsmith.graph.structure import walk
from onnxsmith.runtimes.torch_eager import TorchProgram

if TYPE_CHECKING:
    from onnxsmith.exporter.tracing.data_branches import Decisions

_OWN = "module."
_HERE = re.escape(str(Path(__file__)))
_FRAME = re.compile(rf'[ \t]*File "{_HERE}", line \d+, in \w+\n(?:[ \t]+(?!File ).*\n)?')


class Flat(torch.nn.Module):
    """The module as a function that takes one tensor for each input of the program and returns a tuple of tensors. With
    `decisions`, returns the conditions that they answered after the results."""

    def __init__(self, program: TorchProgram, decisions: Decisions | None = None) -> None:
        super().__init__()
        self.module = program.module
        self._program = (program,)  # a tuple, because torch.nn.Module would register other attributes
        self._decisions = decisions
        self.training = False
        set_evaluating(program.module)

    def forward(self, *tensors: torch.Tensor) -> Any:
        (program,) = self._program
        if self._decisions is not None:
            self._decisions.begin()
        given = dict(zip([port.name for port in program.signature.inputs], tensors, strict=True))
        leaves = [
            leaf if name is None else given[name] for name, leaf in zip(program.names, program.leaves, strict=True)
        ]
        args, kwargs = program.rebuild(leaves)
        found = [leaf for leaf in program.leaves_of(self.module(*args, **kwargs)) if leaf is not None]
        results = [leaf if isinstance(leaf, torch.Tensor) else _scalar(leaf) for leaf in found]
        return (*results, *(self._decisions.results if self._decisions is not None else ()))


def _scalar(number: Any) -> torch.Tensor:
    """Converts a number to a tensor, also a number that is symbolic in a trace, which `torch.tensor` does not
    follow."""
    kinds = ((bool | torch.SymBool, torch.bool), (int | torch.SymInt, torch.int64))
    dtype = next((dtype for kind, dtype in kinds if isinstance(number, kind)), torch.get_default_dtype())
    return torch.scalar_tensor(number, dtype=dtype)


def own_name(name: str) -> str:
    """Returns the module's own name of a parameter, buffer or submodule of `Flat`."""
    return "" if name == _OWN[:-1] else name.removeprefix(_OWN)


def restore_names(model: ir.Model, program: TorchProgram) -> None:
    """Gives parameters and scopes the module's own names, without the prefix `module.` of `Flat`."""
    known, parts = program.module.state_dict(), dict(program.module.named_children())
    for name, value in list(model.graph.initializers.items()):
        own = own_name(name)
        is_own = own in known or own.partition(".")[0] in parts  # a rewrite may add buffers to the parts
        if own != name and is_own and own not in model.graph.initializers:
            del model.graph.initializers[name]
            value.name = own
            model.graph.register_initializer(value)
    for node in walk.all_nodes(model):
        _restore_scopes(node.metadata_props)


def _restore_scopes(props: Any) -> None:
    scopes = props.get("pkg.torch.onnx.name_scopes")
    if scopes is None:
        return
    found = ast.literal_eval(scopes)
    if found[:1] == [""] and len(found) > 1:
        props["pkg.torch.onnx.name_scopes"] = repr([own_name(scope) for scope in found[1:-1]] + found[-1:])
        classes = ast.literal_eval(props.get("pkg.torch.onnx.class_hierarchy", "[]"))
        props["pkg.torch.onnx.class_hierarchy"] = repr(classes[1:])
        steps = props.get("namespace", "").split("/")
        if len(steps) > 1:
            named = (step.partition(": ") for step in steps[1:])
            props["namespace"] = "/".join(f"{own_name(scope)}{colon}{rest}" for scope, colon, rest in named)
    trace = props.get("pkg.torch.onnx.stack_trace")
    if trace:
        props["pkg.torch.onnx.stack_trace"] = _FRAME.sub("", trace)
