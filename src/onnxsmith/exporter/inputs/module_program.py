"""Builds a program with named arrays as inputs and outputs from a torch module and its example inputs.

Arguments may be nested: dicts, lists, tuples, objects that hold tensors (`object_flattening.py`), None. Every tensor in
them becomes one input, named after the argument of `forward` and the path inside it (`state.0.hidden`). Python numbers,
strings and None are constants of the export.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.base.seams.torch.threads import Threads
from onnxsmith.base.spelling import is_typed
from onnxsmith.base.words import pasted
from onnxsmith.exporter.causes.forward_messages import MissingArgument
from onnxsmith.exporter.factory import TorchModel, user_line
from onnxsmith.exporter.inputs import object_flattening, port_names, stateful
from onnxsmith.exporter.inputs.forward_parameters import signature
from onnxsmith.exporter.inputs.state_holders import Watched
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure.dim_ranges import Range
from onnxsmith.graph.structure.signature import Dim, Port, Signature, is_symbol
from onnxsmith.graph.structure.tensor_paths import near
from onnxsmith.runtimes.torch_eager import Memory, TorchProgram, to_array
from onnxsmith.verification.inputs.size_proposals import of_feed

Axes = Mapping[str, Mapping[int, str]]
"""Maps an input's name and an axis to the symbolic dimension."""
Limits = Mapping[str, tuple[int, int | None]]
"""Maps a symbolic dimension to its smallest and its largest size; None is no limit."""


@dataclass(frozen=True)
class Built:
    """A program, its example inputs by name, and the argument of forward for each input and the result for each output.
    `axes` are the requested dynamic axes; `numbers` are the numbers that a trace compared a dimension with. `more` are
    further inputs by name. `turned` are groups of sizes to try: sizes below those that the trace assumed, and, for each
    branch on sizes, sizes at which it goes the other way. `writes` are the tensors and numbers of the module that its
    run changed. `output_axes` are the names that the user gives to axes of outputs: output, axis, name. `complexes` are
    the inputs and outputs that are complex in the module, and real in the graph."""

    program: TorchProgram
    example: Mapping[str, np.ndarray[Any, Any]]
    arguments: Mapping[str, str]
    results: Mapping[str, str]
    axes: Axes
    numbers: Mapping[str, frozenset[int]] = field(default_factory=dict)
    turned: Sequence[Sequence[Mapping[str, int]]] = ()
    more: tuple[Mapping[str, np.ndarray[Any, Any]], ...] = ()
    writes: tuple[str, ...] = ()
    output_axes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    complexes: tuple[str, ...] = ()


def build(
    model: TorchModel,
    axes: Axes,
    *,
    limits: Limits | None = None,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    result: Any = None,
    numbers: bool = False,
) -> Built:
    """Builds the program. `limits` are the smallest and largest sizes that the program accepts. `result` is the
    module's result for the example inputs; if it is None, the module is run once. With `numbers`, a Python number in
    the result is a scalar output, because it may follow a dynamic axis.

    Raises:
        OnnxsmithError: `export/no-inputs`; `export/forward-failed` with the user's line; `export/names` if the number
            of requested names does not match; `export/unknown-input` if a dynamic axis names an unknown input;
            `export/dimension-conflict` if one dimension name has two sizes in the example.
    """
    if not model.given and _needs_inputs(model.module):
        raise problem(
            "export/no-inputs",
            "there are no example inputs",
            where=f"forward{signature(model.module.forward)}",
            fix=_examples(model.module),
        )
    paths, spec = object_flattening.flatten((tuple(model.args), dict(model.kwargs)))
    leaves = [leaf for _, leaf in paths]
    found = port_names.of_inputs(paths, model)
    forward = stateful.of(model.module)
    carried = forward.names if forward is not None and forward.argument in model.kwargs else []
    names = port_names.wished(found, input_names, carried)
    asked, axes = axes, _spread(axes, [name for name in names if name is not None])
    reals = [_real(leaf) for leaf in leaves]
    inputs = [_port(name, leaf, axes) for name, leaf in zip(names, reals, strict=True) if name is not None]
    _check_axes(axes, inputs)
    example = {name: to_array(leaf) for name, leaf in zip(names, reals, strict=True) if name is not None}
    _check_sizes(inputs, example)
    given_out, writes = _called(model, leaves, spec) if result is None else (result, ())
    outputs, results, complexes = _outputs(given_out, output_names, list(example), numbers=numbers)
    program = TorchProgram(
        module=model.module,
        signature=Signature(tuple(inputs), tuple(outputs), {name: Range(*one) for name, one in (limits or {}).items()}),
        leaves=[None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves],
        names=names,
        rebuild=lambda values: pytree.tree_unflatten(list(map(_like, values, leaves)), spec),
        leaves_of=lambda result: [_result(leaf) for leaf in stateful.leaves(result)],
        limits=limits or {},
    )
    arguments = {name: path for name, path in zip(names, found, strict=True) if name is not None and path is not None}
    more = tuple(_by_name(names, (tuple(model.args), {**model.kwargs, **kwargs})) for kwargs in model.more)
    complexes = [name for name, leaf in zip(names, leaves, strict=True) if name and _is_complex(leaf)] + complexes
    return Built(program, example, arguments, results, asked, more=more, writes=writes, complexes=tuple(complexes))


