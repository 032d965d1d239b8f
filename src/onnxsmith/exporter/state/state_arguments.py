"""Makes the state of a module an argument and a result of its forward, for one export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from onnxsmith.base import name_patterns
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.base import replaced
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs.dynamic_axes_syntax import AUTO
from onnxsmith.exporter.inputs.forward_parameters import signature
from onnxsmith.exporter.inputs.state_holders import Holder
from onnxsmith.exporter.inputs.state_pairs import Carried
from onnxsmith.exporter.inputs.stateful import StatefulForward
from onnxsmith.exporter.state import module_steps
from onnxsmith.exporter.state.module_steps import Steps
from onnxsmith.runtimes.torch_eager import to_array


@contextmanager
def carrying(model: TorchModel, asked: Sequence[str]) -> Iterator[tuple[TorchModel, Carried]]:
    """Makes the module's forward in the block take the requested tensors as one more keyword, and return their new
    values. `asked` are names or patterns of tensors of the module, or `auto`. Yields the model with examples of the
    state.

    Raises:
        OnnxsmithError: `export/state` if the module has no such tensor, if it keeps more than
            tensors from call to call, or if a tensor has another shape in each call.
    """
    module = model.module
    if isinstance(module, torch.jit.ScriptModule):
        raise _problem(
            "the state of a scripted module cannot be an argument",
            type(module).__qualname__,
            "pass the module from before torch.jit.script or torch.jit.trace",
        )
    try:
        steps = module_steps.stepped(model)
    except OnnxsmithError:
        raise
    except Exception:  # noqa: BLE001 — the export runs the module again, and reports its error
        yield model, Carried()
        return
    places = _chosen(steps, asked)
    if not places:
        _check_is_all(model, steps, None, {})
        note = "no tensor of the module changes in a call, so there is no state to pass from call to call"
        yield replace(model, notes=(*model.notes, note)), Carried()
        return
    argument = "state" if "state" not in signature(module.forward).parameters else "module_state"
    states = _of_one_rank(steps, places)
    forward = StatefulForward(module, places, argument)
    with replaced(module, "forward", forward):
        _check_is_all(model, steps, forward, states[0])
        growing = {f"{argument}.{name}": axes for name, axes in _growing(states).items() if axes}
        first, *later = states[2 if growing else 0 :]
        more = (*model.more, *({argument: one} for one in later))
        stateful = replace(model, kwargs={**model.kwargs, argument: first}, more=more, given=True)
        initial = {f"{argument}.{name}": to_array(tensor) for name, tensor in states[0].items()}
        names = {f"{argument}.{place.name}": place.name for place in places}
        begun = {f"{argument}.{place.name}": to_array(steps.states[0][place]) for place in places}
        yield stateful, Carried(argument, initial, names, growing, begun)


def _chosen(steps: Steps, asked: Sequence[str]) -> tuple[Holder, ...]:
    """Returns the requested places, in the order in which the module holds them."""
    held = [place for place, tensor in steps.states[0].items() if tensor is not None]
    found: set[Holder] = set()
    for pattern in asked:
        if pattern == AUTO:
            found |= set(held) & set(steps.changed)
            continue
        fits = {place for place in held if name_patterns.fits(place.name, pattern)}
        if not fits:
            changed = ", ".join(place.name for place in steps.changed if place in held)
            late = [place for place in steps.changed if place not in held and name_patterns.fits(place.name, pattern)]
            raise (
                _late(steps, late)
                if late
                else _problem(
                    f"the module holds no tensor {pattern!r}",
                    type(pattern).__name__ if not isinstance(pattern, str) else pattern,
                    f"forward changes: {changed}" if changed else "leave the option out: forward changes no tensor",
                )
            )
        found |= fits
    return tuple(place for place in held if place in found)


def _of_one_rank(steps: Steps, places: tuple[Holder, ...]) -> list[dict[str, torch.Tensor]]:
    """Returns the state before the first call and after each call. If later calls only widen a tensor, as from [1, 4]
    to [8, 4], the first one gets their shape.

    Raises:
        OnnxsmithError: `export/state` if a tensor has another number of axes, or another dtype, after a call.
    """
    states: list[dict[str, Any]] = [{place.name: state.get(place) for place in places} for state in steps.states]
    for place in places:
        first, *later = (state[place.name] for state in states)
        kinds = {(one.dtype, one.dim()) if isinstance(one, torch.Tensor) else None for one in later}
        shapes = {tuple(one.shape) for one in later if isinstance(one, torch.Tensor)}
        if len(shapes) == 1 and kinds == {(first.dtype, len(next(iter(shapes))))} and first.dim() <= len(*shapes):
            try:
                first = states[0][place.name] = first.expand(*shapes).clone()
            except RuntimeError:
                kinds = {None}
        if kinds != {(first.dtype, first.dim())}:
            after = " and ".join(_kind(one) for one in later[:2])
            raise _problem(
                f"{place.name} is {_kind(first)} before the first call, but {after} after later calls",
                place.name,
                "start with a tensor of the dtype and shape that it has after the first call: "
                f"{_registration(place, later[0])}",
                "an input of a graph has one dtype and one number of axes",
            )
    return states


def _growing(states: list[dict[str, torch.Tensor]]) -> dict[str, dict[int, str]]:
    """Returns the axes that are longer or shorter after some call, with a name for each."""
    return {
        name: {
            axis: f"{name}.{axis}" for axis in range(first.dim()) if len({one[name].shape[axis] for one in states}) > 1
        }
        for name, first in states[0].items()
    }


def _check_is_all(model: TorchModel, steps: Steps, forward: StatefulForward | None, first: dict[str, Any]) -> None:
    """Refuses a module that keeps more than the chosen state: compares calls that hand the state on with calls of the
    unchanged module. Without `forward` no state is handed on, and every call has to give the first result."""
    chain = [steps.results[0]] * len(steps.results)
    if forward is not None:
        chain = module_steps.chained(model, forward.argument, first)
    for call, (ours, theirs) in enumerate(zip(steps.results, chain, strict=True), 1):
        if not module_steps.alike(ours, theirs[: len(ours)]):
            raise _keeps_more(steps, forward.places if forward is not None else (), call)


def _keeps_more(steps: Steps, places: Sequence[Holder], call: int) -> OnnxsmithError:
    """Returns the problem of a module that keeps more than the tensors in `places`."""
    late = [place for place in steps.changed if steps.states[0].get(place) is None]
    if late:
        return _late(steps, late)
    left = [place.name for place in steps.changed if place not in places]
    fix = "keep the state in buffers: self.register_buffer(name, tensor)"
    if left:
        fix = f"add to the state: {', '.join(left)}"
    elif steps.counted:
        own = steps.counted[0].rpartition(".")[2]
        fix = (
            f'store this number in a tensor: self.register_buffer("{own}", torch.tensor(…)) in place of self.{own} = …'
        )
    others = ", ".join(left or steps.counted)
    return _problem(
        f"between calls, the module keeps more state than {', '.join(place.name for place in places) or 'tensors'}",
        others or f"call {call}",
        fix,
        f"in a row of calls, the result of call {call} differs from a call that gets the previous state as its argument"
        + (f"; forward also changes {others}" if others else ""),
    )


def _late(steps: Steps, places: Sequence[Holder]) -> OnnxsmithError:
    place = places[0]
    tensors = {one: next(state[one] for state in steps.states if state.get(one) is not None) for one in places}
    together = [tensors[one] for one in places if (one.part, one.attribute) == (place.part, place.attribute)]
    begun = (
        f"register the buffer with the value that it has before the first call: {_registration(place, tensors[place])}"
    )
    if [one.steps for one in places][: len(together)] == [(("item", index),) for index in range(len(together))]:
        parts = " ".join(f"{_zeros(tensor)}," for tensor in together)
        begun = f"start with the value before the first call: self.{place.attribute} = ({parts})"
    return _problem(
        f"{place.name} holds no tensor before the first call",
        place.name,
        begun,
        "the first call of a graph needs a tensor for each of its inputs",
    )


def _registration(place: Holder, tensor: Any) -> str:
    return f'self.register_buffer("{place.attribute}", {_zeros(tensor)})'


def _zeros(tensor: Any) -> str:
    """Returns the code that makes a tensor of zeros of this shape and dtype."""
    shape = ", ".join(map(str, tensor.shape)) if isinstance(tensor, torch.Tensor) else ""
    dtype = f", dtype={tensor.dtype}" if isinstance(tensor, torch.Tensor) and tensor.dtype != torch.float32 else ""
    return f"torch.zeros({shape or '()'}{dtype})"


def _kind(tensor: Any) -> str:
    if not isinstance(tensor, torch.Tensor):
        return type(tensor).__name__
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _problem(what: str, where: str, fix: str, why: str = "") -> OnnxsmithError:
    return problem("export/state", what, where=where, why=why, fix=fix)
