"""Wraps a module's forward: the state becomes an argument, and the new state is returned with the result."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from onnxsmith.exporter.inputs import object_flattening
from onnxsmith.exporter.inputs.state_holders import Holder


@dataclass(frozen=True)
class Returned:
    """The result of forward, the state after the call by name, and the name of its argument."""

    result: Any
    state: Mapping[str, torch.Tensor]
    argument: str

    @property
    def outputs(self) -> dict[str, torch.Tensor]:
        """The tensors of the state by the name of the graph's output."""
        return {f"next_{self.argument}.{name}": tensor for name, tensor in self.state.items()}


class StatefulForward:
    """Takes the place of a module's `forward`. Its keyword `argument` is a dictionary with a tensor for each place of
    the state. Without that keyword, forward runs unchanged and the module keeps its state.

    An object, not a function, so that a deep copy of the module calls the copy.
    """

    def __init__(self, module: torch.nn.Module, places: tuple[Holder, ...], argument: str) -> None:
        self.module, self.places, self.argument = module, places, argument
        self.forward = module.forward
        self.__signature__ = _with(inspect.signature(module.forward), argument)

    def __call__(self, *args: Any, **kwargs: Any) -> Returned:
        """Runs forward. If the state is an argument, restores the module's own tensors afterwards."""
        if self.argument not in kwargs:
            result = self.forward(*args, **kwargs)
            return Returned(result, self.held(), self.argument)
        given = kwargs.pop(self.argument)
        before = [place.read(self.module) for place in self.places]
        try:
            for place in self.places:
                place.write(self.module, given[place.name].clone())  # forward may write to it
            result = self.forward(*args, **kwargs)
            return Returned(result, self.held(), self.argument)
        finally:
            for place, tensor in zip(self.places, before, strict=True):
                place.write(self.module, tensor)

    @property
    def names(self) -> list[str]:
        """The inputs of a graph that hold the state."""
        return [f"{self.argument}.{place.name}" for place in self.places]

    def held(self) -> dict[str, Any]:
        """Returns the tensors that the module holds now, by name."""
        return {place.name: place.read(self.module) for place in self.places}


def of(module: Any) -> StatefulForward | None:
    """Returns the module's StatefulForward; None if its state is no argument."""
    forward = getattr(module, "forward", None)
    forward = getattr(forward, "__wrapped__", forward)
    return forward if isinstance(forward, StatefulForward) else None


def leaves(result: Any) -> list[Any]:
    """Returns the leaves of a result; the state's leaves come last."""
    if not isinstance(result, Returned):
        return object_flattening.leaves(result)
    return [*object_flattening.leaves(result.result), *result.state.values()]


def _with(signature: inspect.Signature, argument: str) -> inspect.Signature:
    """Returns the signature with one more keyword."""
    own = list(signature.parameters.values())
    at = next((i for i, one in enumerate(own) if one.kind is one.VAR_KEYWORD), len(own))
    own.insert(at, inspect.Parameter(argument, inspect.Parameter.KEYWORD_ONLY))
    return signature.replace(parameters=own)
