"""Records the operations of PyTorch while a module runs, on a tape that can be played again.

PyTorch reports every operation to a listener (`TorchDispatchMode`), whether Python, TorchScript or a data-dependent
loop started it. So a module that cannot be traced can still be compared by layer, on the one input of the run: the tape
has the branches that this input took, and numbers that Python read from tensors keep their values.
"""

from __future__ import annotations

import sys
import sysconfig
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.base.seams.torch.operators import schema
from onnxsmith.base.seams.torch.randomness import seeded
from onnxsmith.base.seams.torch.tensors import TorchDispatchMode, memory_of

_SEED = 0
"""Seeds random operations, so that they draw equal numbers whenever the tape is played."""


@dataclass(frozen=True)
class Slot:
    """The placeholder of a tensor on the tape, by its name."""

    name: str


@dataclass(frozen=True)
class Move:
    """One operation. `args` and `kwargs` are its arguments with slots for tensors; `written` are the slots that it
    overwrites; `outputs` are its results, then the tensors that it overwrites without returning them."""

    name: str
    func: Any
    args: Any
    kwargs: Any
    reads: tuple[str, ...]
    written: tuple[str, ...]
    outputs: tuple[str, ...]
    module: str = ""
    source: str = ""


@dataclass
class Tape:
    """A recorded computation: `inputs` are the slots of the module's inputs by name, `leaves` hold weights and
    constants, `outputs` are the slots of the module's results, None for a result that is not a tensor."""

    inputs: dict[str, str] = field(default_factory=dict)
    leaves: dict[str, torch.Tensor] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    outputs: list[str | None] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    """Names leaves that are not weights: Python or NumPy made them while the module ran, from unknown inputs."""
    shapes: dict[str, tuple[tuple[int, ...], torch.dtype, bool]] = field(default_factory=dict)
    """Holds shape and dtype by slot, and whether it is an ordinary tensor (strided, not quantized)."""

    def play(self, inputs: Mapping[str, torch.Tensor], change: Any, wanted: Collection[str]) -> Iterator[Any]:
        """Computes everything again; yields `(slot, tensor)` for each `wanted` slot as soon as it is computed.

        `change(slot, tensor)` may return another tensor in place of a computed one, a leaf, or an input.
        """
        wanted = frozenset(wanted)
        last = {slot: number for number, move in enumerate(self.moves) for slot in (*move.reads, *move.outputs)}
        overwritten = {slot for move in self.moves for slot in move.written}
        held: dict[str, torch.Tensor] = {}
        for slot, tensor in {**self.leaves, **{slot: inputs[name] for name, slot in self.inputs.items()}}.items():
            held[slot] = change(slot, tensor.clone() if slot in overwritten else tensor)
        with seeded(_SEED):
            for number, move in enumerate(self.moves):
                for slot, tensor in _played(move, held):
                    if slot in wanted:
                        yield slot, tensor
                    new = change(slot, tensor)
                    if new is not tensor and move.written:  # other views of the same memory see it as well
                        tensor.copy_(new)
                    held[slot] = tensor if move.written else new
                for slot in (*move.reads, *move.outputs):
                    if last[slot] == number:
                        held.pop(slot, None)


def _played(move: Move, held: Mapping[str, torch.Tensor]) -> list[tuple[str, torch.Tensor]]:
    args, kwargs = pytree.tree_map_only(Slot, lambda slot: held[slot.name], (move.args, move.kwargs))
    given = _tensors(move.func(*args, **kwargs))
    given += [held[slot] for slot in move.written if not any(held[slot] is one for one in given)]
    return list(zip(move.outputs, given, strict=True))


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


