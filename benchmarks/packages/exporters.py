"""The three exporters, called as their users call them. Each writes a file or raises, and says what it warned of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from packages.case import Case, arguments


def ours(case: Case, path: Path) -> str:
    """`onnxsmith.export` with default options; the report's notes are its warnings."""
    import onnxsmith

    args, kwargs = arguments(case.example())
    result = onnxsmith.export(case.module(), args, kwargs, output=path, dynamic=case.axes)
    if result.path is None:
        raise NotWrittenError(result.report.headline)
    return "; ".join(result.report.notes)


def dynamo(case: Case, path: Path) -> str:
    """`torch.onnx.export(dynamo=True)`."""
    args, kwargs = arguments(case.example())
    torch.onnx.export(
        case.module(),
        args,
        str(path),
        kwargs=kwargs,
        dynamo=True,
        dynamic_shapes=_dimensions(case.axes),
        input_names=None,
        verbose=False,
        external_data=False,
    )
    return ""


def torchscript(case: Case, path: Path) -> str:
    """`torch.onnx.export(dynamo=False)`."""
    given = case.example()
    args, kwargs = arguments(given)
    leaves, axes = leaves_of(given), _axes_of(case.axes)
    names = [f"input_{index}" for index in range(len(leaves))]
    torch.onnx.export(
        case.module(),
        args,
        str(path),
        kwargs=kwargs,
        dynamo=False,
        input_names=names,
        dynamic_axes=dict(zip(names, axes, strict=True)),
    )
    return ""


EXPORTERS: dict[str, Callable[[Case, Path], str]] = {"ours": ours, "dynamo": dynamo, "torchscript": torchscript}


class NotWrittenError(Exception):
    """The exporter says why it wrote nothing."""


def leaves_of(given: Any) -> list[torch.Tensor]:
    """The tensors of the arguments, in order."""
    return [leaf for leaf in pytree.tree_leaves(given) if isinstance(leaf, torch.Tensor)]


def _is_axes(node: Any) -> bool:
    """A mapping from axes, not one from names of arguments."""
    return isinstance(node, dict) and all(isinstance(key, int) for key in node)


def _axes_of(tree: Any) -> list[dict[int, str]]:
    leaves: list[dict[int, str]] = pytree.tree_leaves(tree, is_leaf=_is_axes)
    return leaves


def _dimensions(tree: Any) -> Any:
    """The axes as `torch.export` takes them."""
    return pytree.tree_map(lambda axes: dict.fromkeys(axes, torch.export.Dim.DYNAMIC), tree, is_leaf=_is_axes)
