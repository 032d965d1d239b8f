"""torch.jit.trace or torch.jit.script, then the older exporter of torch.onnx: for scripted modules and modules that
torch.export rejects."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import onnx_ir as ir
import torch

from onnxsmith.base import folders
from onnxsmith.base.problem import problem
from onnxsmith.base.seams.torch.flags import without_kernels
from onnxsmith.exporter.strategies.base import Captured, Example, Strategy
from onnxsmith.exporter.tracing.flat_module import Flat, restore_names
from onnxsmith.graph.files.load import load
from onnxsmith.runtimes import _call_limits
from onnxsmith.runtimes.torch_eager import Memory, TorchProgram, to_tensor

_OLDEST, _NEWEST = 7, 20
"""This exporter emits opsets from the first to the second (torch 2.13). For any other opset the model is converted."""
_TIME_LIMIT = 300.0
"""Limits the seconds of one capture, unless `ONNXSMITH_TIME_LIMIT` is set. A choice: a capture usually takes under a
minute."""
_TORCH = Path(torch.__file__).parent
_INPUT = "onnxsmith_input_"
_CONVERTED = ("Converting a tensor to a Python", "Iterating over a tensor", "Using len to get tensor shape")
"""Begins torch's warnings about a value that a trace turns into a constant."""


class Torchscript(Strategy):
    """Runs the module once on the example and records its operations. A Python value that was read from a tensor
    becomes a constant; torch warns about these lines. The lines whose values decide what is recorded are returned as
    `fixed`. Scripted modules keep their branches and loops.

    The exporter runs in a child process, because it crashes on some inputs, for example empty ones.
    """

    title = "torch.jit.trace + torch.onnx (TorchScript)"
    rank = 90
    takes_translations = False
    scripted: ClassVar[bool] = False
    """Whether torch.jit.script compiles the module first."""

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        with folders.temporary() as folder:
            path = folders.OwnPath(folder / "traced.onnx")
            fixed = _in_child(_Job(program, example, opset, path, self.scripted))
            model = load(path)
            for value in model.graph.initializers.values():  # read the weights before their file is deleted
                if isinstance(value.const_value, ir.ExternalTensor):
                    value.const_value = ir.tensor(value.const_value.numpy().copy(), name=value.name)
        restore_names(model, program)
        _all_inputs(model, program)
        notes = tuple(f"{line}: a value of the example became a constant" for line in fixed)
        return Captured(model, f"{self.title}, torch {torch.__version__}", notes=notes, fixed=fixed)


class TorchscriptScript(Torchscript):
    """Compiles the module from its source, so that an `if` or a loop on the value of a tensor becomes If or Loop.

    TorchScript supports only a part of Python, so this strategy captures fewer modules than a trace.
    """

    title = "torch.jit.script + torch.onnx (TorchScript)"
    rank = 95
    scripted = True


@dataclass(frozen=True)
class _Job:
    """The job of the child process."""

    program: TorchProgram
    example: Example
    opset: int | None
    path: folders.OwnPath
    scripted: bool


def _in_child(job: _Job) -> tuple[str, ...]:
    """Writes the file in a child process; returns the lines whose values became constants. Raises the child's error as
    a problem."""
    limit = _call_limits.seconds(None, model=0) if _call_limits.TIME in os.environ else _TIME_LIMIT
    try:
        from onnxsmith.exporter.strategies import _separate_process

        return tuple(_separate_process.run(_trace, job, limit=limit))
    except RuntimeError as error:
        text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split())[:500]
        late = f"; {_call_limits.TIME} sets another limit" if "took longer" in text else ""
        raise problem(
            "export/capture-failed",
            "TorchScript's exporter failed",
            where=type(job.program.module).__qualname__,
            why=f"{text}{late}",
            fix="rewrite the operation with other operators, or register a translation of it",
        ) from error


def _trace(job: _Job) -> list[str]:
    """Runs in the child: writes the file, and returns the lines whose values became constants that matter."""
    torch.set_num_threads(1)
    with _silent() as said, torch.no_grad(), without_kernels():
        _export(job)
        fixed = list(dict.fromkeys(_fixed(said)))
        again = replace(job, path=folders.OwnPath(job.path.with_name("again.onnx")))

        def trace() -> bytes:
            _export(again)
            return again.path.read_bytes()

        from onnxsmith.exporter.tracing.idle_conversions import deciding

        return deciding(fixed, trace)


def _fixed(said: Sequence[warnings.WarningMessage]) -> Iterator[str]:
    """Yields the lines that turned a tensor into a Python value. Lines in torch are skipped: they read sizes, which the
    verification at other sizes covers."""
    from onnxsmith.base.seams.torch.warnings import is_of_trace

    for one in said:
        is_own = Path(one.filename).is_relative_to(_TORCH)
        if is_of_trace(one.category) and str(one.message).startswith(_CONVERTED) and not is_own:
            yield f"{one.filename}:{one.lineno}"


def _export(job: _Job) -> None:
    program = job.program
    if job.scripted:
        from onnxsmith.exporter.strategies._lambda_lifting import lift

        lift(program.module, partial(_run, program, job.example))
        program = replace(program, module=torch.jit.script(program.module))
    ports = program.signature.inputs
    names = [f"{_INPUT}{index}" for index in range(len(ports))]
    dynamic = {
        name: axes
        for name, port in zip(names, ports, strict=True)
        if (axes := {axis: dim for axis, dim in enumerate(port.shape or ()) if isinstance(dim, str)})
    }
    tensors = tuple(to_tensor(job.example[port.name]) for port in ports)
    flat: Any = Flat(program)
    if any(isinstance(part, torch.jit.ScriptModule) for part in program.module.modules()):
        flat = torch.jit.trace(flat, tensors, check_trace=False)  # type: ignore[no-untyped-call]  # keeps what is scripted
    torch.onnx.export(
        flat,
        tensors,
        str(job.path),
        dynamo=False,
        input_names=names,
        dynamic_axes=dynamic,
        opset_version=None if job.opset is None else min(max(job.opset, _OLDEST), _NEWEST),
        do_constant_folding=False,
    )


def _run(program: TorchProgram, example: Example) -> None:
    """Calls the module once, and restores its state."""
    memory = Memory(program.module)
    try:
        args, kwargs = program.arguments(example)
        program.module(*args, **kwargs)
    finally:
        memory.restore()


@contextlib.contextmanager
def _silent() -> Iterator[list[warnings.WarningMessage]]:
    """Discards the exporter's output in the block, because it is about the exporter itself, and records its
    warnings."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield said


def _all_inputs(model: ir.Model, program: TorchProgram) -> None:
    """Puts the inputs in the program's order, and adds the inputs that the trace did not use."""
    found = {value.name: value for value in model.graph.inputs}
    model.graph.inputs.clear()
    for index, port in enumerate(program.signature.inputs):
        name = f"{_INPUT}{index}"
        unused = ir.Value(
            name=name, type=ir.TensorType(ir.DataType[port.dtype.upper()]), shape=ir.Shape(port.shape or ())
        )
        model.graph.inputs.append(found.get(name, unused))
