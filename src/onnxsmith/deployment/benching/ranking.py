"""Turns measured rounds into figures, and says whether one subject may be called faster than another."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from onnxsmith.base.report.parts.measurements import Latency, Ratio
from onnxsmith.deployment.benching.measurement_statistics import LEAST_ROUNDS, of_rounds, percentiles
from onnxsmith.deployment.benching.rounds import Measured, Track
from onnxsmith.deployment.benching.subject_agreement import Check

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
    """Returns the ratio of a subject to the first, and whether it is ranked. A ranking needs enough rounds, equal
    outputs, and an interval that does not contain 1."""
    found = of_rounds(logs, floor=floor)
    why_not = ""
    if check.equal is False:
        why_not = "not ranked: the outputs differ"
    elif found is None or len(logs) < LEAST_ROUNDS:
        needed = max(2 * measured.seconds / max(len(logs), 1) * LEAST_ROUNDS, 1)
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
