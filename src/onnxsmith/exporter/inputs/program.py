"""A torch module and example inputs, made into something that takes and gives named arrays.

Arguments may be nested: dicts, lists, tuples, objects that hold tensors (`objects.py`), None. Every tensor in them
becomes one input, named after the argument of `forward` and the path below it (`state.0.hidden`). Python numbers,
strings and None are constants of the export.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from onnxsmith.exporter.inputs import objects
from onnxsmith.exporter.inputs.parameters import signature
from onnxsmith.feeds.shapes import size_of
from onnxsmith.model.graph.signature import Dim, Port, Signature, is_symbol
from onnxsmith.problem import problem
from onnxsmith.runtimes.torch_eager import Memory, TorchProgram, to_array
from onnxsmith.seams.torch import trees as pytree
from onnxsmith.sources.factory import TorchModel, user_line

Axes = Mapping[str, Mapping[int, str]]
"""Input name → axis → symbolic dimension."""


@dataclass(frozen=True)
class Built:
    """A program, its example inputs by name, and which argument (or result) of forward each input and output is. `axes`
    are the dynamic ones, as they were asked for; `numbers` those that a trace compared a dimension with."""

    program: TorchProgram
    example: Mapping[str, np.ndarray[Any, Any]]
    arguments: Mapping[str, str]
    results: Mapping[str, str]
    axes: Axes
    numbers: Mapping[str, frozenset[int]] = field(default_factory=dict)


def build(
    model: TorchModel,
    axes: Axes,
    *,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    result: Any = None,
) -> Built:
    """The program. `result` is what the module gives for its example inputs, where that is known; else it is run once,
    eagerly.

    Raises:
        OnnxsmithError: `export/no-inputs`, `export/forward-failed` with the user's line, `export/names` when names were
            asked for and their number does not fit, `export/unknown-input` for an axis of an input that is not there,
            `export/dimension-conflict` when one dimension name has two sizes in the example.
    """
    if not model.given and _needs_inputs(model.module):
        raise problem(
            "export/no-inputs",
            "there are no example inputs",
            where=f"forward{signature(model.module.forward)}",
            fix="let the factory return (module, args), or give --input x=float32[1,3,224,224], or --input inputs.npz",
        )
    paths, spec = objects.flatten((tuple(model.args), dict(model.kwargs)))
    leaves = [leaf for _, leaf in paths]
    found = _names(paths, model)
    names = _asked(found, input_names)
    asked, axes = axes, _spread(axes, [name for name in names if name is not None])
    reals = [_real(leaf) for leaf in leaves]
    inputs = [_port(name, leaf, axes) for name, leaf in zip(names, reals, strict=True) if name is not None]
    _check_axes(axes, inputs)
    example = {name: to_array(leaf) for name, leaf in zip(names, reals, strict=True) if name is not None}
    _check_sizes(inputs, example)
    given_out = _called(model, leaves, spec) if result is None else result
    outputs, results = _outputs(given_out, output_names, list(example))
    program = TorchProgram(
        module=model.module,
        signature=Signature(tuple(inputs), tuple(outputs)),
        leaves=[None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves],
        names=names,
        rebuild=lambda values: pytree.tree_unflatten(list(map(_like, values, leaves)), spec),
        leaves_of=lambda result: [_real(leaf) for leaf in objects.leaves(result)],
    )
    arguments = {name: path for name, path in zip(names, found, strict=True) if name is not None and path is not None}
    return Built(program, example, arguments, results, asked)


def input_names(model: TorchModel) -> list[str]:
    """What its tensors are called as inputs of a graph, in the order of a call: `x`, `state.0.hidden`."""
    paths, _ = objects.flatten((tuple(model.args), dict(model.kwargs)))
    return [name for name in _names(paths, model) if name is not None]


def _names(paths: Sequence[tuple[Any, Any]], model: TorchModel) -> list[str | None]:
    return [_name(path, model) if isinstance(leaf, torch.Tensor) else None for path, leaf in paths]


def _real(leaf: Any) -> Any:
    """A complex tensor as ONNX has it: real and imaginary part along a last axis of 2. Everything else as it is."""
    return torch.view_as_real(leaf.resolve_conj()) if isinstance(leaf, torch.Tensor) and leaf.is_complex() else leaf


def _like(value: Any, leaf: Any) -> Any:
    """The value as the module takes it: complex where the example's leaf is."""
    if not (isinstance(leaf, torch.Tensor) and leaf.is_complex()):
        return value
    # a clone: a tensor without elements counts as contiguous whatever its strides
    return torch.view_as_complex(value.clone(memory_format=torch.contiguous_format))


