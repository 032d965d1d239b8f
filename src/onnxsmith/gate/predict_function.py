"""Makes functions of the sides of a comparison: a predict function, a torch module, or a model file."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

Predict = Callable[..., Any]


def is_function(side: Any) -> bool:
    """Whether a side is a predict function: something to call that is no torch module and no model."""
    return callable(side) and not is_module(side)


def is_module(side: Any) -> bool:
    """Whether a side is a torch module. torch is not imported to find out."""
    return any(f"{one.__module__}.{one.__qualname__}" == "torch.nn.modules.module.Module" for one in type(side).__mro__)


def of_side(side: Any, stack: ExitStack) -> Predict:
    """Returns a function that gives the answer of a side until `stack` closes. A module is called in evaluation mode
    without gradients; a model takes its inputs by position or by name, and answers with its outputs by name, or with
    its only one.

    Raises:
        OnnxsmithError: the errors of loading a model, and of its runtime.
    """
    if is_module(side):
        return _of_module(side)
    return side if is_function(side) else _of_model(side, stack)


def named(side: Any) -> str:
    """Returns how a report names a side."""
    if isinstance(side, str | Path):
        return str(side)
    found = str(getattr(side, "__qualname__", "") or type(side).__name__).rpartition("<locals>.")[2]
    code = getattr(side, "__code__", None)
    return (
        f"the lambda in {Path(code.co_filename).name}:{code.co_firstlineno}" if found == "<lambda>" and code else found
    )


def call(function: Predict, given: Any) -> Any:
    """Calls a function on one of the inputs: a tuple is its positional arguments, a mapping its named ones if the
    function has such parameters, anything else its only argument. The function gets a copy, so that it cannot change
    the inputs of the other side."""
    given = copy.deepcopy(given)
    if isinstance(given, tuple):
        return function(*given)
    if isinstance(given, Mapping) and _takes(function, given):
        return function(**given)
    return function(given)


def _takes(function: Predict, given: Mapping[Any, Any]) -> bool:
    if not all(isinstance(name, str) for name in given):
        return False
    try:
        inspect.signature(function).bind(**given)
    except (TypeError, ValueError):
        return False
    return True


def _of_module(module: Any) -> Predict:
    def answer(*args: Any, **named_args: Any) -> Any:
        torch = sys.modules["torch"]  # the module could not exist without it
        was_training = module.training
        module.eval()
        try:
            with torch.no_grad():
                return module(*args, **named_args)
        finally:
            module.train(was_training)

    return answer


def _of_model(source: Any, stack: ExitStack) -> Predict:
    from onnxsmith.graph.files.load import load
    from onnxsmith.graph.structure.signature import signature
    from onnxsmith.runtimes import base as runtimes

    model = load(source)
    interface = signature(model)
    file = Path(source) if isinstance(source, str | Path) and Path(source).suffix == ".onnx" else model
    session = stack.enter_context(runtimes.get(runtimes.default()).prepare(file))
    names = [port.name for port in interface.required()]

    def answer(*args: Any, **by_name: Any) -> Any:
        values = {**dict(zip(names, args, strict=False)), **by_name}
        outputs = session.run({name: _array(value) for name, value in values.items()})
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    return answer


def _array(value: Any) -> Any:
    tensor = value.detach().cpu() if hasattr(value, "detach") else value
    return np.asarray(tensor)