def _by_name(names: Sequence[str | None], given: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Flattens other arguments of the same structure into arrays by input name."""
    leaves = object_flattening.leaves(given)
    return {name: to_array(_real(leaf)) for name, leaf in zip(names, leaves, strict=True) if name is not None}


def _result(leaf: Any) -> Any:
    """Converts a leaf of a result to the graph's form: a number becomes a scalar."""
    return torch.tensor(leaf) if isinstance(leaf, bool | int | float) else _real(leaf)


def _real(leaf: Any) -> Any:
    """Converts a complex tensor to its ONNX form: real and imaginary part along a last axis of 2. Returns everything
    else unchanged."""
    return torch.view_as_real(leaf.resolve_conj()) if _is_complex(leaf) else leaf


def _is_complex(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_complex()


def _like(value: Any, leaf: Any) -> Any:
    """Converts the value to a complex tensor if the example's leaf is complex."""
    if not _is_complex(leaf):
        return value
    # A clone, because view_as_complex checks strides, and an empty tensor counts as contiguous with any strides.
    return torch.view_as_complex(value.clone(memory_format=torch.contiguous_format))


def dtype_name(dtype: torch.dtype) -> str:
    """Returns the ONNX name of a torch dtype: `float`, `int64`, `bfloat16`, …"""
    name = str(dtype).removeprefix("torch.")
    short = {"float32": "float", "float64": "double", "float8_e4m3fn": "float8e4m3fn", "float8_e5m2": "float8e5m2"}
    return short.get(name, name)


def _needs_inputs(module: torch.nn.Module) -> bool:
    parameters = signature(module.forward).parameters.values()
    return any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def _spread(axes: Axes, names: Sequence[str]) -> dict[str, dict[int, str]]:
    """Returns the dynamic axes by input. Axes of an argument apply to each tensor in it that has no axes of its own."""
    found = {name: dict(wanted) for name, wanted in axes.items() if name in names}
    for argument, wanted in axes.items():
        below = [name for name in names if name.startswith(f"{argument}.")]
        if argument not in names and not below:
            found[argument] = dict(wanted)
        for name in below:
            found.setdefault(name, dict(wanted))
    return found


def _port(name: str, tensor: torch.Tensor, axes: Axes) -> Port:
    named = {axis % max(tensor.dim(), 1): symbol for axis, symbol in axes.get(name, {}).items()}
    shape: tuple[Dim, ...] = tuple(named.get(axis, int(size)) for axis, size in enumerate(tensor.shape))
    return Port(name, dtype_name(tensor.dtype), shape)


def _check_axes(axes: Axes, inputs: Sequence[Port]) -> None:
    ranks = {port.name: len(port.shape or ()) for port in inputs}
    for name, wanted in axes.items():
        if name not in ranks:
            meant = next(iter(near(name, list(ranks))), None)
            raise problem(
                "export/unknown-input",
                f"--dynamic names {name!r}, but the model has no such input",
                fix=f"{f'write {meant!r}; ' if meant else ''}its inputs are: {', '.join(ranks) or 'none'}",
            )
        for axis in wanted:
            if not -ranks[name] <= axis < ranks[name]:
                raise problem(
                    "export/dynamic-syntax",
                    f"input {name!r} has no axis {axis}",
                    why=f"its example has {ranks[name]} dimensions",
                    fix=f"use an axis from 0 to {ranks[name] - 1}" if ranks[name] else "leave it out: it is a scalar",
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
    known_sizes = of_feed(Signature(tuple(inputs), ()), example)
    for dim, (size, where) in sizes.items():
        if not is_symbol(dim) and dims.evaluate(dim, known_sizes) != size:
            raise problem(
                "export/dimension-conflict",
                f"dimension {dim!r} is {size} on {where}",
                why="with the sizes in the examples, this sum has another value, or cannot be computed",
                fix="give examples whose sizes fit, or give the dimension a name of its own",
            )


def _called(model: TorchModel, leaves: list[Any], spec: Any) -> tuple[Any, tuple[str, ...]]:
    """Calls the module. Returns its result and the names of the tensors and numbers that the call changed."""
    fresh = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    args, kwargs = pytree.tree_unflatten(fresh, spec)
    lazy = any(isinstance(part, torch.nn.modules.lazy.LazyModuleMixin) for part in model.module.modules())
    memory = None if lazy else Memory(model.module)  # a lazy module creates its parameters in the first call
    watched = Watched(model.module)
    try:
        with Threads(model.module).chosen(), torch.no_grad():
            result = model.module(*args, **kwargs)
        return result, () if lazy else watched.changes()
    except Exception as error:
        lacking = None if user_line(error) else MissingArgument().read(str(error))
        if lacking is not None:
            raise OnnxsmithError(replace(lacking, where=f"{type(model.module).__qualname__}.forward")) from error
        raise problem(
            "export/forward-failed",
            "the model raised an error on its example inputs",
            where=user_line(error),
            why=f"{type(error).__name__}: {error}"[:600],
            fix=_remedy(leaves, str(error), scripted=isinstance(model.module, torch.jit.ScriptModule)),
        ) from error
    finally:
        if memory is not None:
            memory.restore()  # the module's state must not leak into later runs or become a constant of a trace


def _remedy(leaves: Sequence[Any], said: str, *, scripted: bool) -> str:
    if "same device" in said or "two devices" in said or "compiled with CUDA" in said:
        if scripted:
            return 'the module names a device in its graph: trace it on the CPU, torch.jit.trace(net.to("cpu"), …)'
        return (
            "the export runs the model on the CPU: in forward, write device=x.device; register tensors that the "
            "module keeps as buffers"
        )
    if any(isinstance(leaf, np.ndarray) for leaf in leaves):
        return "an argument of forward is a numpy array: give a tensor, torch.from_numpy(array)"
    got = [
        f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
        for leaf in leaves
        if isinstance(leaf, torch.Tensor)
    ]
    shown = f"give an example that the model accepts, in place of {', '.join(got[:3])}; or " if got else ""
    return f"{shown}call model(*args, **kwargs) in python and fix the error"


def _examples(module: torch.nn.Module) -> str:
    """Returns how to give an example of each argument that forward needs."""
    needed = [one.name for one in signature(module.forward).parameters.values()
              if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]  # fmt: skip
    names = needed or ["x"]
    if not is_typed():
        tensors = ", ".join("torch.rand(1, 3, 224, 224)" for _ in names)
        texts = ", ".join(f'"{name}=float32[1,3,224,224]"' for name in names)
        return (
            f"give example tensors with sizes that forward accepts: onnxsmith.export(module, ({tensors},)); or "
            f"inputs=[{texts}]"
        )
    given = " ".join(f"--input {pasted(name)}=float32[SIZES]" for name in names)
    return (
        f"{given} with your sizes, such as 1,3,224,224, and dtypes; or let the factory return (module, args); or "
        "--input inputs.npz"
    )


def _outputs(
    result: Any, asked: Sequence[str], given: Sequence[str], *, numbers: bool
) -> tuple[list[Port], dict[str, str], list[str]]:
    """Returns the outputs, what of forward's result each is, and the names of those that are complex there."""
    state: Mapping[str, Any] = {}
    if isinstance(result, stateful.Returned):
        state, result = result.outputs, result.result
    paths = [(path, leaf) for path, leaf in object_flattening.flatten(result)[0] if leaf is not None]
    if not paths and not state:
        raise problem("export/no-outputs", "forward returns nothing", fix="return the tensors that the model computes")
    taken = torch.Tensor | int | float | bool if numbers else torch.Tensor
    others = [leaf for _, leaf in paths if not isinstance(leaf, taken)]
    if others:
        raise problem(
            "export/no-outputs",
            f"forward returns {others[0]!r}, a {type(others[0]).__name__}, among its results",
            why="an output of a graph is a tensor; this Python value would become a constant",
            fix="return only tensors, or None for an absent result; forward may still return a number that depends "
            "on a dynamic axis",
        )
    own = [port_names.of_output(path, set(given), result) for path, _ in paths]
    if state:
        asked = [*asked, *state] if len(asked) == len(own) and asked else asked
        own, paths = [*own, *state], [*paths, *(((), tensor) for tensor in state.values())]
    if asked and (len(asked) != len(own) or len(set(asked)) != len(asked)):
        raise problem(
            "export/names",
            f"{len(asked)} output names were given, but the model returns {len(own)} values",
            fix=f"give {len(own)} different names, in the order of: {', '.join(own)}",
        )
    names = list(asked or own)
    ports = [Port(name, dtype_name(_result(leaf).dtype), None) for name, (_, leaf) in zip(names, paths, strict=True)]
    complexes = [name for name, (_, leaf) in zip(names, paths, strict=True) if _is_complex(leaf)]
    return ports, dict(zip(names, own, strict=True)), complexes
