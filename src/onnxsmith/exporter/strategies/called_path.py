"""torch.export of the code path of a call: with the flags that say "exporting" off, and of a recorded run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.seams.base import replaced
from onnxsmith.base.seams.torch.flags import exporting, one_symbol_a_dimension
from onnxsmith.exporter.strategies.base import Captured, Example
from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.exporter.tracing.flat_module import Flat, own_name
from onnxsmith.runtimes.torch_eager import TorchProgram, to_tensor

_DERIVATIVES = re.compile(r"TensorWrapper|doesn't have storage|has no attribute 'constant'|requires_grad|requires grad")
"""Matches torch.export's messages about tensors of torch.func or torch.autograd, which it cannot trace."""
_CONSTANT = {"forward/data-attribute", "forward/function-transform", "export/constant-input"}
"""Names problems of a trace that stored a tensor of torch.func or torch.autograd as a constant."""


class TorchCalled(TorchExport):
    """Traces with `torch.compiler.is_exporting()`, `is_compiling()` and `torch.onnx.is_in_onnx_export()` False, so that
    the module's branches on them go the same way as in a call. It is tried if a graph of the traced path differs from
    the module as called."""

    title = "torch.export, branches on exporting as when called + torch.onnx"
    rank = 15
    tried_after = ("export/other-path",)

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        forward = program.module.forward

        def called(*args: object, **kwargs: object) -> object:
            with exporting(False):
                return forward(*args, **kwargs)

        with replaced(program.module, "forward", called):
            return self.traced(program, example, opset)


class TorchRecorded(TorchExport):
    """Runs forward once under `make_fx`, which records the operators that torch.func and torch.autograd call, also
    those of the derivative. torch.export then traces the recorded operators. As in any trace, Python's branches and
    loops are fixed as in that run; the comparison with the module shows whether that is right."""

    title = "torch.export of recorded operators + torch.onnx"
    rank = 35

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether a trace stopped at a tensor of torch.func or torch.autograd."""
        return any(one.id in _CONSTANT or _DERIVATIVES.search(one.why) for one in before)

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        try:
            recorded = _recorded(program, example)
        except Exception as error:
            raise problem(
                "export/capture-failed",
                "the operators of forward could not be recorded",
                where=type(program.module).__qualname__,
                why=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}",
                fix="rewrite the derivative with tensor operations",
            ) from error
        return self.traced(recorded, example, opset)


def _recorded(program: TorchProgram, example: Example) -> TorchProgram:
    """Returns the program with a module of the recorded operators, and with the weights under their own names."""
    from torch.fx.experimental.proxy_tensor import make_fx

    flat = Flat(program)
    names = [port.name for port in program.signature.inputs]
    tensors = [to_tensor(example[name]) for name in names]
    record = make_fx(flat.forward, tracing_mode="symbolic", _allow_non_fake_inputs=True)
    with one_symbol_a_dimension(), torch.no_grad():
        module: Any = record(*tensors)
    _own_weights(module, flat)
    return replace(program, module=module, leaves=tensors, names=names, rebuild=lambda leaves: (tuple(leaves), {}))


def _own_weights(module: Any, flat: Flat) -> None:
    """Reads each weight under the name that it has in the user's module."""
    known = {id(tensor): own_name(name) for name, tensor in (*flat.named_parameters(), *flat.named_buffers())}
    for name, part in flat.module.named_children():
        module.add_module(name, part)
    nodes = module.graph.find_nodes(op="get_attr")
    renamed = {node.target: known[id(held)] for node in nodes if id(held := getattr(module, node.target)) in known}
    for node in nodes:
        node.target = renamed.get(node.target, node.target)
    for target, own in renamed.items():
        delattr(module, target)
        if "." not in own:
            setattr(module, own, getattr(flat.module, own))
    module.recompile()
