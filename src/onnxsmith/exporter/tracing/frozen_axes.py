"""Finds, while torch traces, the user's line that turned a dynamic size into a constant.

torch logs each decision of its shape environment (`create_symbol s0 = 2 for L["tensors"][0].size()[0]`, then
`set_replacement s0 = 2`) at once, so the call stack at that moment holds the user's line. torch's exception names
neither the line nor the input.
"""

from __future__ import annotations

import linecache
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.words import first_few
from onnxsmith.exporter.factory import model_frame
from onnxsmith.exporter.tracing.flat_module import Flat
from onnxsmith.graph.structure.signature import Signature

if TYPE_CHECKING:
    from onnxsmith.exporter.tracing.size_branches import SizeBranch
    from onnxsmith.runtimes.torch_eager import TorchProgram

_LOG = "torch.fx.experimental.symbolic_shapes"
_CREATED = re.compile(r"create_symbol (\w+) = (\d+) for L\S+\[(\d+)\]\.size\(\)\[(\d+)\]")
_COUNTED = re.compile(r"^eval Eq\(.*[a-zA-Z].*, \d+\) \[guard added\]")
_AS_FLOAT = re.compile(r"^eval Eq\((?:IntTrueDiv\((\w+), 1\)|ToFloat\((\w+)\)), \d+\.0\) \[guard added\]")
"""Matches a size that became a float of Python: torch fixes the axis only where the float meets another size."""
_REPLACED = re.compile(r"set_replacement (\w+) = (\d+) ")

_INNER = "_hop_compile_and_call"
"""Names the function of torch that traces the bodies of while_loop, scan and cond (torch 2.13)."""


class FrozenAxisError(OnnxsmithError):
    """The problem of `axes` (input, axis) requested as dynamic that a strategy fixed. `lines` (`file:line`) are the
    lines that fixed them, as far as known. `branches` are the module's branches on sizes, one of which may have fixed
    them."""

    def __init__(
        self,
        found: Problem,
        axes: Sequence[tuple[str, int]],
        lines: Sequence[str] = (),
        branches: Sequence[SizeBranch] = (),
    ) -> None:
        super().__init__(found)
        self.branches = tuple(branches)
        self.axes = tuple(axes)
        self.lines = tuple(lines)


@dataclass(frozen=True)
class Frozen:
    """An axis of an input that became the constant `value` at `line` (`file:line` in the user's code or in the model's
    package)."""

    port: str
    axis: int
    value: int
    line: str


_TAKES_APART = re.compile(r"\b(?:list|tuple)\(\w[\w.\[\], ]*\)|\.tolist\(\)|\[\w+(?:\.item\(\))? for \w+ in ")
"""Matches a line that makes a list of a tensor."""


def fixed_by_the_model(found: Frozen, program: TorchProgram, others: Iterable[Frozen] = ()) -> Problem:
    """Returns the problem of an axis that the model fixed: at a line of its code, or inside a layer, by the shape of a
    weight. Names the `others`, too."""
    dims = {port.name: port.shape or () for port in program.signature.inputs}
    named = "".join(f" ({dim})" for dim in dims[found.port][found.axis : found.axis + 1])
    what = f"axis {found.axis} of input {found.port!r}{named} is fixed to {found.value} by the model"
    what += also_fixed(others, program.signature)
    static = f"leave {found.port}:{found.axis} out of --dynamic"
    file, _, number = found.line.rpartition(":")
    if _TAKES_APART.search(linecache.getline(file, int(number)) if number.isdigit() else ""):
        return Problem(
            "export/frozen-axis",
            what,
            where=found.line,
            why="this line makes a Python value from each element of a tensor, so the number of elements is fixed",
            fix="pass the tensor itself in place of the list: pack_padded_sequence, split and indexing accept "
            f"tensors; or {static}",
        )
    if found.line:
        return Problem(
            "export/frozen-axis",
            what,
            where=found.line,
            why="this line works for one size only: its code contains a number, or a shape must match another "
            "shape, or int(), numpy or math turned a size into a Python number",
            fix=f"{static}, or make the line use the size of the input: {found.port}.shape[{found.axis}] without "
            "int(), numpy and math, or -1 in a reshape",
        )
    return Problem(
        "export/frozen-axis",
        what,
        where=type(program.module).__qualname__,
        why=f"a layer accepts only this size{_of_this_size(program.module, found.value)}",
        fix=static,
    )


