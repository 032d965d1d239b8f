"""Removes the channels from a torch module that `onnxsmith prune` removed from its file, for more training and a new
export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from onnxsmith.base import user_files
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few

Axes = dict[int, list[int]]


def shrink(network: nn.Module, kept: str | Path | Mapping[str, Mapping[str, list[int]]]) -> None:
    """Cuts the parameters and buffers of a module in place as a keep-list of `onnxsmith prune` says, and sets the sizes
    that the modules of torch.nn remember: channels, features, groups, hidden units.

    `kept` is the file of `--keep-list` or its content: for each axis of each parameter, the indices that stay. A bias
    that the list does not name keeps the output channels of its weight: the exporter leaves out biases of zeros. A
    parameter that several modules share stays shared.

    Raises:
        OnnxsmithError: `prune/other-network` if the list does not fit the module, which stays unchanged;
            `input/unreadable` if the file cannot be read.
    """
    left = _read(kept)
    plan = _planned(network, left)
    if left:
        first = sorted(left)[0]
        raise _unfit(
            f"the network has no {first_few(sorted(left), _MOST)}",
            "shrink the network that the pruned file was exported from, without simplification: export it with "
            f"--no-simplify; if you cut these weights by hand, remove them from the list: kept.pop({first!r})",
        )
    made: dict[torch.Tensor, torch.Tensor] = {}
    for module, own in plan.items():
        before = _tensors(module)
        for name, axes in own.items():
            tensor = before.get(name)
            if tensor is not None:
                if tensor not in made:
                    made[tensor] = _cut(tensor, axes)
                setattr(module, name, made[tensor])
        _resize(module, own)


_MOST = 4
"""Limits the names in a message. A choice."""


def _read(kept: str | Path | Mapping[str, Mapping[str, list[int]]]) -> dict[str, Axes]:
    if isinstance(kept, str | Path):
        try:
            found: Any = user_files.parse_json(user_files.read_utf8(Path(kept)))
        except (OSError, ValueError) as error:
            raise problem(
                "input/unreadable",
                "the keep-list cannot be read",
                where=str(kept),
                why=str(error)[:200],
                fix="give the file that `prune` wrote with --keep-list",
            ) from error
    else:
        found = kept
    try:
        return {name: {int(axis): list(rows) for axis, rows in axes.items()} for name, axes in found.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise _unfit(
            "the content is not a keep-list of `prune`: {parameter: {axis: [index, …]}}",
            "give the file that `onnxsmith prune MODEL -o pruned.onnx --keep-list kept.json` wrote",
        ) from error


def _planned(network: nn.Module, left: dict[str, Axes]) -> dict[nn.Module, dict[str, Axes]]:
    """Returns the kept indices of each parameter and buffer, by module. Removes the names that it finds from `left`."""
    places: dict[torch.Tensor, list[tuple[nn.Module, str]]] = {}
    plan: dict[nn.Module, dict[str, Axes]] = {}
    modules = dict(network.named_modules(remove_duplicate=False))
    for prefix, module in modules.items():
        for name, tensor in _tensors(module).items():
            places.setdefault(tensor, []).append((module, name))
            _take(left, prefix, name, module, plan)
    for full in list(left):
        prefix, _, name = full.rpartition(".")
        if prefix in modules and getattr(modules[prefix], name, _ABSENT) is None:  # a norm without parameters
            _take(left, prefix, name, modules[prefix], plan)
    for tied in places.values():
        given = [plan[module][name] for module, name in tied if name in plan.get(module, {})]
        if any(one != given[0] for one in given):
            raise _unfit(
                f"{tied[0][1]!r} is one parameter that several modules share, but the list cuts it differently for "
                "each of them",
                "give each of these modules a parameter of its own before the export: "
                f"module.{tied[0][1]} = torch.nn.Parameter(module.{tied[0][1]}.detach().clone())",
            )
        for module, name in tied if given else ():
            plan.setdefault(module, {})[name] = given[0]
    for module, own in plan.items():
        axes = _of_bias(module, own.get("weight", {}))
        if axes and "bias" not in own and "bias" in _tensors(module):
            own["bias"] = axes
    return plan


_ABSENT = object()


def _take(
    left: dict[str, Axes], prefix: str, name: str, module: nn.Module, plan: dict[nn.Module, dict[str, Axes]]
) -> None:
    full = ".".join(filter(None, (prefix, name)))
    axes = left.pop(full, None)
    if axes is None:
        return
    tensor = _tensors(module).get(name)
    for axis, rows in axes.items() if tensor is not None else ():
        assert tensor is not None
        if axis >= tensor.dim() or (rows and max(rows) >= tensor.shape[axis]):
            raise _unfit(
                f"{full} has the shape {list(tensor.shape)}, but the list has the index {max(rows)} on axis {axis}",
                "shrink the network that the pruned file was exported from, with its original sizes; a network that "
                "was already shrunk does not fit",
            )
    plan.setdefault(module, {})[name] = axes


def _tensors(module: nn.Module) -> dict[str, torch.Tensor]:
    """Returns the parameters and buffers of a module itself."""
    return {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}


_Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d
_Transposed = nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d
_Norm = (
    nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm
    | nn.InstanceNorm1d | nn.InstanceNorm2d | nn.InstanceNorm3d
)  # fmt: skip


def _of_bias(module: nn.Module, weight: Axes) -> Axes:
    """Returns the kept indices of a layer's bias, which follow from those of the weight."""
    if isinstance(module, _Transposed):
        each, depthwise = module.out_channels // module.groups, module.groups == module.in_channels > 1
        if depthwise:
            return {0: [group * each + at for group in weight[0] for at in range(each)]} if 0 in weight else {}
        return {0: [group * each + at for group in range(module.groups) for at in weight[1]]} if 1 in weight else {}
    if isinstance(module, nn.Linear | _Convolution) and 0 in weight:
        return {0: weight[0]}
    return {}


