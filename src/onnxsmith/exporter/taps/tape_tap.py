"""Makes a torch module that cannot be traced a side of a comparison by layer: runs it once with every operation
recorded on a tape."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.seams.torch.randomness import seeded
from onnxsmith.exporter.taps.fx_tap import is_move
from onnxsmith.exporter.taps.operation_tape import Listener, Tape
from onnxsmith.runtimes.base import Array, Feeds, Value
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram, to_array, to_tensor
from onnxsmith.verification.by_layer.side_outline import Outline, Step, Type, kind_of
from onnxsmith.verification.by_layer.tap import Tap, Values
from onnxsmith.verification.rounding import Rounding


class TapeTap(Tap):
    """The tensors that operations compute while the module runs on `feeds`, in that order.

    If recording is impossible, the tap has only the module's outputs, and `notes` says so.
    """

    def __init__(self, program: TorchProgram, label: str, feeds: Feeds) -> None:
        self.label = label
        self.signature = program.signature
        self._program = program
        try:
            self._tape = _recorded(program, feeds)
            self.outline = _outlined(self._tape, self.signature)
            if several := sum(self._tape.leaves[slot].numel() > 1 for slot in self._tape.outside):
                self.notes = (f"{several} tensors inside {label} come from outside PyTorch, and keep their values",)
        except (OnnxsmithError, RuntimeError, TypeError) as error:
            self._tape = Tape()
            inputs = tuple(port.name for port in self.signature.inputs)
            outputs = tuple(port.name for port in self.signature.outputs)
            self.outline = Outline((Step("the whole module", "output", inputs, outputs),), inputs, outputs)
            self.can_force = False
            self.notes = (f"no tensor inside {label} can be compared, only the outputs: {error}"[:300],)
        self._slots = _called(self._tape, self.signature)

    def values(self, feeds: Feeds, names: Collection[str]) -> Values:
        return self.forced(feeds, {}, names)

    def forced(self, feeds: Feeds, given: Mapping[str, Value], names: Collection[str]) -> Values:
        if not self._tape.moves:
            with TorchEager().prepare(self._program) as session:
                outputs = session.run(feeds)
            return {name: outputs[name] for name in names}
        put = {self._slots[name]: to_tensor(value) for name, value in given.items() if name in self._slots}

        def change(slot: str, tensor: torch.Tensor) -> torch.Tensor:
            return put[slot].to(tensor.dtype) if slot in put else tensor

        return self._played(feeds, change, names)

    def exact(self, feeds: Feeds, given: Mapping[str, Value], name: str) -> Value:
        put = {self._slots[name]: to_tensor(value) for name, value in given.items() if name in self._slots}
        fixed = {*self._tape.leaves, *self._tape.inputs.values()}

        def change(slot: str, tensor: torch.Tensor) -> torch.Tensor:
            new = put.get(slot, tensor if slot in fixed else None)
            return tensor if new is None or new.dtype not in _NARROW else new.double()

        try:
            return self._played(feeds, change, [name], wide=True)[name]
        except Exception:  # noqa: BLE001 — an operator without a float64 kernel may raise anything
            return None

    def _played(self, feeds: Feeds, change: Any, names: Collection[str], *, wide: bool = False) -> Values:
        tape = _wide(self._tape) if wide else self._tape
        asked = {self._slots[name]: name for name in names}
        inputs = {name: to_tensor(feeds[name]) for name in tape.inputs}
        with torch.no_grad():
            found = {slot: to_array(tensor) for slot, tensor in tape.play(inputs, change, asked.keys())}
        return {name: found[self._slots[name]] for name in names}

    def weights(self, step: Step) -> list[Array]:
        made = {move.name: move for move in self._tape.moves}.get(step.label)
        slots = [slot for slot in made.reads if slot in self._tape.leaves] if made is not None else []
        return [to_array(leaf) for slot in slots if (leaf := self._tape.leaves[slot]).is_floating_point()]

    def roundings(self, cuts: Collection[str], names: Collection[str]) -> Mapping[str, Rounding]:
        return {}

    def nbytes(self, feeds: Feeds) -> Mapping[str, int]:
        sizes = {slot: shape.numel() * dtype.itemsize for slot, (shape, dtype) in self._sizes().items()}
        return {name: sizes[slot] for name, slot in self._slots.items()}

    def _sizes(self) -> dict[str, tuple[torch.Size, torch.dtype]]:
        return {slot: (torch.Size(shape), dtype) for slot, (shape, dtype, _) in self._tape.shapes.items()}


_NARROW = (torch.float32, torch.float16, torch.bfloat16)


def _wide(tape: Tape) -> Tape:
    """Returns the tape with float64 in place of every narrower float dtype among the arguments."""
    from onnxsmith.base.seams.torch import trees as pytree

    def widened(value: Any) -> Any:
        return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value

    moves = []
    for move in tape.moves:
        args, kwargs = pytree.tree_map(widened, (move.args, move.kwargs))
        moves.append(replace(move, args=args, kwargs=kwargs))
    return replace(tape, moves=moves)


def _recorded(program: TorchProgram, feeds: Feeds) -> Tape:
    """Runs the module as `TorchEager` does, and records its operations."""
    listener = Listener(program.module)
    recorded = _Recorded(program, listener)
    given: dict[str, torch.Tensor] = {}

    def rebuild(leaves: Any) -> Any:
        given.update({name: leaf for name, leaf in zip(program.names, leaves, strict=True) if name is not None})
        return program.rebuild(leaves)

    recorded.given = given
    with TorchEager().prepare(replace(program, module=recorded, rebuild=rebuild)) as session:
        session.run(feeds)
    return listener.tape


class _Recorded(torch.nn.Module):
    """The module of a program, with a listener around its forward."""

    def __init__(self, program: TorchProgram, listener: Listener) -> None:
        super().__init__()
        self.inner = program.module
        self._recorder = program, listener
        self.given: Mapping[str, torch.Tensor] = {}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        program, listener = self._recorder
        with listener.scopes(self.inner), self._recording(listener):
            result = self.inner(*args, **kwargs)
        listener.end([leaf for leaf in program.leaves_of(result) if leaf is not None])
        return result

    @contextmanager
    def _recording(self, listener: Listener) -> Iterator[None]:
        listener.begin(self.given)
        with seeded(), listener:
            yield


def _called(tape: Tape, signature: Any) -> dict[str, str]:
    """Maps the name of each tensor to its slot. An output also has the output's name."""
    made = {slot for move in tape.moves for slot in move.outputs}
    ports = {
        port.name: slot for port, slot in zip(signature.outputs, tape.outputs, strict=False) if slot in made and slot
    }
    taken = {*ports, *tape.inputs}
    own = {f"%{slot}" if slot in taken else slot: slot for slot in tape.shapes if slot not in ports.values()}
    return {**own, **tape.inputs, **ports}


