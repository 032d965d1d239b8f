"""Looks up the overloads of an operator by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.base.seams.torch.operators import OpOverload


def overloads(target: str) -> Iterator[OpOverload[..., Any]]:
    """Yields the overloads that a target names (`aten::cdist`, `aten::max.dim`); none if there is no such operator."""
    space, _, name = target.partition("::")
    name, dot, overload = name.partition(".")
    packet = getattr(getattr(torch.ops, space), name, None)
    if packet is None:
        return
    for one in [overload] if dot else packet.overloads():
        if hasattr(packet, one):
            yield getattr(packet, one)