def _of_this_size(module: Any, size: int) -> str:
    """Names the first weights with an axis of this size, as the end of a sentence."""
    tensors = (*module.named_parameters(), *module.named_buffers())
    names = [f"{name} {list(tensor.shape)}" for name, tensor in tensors if size in tensor.shape]
    return f": see {first_few(names, 2)}" if names else ""


def also_fixed(frozen: Iterable[Frozen], signature: Signature) -> str:
    """Returns the clauses of a message about further frozen axes, each axis once; "" for none."""
    dims = {port.name: port.shape or () for port in signature.inputs}
    return "".join(
        f"; axis {axis} of input {port!r} ({dims[port][axis]}) is fixed too, to {value}"
        for (port, axis), value in {(one.port, one.axis): one.value for one in frozen}.items()
    )


@dataclass
class Watch:
    """Collects the frozen axes of a trace. `ports` are the names of the inputs, in the order of the traced tensors."""

    ports: Sequence[str]
    frozen: list[Frozen] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    """Holds the lines (`file:line`) at which a number that follows from sizes became a constant, such as a number of
    blocks."""
    _axes: dict[str, tuple[int, int]] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    def axis(self, symbol: str) -> tuple[str, int] | None:
        """Returns the input and the axis whose size a symbol of the trace is; None if the symbol is no size of an
        input."""
        found = self._axes.get(symbol)
        if found is None or found[0] >= len(self.ports):  # a nested trace has inputs of its own
            return None
        return self.ports[found[0]], found[1]

    def take(self, message: str, frame: FrameType | None) -> None:
        """Reads one line of torch's log; `frame` is the frame that wrote it."""
        created = _CREATED.search(message)
        if created and not _is_inner(frame):
            self._axes[created[1]] = (int(created[3]), int(created[4]))
            self._sizes[created[1]] = int(created[2])
        if _COUNTED.search(message):
            self.counted.append(model_frame(frame, Flat.forward.__code__))
        replaced = _REPLACED.search(message)
        as_float = _AS_FLOAT.search(message)
        if replaced and _is_inner(frame):
            self.counted.append(model_frame(frame, Flat.forward.__code__))
        elif replaced:
            self._fix(replaced[1], int(replaced[2]), frame)
        elif as_float and not _is_inner(frame):
            symbol = as_float[1] or as_float[2]
            self._fix(symbol, self._sizes.get(symbol, 0), frame)

    def _fix(self, symbol: str, value: int, frame: FrameType | None) -> None:
        """Notes that a size became this constant, if it is the size of an input."""
        found = self.axis(symbol)
        if found is not None:
            self.frozen.append(Frozen(*found, value, model_frame(frame, Flat.forward.__code__)))


def _is_inner(frame: FrameType | None) -> bool:
    """Whether torch traces the body of a loop or a branch. A nested trace has symbols of its own, with the same
    names."""
    while frame is not None:
        if frame.f_code.co_name == _INNER:
            return True
        frame = frame.f_back
    return False


class _Handler(logging.Handler):
    def __init__(self, watch: Watch) -> None:
        super().__init__(logging.INFO)
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        self._watch.take(record.getMessage(), sys._getframe(1))


@contextmanager
def watching(ports: Sequence[str]) -> Iterator[Watch]:
    """Watches the traces inside the block. `ports` are the names of the inputs, in the order of the traced tensors."""
    log, watch = logging.getLogger(_LOG), Watch(ports)
    kept = log.handlers, log.level, log.propagate
    log.handlers, log.propagate = [_Handler(watch)], False
    log.setLevel(logging.INFO)
    try:
        yield watch
    finally:
        log.handlers, log.propagate = kept[0], kept[2]
        log.setLevel(kept[1])
