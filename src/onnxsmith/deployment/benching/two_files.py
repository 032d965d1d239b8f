"""Measures the time of one file divided by that of another, as exactly as the decision between the two needs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from onnxsmith.base.report.parts.measurements import Ratio
from onnxsmith.deployment.benching.machine_load import Watch
from onnxsmith.deployment.benching.measurement_statistics import BUSY_FLOOR, FLOOR
from onnxsmith.deployment.benching.rounds import Pace, measure
from onnxsmith.deployment.benching.subject_preparation import Check, chosen, ready
from onnxsmith.deployment.benching.subjects import subjects
from onnxsmith.deployment.benching.summary import ratio

_PACE = Pace(seconds=6.0, of_round=0.1, narrow=0.1, is_fresh=False, is_decision=True)
"""Stops at an interval of 10%, or without 1 in it, in rounds of a tenth of a second. Processes are kept from round to
round, because starting one takes longer than most rounds. Which of the two models a process gets is drawn anew in each
round, so that the layout of its memory favours neither. A choice: the decision is whether a file is slower, not by how
much."""
_UNCHECKED = Check(None, "the outputs were not compared")


def time_ratio(old: Path, new: Path, runtime: str, feeds: Mapping[str, Any]) -> Ratio | None:
    """Returns the time of `new` divided by that of `old` on one input; None if one of them cannot be measured. Outputs
    are not compared. Without `feeds`, inputs are generated. Both run on one thread, where the runtime has such an
    option, because threads that wait for each other on a busy machine tell more about the machine than about the file.

    Raises:
        OnnxsmithError: the errors of loading a model, and of the runtime.
    """
    with ExitStack() as stack:
        named, failed = subjects([old, new], (runtime,))
        found = [one.with_threads(1) or one for one in named]
        order, unfit = ready(found, stack)
        if failed or unfit:
            return None
        given = chosen(order[0], feeds, {}, 0)
        for one in order:
            one.side.close()
        watch = Watch()
        measured = measure(order, given.feed.values, pace=_PACE, seed=0, floor=FLOOR)
        if len(measured.tracks) < 2:
            return None
        floor = BUSY_FLOOR if watch.seen().disturbs else FLOOR
        return ratio(measured.tracks[1], measured.ratios[0], _UNCHECKED, floor, measured)
