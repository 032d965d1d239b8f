"""Makes a saved bundle of values a side of a comparison. The bundle holds a model's values on one input, without the
model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from onnxsmith.base.problem import Problem, problem
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Program, Runtime, Session, Source, Value
from onnxsmith.verification.by_layer.side_outline import Outline, Step, Type, kind_of
from onnxsmith.verification.by_layer.tap import Tap, Values
from onnxsmith.verification.by_layer.value_bundle import Bundle, Entry, read
from onnxsmith.verification.rounding import Rounding
from onnxsmith.verification.value_comparison import difference


class Recording(Program):
    """Holds the bundle at `path`, with the interface of the model that made the bundle.

    Raises:
        OnnxsmithError: `bundle/unreadable`.
    """

    def __init__(self, path: Path) -> None:
        self.bundle = read(path)
        self.signature = Signature(
            tuple(_port(self.bundle, name) for name in self.bundle.named("input")),
            tuple(_port(self.bundle, name) for name in self.bundle.named("output")),
        )

    def inputs(self) -> Values:
        """Returns the input for which the values were saved."""
        return {name: self.bundle.value(name) for name in self.bundle.named("input")}


def _port(bundle: Bundle, name: str) -> Port:
    entry = bundle.entries[name]
    value = bundle.value(name)
    shape = tuple(value.shape) if isinstance(value, np.ndarray) else None
    kinds = {"tensor": "tensor", "list": "sequence", "absent": "optional"}
    return Port(name, entry.dtypes[0] if entry.dtypes else "undefined", shape, kinds[entry.kind])


class Replaying(Runtime):
    """Returns the outputs of a recording."""

    title = "a saved bundle"

    def missing(self) -> Problem | None:
        return None

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        assert isinstance(source, Recording)
        return _Replay(source)


class _Replay(Session):
    provider = "saved"

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.signature = recording.signature

    def run(self, feeds: Feeds) -> Outputs:
        """Returns the saved outputs, if `feeds` are the saved input.

        Raises:
            OnnxsmithError: `compare/other-input` for another input.
        """
        check_input(self._recording, feeds)
        return {port.name: self._recording.bundle.value(port.name) for port in self.signature.outputs}


def check_input(recording: Recording, feeds: Feeds) -> None:
    """Raises `compare/other-input` unless the feeds are bit-identical to the saved input."""
    for name, value in recording.inputs().items():
        if name not in feeds or difference(value, feeds[name], 0.0).reason:
            raise problem(
                "compare/other-input",
                f"the bundle has values for one input only, and the given input {name!r} differs from that input",
                fix="remove --input: then the input in the bundle is used",
            )


class ReplayTap(Tap):
    """Gives access to the tensors of the bundle, in the order of writing. A bundle can only be a reference: nothing can
    be recomputed."""

    can_force = False

    def __init__(self, recording: Recording, label: str) -> None:
        self.label = label
        self.signature = recording.signature
        self._bundle = recording.bundle
        inputs = self._bundle.named("input")
        inner = [name for name in self._bundle.entries if name not in inputs]
        steps = tuple(Step(name, "saved", inputs, (name,)) for name in inner)
        types = {name: _type(self._bundle.entries[name]) for name in inner}
        self.outline = Outline(steps, inputs, self._bundle.named("output"), types=types)

    def values(self, feeds: Feeds, names: Collection[str]) -> Values:
        return {name: self._bundle.value(name) for name in names}

    def forced(self, feeds: Feeds, given: Mapping[str, Value], names: Collection[str]) -> Values:
        return self.values(feeds, names)

    def exact(self, feeds: Feeds, given: Mapping[str, Value], name: str) -> Value:
        return None

    def roundings(self, cuts: Collection[str], names: Collection[str]) -> Mapping[str, Rounding]:
        return {}


def _type(entry: Entry) -> Type:
    return Type(kind_of(entry.dtypes[0]) if entry.kind == "tensor" else "")