def _cut(tensor: torch.Tensor, axes: Axes) -> torch.Tensor:
    data = tensor.detach()
    for axis, rows in axes.items():
        data = data.index_select(axis, torch.tensor(rows, device=data.device))
    data = data.contiguous()
    return nn.Parameter(data, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else data


def _resize(module: nn.Module, kept: dict[str, Axes]) -> None:
    """Sets the sizes that a module stores as attributes. The list has normalisations without parameters too."""
    channels = next((len(axes[0]) for axes in kept.values() if 0 in axes), 0)
    if isinstance(module, _Convolution | _Transposed):
        _resize_convolution(module)
    elif isinstance(module, nn.Linear):
        module.out_features, module.in_features = module.weight.shape
    elif isinstance(module, _Norm) and channels:
        module.num_features = channels
    elif isinstance(module, nn.GroupNorm) and channels:
        module.num_groups = channels * module.num_groups // module.num_channels
        module.num_channels = channels
    elif isinstance(module, nn.RNNBase):
        module.hidden_size, module.input_size = (
            getattr(module, name).shape[1] for name in ("weight_hh_l0", "weight_ih_l0")
        )
        module.flatten_parameters()
    elif isinstance(module, nn.Embedding):
        module.num_embeddings, module.embedding_dim = module.weight.shape
    elif isinstance(module, nn.PReLU):
        module.num_parameters = len(module.weight)


def _resize_convolution(module: Any) -> None:
    first, second = module.weight.shape[:2]
    if 1 < module.groups == module.in_channels:  # depthwise
        module.groups = first * module.groups // (module.in_channels if module.transposed else module.out_channels)
    sizes = first, second * module.groups
    module.out_channels, module.in_channels = sizes[::-1] if module.transposed else sizes


def _unfit(why: str, fix: str) -> OnnxsmithError:
    return problem("prune/other-network", "the keep-list does not fit the network", why=why, fix=fix)
