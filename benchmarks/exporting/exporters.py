"""The exporters that are held beside each other. Each writes a file or raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from exporting.suite import Call


def plain_torch(call: Call, path: Path) -> None:
    """`torch.onnx.export(dynamo=True)`, with what it looks up in every call looked up once: a third of the time."""
    from onnxsmith.base.seams.torch.memo import memoised

    shapes = _dynamic_shapes(call) if call.dynamic else None
    kwargs = dict(call.kwargs)
    with memoised():
        torch.onnx.export(
            call.module, call.args, str(path), kwargs=kwargs, dynamo=True, dynamic_shapes=shapes, verbose=False,
            opset_version=call.opset,
        )  # fmt: skip


def torchscript(call: Call, path: Path) -> None:
    """`torch.onnx.export(dynamo=False)`, which takes no keywords here: they are bound first."""
    module: torch.nn.Module = _Bound(call.module, call.kwargs)
    names = [f"input_{index}" for index in range(len(pytree.tree_leaves(call.args)))]
    axes = {f"input_{index}": dict(found) for index, found in call.dynamic.items()}
    torch.onnx.export(
        module, call.args, str(path), dynamo=False, input_names=names, dynamic_axes=axes, opset_version=call.opset
    )


def ours(call: Call, path: Path, **options: Any) -> None:
    """`onnxsmith.export`, as a user would call it."""
    import onnxsmith

    result = onnxsmith.export(
        call.module, call.args, dict(call.kwargs), output=path, dynamic=dynamic_axes(call), opset=call.opset, **options
    )
    if not result.path:
        raise RuntimeError(f"{result.report.verdict.name}: {result.report.headline}")


def dynamic_axes(call: Call) -> dict[str, dict[int, str]]:
    """The dynamic axes of each input, by the name that onnxsmith gives it."""
    from onnxsmith.exporter.factory import TorchModel
    from onnxsmith.exporter.inputs import object_flattening, port_names

    paths, _ = object_flattening.flatten((tuple(call.args), dict(call.kwargs)))
    found = port_names.of_inputs(paths, TorchModel(call.module, call.args, dict(call.kwargs)))
    names = [name for name in found if name is not None]
    return {names[index]: dict(axes) for index, axes in call.dynamic.items()}


def capture(call: Call, path: Path) -> None:
    """The first strategy alone, unverified and not simplified: quick, to see what the translations come to."""
    ours(call, path, strategy="torch-export", simplify=False, verify=False)


class _Bound(torch.nn.Module):
    def __init__(self, module: torch.nn.Module, kwargs: Any) -> None:
        super().__init__()
        self.module, self.kwargs = module, dict(kwargs)

    def forward(self, *args: Any) -> Any:
        return self.module(*args, **self.kwargs)


def _dynamic_shapes(call: Call) -> Any:
    import inspect

    count = iter(range(10_000))

    def axes(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return None
        return dict.fromkeys(call.dynamic.get(next(count), {}), torch.export.Dim.DYNAMIC)

    args, kwargs = pytree.tree_map(axes, (call.args, dict(call.kwargs)))
    bound = inspect.signature(call.module.forward).bind(*call.args, **call.kwargs)
    found: dict[str, Any] = {}
    position = iter(args)
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind == inspect.Parameter.VAR_POSITIONAL:
            found[name] = tuple(next(position) for _ in value)
        elif kind == inspect.Parameter.VAR_KEYWORD:
            found[name] = {key: kwargs[key] for key in value}
        else:
            found[name] = kwargs[name] if name in kwargs else next(position)
    return found


EXPORTERS: dict[str, Callable[[Call, Path], None]] = {
    "torch": plain_torch,
    "torchscript": torchscript,
    "ours": ours,
    "capture": capture,
}


def export(tool: str, call: Call, path: Path) -> None:
    """Writes what `tool` makes of `call`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        EXPORTERS[tool](call, path)
