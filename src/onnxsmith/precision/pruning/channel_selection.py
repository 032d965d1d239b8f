"""Chooses the channels to remove: for a given share, or as many as the budget allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.precision import keep_list
from onnxsmith.precision.keep_list import bare, matching, named
from onnxsmith.precision.pruning.channel_groups import Channel, Group
from onnxsmith.verification.metrics.base import Floats


@dataclass(frozen=True)
class Choice:
    """How channels are chosen: a share of each group, or of all groups together. Each group keeps at least one channel,
    and a number of channels that is a multiple of `multiple`. Without a multiple, wide groups keep a multiple of
    `BLOCK`."""

    multiple: int | None = 1
    is_global: bool = False

    def multiple_of(self, group: Group) -> int:
        """Returns the number of which the group has to keep a multiple, so that each layer keeps a multiple of its
        channels. One channel of a group can be many channels of a layer, such as an attention head."""
        wide = min(group.each, default=1) * len(group.channels) >= WIDE
        multiple = (BLOCK if wide else 1) if self.multiple is None else self.multiple
        # If a channel of the group is `each` channels of a layer, fewer of them make a multiple.
        return math.lcm(*(multiple // math.gcd(multiple, each) for each in group.each or (1,)))

    def gone(self, groups: Sequence[Group], scores: Sequence[Floats], share: float) -> list[Channel]:
        """Returns the channels to remove: a `share` of them, those with the least scores. Of a group that nothing
        reads, all channels but one are removed."""
        found: list[Channel] = []
        limit = self._limit(scores, share) if self.is_global else None
        for group, own in zip(groups, scores, strict=True):
            count = len(group.channels)
            wanted = math.floor(share * count + _ROUNDING) if limit is None else int(np.sum(own <= limit))
            stay = 1 if group.is_unread else max(1, count - wanted)
            multiple = self.multiple_of(group)
            stay = min(count, math.ceil(stay / multiple) * multiple)
            found += [group.channels[index] for index in np.argsort(own, kind="stable")[: count - stay]]
        return found

    def _limit(self, scores: Sequence[Floats], share: float) -> float:
        every = np.sort(np.concatenate(list(scores))) if scores else np.zeros(0)
        count = math.floor(share * len(every) + _ROUNDING)
        return float(every[count - 1]) if count else -math.inf


BLOCK = 8
"""Channels that onnxruntime's convolution kernels compute at once (MlasNchwcGetBlockSize: 8 with AVX2, 16 with
AVX-512)."""
WIDE = 32
"""Without a given multiple, layers with at least this many channels keep a multiple of `BLOCK`. A choice: in smaller
layers a block is more than a quarter of the channels."""
_ROUNDING = 1e-9
"""Added to a number of channels before it is rounded down: 0.3 · 10 is 2.9999999999999996 in float64."""


def share_of(given: str | float) -> float:
    """Reads `30%` or a number between 0 and 1.

    Raises:
        OnnxsmithError: `prune/share`.
    """
    said = str(given).strip()
    try:
        amount = float(said.removesuffix("%")) / (100 if said.endswith("%") else 1)
    except ValueError:
        amount = math.nan
    if not 0 < amount < 1:
        raise problem(
            "prune/share",
            f"{said!r} is not a share of channels",
            why="a share is a percentage between 0% and 100%, or a number between 0 and 1",
            fix="give --share 30%",
        )
    return amount


_NARROW = 0.005
"""The search ends when two shares differ by no more than this. A choice: half a percent of the channels."""


@dataclass
class Search:
    """Tries at most `most` cuts. `meets` says whether the cut of a share is within the budget; `size` counts the
    channels that a share removes. Shares that remove equally many channels are the same cut, which is tried once."""

    meets: Callable[[float], bool]
    most: int
    size: Callable[[float], int]
    tried: list[float] = field(default_factory=list)
    _known: dict[int, bool] = field(default_factory=dict)

    def largest(self, top: float) -> float | None:
        """Returns the largest share up to `top` that met the budget; None if no tried share did."""
        if self._meets(top):
            return top
        low, high, best = 0.0, top, None
        while len(self.tried) < self.most and high - low > _NARROW:
            middle = (low + high) / 2
            if self._meets(middle):
                low = best = middle
            else:
                high = middle
        return best

    def _meets(self, share: float) -> bool:
        """Whether the share's cut meets the budget. A cut that removes nothing always does, and is not tried."""
        size = self.size(share)
        if size == 0:
            return True
        if size not in self._known:
            self.tried.append(share)
            self._known[size] = self.meets(share)
        return self._known[size]


def asked_layers(model: ir.Model, patterns: Iterable[str]) -> frozenset[str]:
    """Returns the labels of the nodes that a keep-list names: by the node's name, by the path of its torch module, or
    by that of an enclosing module.

    Raises:
        OnnxsmithError: `prune/unknown-layer`.
    """
    nodes = [(walk.node_label(node), _around(provenance.module_of(node))) for node in model.graph]
    met = {
        entry: {label for label, modules in nodes if matching(bare(entry), [label, *modules])}
        for entry in named(patterns)
    }
    lost = [entry for entry, found in met.items() if not found]
    if lost:
        known = {name for label, modules in nodes for name in (label, *modules)}
        said = keep_list.unknown_names(lost, known)
        raise problem(
            "prune/unknown-layer",
            said.what,
            where=said.where,
            why=f"a keep-list has names of nodes, or paths of torch modules if the file contains these{said.near}",
            fix="`onnxsmith inspect MODEL --nodes` lists the names",
        )
    return frozenset[str]().union(*met.values())


def _around(path: str) -> list[str]:
    """Returns the path of a module and of the modules around it: `a.0` and `a`."""
    parts = path.split(".") if path else []
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
