"""Says in a headline that a graph drops the state of its module."""

from __future__ import annotations

from collections.abc import Sequence

from onnxsmith.base.words import first_few
from onnxsmith.exporter.factory import TorchModel

_SHOWN = 3
"""The most names in the clause; a choice."""


def clause(model: TorchModel, writes: Sequence[str]) -> str:
    """Returns a clause for the headline if the first call changes the results of later calls; empty otherwise. `writes`
    names what one call changes; if it is empty, the module is not run."""
    if not writes:
        return ""
    from onnxsmith.exporter.state import module_steps

    try:
        steps = module_steps.stepped(model)
    except Exception:  # noqa: BLE001 — the module takes one call only; then no later call reads anything
        return ""
    first = steps.results[0]
    if all(module_steps.alike(first, later) for later in steps.results[1:]):
        return ""
    tensors = [place.name for place in steps.changed]
    names = tensors or [*steps.counted]
    if not names:
        return "the state that the module keeps is dropped, every call starts as the first one"
    shown = first_few(names, _SHOWN)
    if tensors:
        return f"the state {shown} is dropped, every call starts as the first one (--state auto keeps it)"
    return f"the state {shown} is dropped, every call starts as the first one (in a buffer, --state auto would keep it)"