def dtype_name(dtype: torch.dtype) -> str:
    """The ONNX name of a torch dtype: `float`, `int64`, `bfloat16`, …"""
    name = str(dtype).removeprefix("torch.")
    short = {"float32": "float", "float64": "double", "float8_e4m3fn": "float8e4m3fn", "float8_e5m2": "float8e5m2"}
    return short.get(name, name)


def _needs_inputs(module: torch.nn.Module) -> bool:
    parameters = signature(module.forward).parameters.values()
    return any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def _name(path: tuple[Any, ...], model: TorchModel) -> str:
    """`x`, or `state.0.hidden` for what lies below an argument."""
    where, first, *rest = path
    if where.idx == 1:
        name = str(first.key)
    else:
        parameters = [p for p in signature(model.module.forward).parameters.values() if p.kind != p.KEYWORD_ONLY]
        variadic = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), None)
        plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        name = plain[first.idx] if first.idx < len(plain) else f"{variadic or 'args'}.{first.idx - len(plain)}"
    return ".".join(filter(None, [name, *map(objects.step, rest)]))


def _spread(axes: Axes, names: Sequence[str]) -> dict[str, dict[int, str]]:
    """The axes by input: the name of an argument stands for every tensor in it that has no axes of its own."""
    found = {name: dict(wanted) for name, wanted in axes.items() if name in names}
    for argument, wanted in axes.items():
        below = [name for name in names if name.startswith(f"{argument}.")]
        if argument not in names and not below:
            found[argument] = dict(wanted)
        for name in below:
            found.setdefault(name, dict(wanted))
    return found


def _asked(found: list[str | None], asked: Sequence[str]) -> list[str | None]:
    if not asked:
        return found
    own = [name for name in found if name is not None]
    if len(asked) != len(own) or len(set(asked)) != len(asked):
        raise problem(
            "export/names",
            f"{len(asked)} input names were asked for, the model takes {len(own)} tensors",
            fix=f"give {len(own)} different names, in the order of: {', '.join(own)}",
        )
    remaining = iter(asked)
    return [None if name is None else next(remaining) for name in found]


def _port(name: str, tensor: torch.Tensor, axes: Axes) -> Port:
    named = {axis % max(tensor.dim(), 1): symbol for axis, symbol in axes.get(name, {}).items()}
    shape: tuple[Dim, ...] = tuple(named.get(axis, int(size)) for axis, size in enumerate(tensor.shape))
    return Port(name, dtype_name(tensor.dtype), shape)


def _check_axes(axes: Axes, inputs: Sequence[Port]) -> None:
    ranks = {port.name: len(port.shape or ()) for port in inputs}
    for name, wanted in axes.items():
        if name not in ranks:
            raise problem(
                "export/unknown-input",
                f"--dynamic names {name!r}, the model has no such input",
                fix=f"its inputs are: {', '.join(ranks) or 'none'}",
            )
        for axis in wanted:
            if not -ranks[name] <= axis < ranks[name]:
                raise problem(
                    "export/dynamic-syntax",
                    f"input {name!r} has no axis {axis}",
                    why=f"its example has {ranks[name]} dimensions",
                    fix=f"axes of it are 0 to {ranks[name] - 1}" if ranks[name] else "leave it out: it is a scalar",
                )


