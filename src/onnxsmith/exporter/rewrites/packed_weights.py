"""Replaces the packed weights of quantised modules by tensors while a module is traced."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.base.problem import problem
from onnxsmith.base.seams.torch.tensors import buffers_of
from onnxsmith.exporter.rewrites.base import Rewrite
from onnxsmith.exporter.translating.unpacked_weights import Packed, tensors_of


class PackedWeights(Rewrite):
    """Modules of torch.ao.nn.quantized keep their weights in objects that only PyTorch's kernels read. Each gets
    buffers with the integers, scales and zero points, and `quantized_tensors.py` computes with them."""

    title = "packed weights of quantized modules are read as integers with scales and zero points"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        found = [
            (path, part, name, value)
            for path, part in module.named_modules()
            for name, value in list(vars(part).items())
            if isinstance(value, torch.ScriptObject)
        ]
        for path, part, name, value in found:
            read = tensors_of(value)
            if read is None:
                raise _unknown(path, part)
            tensors, axis, settings = read
            names = {role: f"{name.strip('_')}_{role}" for role in tensors}
            for role, tensor in tensors.items():
                buffers_of(part)[names[role]] = tensor
                stack.callback(buffers_of(part).pop, names[role])
            vars(part)[name] = Packed(part, names, axis, settings)
            stack.callback(vars(part).__setitem__, name, value)
        return bool(found)


def _unknown(path: str, part: Any) -> Exception:
    return problem(
        "export/quantized-module",
        f"the module {path!r} ({type(part).__module__}.{type(part).__qualname__}) holds weights that only PyTorch's "
        "kernels read",
        where=path,
        why="this kind of packed weight has no form of plain integers and scales",
        fix="export the float module, then quantize the file: "
        "onnxsmith quantize net.onnx -o small.onnx --to int8-dynamic",
    )