def _outlined(tape: Tape, signature: Any) -> Outline:
    names: dict[str, list[str]] = {}
    for name, slot in _called(tape, signature).items():
        names.setdefault(slot, []).append(name)
    inputs = {slot: name for name, slot in tape.inputs.items()}
    steps: list[Step] = []
    hidden: set[str] = set()
    types: dict[str, Type] = {}
    given = tuple(port.name for port in signature.inputs)
    constant = tape.leaves.keys() - tape.outside
    if tape.outside:
        brought = tuple(names[slot][0] for slot in tape.outside)
        steps.append(Step("outside of PyTorch", "outside", given, brought))
        hidden.update(brought)
    for move in tape.moves:
        read = [inputs.get(slot) or names[slot][0] for slot in move.reads if slot not in constant]
        made = [name for slot in move.outputs for name in names[slot]]
        weights = sum(torch.Size(tape.shapes[slot][0]).numel() for slot in move.reads if slot in constant)
        kind = str(move.func)
        steps.append(
            Step(
                label=move.name,
                op=kind,
                inputs=tuple(dict.fromkeys(read)),
                outputs=tuple(made),
                module=move.module,
                source=move.source,
                weights=weights,
                kind=kind,
                moves=is_move(move.func),
            )
        )
        for slot in move.outputs:
            shape, dtype, plain = tape.shapes[slot]
            types.update(dict.fromkeys(names[slot], Type(kind_of(str(dtype).removeprefix("torch.")), shape)))
            if not plain:
                hidden.update(names[slot])
    return Outline(tuple(steps), given, tuple(port.name for port in signature.outputs), frozenset(hidden), types)
