"""Describes the two sides of a comparison as plain data: steps that compute tensors from tensors.

An ONNX graph and a traced torch module have the same form here. So the code that pairs and compares their tensors
serves both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from onnxsmith.base.cached_attributes import cached_property


@dataclass(frozen=True)
class Step:
    """Describes one operation. `inputs` and `outputs` are names of tensors; constants are not among the inputs.

    `op` is the operator (`Conv`, `aten.convolution`). `key` distinguishes steps of the same operator (attributes,
    shapes of weights). `module`, `source` and `origin` say where the step comes from, as far as the side knows: the
    torch module, `file:line`, and the operation's name in the exported program.
    """

    label: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    key: str = ""
    module: str = ""
    source: str = ""
    origin: str = ""
    weights: int = 0
    """Counts the elements of the constants that the step reads."""
    kind: str = ""
    """Names the operation from which the step was made, as the exported program calls it: `aten.linear.default`."""
    moves: bool = False
    """Whether the step only moves or reshapes its input."""


@dataclass(frozen=True)
class Type:
    """Describes the type of a tensor as far as it is known before a run. `kind` is `float` or `int` for any width, else
    the dtype's name. The shape has None for an unknown size, and is None for an unknown rank."""

    kind: str = ""
    shape: tuple[int | None, ...] | None = None

    def agrees(self, other: Type) -> bool:
        """Whether the two types may belong to one tensor: no known part differs."""
        if self.kind and other.kind and self.kind != other.kind:
            return False
        if self.shape is None or other.shape is None:
            return True
        same_rank = len(self.shape) == len(other.shape)
        return same_rank and all(a is None or b is None or a == b for a, b in zip(self.shape, other.shape, strict=True))


def kind_of(dtype: str) -> str:
    """Returns `float` for float dtypes of any width, which may differ between the sides; other dtypes unchanged."""
    return "float" if "float" in dtype or dtype == "double" else dtype


@dataclass(frozen=True)
class Outline:
    """Lists the steps of one side in topological order."""

    steps: tuple[Step, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    hidden: frozenset[str] = field(default=frozenset())
    """Names the tensors without a value to compare: sizes as Python numbers, tuples, tensors computed from constants
    alone."""
    types: Mapping[str, Type] = field(default_factory=dict)
    baked: frozenset[str] = field(default=frozenset())
    """Names the computed tensors that depend on no input, although their counterparts on the other side do."""

    @cached_property
    def maker(self) -> Mapping[str, int]:
        """Maps each tensor to the number of the step that computes it."""
        return {name: number for number, step in enumerate(self.steps) for name in step.outputs}

    @cached_property
    def readers(self) -> Mapping[str, Sequence[int]]:
        """Maps each tensor to the numbers of the steps that read it."""
        found: dict[str, list[int]] = {}
        for number, step in enumerate(self.steps):
            for name in dict.fromkeys(step.inputs):
                found.setdefault(name, []).append(number)
        return found

    @cached_property
    def moving(self) -> frozenset[str]:
        """Returns the tensors that have a value to compare, and that depend on an input or have a counterpart that
        does."""
        known = set(self.inputs)
        for step in self.steps:
            if any(name in known for name in step.inputs):
                known.update(step.outputs)
        return frozenset(known - self.hidden) | self.baked

    def tensors(self) -> tuple[str, ...]:
        """Returns the computed tensors that have a value to compare, in order."""
        return tuple(name for step in self.steps for name in step.outputs if name in self.moving)

    def is_number(self, name: str) -> bool:
        """Whether a tensor holds floats, as far as is known; integers are mostly sizes and positions."""
        return name not in self.types or self.types[name].kind in ("float", "")

    def moves(self, name: str) -> bool:
        """Whether the step that computes a tensor only moves or reshapes its input."""
        step = self.step_of(name)
        return step is not None and step.moves

    def step_of(self, name: str) -> Step | None:
        """Returns the step that computes a tensor; None for an input."""
        number = self.maker.get(name)
        return None if number is None else self.steps[number]

    def segment(self, name: str, cuts: Iterable[str]) -> tuple[tuple[Step, ...], tuple[str, ...]]:
        """Returns the steps between the nearest tensors in `cuts` and `name`, in order. Also returns the tensors and
        graph inputs from which these steps start."""
        known = cuts if isinstance(cuts, set | frozenset) else set(cuts)
        inside: set[int] = set()
        boundary: dict[str, None] = {}
        queue = [self.maker[name]] if name in self.maker else []
        while queue:
            number = queue.pop()
            if number in inside:
                continue
            inside.add(number)
            for read in self.steps[number].inputs:
                if read in known or read not in self.maker:
                    boundary[read] = None
                else:
                    queue.append(self.maker[read])
        return tuple(self.steps[number] for number in sorted(inside)), tuple(boundary)
