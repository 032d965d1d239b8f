"""Traces quantised modules: packed weights as tensors, fake quantizers without observers."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.base.problem import problem
from onnxsmith.base.seams.torch.tensors import buffers_of
from onnxsmith.exporter.rewrites.base import Rewrite, instead_where
from onnxsmith.exporter.translating.unpacked_weights import Packed, tensors_of


class PackedWeights(Rewrite):
    """Replaces the packed weights of quantised modules by tensors while a module is traced.

    Modules of torch.ao.nn.quantized keep their weights in objects that only PyTorch's kernels read. Each module gets
    buffers with the integers, scales and zero points, and `translating/quantized_tensors.py` computes with them.
    """

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
        why="onnxsmith cannot turn this kind of packed weight into plain integers and scales",
        fix="export the float module, then quantize the file: "
        "`onnxsmith quantize net.onnx -o small.onnx --to int8-dynamic`",
    )


_BUFFERS = ("fake_quant_enabled", "observer_enabled", "scale", "zero_point")


class FakeQuantizers(Rewrite):
    """Traces fake quantizers without their observers: they quantise with the scale and the zero point they have.

    This covers fake quantizers of torch.ao.quantization and torchao. The observer must be off, because it changes both
    numbers on every call, also in evaluation mode.
    """

    title = "fake quantizers quantise and dequantise with their scales and zero points"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        observing = {path: part for path, part in module.named_modules() if _observes(part)}
        if observing:
            raise _observers_on(observing)
        return instead_where(_is_fake_quantizer, module, _forward, stack)


def _is_fake_quantizer(part: torch.nn.Module) -> bool:
    return all(isinstance(getattr(part, name, None), torch.Tensor) for name in _BUFFERS)


def _observes(part: torch.nn.Module) -> bool:
    """Whether the module is a fake quantizer whose observer is on. A `FixedQParams…` quantizer does not count, because
    its numbers do not change."""
    if _is_fake_quantizer(part):
        return bool(part.observer_enabled[0]) and not type(part).__name__.startswith("FixedQParams")  # type: ignore[index]
    return False


def _forward(self: Any, x: torch.Tensor) -> torch.Tensor:
    if not self.fake_quant_enabled[0]:
        return x
    low, high = int(self.quant_min), int(self.quant_max)
    if bool(getattr(self, "is_per_channel", self.scale.numel() > 1)):
        made: torch.Tensor = torch.fake_quantize_per_channel_affine(
            x, self.scale, self.zero_point, int(self.ch_axis), low, high
        )
        return made
    return torch.fake_quantize_per_tensor_affine(x, self.scale, self.zero_point, low, high)


def _observers_on(observing: dict[str, torch.nn.Module]) -> Exception:
    paths, parts = list(observing), list(observing.values())
    is_torchao = type(parts[0]).__module__.startswith("torchao.")
    library = "torchao.quantization.pt2e" if is_torchao else "torch.ao.quantization"
    return problem(
        "export/observers-on",
        f"the observer of {paths[0]!r} is on" + (f", and of {len(paths) - 1} more" if len(paths) > 1 else ""),
        where=paths[0],
        why="an observer changes the scale in every call, even in evaluation mode; but a graph has one fixed scale",
        fix=f"turn the observers off before the export: model.apply({library}.disable_observer)",
    )
