"""Writes the report of a benchmark."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

import numpy as np

from onnxsmith._version import __version__
from onnxsmith.base.clock import Clock
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts._text import duration
from onnxsmith.base.report.parts.measurements import Latencies, Latency, Measurement, Ratio, Ratios
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.system import machine
from onnxsmith.base.words import first_few
from onnxsmith.deployment.benching.machine_load import Busy
from onnxsmith.deployment.benching.measurement_statistics import BUSY_FLOOR, FLOOR, LEAST_ROUNDS, of_rounds, percentiles
from onnxsmith.deployment.benching.rounds import Measured, Track
from onnxsmith.deployment.benching.subject_preparation import Check, Chosen
from onnxsmith.deployment.benching.subjects import Failed
from onnxsmith.verification.run import typed

_MOST_NAMED = 5
"""Limits the nodes that a problem names. A choice."""
_PACKAGES = ("onnxruntime", "onnxruntime-gpu", "openvino", "torch", "onnx", "numpy")


@dataclass(frozen=True)
class Bench:
    """Holds all measurements. `checks` are by the id of the subject."""

    measured: Measured
    given: Chosen
    checks: Mapping[int, Check]
    failed: list[Failed]
    seen: Busy
    notes: list[str] = field(default_factory=list)

    @property
    def floor(self) -> float:
        """Returns the least half width of the intervals."""
        return BUSY_FLOOR if self.seen.disturbs else FLOOR


def report(done: Bench, more: tuple[Part, ...], clock: Clock, compared: tuple[Verdict, tuple[Problem, ...]]) -> Report:
    """Makes the report: figures, ratios, circumstances, problems, and the headline. `compared` is the result of a
    comparison with a baseline."""
    tracks = done.measured.tracks
    figures = tuple(latency(track) for track in tracks)
    parts: list[Part] = [Latencies(figures, tuple((one.label, one.reason) for one in done.failed))]
    ratios = _ratios(done)
    if ratios is not None:
        parts.append(ratios)
    parts += [*more, measurement(done), Timing(clock.passed())]
    strays = [found for track in tracks if (found := _stray(track)) is not None]
    problems = (*dict.fromkeys(one.problem for one in done.failed), *strays, *compared[1])
    differ = ratios is not None and any(one.equal is False for one in ratios.ratios)
    verdict = Verdict.DONE
    if done.failed:
        verdict = Verdict.FAILED
    elif differ or compared[0] is Verdict.DIFFERENT:
        verdict = Verdict.DIFFERENT
    elif strays or compared[0] is Verdict.CANNOT_TELL:
        verdict = Verdict.CANNOT_TELL
    return Report(
        "bench",
        verdict,
        tuple(parts),
        problems,
        notes=(*done.given.notes, *done.notes),
        headline="; ".join([_headline(done, figures, ratios), *(found.what for found in compared[1])]),
    )


def _ratios(done: Bench) -> Ratios | None:
    tracks = done.measured.tracks
    if len(tracks) < 2:
        return None
    first = tracks[0].ready
    unchecked = Check(None, f"not compared with {first.subject.label}")
    found = [
        ratio(track, logs, done.checks.get(id(track.ready), unchecked), done.floor, done.measured)
        for track, logs in zip(tracks[1:], done.measured.ratios, strict=True)
    ]
    return Ratios(first.subject.label, tuple(found), len(tracks[0].medians), done.measured.blocks)


def measurement(done: Bench) -> Measurement:
    """Returns the circumstances of the measurement."""
    tracks = done.measured.tracks
    return Measurement(
        sizes=done.given.sizes,
        inputs={name: typed(value) for name, value in done.given.feed.values.items()},
        origin=done.given.origin,
        rounds=len(tracks[0].medians) if tracks else 0,
        seconds=done.measured.seconds,
        ended=done.measured.ended,
        processor=machine.HERE.processor(),
        cores=machine.HERE.cores(),
        versions=versions(),
        load=done.seen.load,
        others=done.seen.others,
        stolen=done.seen.stolen,
        busy=done.seen.disturbs,
        clock=time.get_clock_info("perf_counter").resolution,
        floor=done.floor,
    )


def versions() -> dict[str, str]:
    """Returns the versions of the packages that a time may depend on."""
    found = {"onnxsmith": __version__}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _stray(track: Track) -> Problem | None:
    """Returns a problem if nodes of the subject ran on a provider other than the requested one."""
    asked = track.ready.subject.options.provider
    if not track.elsewhere or asked == "cpu":
        return None
    named = first_few([f"{op} {name!r}" for _, op, name in track.elsewhere], _MOST_NAMED)
    others = ", ".join(sorted({provider for provider, _, _ in track.elsewhere}))
    total = sum(track.nodes.values())
    return Problem(
        "bench/provider-fell-back",
        f"{len(track.elsewhere)} of {total} nodes did not run on {asked}",
        where=f"{track.ready.subject.label}: {named}",
        why=f"these nodes ran on {others}, so the measured time is not the time of {asked} alone",
        fix="`onnxsmith explain bench/provider-fell-back` explains which nodes stay on the CPU, and what to do",
    )


def _headline(done: Bench, figures: Sequence[Latency], ratios: Ratios | None) -> str:
    failed = f"FAILED: {', '.join(one.label for one in done.failed)}" if done.failed else ""
    if ratios is not None:
        lines = [said(one, ratios.first) for one in ratios.ratios]
    else:
        lines = [f"{one.subject}: {duration(one.p50)} a run (median of {one.runs:,})" for one in figures]
    return "; ".join([*lines, *([failed] if failed else [])])


# Turns measured rounds into figures, and says whether one subject may be called faster than another.

NOISE = "no difference beyond the noise"


def latency(track: Track) -> Latency:
    """Returns the figures of one subject."""
    p50, p95, p99 = percentiles(track.times, (0.5, 0.95, 0.99))
    assert p50 is not None
    peaks = [bytes_ for bytes_ in track.peak if bytes_ is not None]
    loaded = [bytes_ for bytes_ in track.loaded if bytes_ is not None]
    file = track.ready.subject.file
    return Latency(
        subject=track.ready.subject.label,
        provider=track.provider,
        load=statistics.median(track.load),
        first=statistics.median(track.first),
        p50=p50,
        p95=p95,
        p99=p99,
        mean=statistics.fmean(track.times),
        lowest=min(track.medians),
        highest=max(track.medians),
        runs=len(track.times) * track.inner,
        inner=track.inner,
        loaded=int(statistics.median(loaded)) if loaded else None,
        peak=int(statistics.median(peaks)) if peaks else None,
        file=file.stat().st_size if file is not None else None,
        warm=int(statistics.median(track.warm)),
        steady=all(track.steady),
        where=track.where,
        curve=tuple(float(value) for value in np.quantile(track.times, np.linspace(0, 1, 101))),
    )


def ratio(track: Track, logs: Sequence[float], check: Check, floor: float, measured: Measured) -> Ratio:
    """Returns the ratio of a subject to the first subject, and whether the subject is ranked. A ranking needs enough
    rounds, equal outputs, and an interval that does not contain 1."""
    found = of_rounds(logs, floor=floor)
    why_not = ""
    if check.equal is False:
        why_not = "not ranked: the outputs differ"
    elif found is None or len(logs) < LEAST_ROUNDS:
        of_all = measured.total / len(measured.tracks)  # the limit of all is that of measuring times the subjects
        needed = max(1.5 * max(measured.seconds, of_all) / max(len(logs), 1) * LEAST_ROUNDS, 1)
        why_not = f"not ranked: {len(logs)} of {LEAST_ROUNDS} rounds; --seconds {needed:.0f} may give enough"
    elif not found.decided:
        why_not = NOISE
    return Ratio(
        subject=track.ready.subject.label,
        ratio=found.ratio if found else None,
        low=found.low if found else None,
        high=found.high if found else None,
        ranked=not why_not,
        why_not=why_not,
        equal=check.equal,
        outputs=check.said,
    )


def said(one: Ratio, first: str) -> str:
    """Returns the headline about a ratio."""
    if one.equal is False:
        return f"OUTPUTS DIFFER, not ranked: {one.subject} and {first}: {one.outputs}; {one}"
    unknown = "" if one.equal else f"; outputs: {one.outputs}"
    if one.ranked:
        return f"{one.subject} is {one.result} than {first}: {one}{unknown}"
    if one.why_not == NOISE:
        return f"{one.subject} and {first}: {NOISE}: {one}{unknown}"
    return f"{one.subject} and {first}: {one.why_not}{unknown}"
