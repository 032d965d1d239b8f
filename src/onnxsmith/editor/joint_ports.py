"""Joins two models in a merge: outputs that feed inputs, and dimensions that become one."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted, several
from onnxsmith.graph.shapes.dims import symbols
from onnxsmith.graph.structure import tensor_paths
from onnxsmith.graph.structure.signature import Dim, Port, is_symbol, names_something, signature
from onnxsmith.graph.surgery.names import fix_symbols, rename_symbols


def joints(a: ir.Model, b: ir.Model, asked: Mapping[str, str] | None, notes: list[str]) -> dict[str, str]:
    """Maps outputs of the first model to inputs of the second.

    Raises:
        OnnxsmithError: `merge/no-port`, `merge/no-joint`, `merge/types`.
    """
    outputs = {port.name: port for port in signature(a).outputs}
    inputs = {port.name: port for port in signature(b).inputs}
    wires = dict(asked) if asked is not None else _default_joints(a, outputs, inputs, notes)
    for source, port in wires.items():
        for name, known, what in ((source, outputs, "output of the first"), (port, inputs, "input of the second")):
            if name not in known:
                near = tensor_paths.near(name, list(known))
                raise problem(
                    "merge/no-port",
                    f"{name!r} is no {what} model",
                    where=f"{source}={port}",
                    why=f"there are {', '.join(known)}",
                    fix=f"write --wire {pasted(f'{port}={source}')}: the output of the first model comes before the `=`"
                    if port in outputs and source in inputs
                    else f"write {(near or list(known))[0]!r}",
                )
        _refuse_misfit(outputs[source], inputs[port])
    for port, count in Counter(wires.values()).items():
        if count > 1:
            read = [source for source, name in wires.items() if name == port]
            raise two_wires(f"the input {port} of the second model", [f"{source}={port}" for source in read])
    return wires


def two_wires(end: str, wires: Sequence[str]) -> OnnxsmithError:
    """Returns the problem of an output or an input that has more than one wire."""
    return problem(
        "merge/two-wires",
        f"{end} has {several(len(wires), 'wire')}",
        where=", ".join(wires),
        why="an input reads one tensor, and merge joins an output to one input",
        fix=f"keep one of them: --wire {pasted(wires[0])}; for a second input, make one more output of "
        "the same tensor: insert an Identity with `onnxsmith edit`",
    )


def _default_joints(
    a: ir.Model, outputs: Mapping[str, Port], inputs: Mapping[str, Port], notes: list[str]
) -> dict[str, str]:
    """Pairs outputs and inputs of the same name. If there are none, pairs the only output with the only input that
    needs a value."""
    wires = {name: name for name in outputs if name in inputs}
    if wires:
        return wires
    needed = [port.name for port in inputs.values() if not port.default]
    if len(outputs) == 1 and len(needed) == 1:
        if needed[0] in {value.name for value in a.graph.inputs}:
            notes.append(
                f"the only output of the first model, {next(iter(outputs))}, feeds the only input of the second, "
                f"{needed[0]}; to let both models read one input {needed[0]} instead, add --siblings (in Python, "
                "wires={})"
            )
        return {next(iter(outputs)): needed[0]}
    raise problem(
        "merge/no-joint",
        "which outputs of the first model does the second read?",
        why=f"the first model has the outputs {', '.join(outputs)}, the second model has the inputs "
        f"{', '.join(inputs)}",
        fix=_joint(outputs, inputs),
    )


def _joint(outputs: Mapping[str, Port], inputs: Mapping[str, Port]) -> str:
    """Says which output and input to join: the first pair whose dtypes and shapes fit."""
    fitting = [(given, read) for given in outputs.values() for read in inputs.values() if _fits(given, read)]
    if fitting:
        given, read = fitting[0]
        return (
            f"name the output and the input: --wire {pasted(f'{given.name}={read.name}')}; or add --siblings if the "
            "second model reads no output of the first"
        )
    listed = f"outputs: {_typed(outputs)}; inputs: {_typed(inputs)}"
    return (
        f"no output fits an input in dtype and shape ({listed}). Set the models side by side with --siblings, or "
        "make an output fit with `onnxsmith edit`"
    )


def _typed(ports: Mapping[str, Port]) -> str:
    return ", ".join(f"{port.name} {port}" for port in ports.values()) or "none"


def shared_inputs(a: ir.Model, b: ir.Model, wires: Mapping[str, str], prefixes: tuple[str, str]) -> dict[str, str]:
    """Maps inputs of the first model to the inputs of the second with which they become one input.

    Raises:
        OnnxsmithError: `merge/types` if two inputs of one name have different dtypes or shapes.
    """
    inputs = {prefixes[0] + port.name: port for port in signature(a).inputs}
    found = {}
    for port in signature(b).inputs:
        own = inputs.get(prefixes[1] + port.name)
        if own is None or port.name in wires.values():
            continue
        if not _fits(own, port):
            raise problem(
                "merge/types",
                f"the inputs {prefixes[1] + port.name!r} of the two models cannot be one input",
                where=prefixes[1] + port.name,
                why=f"the first model expects {own}, the second expects {port}",
                fix="add a prefix to the names of the second model: --second-prefix second_",
            )
        found[own.name] = port.name
    return found


def _fits(given: Port, read: Port) -> bool:
    fits = given.dtype == read.dtype and given.kind == read.kind
    if fits and given.shape is not None and read.shape is not None:
        pairs = zip(given.shape, read.shape, strict=False)
        fits = len(given.shape) == len(read.shape) and not any(
            isinstance(x, int) and isinstance(y, int) and x != y for x, y in pairs
        )
    return fits


def _refuse_misfit(given: Port, read: Port) -> None:
    if not _fits(given, read):
        raise problem(
            "merge/types",
            f"the output {given.name!r} does not fit the input {read.name!r}",
            where=f"{given.name}={read.name}",
            why=f"the first model produces {given}, the second expects {read}",
            fix=_between(given, read),
        )


def _between(given: Port, read: Port) -> str:
    """Returns the fix for an output that does not fit an input: the step that makes it fit, if there is one."""
    if given.kind != "tensor" or read.kind != "tensor":
        return "give two models that pass the same kind of value"
    steps = []
    if given.dtype != read.dtype:
        steps.append(_step("Cast", given.name, f'attributes = {{ to = "{read.dtype}" }}'))
    if given.shape is not None and read.shape is not None and not _same_sizes(given.shape, read.shape):
        order = _order(given.shape, read.shape)
        if order is not None:
            steps.append(_step("Transpose", given.name, f"attributes = {{ perm = {order} }}"))
        elif (shape := _reshaped(given.shape, read.shape)) is not None:
            steps.append(_step("Reshape", given.name, f"operands = [{shape}]"))
        else:
            return (
                f"no Transpose or Reshape turns [{_listed(given.shape)}] into [{_listed(read.shape)}] for every "
                "input: join another output and input with --wire OUTPUT=INPUT, or merge models whose sizes agree"
            )
    lines = "\n".join(line for step in steps for line in step)
    return f"merge what `onnxsmith edit FIRST fit.toml -o fitting.onnx` makes, with these lines in fit.toml:\n{lines}"


def _step(op: str, after: str, setting: str) -> list[str]:
    return ["[[step]]", 'do = "insert"', f'op = "{op}"', f"after = {json.dumps(after)}", setting]


def _listed(shape: tuple[Dim, ...]) -> str:
    return ",".join(map(str, shape))


def _same_sizes(given: tuple[Dim, ...], read: tuple[Dim, ...]) -> bool:
    return len(given) == len(read) and all(_alike(one, other) for one, other in zip(given, read, strict=True))


def _alike(one: Dim, other: Dim) -> bool:
    return one == other or isinstance(one, str) or isinstance(other, str)


def _order(given: tuple[Dim, ...], read: tuple[Dim, ...]) -> list[int] | None:
    """Returns the only order of the axes in which the first shape is the second, the first axis in its place."""
    if len(given) != len(read) or len(given) > _MOST_AXES:
        return None
    rest = range(1, len(given))
    orders = [[0, *order] for order in itertools.permutations(rest)]
    found = [one for one in orders if _same_sizes(tuple(given[axis] for axis in one), read)]
    return found[0] if len(found) == 1 else None


def _reshaped(given: tuple[Dim, ...], read: tuple[Dim, ...]) -> list[int] | None:
    """Returns the operand of a Reshape that keeps the first axis and makes the second shape of the rest; None if the
    numbers of elements differ, or are not known."""
    if not given or not read or not _alike(given[0], read[0]):
        return None
    if any(isinstance(dim, str) for dim in (*given[1:], *read[1:])) or math.prod(given[1:]) != math.prod(read[1:]):
        return None
    return [0, *(int(dim) for dim in read[1:])]


_MOST_AXES = 5
"""Limits the axes for which every order is tried. A choice: 24 orders."""


_MODELS = ("first", "second")


@dataclass(frozen=True)
class _Meeting:
    """Describes an axis at which the models meet. `where` names the ports, `dims` are its dimensions in the two
    models."""

    where: str
    axis: int
    dims: tuple[Dim, Dim]


def fix_dims(
    a: ir.Model, b: ir.Model, joints: Mapping[str, str], shared: Mapping[str, str], notes: list[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Fixes symbolic dimensions of one model that meet a fixed size in the other model.

    `joints` maps outputs of the first model to the inputs of the second that read them. `shared` maps inputs of the
    first to the inputs of the second with which they become one input. Returns, for each model, the fixed names with
    their sizes.

    Raises:
        OnnxsmithError: `merge/types` if one name meets two sizes.
    """
    sizes: tuple[dict[str, int], dict[str, int]] = ({}, {})
    before = {(one.where, one.axis): one.dims for one in _meetings(a, b, joints, shared)}
    own = (_named(a), _named(b))
    # A fixed name may meet further names, so the meetings are read again after each.
    while (found := next(_fixable(list(_meetings(a, b, joints, shared)), own, sizes), None)) is not None:
        which, name, size = found
        fix_symbols((a, b)[which], {name: size})
        sizes[which][name] = size
        notes.append(
            f"dimension {name} of the {_MODELS[which]} model was fixed to {size}, its size in the "
            f"{_MODELS[1 - which]} model"
        )
    for one in _meetings(a, b, joints, shared):
        left, right = one.dims
        if isinstance(left, int) and isinstance(right, int) and left != right:
            raise _two_sizes(one, before[one.where, one.axis])
        if not (_is_name(left) or _is_name(right)) and left != right:
            notes.append(f"at {one.where}, axis {one.axis}, the first model has {left}, but the second has {right}")
    return sizes


