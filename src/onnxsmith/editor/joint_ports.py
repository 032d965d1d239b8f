"""Finds the outputs of a merge's first model that feed inputs of the second model, and the inputs that both models
share."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure import tensor_paths
from onnxsmith.graph.structure.signature import Port, signature


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
                    fix=f"write {(near or list(known))[0]!r}",
                )
        _refuse_misfit(outputs[source], inputs[port])
    return wires


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
                f"the only output of the first, {next(iter(outputs))}, is read as the only input of the second, "
                f"{needed[0]}; to let both models read one input {needed[0]}: --siblings, in Python wires={{}}"
            )
        return {next(iter(outputs)): needed[0]}
    raise problem(
        "merge/no-joint",
        "which outputs of the first model does the second read?",
        why=f"the first gives {', '.join(outputs)}, the second reads {', '.join(inputs)}",
        fix=f"say it: --wire {next(iter(outputs), 'y')}={next(iter(inputs), 'x')}, or --siblings if it reads none",
    )


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
                why=f"the first reads {own}, the second reads {port}",
                fix="keep them apart by a prefix: --second-prefix second_",
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
            why=f"the first gives {given}, the second reads {read}",
            fix="insert a Cast, a Transpose or a Reshape with `onnxsmith edit` before you merge",
        )