class Listener(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the tape of the operations inside its context; `owners` says which module each weight belongs to."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tape = Tape()
        self._slots: Any = WeakTensorKeyDictionary()
        self._counts: Counter[str] = Counter()
        self._kept: list[Any] = []
        self._writers: dict[int, str] = {}
        """Memory → the slot that last wrote into it. An operation that reads another view of that memory reads this
        slot too."""
        self._owners = {
            id(tensor): name.rpartition(".")[0]
            for name, tensor in (*module.named_parameters(), *module.named_buffers())
        }
        plain = [inner for inner in module.modules() if not isinstance(inner, torch.jit.ScriptModule)]
        self._constants = {id(one) for inner in plain for one in vars(inner).values() if isinstance(one, torch.Tensor)}
        self._scopes: list[str] = []

    @contextmanager
    def scopes(self, module: torch.nn.Module) -> Iterator[None]:
        """Records the submodule of each operation in the block, except for operations of TorchScript."""
        handles = []
        for path, inner in module.named_modules():
            if isinstance(inner, torch.jit.ScriptModule):
                continue
            handles += [
                inner.register_forward_pre_hook(lambda *_, path=path: self._scopes.append(path)),
                inner.register_forward_hook(lambda *_: self._left(), always_call=True),
            ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _left(self) -> None:
        self._scopes.pop()

    def begin(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """Registers the module's inputs."""
        for name, tensor in inputs.items():
            self.tape.inputs[name] = self._made(self._unique("input"), tensor)

    def end(self, outputs: Sequence[Any]) -> None:
        """Registers the module's outputs."""
        self.tape.outputs = [self._slots.get(one) if isinstance(one, torch.Tensor) else None for one in outputs]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        before = {id(tensor): tensor for tensor in _tensors((args, kwargs))}
        slots = {key: self._slot(tensor) for key, tensor in before.items()}
        over = [tensor for tensor in _written(func, args, kwargs) if isinstance(tensor, torch.Tensor)]
        reads = dict.fromkeys(slots.values())
        reads |= dict.fromkeys(slot for tensor in before.values() if (slot := self._writer(tensor)) is not None)
        owner = next((self._owners[key] for key in before if key in self._owners), "")
        written = tuple(dict.fromkeys(slots[id(tensor)] for tensor in over))
        taken, named = pytree.tree_map_only(torch.Tensor, lambda tensor: Slot(slots[id(tensor)]), (args, kwargs))
        if over:
            self._save_leaves(over)
        result = func(*args, **kwargs)
        given = _tensors(result)
        given += [tensor for tensor in over if not any(tensor is one for one in given)]
        if not given:
            return result
        name = self._unique(schema(func).name.rpartition("::")[2])
        outputs = []
        for place, tensor in enumerate(given):
            slot = self._made(name if len(given) == 1 else f"{name}.{place}", tensor)
            outputs.append(slot)
            if not over and not any(_memory(tensor) == _memory(one) for one in before.values()):
                self._writers.pop(_memory(tensor), None)  # the memory is reused for a new tensor
            elif over:
                self._writers[_memory(tensor)] = slot
        scope = self._scopes[-1] if self._scopes else ""
        module = owner if owner.startswith(scope) else scope
        self.tape.moves.append(Move(name, func, taken, named, tuple(reads), written, tuple(outputs), module, _line()))
        return result

    def _slot(self, tensor: torch.Tensor) -> str:
        slot: str | None = self._slots.get(tensor)
        if slot is None:
            slot = self._made(self._unique("leaf"), tensor)
            self.tape.leaves[slot] = tensor
            if id(tensor) not in self._owners and id(tensor) not in self._constants:
                self.tape.outside.append(slot)
        return slot

    def _save_leaves(self, tensors: Sequence[torch.Tensor]) -> None:
        """Copies the leaves' values before they are overwritten."""
        memory = {_memory(tensor) for tensor in tensors}
        for slot, leaf in self.tape.leaves.items():
            if _memory(leaf) in memory and not any(leaf is one for one in self._kept):
                self._kept.append(leaf)
                self._kept.append(copy := leaf.clone())
                self.tape.leaves[slot] = copy

    def _writer(self, tensor: torch.Tensor) -> str | None:
        return self._writers.get(_memory(tensor)) if self._writers else None

    def _unique(self, text: str) -> str:
        """Makes a name that no exporter uses: equal names in two models have to mean the same tensor."""
        self._counts[text] += 1
        return f"{text}#{self._counts[text]}"

    def _made(self, slot: str, tensor: torch.Tensor) -> str:
        plain = tensor.layout == torch.strided and not tensor.is_quantized
        self.tape.shapes[slot] = (tuple(tensor.shape), tensor.dtype, plain)
        self._slots[tensor] = slot
        return slot


def _written(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """Returns the arguments that an operation overwrites."""
    found: list[Any] = []
    for place, argument in enumerate(schema(func).arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            found += pytree.tree_leaves(value)
    return found


def _memory(tensor: torch.Tensor) -> int:
    """Returns an id of the tensor's memory, equal for two living tensors that are views of one memory."""
    return memory_of(tensor) if tensor.layout == torch.strided else id(tensor)


_OURS = (str(Path(torch.__file__).parent), str(Path(__file__).parent.parent), sysconfig.get_path("stdlib"))


def _line() -> str:
    """Returns the innermost line of code that is neither PyTorch's nor onnxsmith's."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_OURS) and not file.startswith("<"):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
