"""Reads every form of model that torch's exporter takes as a module with example inputs and dynamic axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.export import ExportedProgram

from onnxsmith.compat.functions._argument_refusals import Unsupported, refused
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs import object_flattening, port_names
from onnxsmith.exporter.tracing.exported_program import as_model
from onnxsmith.exporter.tracing.on_cpu import program_on_cpu


@dataclass(frozen=True)
class Asked:
    """A module with those arguments of a call of torch's exporter that depend on each other."""

    module: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dynamic: Any = None
    input_names: Sequence[str] = ()
    output_names: Sequence[str] = ()
    program: ExportedProgram | None = None


def asked(model: Any, args: Any, kwargs: Mapping[str, Any] | None, dynamic: Any) -> Asked:
    """Reads the model and its arguments in all forms that torch documents: a tensor, a tuple, a tuple that ends with a
    mapping of keyword arguments."""
    if isinstance(model, ExportedProgram):  # torch, too, takes the inputs from the program
        model = program_on_cpu(model)
        found = as_model(model)
        return Asked(found.module, tuple(found.args), found.kwargs, _axes(model, found), program=model)
    if isinstance(model, torch.onnx.ExportableModule) and not args and not kwargs:
        args, kwargs = model.example_arguments()
        dynamic = model.dynamic_shapes() if dynamic is None else dynamic
    elif isinstance(model, torch.jit.ScriptFunction):
        model = _Function(model)
    args = tuple(args) if isinstance(args, tuple | list) else (args,)
    if not kwargs and args and isinstance(args[-1], dict):
        args, kwargs = args[:-1], args[-1]
    return Asked(model, args, dict(kwargs or {}), dynamic)


class _Function(torch.nn.Module):
    """A function that TorchScript compiled, as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.forward = function


def _axes(exported: ExportedProgram, model: TorchModel) -> dict[str, dict[int, Any]]:
    """Returns the dynamic axes with which a program was traced. An axis is called after the program's symbol."""
    nodes = {node.name: node for node in exported.graph.nodes}
    paths = object_flattening.flatten((tuple(model.args), dict(model.kwargs)))[0]
    names = port_names.of_inputs(paths, model)
    found: dict[str, dict[int, Any]] = {}
    for name, user in zip(names, exported.graph_signature.user_inputs, strict=False):
        value = nodes[user].meta.get("val") if isinstance(user, str) and user in nodes else None
        if name is None or not isinstance(value, torch.Tensor):
            continue
        shape: tuple[Any, ...] = tuple(value.shape)
        sizes = {axis: size for axis, size in enumerate(shape) if not isinstance(size, int)}
        if sizes:
            found[name] = {axis: _dimension(size, exported) for axis, size in sizes.items()}
    return found


def _dimension(size: Any, exported: ExportedProgram) -> Any:
    """Returns the dimension of a symbolic size, with the limits that the program has for it."""
    expression = size.node.expr
    limits = exported.range_constraints.get(expression)
    if limits is None or not expression.is_symbol:
        return str(expression)
    low, high = (int(one) if one.is_Integer else None for one in (limits.lower, limits.upper))
    if (low or 0) <= 2 and high is None:  # torch traces from 2 on, and the graph holds for smaller sizes too
        return str(expression)
    return torch.export.Dim(str(expression), min=low, max=high)


def named(given: Asked, call: str, inputs: Sequence[str] | None, outputs: Sequence[str] | None) -> Asked:
    """Returns the call with the names of its inputs and outputs. There may be fewer names than inputs, as in torch; the
    other inputs keep their own names.

    Raises:
        OnnxsmithError: `compat/argument` for more names than inputs, which named weights in torch's older exporter.
    """
    if isinstance(given.module, torch.onnx.ExportableModule):
        inputs = given.module.input_names() if inputs is None else inputs
        outputs = given.module.output_names() if outputs is None else outputs
    asked_for = list(inputs or ())
    if asked_for:
        model = TorchModel(given.module, given.args, given.kwargs)
        own = [
            name
            for name in port_names.of_inputs(object_flattening.flatten((given.args, dict(given.kwargs)))[0], model)
            if name
        ]
        if len(asked_for) > len(own):
            why = f"only inputs can be named here: {', '.join(own)}; weights keep their names from the module"
            raise refused(call, Unsupported(f"input_names={asked_for}", why, f"input_names={asked_for[: len(own)]}"))
        asked_for += own[len(asked_for) :]
    return replace(given, input_names=tuple(asked_for), output_names=tuple(outputs or ()))
