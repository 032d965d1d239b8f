"""Measures the time and the memory of a model with `bench`, and compares them with recorded figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxsmith.base import folders
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts._text import duration
from onnxsmith.base.report.parts.baselines import BETTER, CHANGED, UNKNOWN, WORSE
from onnxsmith.base.report.parts.measurements import Latencies, Measurement, Regression, Regressions
from onnxsmith.base.system import machine
from onnxsmith.base.words import size
from onnxsmith.deployment.benching.baseline import circumstances, moved
from onnxsmith.deployment.benching.bench import bench
from onnxsmith.deployment.benching.measurement_statistics import of_rounds
from onnxsmith.gate.baselines.change import Change
from onnxsmith.gate.baselines.entry import StoredTimes
from onnxsmith.runtimes import base as runtimes

_MEMORY = 0.1
"""Sets the share by which the memory may grow. A choice: allocators round up, and reserve in advance."""
_LITTLE = 16 * 2**20
"""Sets the bytes by which the memory may always grow. A choice: libraries of a process differ by some megabytes."""

_BUSY = 1.5
"""Sets the ratio from which one thread of a model is slower on a machine that was busy. A choice: with four busy
processes on two cores, an unchanged model took 1.2 times as long, and no interval began above 1.1."""

_LONGER = (1, 2, 4)
"""Multiplies the seconds, one factor after the other, while there are too few rounds. A choice: each round starts a
process, and on a busy machine that alone takes seconds."""


def measured(file: Path, values: Mapping[str, Any], runtime: str, seconds: float) -> StoredTimes:
    """Measures a model on one input, then one thread of it: on a busy machine only that is compared, because other
    processes take the cores of the other threads.

    Raises:
        OnnxsmithError: the errors of `bench`.
    """
    figures, report = _figures(file, values, runtime, seconds)
    alone = _alone(runtime)
    found = of_rounds(figures["subjects"][0]["logs"])
    one = report.part(Latencies).subjects[0]
    return StoredTimes(
        median=_rounded(found.ratio if found else one.p50),
        low=_rounded(found.low) if found else None,
        high=_rounded(found.high) if found else None,
        memory=one.peak,
        figures=_without_paths(figures),
        one_thread=_without_paths(_figures(file, values, alone, seconds)[0]) if alone else None,
    )


def _alone(runtime: str) -> str:
    """Returns the name of a runtime with one thread; "" if it accepts no number of threads, or the machine has one
    core."""
    name = runtime.partition(":threads=")[0]
    takes_threads = runtimes.parse(name)[0].takes_threads
    return f"{name}:threads=1" if takes_threads and machine.HERE.cores() > 1 else ""


def _figures(file: Path, values: Mapping[str, Any], runtime: str, seconds: float) -> tuple[dict[str, Any], Report]:
    """Measures, longer if there were too few rounds, and returns the figures with the report."""
    with folders.temporary() as folder:
        saved = folder / "figures.json"
        for longer in _LONGER:
            report = bench(file, subjects=(runtime,), inputs=values, seconds=longer * seconds, save=saved).report
            figures = json.loads(saved.read_text(encoding="utf-8"))
            if of_rounds(figures["subjects"][0]["logs"]) is not None:
                break
    return figures, report


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
        what = f"the times were recorded under other conditions: {'; '.join(other)}"
        return [Change("slower", UNKNOWN, what)], None
    report = _against(file, values, recorded.figures, runtime, seconds, allow)
    alone = None
    rows = report.part(Regressions).rows
    alone_as = _alone(runtime)
    if alone_as and recorded.one_thread is not None and _cores_of_busy(report) and any(row.slower for row in rows):
        alone = _against(file, values, recorded.one_thread, alone_as, seconds, allow)
    now = rows[0].now if rows else report.part(Latencies).subjects[0].p50
    return list(_changes(report, alone, recorded, allow)), now


def _against(
    file: Path, values: Mapping[str, Any], figures: Mapping[str, Any], runtime: str, seconds: float, allow: float
) -> Report:
    """Measures against recorded figures, longer if there were too few rounds."""
    with folders.temporary() as folder:
        saved = folder / "figures.json"
        saved.write_text(json.dumps(figures), encoding="utf-8")
        for longer in _LONGER:
            report = bench(
                file, subjects=(runtime,), inputs=values, seconds=longer * seconds, against=saved, allow=allow
            ).report
            if not _has_too_few_rounds(report):
                break
    return report


def _has_too_few_rounds(report: Report) -> bool:
    part = report.part(Regressions)
    return part.same_inputs and any(row.low is None for row in part.rows[:1])


def _cores_of_busy(report: Report) -> int:
    """Returns the number of cores of a machine that was busy with other processes; 0 on a quiet one."""
    return next((part.cores for part in report.parts if isinstance(part, Measurement) and part.busy), 0)


def _changes(report: Report, alone: Report | None, recorded: StoredTimes, allow: float) -> Iterator[Change]:
    """Yields the changes. `alone` are the times of one thread, which decide on a busy machine; without them, other
    processes may have taken all cores but one."""
    part, cores = report.part(Regressions), _cores_of_busy(report)
    if not part.rows or not part.same_inputs:
        yield Change("slower", UNKNOWN, "the times cannot be compared: they were measured on other inputs")
    for row in part.rows[:1] if part.same_inputs else ():
        if row.ratio is None or row.low is None or row.high is None:
            yield Change("slower", UNKNOWN, "the times cannot be compared: too few rounds; give more --seconds")
            continue
        said = _said(row)
        if row.slower and cores:
            deciding = row if alone is None else next(iter(alone.part(Regressions).rows), row)
            limit = _BUSY * (cores if deciding is row else 1)
            said += "" if deciding is row else f"; of one thread {_said(deciding)}"
            if deciding.slower and (deciding.low or 0.0) > limit:
                yield Change("slower", WORSE, f"{said}; {1 + allow:.3g} is allowed")
            else:
                yield Change("slower", CHANGED, f"{said}: perhaps slower, but other processes kept the machine busy")
        elif row.slower:
            yield Change("slower", WORSE, f"{said}; {1 + allow:.3g} is allowed")
        elif row.high < 1:
            yield Change("faster", BETTER, said)
        elif row.perhaps and row.beyond:
            yield Change("slower", CHANGED, f"{said}: perhaps slower, but within the noise")
    yield from _memory_changes(report, recorded)


def _said(row: Regression) -> str:
    times = f"{duration(row.before)} became {duration(row.now)}"
    if row.ratio is None or row.low is None or row.high is None:
        return f"{times}, with too few rounds"
    return f"{times}: ratio {row.ratio:.3g}, {row.low:.3g} to {row.high:.3g}"


def _memory_changes(report: Report, recorded: StoredTimes) -> Iterator[Change]:
    peak = report.part(Latencies).subjects[0].peak
    if peak is None or recorded.memory is None:
        return
    what = f"the peak memory was {size(recorded.memory)}, and now is {size(peak)}"
    if peak > max(recorded.memory * (1 + _MEMORY), recorded.memory + _LITTLE):
        yield Change("memory", WORSE, f"{what}; {_MEMORY:.0%} more is allowed")
    elif peak < min(recorded.memory * (1 - _MEMORY), recorded.memory - _LITTLE):
        yield Change("memory", BETTER, what)