def join_dims(a: ir.Model, b: ir.Model, joints: Mapping[str, str], shared: Mapping[str, str], notes: list[str]) -> None:
    """Renames symbolic dimensions of the second model to the first model's names where the two meet. For example, `n`
    of an input becomes the `batch` of the output that it reads."""
    own, known = set(symbols(signature(b))), (_named(a), _named(b))
    names: dict[str, str] = {}
    for one in _meetings(a, b, joints, shared):
        first, second = one.dims
        if first not in known[0] or second not in known[1]:
            continue
        assert isinstance(first, str)
        assert isinstance(second, str)
        if first != second and first not in own and names.get(second, first) == first:
            names[second] = first
    if names:
        rename_symbols(b, names)
        notes += [f"dimension {old} of the second model was renamed to {new}" for old, new in names.items()]


def _meetings(a: ir.Model, b: ir.Model, joints: Mapping[str, str], shared: Mapping[str, str]) -> Iterator[_Meeting]:
    given, read = signature(a), signature(b)
    outputs, inputs = ({port.name: port.shape or () for port in ports} for ports in (given.outputs, given.inputs))
    others = {port.name: port.shape or () for port in read.inputs}
    for ports, pairs in ((outputs, joints), (inputs, shared)):
        for name, other in pairs.items():
            where = f"{name}={other}" if ports is outputs else f"the input {name}"
            for axis, dims in enumerate(zip(ports[name], others[other], strict=False)):
                yield _Meeting(where, axis, dims)


