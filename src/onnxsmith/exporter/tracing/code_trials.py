"""Tries new code for lines of forward: runs the module with it, on its example and at other sizes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.base import alone
from onnxsmith.base.seams.torch.randomness import seeded
from onnxsmith.exporter.inputs.module_program import Built
from onnxsmith.exporter.lint.base import Code, New
from onnxsmith.exporter.module.source_linting import Suspicion
from onnxsmith.exporter.tracing.trace_patches import compiled
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram


@contextmanager
def applied(group: Sequence[Suspicion]) -> Iterator[bool]:
    """Runs the functions with the new code in the block. Yields False if the code does not fit one of the functions."""
    swaps: dict[FunctionType, dict[ast.AST, New]] = {}
    codes: dict[FunctionType, Code] = {}
    for one in group:
        if one.code is not None:
            codes[one.code.function] = one.code
            swaps.setdefault(one.code.function, {}).update(one.swaps)
    made = {function: compiled(code, swaps[function]) for function, code in codes.items() if swaps[function]}
    if not made or None in made.values():
        yield False
        return
    with alone(), ExitStack() as stack:
        for function, code in made.items():
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = code  # type: ignore[assignment]  # every function here has code
        yield True


def larger(built: Built, *, twice: bool = False) -> dict[str, Any]:
    """Returns the example with each dynamic axis longer by 1, or `twice` as long."""
    found = dict(built.example)
    for port in built.program.signature.inputs:
        for axis, dim in enumerate(port.shape or ()):
            if isinstance(dim, str):
                value = np.asarray(found[port.name])
                more = value if twice else value.take([0], axis)
                found[port.name] = np.concatenate([value, more], axis)
    return found


def results(program: TorchProgram, example: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Runs the module; returns its outputs by name, or None if it raises an error."""
    run: Callable[..., Any] = TorchEager().prepare(replace(program, leaves_of=partial(_leaves, program))).run
    try:
        with seeded():
            found: Mapping[str, Any] = run(example)
            return found
    except OnnxsmithError:
        return None


def _leaves(program: TorchProgram, result: Any) -> list[Any]:
    """Returns the leaves of a result. Refuses an array of numpy, because no export takes a module that returns one."""
    leaves: list[Any] = program.leaves_of(result)
    if any(isinstance(leaf, np.ndarray) for leaf in leaves):
        raise problem("export/no-outputs", "forward returns an array of numpy", fix="return tensors")
    return leaves


def equal(one: Any, other: Any) -> bool:
    """Whether two outputs have one shape, and are equal within loose float32 rounding."""
    if np.shape(one) != np.shape(other):
        return False
    return bool(np.allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-5, equal_nan=True))
