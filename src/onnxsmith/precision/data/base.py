"""Defines the base of kinds of data, which turn the user's data into samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.exporter import factory
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.runtimes.base import Outputs, Session

Prepare = Callable[[Any], Any]
"""The user's preprocessing: turns an item of the data into arrays by input name, or into the array of the first
input."""

DATA = "DATA (a folder of images, an .npz, a .jsonl or file.py:function)"
"""Says in advice what the value of an option for data is."""
GIVE_DATA = f"--data {DATA}"


@dataclass(frozen=True)
class Sample:
    """One run of the model: arrays by input name, the label if there is one, and a name for messages. `carried` are
    states: inputs that get the value of an output for the sample before, if the samples are run in order. `feeds` has
    the values that the given model returned for them."""

    feeds: Mapping[str, Any]
    label: Any = None
    name: str = ""
    carried: Mapping[str, str] = field(default_factory=dict)

    def run(self, session: Session) -> Outputs:
        """Runs a model on the sample and returns its outputs. An error about an input names the sample.

        Raises:
            OnnxsmithError: `run/…`, `runtime/…`.
        """
        try:
            return session.run(dict(self.feeds))
        except OnnxsmithError as error:
            if not error.problem.id.startswith("run/wrong-"):
                raise
            raise error.at(self.name, "make arrays that fit: --preprocess file.py:function") from error


def in_order(samples: Iterable[Sample], session: Session) -> Iterator[tuple[Sample, Outputs]]:
    """Runs a model on samples one after the other, with its own states. Yields each sample with its outputs.

    Raises:
        OnnxsmithError: `run/…`, `runtime/…`.
    """
    outputs: Outputs = {}
    for sample in samples:
        own = {name: outputs[of] for name, of in sample.carried.items()} if outputs else {}
        outputs = replace(sample, feeds={**sample.feeds, **own}).run(session)
        yield sample, outputs


@dataclass(frozen=True)
class Reading:
    """How items become samples: the model's inputs, and the user's preprocessing if there is one. `states` are inputs
    that an item need not have, because they get values from the sample before."""

    interface: Signature
    prepare: Prepare | None = None
    states: frozenset[str] = frozenset()

    @property
    def port(self) -> Port:
        """Returns the input for a single array: the first that needs a value and is no state."""
        needed = self.interface.required()
        return next((port for port in needed if port.name not in self.states), needed[0])

    def feeds(self, item: Any, name: str) -> dict[str, Any]:
        """Turns an item of the data, arrays by name or a single array, into arrays by input name.

        Raises:
            OnnxsmithError: `quantize/preprocessing` if the user's function fails; `quantize/data` for an item that
                does not fit the model's inputs.
        """
        made = self._prepared(item, name) if self.prepare is not None else item
        by_name = dict(made) if isinstance(made, Mapping) else {self.port.name: made}
        ports = {port.name: port for port in self.interface.inputs}
        unknown = [key for key in by_name if key not in ports]
        needed = [port.name for port in self.interface.required() if port.name not in self.states]
        missing = [name for name in needed if name not in by_name]
        if unknown or missing:
            raise problem(
                "quantize/data",
                f"{unknown[0]!r} is not an input of the model" if unknown else f"there is no value for {missing[0]!r}",
                where=name,
                why=f"the inputs are {', '.join(ports)}",
                fix="give each array the name of an input, and call the array of labels `label`; or give a "
                "function that makes the inputs: --preprocess file.py:function",
            )
        return {key: _array(value, ports[key], name) for key, value in by_name.items()}

    def _prepared(self, item: Any, name: str) -> Any:
        assert self.prepare is not None
        try:
            return self.prepare(item)
        except OnnxsmithError:
            raise
        except Exception as error:
            raise problem(
                "quantize/preprocessing",
                "the preprocessing failed",
                where=", ".join(part for part in (factory.user_line(error), name) if part),
                why=f"{type(error).__name__}: {error}",
                fix="correct the function; to test it, call it in Python on this item",
            ) from error


def _array(value: Any, port: Port, name: str) -> Any:
    if port.kind != "tensor":
        return value
    array = np.asarray(value)
    if array.dtype.kind in "fiub" and port.dtype in ("float", "double", "float16") and array.dtype.kind in "fiu":
        wanted = {"float": np.float32, "double": np.float64, "float16": np.float16}[port.dtype]
        array = array.astype(wanted, copy=False) if array.dtype.kind == "f" else array
    if port.shape is not None and array.ndim == len(port.shape) - 1:
        array = array[None]
    if port.shape is not None and array.ndim != len(port.shape):
        raise problem(
            "quantize/data",
            f"an array of rank {array.ndim} does not fit the input {port.name}",
            where=name,
            why=f"{port.name} is {port}",
            fix=f"give arrays of rank {len(port.shape)}, or arrays of one sample without the first axis; or give a "
            "function that makes the arrays: --preprocess file.py:function",
        )
    return array


class Kind(ABC):
    """A kind of data. Kinds are found by walking this folder."""

    rank: ClassVar[int] = 10
    """Kinds with lower ranks are tried first."""
    form: ClassVar[str]
    """How the user gives such data, in a few words, for the message about data that no kind can read."""

    @abstractmethod
    def reads(self, given: Any) -> bool:
        """Whether the data is of this kind. It may still be broken."""

    @abstractmethod
    def samples(self, given: Any, reading: Reading) -> Iterator[Sample]:
        """Yields the samples, in the same order each time. Each is read when it is asked for.

        Raises:
            OnnxsmithError: `quantize/data`, `quantize/preprocessing`, `input/unreadable`.
        """
