"""What two sides of a comparison are made of, as plain data: steps that compute tensors from tensors.

An ONNX graph and a traced torch module look alike here, so that pairing them and finding where they part need not know
which is which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Step:
    """One operation. `inputs` and `outputs` are names of tensors; constants are no inputs.

    `op` is the operator (`Conv`, `aten.convolution`), `key` says what else tells it from its like (attributes, shapes
    of weights). `module`, `source` and `origin` are where it comes from: torch module, `file:line`, and the name of
    the operation in the exported program, as far as the side knows.
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
    """Elements of the constants that it reads."""
    kind: str = ""
    """What made it, in the terms of the exported program: `aten.linear.default`."""
    moves: bool = False
    """Whether it hands on what it reads, elsewhere or in another shape, and computes nothing."""


@dataclass(frozen=True)
class Type:
    """What is known of a tensor beforehand: `kind` (`float` of any width, `int` of any, or the dtype's own name), and
    its shape, None for a size that is not known, and for a rank that is not."""

    kind: str = ""
    shape: tuple[int | None, ...] | None = None

    def agrees(self, other: Type) -> bool:
        """Whether nothing that is known of both tells them apart."""
        if self.kind and other.kind and self.kind != other.kind:
            return False
        if self.shape is None or other.shape is None:
            return True
        same_rank = len(self.shape) == len(other.shape)
        return same_rank and all(a is None or b is None or a == b for a, b in zip(self.shape, other.shape, strict=True))


def kind_of(dtype: str) -> str:
    """`float` for a dtype that rounds, whatever its width; other dtypes have to be the same on both sides."""
    return "float" if "float" in dtype or dtype == "double" else dtype


@dataclass(frozen=True)
class Outline:
    """Steps in an order in which each comes after what it reads."""

    steps: tuple[Step, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    hidden: frozenset[str] = field(default=frozenset())
    """Tensors that cannot be looked at: sizes as Python numbers, tuples, what follows from constants alone."""
    types: Mapping[str, Type] = field(default_factory=dict)

    @cached_property
    def maker(self) -> Mapping[str, int]:
        """Tensor → the number of the step that computes it."""
        return {name: number for number, step in enumerate(self.steps) for name in step.outputs}

    @cached_property
    def readers(self) -> Mapping[str, Sequence[int]]:
        """Tensor → the numbers of the steps that read it."""
        found: dict[str, list[int]] = {}
        for number, step in enumerate(self.steps):
            for name in dict.fromkeys(step.inputs):
                found.setdefault(name, []).append(number)
        return found

    @cached_property
    def moving(self) -> frozenset[str]:
        """Tensors that depend on an input, and can be looked at."""
        known = set(self.inputs)
        for step in self.steps:
            if any(name in known for name in step.inputs):
                known.update(step.outputs)
        return frozenset(known - self.hidden)

    def tensors(self) -> tuple[str, ...]:
        """What steps compute and can be looked at, in order."""
        return tuple(name for step in self.steps for name in step.outputs if name in self.moving)

    def is_number(self, name: str) -> bool:
        """Whether a tensor holds floats, as far as is known: integers are mostly sizes and places."""
        return name not in self.types or self.types[name].kind in ("float", "")

    def moves(self, name: str) -> bool:
        """Whether the step that gives a tensor computes nothing."""
        step = self.step_of(name)
        return step is not None and step.moves

    def step_of(self, name: str) -> Step | None:
        """The step that computes a tensor; None for an input."""
        number = self.maker.get(name)
        return None if number is None else self.steps[number]

    def segment(self, name: str, cuts: Iterable[str]) -> tuple[tuple[Step, ...], tuple[str, ...]]:
        """The steps between the nearest tensors in `cuts` and `name`, in order, and those tensors and inputs."""
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
