"""Measures the time and the memory of a model with `bench`, and compares them with recorded figures."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts._text import duration, size
from onnxsmith.base.report.parts.baselines import BETTER, CHANGED, UNKNOWN, WORSE
from onnxsmith.base.report.parts.measurements import Latencies, Measurement, Regressions
from onnxsmith.deployment.benching.baseline import circumstances, moved
from onnxsmith.deployment.benching.bench import bench
from onnxsmith.deployment.benching.measurement_statistics import of_rounds
from onnxsmith.gate.baselines.change import Change
from onnxsmith.gate.baselines.entry import StoredTimes

_MEMORY = 0.1
"""Sets the share by which the memory may grow. A choice: allocators round up, and reserve in advance."""
_LITTLE = 16 * 2**20
"""Sets the bytes by which the memory may always grow. A choice: libraries of a process differ by some megabytes."""

_BUSY = 1.5
"""Sets the ratio from which a model is slower on a machine that was busy, beyond what other processes explain: its
threads get fewer cores, one at least. A choice: on one core that is shared, an unchanged model took up to 1.2 times as
long."""

_LONGER = (1, 2, 4)
"""Multiplies the seconds, one factor after the other, while there are too few rounds. A choice: each round starts a
process, and on a busy machine that alone takes seconds."""


def measured(file: Path, values: Mapping[str, Any], runtime: str, seconds: float) -> StoredTimes:
    """Measures a model on one input.

    Raises:
        OnnxsmithError: the errors of `bench`.
    """
    with tempfile.TemporaryDirectory(prefix="onnxsmith-") as folder:
        saved = Path(folder) / "figures.json"
        for longer in _LONGER:
            report = bench(file, subjects=(runtime,), inputs=values, seconds=longer * seconds, save=saved).report
            figures = json.loads(saved.read_text(encoding="utf-8"))
            found = of_rounds(figures["subjects"][0]["logs"])
            if found is not None:
                break
    one = report.part(Latencies).subjects[0]
    return StoredTimes(
        median=_rounded(found.ratio if found else one.p50),
        low=_rounded(found.low) if found else None,
        high=_rounded(found.high) if found else None,
        memory=one.peak,
        figures=_without_paths(figures),
    )


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.4g}")


def _without_paths(figures: dict[str, Any]) -> dict[str, Any]:
    """Returns the figures without the path of the file: a baseline is meant for other folders, too."""
    subjects = [
        {**one, "subject": one["on"], "file": "", "logs": [round(log, 5) for log in one["logs"]]}
        for one in figures["subjects"]
    ]
    return {**figures, "subjects": subjects}


def elsewhere(recorded: StoredTimes) -> list[str]:
    """Returns the circumstances that differ from those of the recorded times, in words."""
    return moved(recorded.figures.get("machine", {}), circumstances())


def time_changes(
    file: Path, values: Mapping[str, Any], recorded: StoredTimes, *, runtime: str, seconds: float, allow: float
) -> tuple[list[Change], float | None]:
    """Measures again, and returns what changed, with the median of a run. In other circumstances nothing is measured.

    Raises:
        OnnxsmithError: the errors of `bench`.
    """
    other = elsewhere(recorded)
    if recorded.low is None and not other:
        what = "the times were recorded with too few rounds: record the model again with more --seconds"
        return [Change("slower", UNKNOWN, what)], None
    if other:
        what = f"the times were recorded in other circumstances: {'; '.join(other)}"
        return [Change("slower", UNKNOWN, what)], None
    with tempfile.TemporaryDirectory(prefix="onnxsmith-") as folder:
        saved = Path(folder) / "figures.json"
        saved.write_text(json.dumps(recorded.figures), encoding="utf-8")
        for longer in _LONGER:
            report = bench(
                file, subjects=(runtime,), inputs=values, seconds=longer * seconds, against=saved, allow=allow
            ).report
            if not _has_too_few_rounds(report):
                break
    return list(_changes(report, recorded, allow)), report.part(Latencies).subjects[0].p50


def _has_too_few_rounds(report: Report) -> bool:
    part = report.part(Regressions)
    return part.same_inputs and any(row.low is None for row in part.rows[:1])


def _explained(report: Report) -> float:
    """Returns the ratio up to which other processes may be why a model is slower; 0 on a quiet machine."""
    found = [part for part in report.parts if isinstance(part, Measurement) and part.busy]
    return max((_BUSY * min(_taken(part), part.cores) for part in found), default=0.0)


def _taken(part: Measurement) -> float:
    """Returns how many times as many cores a process has without other processes, as far as that is known."""
    left = 1 - (part.others or 0.0) - (part.stolen or 0.0)
    return 1 / left if left > 0 else math.inf


def _changes(report: Report, recorded: StoredTimes, allow: float) -> Iterator[Change]:
    part = report.part(Regressions)
    if not part.rows or not part.same_inputs:
        yield Change("slower", UNKNOWN, "the times cannot be compared: they were measured on other inputs")
    for row in part.rows[:1] if part.same_inputs else ():
        if row.ratio is None or row.low is None or row.high is None:
            yield Change("slower", UNKNOWN, "the times cannot be compared: too few rounds; give more --seconds")
            continue
        said = (
            f"{duration(row.before)} became {duration(row.now)}: ratio {row.ratio:.3g}, {row.low:.3g} to {row.high:.3g}"
        )
        if row.slower and row.low <= _explained(report):
            yield Change("slower", CHANGED, f"{said}: perhaps slower, other processes kept the machine busy")
        elif row.slower:
            yield Change("slower", WORSE, f"{said}; {1 + allow:.3g} is allowed")
        elif row.high < 1:
            yield Change("faster", BETTER, said)
        elif row.perhaps and row.beyond:
            yield Change("slower", CHANGED, f"{said}: perhaps slower, within the noise")
    peak = report.part(Latencies).subjects[0].peak
    if peak is None or recorded.memory is None:
        return
    what = f"the peak of the memory was {size(recorded.memory)} and is {size(peak)}"
    if peak > max(recorded.memory * (1 + _MEMORY), recorded.memory + _LITTLE):
        yield Change("memory", WORSE, f"{what}; {_MEMORY:.0%} more is allowed")
    elif peak < min(recorded.memory * (1 - _MEMORY), recorded.memory - _LITTLE):
        yield Change("memory", BETTER, what)
