"""Reads the inputs of `assert_same`: which of them are one input, and which a list of inputs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxsmith.gate.predict_function import Predict
from onnxsmith.verification.inputs.user_inputs import is_array


def is_single(inputs: Any) -> bool:
    """Whether `inputs` are no collection of inputs: an array, a tensor, a text, a path, or any object that cannot be
    iterated over."""
    return is_array(inputs) or isinstance(inputs, str | bytes | Path) or not isinstance(inputs, Iterable)


def labelled(inputs: Any, functions: Sequence[Predict]) -> list[tuple[str, Any]]:
    """Returns the inputs of predict functions, each with what a report calls it. A mapping from the parameters of every
    function is the named arguments of one call. Another mapping gives each input its name."""
    if isinstance(inputs, Mapping) and not _are_arguments(inputs, functions):
        return [(str(name), one) for name, one in inputs.items()]
    several = [inputs] if is_single(inputs) or isinstance(inputs, Mapping) else inputs
    return [(f"input {number}", one) for number, one in enumerate(several, 1)]


def example(module: Any, inputs: Any) -> tuple[Any, ...] | None:
    """Returns the positional arguments of the first input of a module; None without inputs. A mapping from parameters
    of the module is one input."""
    if isinstance(inputs, Mapping):
        return _positional(module, inputs)
    if is_single(inputs):
        return (inputs,)
    first = next(iter(inputs), None)
    if isinstance(first, Mapping):
        return _positional(module, first) or (first,)
    return first if first is None or isinstance(first, tuple) else (first,)


def _positional(module: Any, arguments: Mapping[Any, Any]) -> tuple[Any, ...] | None:
    """Returns named arguments in the order of the parameters, None if the module has no such parameters."""
    if not arguments or not _are_arguments(arguments, [module.forward]):
        return None
    bound = inspect.signature(module.forward).bind(**arguments)
    bound.apply_defaults()
    return None if bound.kwargs else bound.args


def _are_arguments(inputs: Mapping[Any, Any], functions: Sequence[Predict]) -> bool:
    return bool(inputs) and all(_names(one, inputs) for one in functions)


def _names(function: Predict, inputs: Mapping[Any, Any]) -> bool:
    """Whether the keys are parameters of a function, and all that it needs. A function that takes any name says
    nothing."""
    try:
        signature = inspect.signature(function)
        signature.bind(**inputs)
    except (TypeError, ValueError):
        return False
    return inputs.keys() <= signature.parameters.keys()
