"""Compares each translation that the user registered with its operator, on the inputs that a module gives it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from onnxsmith.base.problem import Problem
from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.base.seams.torch.tensors import TorchDispatchMode
from onnxsmith.exporter.module.operator_calls import OperatorCall, calls
from onnxsmith.exporter.translating.register import Registration
from onnxsmith.exporter.translating.registered_failures import name_of
from onnxsmith.runtimes.torch_eager import TorchProgram

_NOTICED = 1e-3
"""Two results differ if their difference is above this part of the largest number. A choice: far above the rounding of
float32 (6e-8), and of most formulas."""


@dataclass(frozen=True)
class Trial:
    """The comparison of a registered translation with its operator alone. `target` is the operator. `label` names the
    translation with its line, `difference` says how its results differ; "" if they agree, or if `was_compared` is
    false."""

    target: Any
    label: str
    line: str
    difference: str = ""
    was_compared: bool = False

    def __str__(self) -> str:
        if self.difference:
            return (
                f"{self.label} computes other results than the operator: on the operator's inputs in the module, "
                f"{self.difference}"
            )
        if self.was_compared:
            return f"{self.label} agrees with the operator on the operator's inputs in the example"
        return f"{self.label} was not compared with the operator alone"


def tried(registered: Sequence[Registration], program: TorchProgram, example: Mapping[str, Any]) -> tuple[Trial, ...]:
    """Compares registered translations with their operators, in eager mode, on the calls of one run of the module."""
    if not registered:
        return ()
    seen = calls(program, example, [one.target for one in registered])
    return tuple(_trial(one, seen.get(one.target, [])) for one in registered)


def with_trials(found: Problem, trials: Sequence[Trial]) -> Problem:
    """Returns the problem. If an output differs, it names the registered translations that the export used, those that
    are wrong first."""
    if found.id != "verify/different" or not trials:
        return found
    wrong = [one for one in trials if one.difference]
    said = "; ".join(str(one) for one in wrong or trials)
    if wrong:
        return replace(found, why=said, fix="; ".join(f"correct the translation at {one.line}" for one in wrong))
    lines = ", ".join(one.line for one in trials if one.line)
    check = f"compare the translations that you registered with their operators: {lines}; or {found.fix}"
    return replace(found, why=f"{found.why}. {said}", fix=check)


def _trial(registration: Registration, seen: Sequence[OperatorCall]) -> Trial:
    function = inspect.unwrap((registration.writers or (registration.decompose,))[0])
    code = getattr(function, "__code__", None)
    line = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    name = getattr(function, "__name__", type(function).__name__)
    label = f"the translation {name} that you registered for {name_of(registration)}" + (f" ({line})" if line else "")
    trial = Trial(registration.target, label, line or name)
    if registration.writers or not seen:
        return trial
    try:
        with torch.no_grad(), _Values():  # type: ignore[no-untyped-call]
            said = [next(_differences(registration, one), "") for one in seen]
    except Exception:  # noqa: BLE001 — the translation may be made for a trace only
        return trial
    return replace(trial, difference=next(filter(None, said), ""), was_compared=True)


def _differences(registration: Registration, call: OperatorCall) -> Iterator[str]:
    """Yields how the results of the translation differ from those of the operator."""
    args, kwargs = pytree.tree_map_only(torch.Tensor, torch.clone, (call.args, dict(call.kwargs)))
    results = _tensors(registration.decompose(*args, **kwargs))
    wanted = _tensors(call.result)
    if len(results) != len(wanted):
        yield f"the translation returns {len(results)} tensors, but the operator returns {len(wanted)}"
        return
    for ours, theirs in zip(results, wanted, strict=True):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            yield f"the translation returns {_typed(ours)}, but the operator returns {_typed(theirs)}"
        elif theirs.numel() and not torch.equal(ours, theirs):
            yield from _of_values(ours, theirs)


def _of_values(ours: torch.Tensor, theirs: torch.Tensor) -> Iterator[str]:
    wide = torch.complex128 if theirs.is_complex() else torch.float64
    ours, theirs = ours.to(wide), theirs.to(wide)
    finite = theirs.isfinite()
    if not torch.equal(ours.isfinite(), finite):
        yield "some results are finite in only one of translation and operator"
        return
    if not finite.any():
        return
    off, scale = float((ours - theirs)[finite].abs().max()), float(theirs[finite].abs().max())
    if off > _NOTICED * scale:
        yield (
            f"the translation's results differ by up to {off:.3g} from the operator's, whose largest magnitude is "
            f"{scale:.3g}"
        )


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _typed(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


class _Values(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses `onnx_op`, which computes no values in eager mode."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "onnx_symbolic":
            raise NotImplementedError("a node of ONNX has no values here")
        return func(*args, **(kwargs or {}))
