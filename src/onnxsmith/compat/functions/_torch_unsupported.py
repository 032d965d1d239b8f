"""Finds the arguments of `torch.onnx.export` that cannot be honoured, and says what to write instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.onnx import OperatorExportTypes, TrainingMode

from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.base.seams.torch.tensors import FakeTensor
from onnxsmith.compat.functions._argument_refusals import Unsupported


def unsupported(given: Mapping[str, Any]) -> Iterator[Unsupported]:
    """Yields the arguments of a call that cannot be honoured. `given` has all arguments by name."""
    yield from _of_weights(given["f"], params=given["export_params"], as_inputs=given["keep_initializers_as_inputs"])
    if fake := next((name for name in ("model", "args", "kwargs") if _is_fake(given[name])), ""):
        yield Unsupported(
            f"{fake}=… with fake tensors",
            "fake tensors have no values, so the results cannot be compared",
            "make model and inputs outside of FakeTensorMode; export_params=False and keep_initializers_as_inputs=True "
            "leave the weights out of the file",
        )
    mode = given["training"]
    if mode == TrainingMode.TRAINING or (mode == TrainingMode.PRESERVE and trains(given["model"])):
        yield Unsupported(
            f"training={mode!s}",
            "a graph is exported in evaluation mode, in which a model computes the same in every call",
            "leave training out; for a layer that stays active, call torch.nn.functional.dropout(x, training=True)",
        )
    if given["operator_export_type"] != OperatorExportTypes.ONNX:
        yield Unsupported(
            f"operator_export_type={given['operator_export_type']!s}",
            "no ONNX runtime can run nodes of ATen or of an unknown operator",
            "leave this argument out; for a kernel of your own, onnxsmith.register(operator, translation, "
            'deliver="plugin")',
        )
    if given["custom_opsets"]:
        yield Unsupported(
            f"custom_opsets={given['custom_opsets']!r}",
            "the translation that writes the nodes of a domain determines the domain's version",
            'leave this argument out; onnxsmith.register(operator, translation, domain="my.domain") names the domain',
        )
    if given["export_modules_as_functions"]:
        yield Unsupported(
            f"export_modules_as_functions={given['export_modules_as_functions']!r}",
            "torch.export traces through modules",
            "leave this argument out; to turn modules into functions of the file, see the example in `onnxsmith "
            "outline -h`",
        )
    if not given["autograd_inlining"]:
        yield Unsupported(
            "autograd_inlining=False",
            "a torch.autograd.Function is traced, or translated as it was registered",
            'leave this argument out; onnxsmith.register(MyFunction, translation, deliver="function") keeps '
            "MyFunction as one node",
        )
    if given["dump_exported_program"]:
        yield Unsupported(
            "dump_exported_program=True",
            "onnxsmith tries several strategies to capture the module, and not all of them make a program",
            "leave this argument out, and call torch.export.save(torch.export.export(model, args, kwargs), "
            "'model.pt2')",
        )
    if given["f"] is None and not given["dynamo"]:
        yield Unsupported(
            "dynamo=False without f",
            "with these arguments torch returns nothing, so the model would be lost",
            "give f, or leave out dynamo",
        )


def _of_weights(f: Any, *, params: bool, as_inputs: bool) -> Iterator[Unsupported]:
    if params and as_inputs:
        yield Unsupported(
            "keep_initializers_as_inputs=True",
            "a runtime cannot fold weights that are also inputs",
            "leave this argument out; or add export_params=False for a file that gets its weights as inputs; or "
            "call program.save(path, keep_initializers_as_inputs=True) on the returned program",
        )
    elif not params and not as_inputs:
        yield Unsupported(
            "export_params=False",
            "a file with neither weights nor inputs for them cannot be run",
            "add keep_initializers_as_inputs=True, which makes the weights inputs; or call program.save(path, "
            "include_initializers=False) on the returned program",
        )
    elif not params and f is None:
        yield Unsupported(
            "export_params=False",
            "this argument controls how the file is written, but f is None",
            "give f; or call program.save(path, include_initializers=False, keep_initializers_as_inputs=True)",
        )


def _is_fake(given: Any) -> bool:
    is_module = isinstance(given, torch.nn.Module)
    tensors = [*given.parameters(), *given.buffers()] if is_module else pytree.tree_leaves(given)
    return any(isinstance(tensor, FakeTensor) for tensor in tensors)


def trains(model: Any) -> bool:
    """Whether the model is a module in training mode."""
    return isinstance(model, torch.nn.Module) and model.training
