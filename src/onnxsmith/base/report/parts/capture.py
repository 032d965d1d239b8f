"""The capture of a torch module as a graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Facts, Part, Table, Text, Tone


@dataclass(frozen=True)
class PortMap:
    """One input or output of the graph. `argument` is its place in the arguments (or the result) of `forward`."""

    name: str
    argument: str
    dtype: str
    shape: tuple[int | str, ...]
    dynamic: tuple[str, ...]
    fixed: tuple[str, ...]
    used: bool = True


@dataclass(frozen=True)
class Capture(Part):
    """The captured graph and the way it was captured. `opset_asked` is None when the user chose no opset."""

    title = "Capture"

    target: str
    how: str
    inputs: tuple[PortMap, ...]
    outputs: tuple[PortMap, ...]
    constants: tuple[str, ...]
    opset_asked: int | None
    opset_got: int
    opset_how: str
    ir_version: int
    captured_sizes: dict[str, int]
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        asked = " (default)" if self.opset_asked is None else ""
        if self.opset_asked is not None and self.opset_asked != self.opset_got:
            asked = f", asked for {self.opset_asked}"
        rows = [
            ("model", self.target),
            ("captured by", self.how),
            ("opset", f"{self.opset_got}{asked}{', ' + self.opset_how if self.opset_how else ''}"),
            ("IR version", str(self.ir_version)),
        ]
        if self.captured_sizes:
            rows.append(("captured at", ", ".join(f"{name}={size}" for name, size in self.captured_sizes.items())))
        yield Facts(tuple(rows))
        for what, ports in (("input", self.inputs), ("output", self.outputs)):
            yield Table(
                (what, "of forward", "dtype and shape", "dynamic axes", "fixed axes"),
                tuple(
                    (p.name, p.argument, _typed(p), ", ".join(p.dynamic) or "none", ", ".join(p.fixed) or "none")
                    for p in ports
                ),
            )
        if self.constants:
            yield Text(f"constants of this export: {', '.join(self.constants)}")
        if self.dropped:
            yield Text(f"unused inputs that were dropped: {', '.join(self.dropped)}")
        for port in self.inputs:
            if not port.used:
                yield Text(f"input {port.name!r} is kept, but nothing in the graph reads it", Tone.WARN)
        yield from (Text(f"tried, failed: {failure}", Tone.WARN) for failure in self.tried)
        yield from (Text(note, Tone.WARN) for note in self.notes)


def _typed(port: PortMap) -> str:
    return f"{port.dtype}[{','.join(map(str, port.shape))}]"
