"""Copies a model on another device to the CPU, where it is run, traced and compared: a graph has no devices. The
caller's module stays on its device."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.passes import move_to_device_pass

from onnxsmith.base.problem import problem
from onnxsmith.exporter.factory import TorchModel, user_line
from onnxsmith.exporter.tracing.torch_logging import quiet

_STAY = ("cpu", "meta")  # a meta tensor has no values that could be copied


def on_cpu(model: TorchModel) -> TorchModel:
    """Returns the model with all its tensors on the CPU: parameters, buffers, tensors in other attributes, and the
    example inputs. A model without tensors elsewhere is returned unchanged; otherwise a note says what was copied.

    Raises:
        OnnxsmithError: `export/device` if the module cannot be copied.
    """
    examples = (tuple(model.args), dict(model.kwargs), tuple(model.more))
    scripted = isinstance(model.module, torch.jit.ScriptModule)
    held = {id(tensor): tensor for tensor in _tensors((model.module, examples))}
    away = sorted({str(tensor.device) for tensor in held.values() if is_away(tensor)})
    if not away:
        return model
    memo: dict[int, Any] = {key: _moved(tensor) if is_away(tensor) else tensor for key, tensor in held.items()}
    try:
        with quiet():
            module = _reloaded(model.module) if scripted else copy.deepcopy(model.module, memo)
        args, kwargs, more = copy.deepcopy(examples, memo)
    except Exception as error:
        raise problem(
            "export/device",
            f"the module is on {', '.join(away)} and cannot be copied to the CPU",
            where=user_line(error),
            why=f"{type(error).__name__}: {error}"[:300],
            fix='move the module to the CPU with module.to("cpu"), and also the example inputs',
        ) from error
    note = f"the module is on {', '.join(away)}; a copy on the CPU was exported and compared"
    return replace(model, module=module, args=args, kwargs=kwargs, more=more, notes=(*model.notes, note))


def program_on_cpu(exported: ExportedProgram) -> ExportedProgram:
    """Returns the program with its tensors, its example inputs and the devices named in its graph on the CPU. A program
    without other devices is returned unchanged; otherwise a copy."""
    held = (*exported.state_dict.values(), *exported.constants.values(), exported.example_inputs)
    if not any(is_away(tensor) for tensor in _tensors(held)):
        return exported
    with quiet():
        return move_to_device_pass(copy.deepcopy(exported), "cpu")


def is_away(tensor: torch.Tensor) -> bool:
    """Whether the tensor has values on a device other than the CPU."""
    return tensor.device.type not in _STAY


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor on the CPU. A parameter stays a parameter, and a tensor without values (of a lazy module)
    stays without."""
    if torch.nn.parameter.is_lazy(tensor):
        kind: Any = type(tensor)
        return kind(requires_grad=tensor.requires_grad, device="cpu", dtype=tensor.dtype)  # type: ignore[no-any-return]
    moved = tensor.detach().to("cpu")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(moved, requires_grad=tensor.requires_grad)
    if isinstance(tensor, torch.nn.Buffer):
        return torch.nn.Buffer(moved, persistent=tensor.persistent)
    return moved


def _reloaded(module: torch.jit.ScriptModule) -> Any:
    """Saves the compiled module to memory and loads it again: this also moves the constants of its graph, which `to`
    does not."""
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    return torch.jit.load(file, map_location="cpu")  # type: ignore[no-untyped-call]


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yields every tensor that the value holds: in containers, and in attributes of torch modules and of other objects.
    Python modules are not searched, because they lead everywhere."""
    seen: dict[int, Any] = {}  # keeps the objects alive, so that no id is reused
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, torch.jit.ScriptModule):
            yield from (*one.parameters(), *one.buffers())
        else:
            waiting += _inside(one)


def _inside(one: Any) -> list[Any]:
    """Returns the items and attributes of a container or an object. A class may override these questions, as a tuple
    whose length raises, so built-in types and the object's own attributes are asked past the class."""
    kind = type(one)
    if issubclass(kind, type | ModuleType):
        return []
    if issubclass(kind, dict):
        return list(dict.values(one))
    for usual in (list, tuple, set, frozenset):
        if issubclass(kind, usual):
            return list(usual.__iter__(one))
    held: Any = {}
    with suppress(Exception):  # an object without attributes, or a class that forbids access
        held = object.__getattribute__(one, "__dict__")
    found = list(dict.values(held)) if isinstance(held, dict) else []
    for name in (name for base in kind.__mro__ for name in _slots(base)):
        with suppress(Exception):
            found.append(object.__getattribute__(one, name))
    return found


def _slots(kind: type) -> tuple[str, ...]:
    named = vars(kind).get("__slots__", ())
    return (named,) if isinstance(named, str) else tuple(named)
