"""Finds inputs that became constants of the graph: inputs that the module uses and the graph ignores, and tensors
inside objects that cannot be unpacked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.exporter.inputs.module_program import Built
from onnxsmith.graph.structure import walk
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram


def constant_inputs(built: Built, model: ir.Model, where: str = "") -> tuple[Problem, ...]:
    """Returns a problem for each input that changes the module's results but no output of the graph. An input that the
    module ignores too is no problem. `where` is the user's line that causes it, if known."""
    reached = _reached(model)
    names = [port.name for port in built.program.signature.inputs if port.name not in reached]
    if not names:
        return ()
    with TorchEager().prepare(built.program) as session:
        return tuple(_became_constant(name, where) for name in names if _matters(session, built.example, name))


def _became_constant(name: str, where: str) -> Problem:
    return Problem(
        "export/constant-input",
        f"input {name!r} became a constant: no output of the graph depends on it",
        where=where,
        why="the module's results depend on the values of this input; but forward turns these values into Python "
        "numbers, a numpy array or a copy, which a trace stores as constants",
        fix="in forward, compute with the tensor itself, from the input to the output",
    )


def _reached(model: ir.Model) -> set[str]:
    """Returns the names of all values that an output depends on."""
    return {value.name or "" for value in walk.upstream(model.graph.outputs)}


def _matters(session: Session, example: Mapping[str, np.ndarray[Any, Any]], name: str) -> bool:
    try:
        before, again = session.run(dict(example)), session.run(dict(example))
    except OnnxsmithError:
        return False
    return _same(before, again) and any(
        _changes(session, example, name, other, before) for other in _others(example[name])
    )


def _changes(session: Session, example: Mapping[str, Any], name: str, other: Any, before: Outputs) -> bool:
    try:
        return not _same(before, session.run({**example, name: other}))
    except OnnxsmithError:  # the module rejects this value
        return False


def _others(array: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    if array.dtype == np.bool_:
        yield np.asarray(~array)
    elif array.dtype.kind in "iu":
        yield np.zeros_like(array)
        yield np.asarray(array + array.dtype.type(1))
    else:
        yield np.asarray(array * array.dtype.type(-1.5) + array.dtype.type(0.25), array.dtype)


def _same(a: Outputs, b: Outputs) -> bool:
    return all(np.array_equal(np.asarray(a[name]), np.asarray(b[name]), equal_nan=True) for name in a)


def closed_objects(program: TorchProgram) -> list[tuple[Any, list[str]]]:
    """Lists the arguments that hold tensors but cannot be unpacked into inputs, with the names of the attributes that
    hold tensors."""
    constants = [leaf for name, leaf in zip(program.names, program.leaves, strict=True) if name is None]
    return [(leaf, held) for leaf in constants if (held := _holding(leaf))]


def notes(program: TorchProgram) -> Iterator[str]:
    """Yields the report's notes about `closed_objects`."""
    for leaf, held in closed_objects(program):
        yield (
            f"an argument of class {type(leaf).__name__} cannot be unpacked: its tensors ({', '.join(held)}) are "
            "constants of the graph"
        )


def _holding(value: Any) -> list[str]:
    if isinstance(value, torch.Tensor | torch.nn.Module | type):
        return []
    if isinstance(value, set | frozenset):
        return ["its elements"] if any(isinstance(held, torch.Tensor) for held in value) else []
    slots = [name for kind in type(value).__mro__ for name in _names(getattr(kind, "__slots__", ()))]
    named = {name: getattr(value, name, None) for name in [*getattr(value, "__dict__", {}), *slots]}
    return [
        name for name, held in named.items() if any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(held))
    ]


def _names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)