def _check_sizes(inputs: Sequence[Port], example: Mapping[str, np.ndarray[Any, Any]]) -> None:
    sizes: dict[str, tuple[int, str]] = {}
    for port in inputs:
        for axis, (dim, size) in enumerate(zip(port.shape or (), example[port.name].shape, strict=True)):
            if not isinstance(dim, str):
                continue
            known = sizes.setdefault(dim, (size, f"axis {axis} of {port.name!r}"))
            if known[0] != size:
                raise problem(
                    "export/dimension-conflict",
                    f"dimension {dim!r} is {known[0]} on {known[1]} and {size} on axis {axis} of {port.name!r}",
                    fix="give the two axes different names, or examples of the same size",
                )
    for dim, (size, where) in sizes.items():
        if (
            not is_symbol(dim)
            and size_of(dim, {name: found[0] for name, found in sizes.items() if is_symbol(name)}) != size
        ):
            raise problem(
                "export/dimension-conflict",
                f"dimension {dim!r} is {size} on {where}",
                why="the sizes that it is the sum of come to another in the examples",
                fix="give examples whose sizes add up, or a name of its own",
            )


def _called(model: TorchModel, leaves: list[Any], spec: Any) -> Any:
    fresh = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    args, kwargs = pytree.tree_unflatten(fresh, spec)
    lazy = any(isinstance(part, torch.nn.modules.lazy.LazyModuleMixin) for part in model.module.modules())
    memory = None if lazy else Memory(model.module)  # a lazy module becomes what it is in its first call
    try:
        with torch.no_grad():
            return model.module(*args, **kwargs)
    except Exception as error:
        raise problem(
            "export/forward-failed",
            "the model does not take its example inputs",
            where=user_line(error),
            why=f"{type(error).__name__}: {error}"[:600],
            fix="call model(*args, **kwargs) in python by itself and fix what it says",
        ) from error
    finally:
        if memory is not None:
            memory.restore()  # what it would keep for later calls is no other run's, and no constant of a trace


def _outputs(result: Any, asked: Sequence[str], given: Sequence[str]) -> tuple[list[Port], dict[str, str]]:
    paths = [(path, leaf) for path, leaf in objects.flatten(result)[0] if leaf is not None]
    if not paths:
        raise problem("export/no-outputs", "forward returns nothing", fix="return the tensors that the model computes")
    numbers = [leaf for _, leaf in paths if not isinstance(leaf, torch.Tensor)]
    if numbers:
        raise problem(
            "export/no-outputs",
            f"forward returns {numbers[0]!r}, a {type(numbers[0]).__name__}, among its results",
            why="an output of a graph is a tensor; a Python value would be a constant that nobody can read",
            fix="return tensors only, or None for what is absent",
        )
    own = [_result_name(path, set(given)) for path, _ in paths]
    if asked and (len(asked) != len(own) or len(set(asked)) != len(asked)):
        raise problem(
            "export/names",
            f"{len(asked)} output names were asked for, the model gives {len(own)} values",
            fix=f"give {len(own)} different names, in the order of: {', '.join(own)}",
        )
    names = list(asked or own)
    ports = [Port(name, dtype_name(_real(leaf).dtype), None) for name, (_, leaf) in zip(names, paths, strict=True)]
    return ports, dict(zip(names, own, strict=True))


def _result_name(path: tuple[Any, ...], given: set[str]) -> str:
    """What an output is called by its path; no input is called so."""
    first, *rest = [*map(objects.step, path)] or [""]
    plain = ["output", first] if _is_plain(path) else [_RESULTS.get(first, first)]
    name = ".".join(filter(None, [*plain, *rest]))
    return f"output.{name}" if name in given else name


_RESULTS = {"past_key_values": "present"}
"""Results that are called otherwise in graphs, as the field has it."""


def _is_plain(path: tuple[Any, ...]) -> bool:
    """Whether the first step is a position, which names nothing by itself."""
    return not path or hasattr(path[0], "idx")