def _fixable(
    meetings: list[_Meeting], own: tuple[set[str], set[str]], done: tuple[dict[str, int], dict[str, int]]
) -> Iterator[tuple[int, str, int]]:
    """Yields the names that meet a size: the model (0 or 1), the name and the size."""
    for one in meetings:
        for which in (1, 0):
            name, size = one.dims[which], one.dims[1 - which]
            if isinstance(size, int) and isinstance(name, str) and name in own[which] and name not in done[which]:
                yield which, name, size


def _named(model: ir.Model) -> set[str]:
    """Returns the names that ports declare. A signature also makes up names for dimensions that have no name."""
    shapes = [value.shape for value in (*model.graph.inputs, *model.graph.outputs) if value.shape is not None]
    names = [dim.value for shape in shapes for dim in shape if isinstance(dim, ir.SymbolicDim)]
    return {name for name in names if name is not None and _is_name(name) and names_something(name)}


def _is_name(dim: Dim) -> bool:
    return isinstance(dim, str) and is_symbol(dim)


def _two_sizes(one: _Meeting, before: tuple[Dim, Dim]) -> OnnxsmithError:
    which = 1 if _is_name(before[1]) else 0
    return problem(
        "merge/types",
        f"the dimension {before[which]} of the {_MODELS[which]} model would have two sizes: {one.dims[which]} and "
        f"{one.dims[1 - which]}",
        where=one.where,
        why=f"the {_MODELS[1 - which]} model has both sizes, but a dimension of one name can have only one size",
        fix=f"make the sizes of the {_MODELS[1 - which]} model symbolic or equal first, with `onnxsmith set-dim`",
    )
