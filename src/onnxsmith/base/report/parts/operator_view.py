"""All facts about one operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, Text, facts


@dataclass(frozen=True)
class Operand:
    """A formal input or output. `kind` is required, optional or variadic. `variable` is its type variable."""

    name: str
    kind: str
    variable: str
    types: tuple[str, ...]


@dataclass(frozen=True)
class FormalAttribute:
    """An attribute of the schema; `default` is "" without a default."""

    name: str
    type: str
    required: bool
    default: str


@dataclass(frozen=True)
class Change:
    """The change of an operator at an opset version."""

    version: int
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """CPU kernels of a runtime for the opset versions from `first` to `last` (None: the newest). `types` has, for each
    type variable, all types that some kernel takes; not every combination exists."""

    first: int
    last: int | None
    types: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class OperatorView(Part):
    """An operator of the ONNX specification.

    `since` is the first opset version with the operator, `version` that of the form shown. `kernels` are the kernels of
    `runtime`, None if they are unknown. `example` is a program that was run, "" if there is none.
    """

    title = "Operator"

    name: str
    domain: str
    since: int
    version: int
    deprecated: bool
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    attributes: tuple[FormalAttribute, ...]
    history: tuple[Change, ...]
    runtime: str
    kernels: tuple[Kernel, ...] | None
    example: str

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                ("operator", self.name),
                ("domain", self.domain or "ai.onnx"),
                ("since opset", self.since),
                ("shown form", f"of opset {self.version}{', deprecated' if self.deprecated else ''}"),
            ]
        )
        for word, operands in (("input", self.inputs), ("output", self.outputs)):
            if operands:
                yield Table((word, "", "type", "types"), tuple(_row(one) for one in operands))
        if self.attributes:
            rows = tuple((a.name, a.type, "required" if a.required else a.default) for a in self.attributes)
            yield Table(("attribute", "type", "default"), rows)
        yield Table(("opset", "change"), tuple((str(one.version), "; ".join(one.changes)) for one in self.history))
        if self.kernels:
            yield Table((f"{self.runtime} CPU kernels", "types"), tuple(_kernel_row(one) for one in self.kernels))
        if self.example:
            yield Text(self.example, verbatim=True)


def _row(one: Operand) -> tuple[str, ...]:
    return one.name, one.kind, one.variable, ", ".join(one.types)


def _kernel_row(one: Kernel) -> tuple[str, ...]:
    span = f"opset {one.first} and later" if one.last is None else f"opset {one.first} to {one.last}"
    return span, "; ".join(f"{variable}: {', '.join(types)}" for variable, types in one.types.items())
