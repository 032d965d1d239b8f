"""Writes the report of a benchmark."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

from onnxsmith._version import __version__
from onnxsmith.base.clock import Clock
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts._text import duration
from onnxsmith.base.report.parts.measurements import Latencies, Latency, Measurement, Ratios
from onnxsmith.base.report.parts.timing import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.system import machine
from onnxsmith.base.words import first_few
from onnxsmith.deployment.benching.machine_load import Busy
from onnxsmith.deployment.benching.measurement_statistics import BUSY_FLOOR, FLOOR
from onnxsmith.deployment.benching.ranking import latency, ratio, said
from onnxsmith.deployment.benching.rounds import Measured, Track
from onnxsmith.deployment.benching.subject_agreement import Check
from onnxsmith.deployment.benching.subject_preparation import Chosen
from onnxsmith.deployment.benching.subjects import Failed
from onnxsmith.verification.run import typed

_MOST_NAMED = 5
"""Largest number of nodes that a problem names. A choice."""
_PACKAGES = ("onnxruntime", "onnxruntime-gpu", "openvino", "torch", "onnx", "numpy")


@dataclass(frozen=True)
class Bench:
    """All measurements. `checks` are by the id of the subject."""

    measured: Measured
    given: Chosen
    checks: Mapping[int, Check]
    failed: list[Failed]
    seen: Busy
    notes: list[str] = field(default_factory=list)

    @property
    def floor(self) -> float:
        """Least half width of the intervals."""
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
    parts += [*more, measurement(done), Timing(dict(clock.seconds))]
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
        why=f"they ran on {others}, so the time is not that of {asked} alone",
        fix="`onnxsmith explain bench/provider-fell-back` says which nodes stay on the CPU and what helps",
    )


def _headline(done: Bench, figures: Sequence[Latency], ratios: Ratios | None) -> str:
    failed = f"FAILED: {', '.join(one.label for one in done.failed)}" if done.failed else ""
    if ratios is not None:
        lines = [said(one, ratios.first) for one in ratios.ratios]
    else:
        lines = [f"{one.subject}: {duration(one.p50)} a run (median of {one.runs:,})" for one in figures]
    return "; ".join([*lines, *([failed] if failed else [])])
