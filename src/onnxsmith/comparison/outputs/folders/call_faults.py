"""Plants faults in the calls of the candidate: would the comparison notice that a program wires the graphs wrongly?

The faults are in the values that pass from call to call, not in the files. A comparison that agrees with such a fault
could not have failed, so its result proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.verification import OutputCheck
from onnxsmith.comparison.outputs.folders.graph_ports import LOGITS, is_past
from onnxsmith.comparison.outputs.folders.player import MASK, POSITIONS, SEEN_MASK, Player
from onnxsmith.verification.value_comparison import difference

if TYPE_CHECKING:
    from onnxsmith.comparison.outputs.folders.generated_texts import Calls

Values = Mapping[str, Any]
Fault = Callable[[Values], dict[str, Any]]


def noticed(player: Player, calls: Calls, checks: Mapping[str, OutputCheck]) -> Iterator[tuple[str, bool]]:
    """Yields each fault, and whether an output of a later call shows it."""
    later = [(feed.values, wanted) for feed, wanted in zip(calls.feeds, calls.outputs, strict=True)][1:]
    first = [(calls.feeds[0].values, calls.outputs[0])]
    for name, fault in _faults(calls.feeds[-1].values):
        tried = later if later else first
        yield name, any(_shows(player, fault(values), wanted, checks) for values, wanted in tried)


def _shows(player: Player, values: Values, wanted: Values, checks: Mapping[str, OutputCheck]) -> bool:
    """Whether the logits differ. The caches are left out, because a swapped cache is its own output."""
    try:
        found = player.run(values)
    except OnnxsmithError:
        return True
    check = checks.get(LOGITS)
    return check is not None and bool(difference(wanted[LOGITS], found[LOGITS], check.tolerance, check.floor).reason)


def _faults(values: Values) -> Iterator[tuple[str, Fault]]:
    pasts = sorted(name for name in values if is_past(name))
    keys = [name for name in pasts if name.endswith(".key")]
    if keys:
        other = keys[0].removesuffix("key") + "value"
        yield "key and value of a layer are swapped", _swap(keys[0], other)
    alike = [name for name in keys[1:] if name.split(".")[2:] == keys[0].split(".")[2:]] if keys else []
    if alike:
        yield "the caches of two layers are swapped", _swap(keys[0], alike[0])
    if POSITIONS in values:
        yield "the position is off by one", lambda given: {**given, POSITIONS: given[POSITIONS] + 1}
    for name in (MASK, SEEN_MASK):
        if name in values:
            yield f"the meaning of {name} is inverted", _inverted(name)


def _inverted(name: str) -> Fault:
    return lambda given: {**given, name: 1 - given[name]} if name in given else dict(given)


def _swap(one: str, other: str) -> Fault:
    return lambda given: {**given, one: given[other], other: given[one]} if {one, other} <= {*given} else dict(given)
