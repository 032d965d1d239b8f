"""Measures subjects in turns. A round opens every subject in a new process, warms it up, and runs blocks. In a block,
each subject has two turns: in one order, then in the reverse order, so that a steady drift of the machine cancels
out.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from onnxsmith.base.clock import advance, stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.system import usage
from onnxsmith.deployment.benching.measurement_statistics import LEAST_ROUNDS, low, of_rounds, steady
from onnxsmith.deployment.benching.subject_preparation import Ready
from onnxsmith.deployment.benching.subjects import Failed
from onnxsmith.runtimes import _idle
from onnxsmith.runtimes._timing import Timer
from onnxsmith.runtimes.base import Preparer, Session

NARROW = 0.015
"""Names the half width of an interval at which measuring stops. A choice: a second measurement then lies within 3%."""
_MOST_ROUNDS = 30
"""Limits the rounds. A choice: with more rounds, intervals hardly become narrower."""
_ROUNDS = 10
"""Counts the rounds for which the measuring time is planned. A choice, a little more than the least number."""
_SHORTEST = 10_000
"""Sets the shortest sample in nanoseconds; a faster model runs several times in a sample. Reading the clock takes about
60 ns, less than a percent of a sample."""
_BLOCKS = 10
"""Counts the blocks for which the time of a round is planned. A choice: their median ignores a few disturbed blocks."""
_TURN, _SHORT = 0.05, 0.002
"""Bounds a turn in seconds, unless a single run is longer. A choice: as short as most disturbances of a machine, but
long enough for a median."""
_SETTLE = 0.1
"""Sets how much of a subject's turn is spent on runs that are not measured. In this time caches fill again, and the
threads of the previous subject come to rest. A choice."""
_LONG = 0.05
"""Names the seconds of a run from which no runs are needed to settle: caches are full after a part of such a run. A
choice."""
_WINDOW = 0.02
"""Sets the seconds of a window of the warm-up. A choice."""
_WARM = 0.25
"""Limits the share of a round's measuring time for the warm-up, which takes at least three windows. A choice."""
_SHORTER = 0.25
"""Limits how much shorter a round becomes if processes start so slowly that the rounds of a ranking do not fit. A
choice."""


@dataclass(frozen=True)
class Pace:
    """Says how long to measure: about `seconds` for all subjects together, warm-ups included, in rounds of `of_round`
    seconds, until each interval has at most the half width `narrow`, or if `is_decision`, until 1 lies outside of each.
    If `is_fresh`, each round has new processes. For the rounds that an interval needs, it may take `patience` times as
    long."""

    seconds: float
    of_round: float | None = None
    narrow: float = NARROW
    is_fresh: bool = True
    is_decision: bool = False
    patience: float = 1.0

    @property
    def usual(self) -> float:
        """Returns the seconds of a round."""
        return self.of_round if self.of_round is not None else self.seconds / _ROUNDS


@dataclass(eq=False)
class Track:
    """Holds the measurements of one subject. Each list has one entry for each round, except `times`: seconds of each
    run. If a sample has `inner` runs, `times` has the mean run of each sample."""

    ready: Ready
    load: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    warm: list[int] = field(default_factory=list)
    steady: list[bool] = field(default_factory=list)
    loaded: list[int | None] = field(default_factory=list)
    peak: list[int | None] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    lows: list[float] = field(default_factory=list)
    """Lists the time that represents each round: the time of the least disturbed runs."""
    times: list[float] = field(default_factory=list)
    inner: int = 1
    where: str = ""
    provider: str = ""
    elsewhere: list[tuple[str, str, str]] = field(default_factory=list)
    nodes: dict[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class Measured:
    """Holds the tracks, and the logarithms of the ratios. For each track but the first, the list has the ratio to the
    first track in each round."""

    tracks: list[Track]
    ratios: list[list[float]]
    failed: list[Failed]
    blocks: int
    seconds: float
    """Counts the seconds within turns, first runs and warm-ups."""
    loading: float
    """Counts the seconds in which processes start and load the models."""
    total: float
    """Counts all seconds."""
    ended: str
    """Says why measuring stopped."""


def measure(subjects: Sequence[Ready], values: Mapping[str, Any], *, pace: Pace, seed: int, floor: float) -> Measured:
    """Measures the subjects on one input. With the start of processes, this takes about the seconds of `pace` for each
    subject, and one round at least. Stops early when all intervals are narrow. A subject that fails is not measured
    again."""
    shuffle = random.Random(seed)
    tracks = [Track(one) for one in subjects]
    failed: list[Failed] = []
    spent, loading, blocks, begun = 0.0, 0.0, 0, time.monotonic()
    limit = pace.seconds * len(subjects)
    ratios: list[list[float]] = [[] for _ in subjects[1:]]
    ended = "no subject could be measured"
    while tracks:
        advance("measure", len(tracks[0].medians), _ROUNDS)
        with ExitStack() as stack:
            each = _of_round(len(tracks[0].medians), pace.usual, limit, time.monotonic() - begun, loading)
            round_ = _Round(tracks, shuffle, stack, values, each, pace.is_fresh)
            done = round_.run()
        loading += round_.loading
        failed += round_.failed
        if round_.failed:  # a subject that failed is not measured again, and its earlier rounds do not count
            lost = {id(track) for track in tracks} - {id(track) for track in done}
            kept = [index for index, track in enumerate(tracks) if id(track) not in lost]
            ratios = [ratios[index - 1] for index in kept[1:]] if kept and kept[0] == 0 else []
            tracks = [tracks[index] for index in kept]
            if not ratios and len(tracks) > 1:  # the first subject is gone: all ratios refer to a new first subject
                tracks = [Track(track.ready) for track in tracks]
                ratios = [[] for _ in tracks[1:]]
                spent = 0.0  # the earlier rounds are lost, so the measuring time begins again
            continue
        for found, log in zip(ratios, round_.logs(), strict=True):
            found.append(log)
        spent, blocks = spent + round_.spent, blocks + round_.blocks
        reason = _enough(tracks, ratios, (spent, loading, time.monotonic() - begun), limit, pace, floor)
        if reason:
            ended = reason
            break
    return Measured(tracks, ratios, failed, blocks, spent, loading, time.monotonic() - begun, ended)


def _of_round(count: int, usual: float, limit: float, passed: float, loading: float) -> float:
    """Returns the seconds to measure in the next round, after `count` rounds. If processes start slowly, rounds become
    shorter, so that the rounds of a ranking fit."""
    if not count:
        return usual
    fits = (limit - passed) / max(LEAST_ROUNDS - count, 1) - loading / count
    return min(usual, max(fits, _SHORTER * usual))


def _enough(
    tracks: Sequence[Track],
    ratios: Sequence[Sequence[float]],
    passed: tuple[float, float, float],
    limit: float,
    pace: Pace,
    floor: float,
) -> str:
    """Returns the reason to stop measuring; "" if measuring goes on. `passed` are the seconds of measuring, of loading,
    and all; `limit` is that of all."""
    count = len(tracks[0].medians)
    (spent, loading, all_), seconds = passed, pace.seconds
    most = limit * (pace.patience if count < LEAST_ROUNDS else 1)
    is_over = all_ + all_ / count / 2 > most  # the next round would end more than half a round late
    if is_over or (spent >= seconds and count >= LEAST_ROUNDS) or spent >= 2 * seconds * (most / limit):
        return f"the time was used up ({spent:.1f} s of measuring, {loading:.1f} s of starting processes)"
    logs = ratios or [[math.log(time) for time in track.lows] for track in tracks]
    intervals = [of_rounds(one, floor=floor) for one in logs]
    if count >= LEAST_ROUNDS and all(
        one is not None and one.half_width <= max(pace.narrow, floor) for one in intervals
    ):
        return "all intervals are narrow"
    return f"{count} rounds" if count >= _MOST_ROUNDS else ""


class _Round:
    """Makes one round: starts new processes, warms up, and runs blocks."""

    def __init__(
        self,
        tracks: Sequence[Track],
        shuffle: random.Random,
        stack: ExitStack,
        values: Mapping[str, Any],
        seconds: float,
        is_fresh: bool,
    ) -> None:
        self._tracks, self._shuffle, self._stack = tracks, shuffle, stack
        self._values, self._seconds, self._is_fresh = values, seconds, is_fresh
        self._open: dict[int, Opened] = {}
        self._runs: dict[int, list[float]] = {}
        """Holds the times of this round's runs, by subject."""
        self.failed: list[Failed] = []
        self.spent = self.loading = 0.0
        self.blocks = 0

    def run(self) -> list[Track]:
        """Runs the round, and returns the tracks that did not fail."""
        done = [track for track in self._in_any_order() if self._tried(track, self._begin)]
        done.sort(key=self._tracks.index)
        if self.failed:
            return done
        began = self.spent
        turn = min(_TURN, max(self._seconds / (2 * len(done) * _BLOCKS), _SHORT))
        while not self.failed and (not self.blocks or self.spent - began < self._seconds):
            order = done[:]
            self._shuffle.shuffle(order)
            # Forth and back: a steady drift of the machine then adds the same to every subject.
            for track in [*order, *reversed(order)]:
                if not self._tried(track, lambda one: self._turn(one, turn)):
                    return [one for one in done if one is not track]
            self.blocks += 1
        for track in done:
            track.peak.append(self._open[id(track)].peak())
            track.medians.append(statistics.median(self._runs[id(track)]))
            track.lows.append(low(self._runs[id(track)]))
            track.times += self._runs[id(track)]
        return done

    def logs(self) -> list[float]:
        """Returns for each subject the logarithm of its time in this round divided by the first subject's time."""
        return [math.log(track.lows[-1] / self._tracks[0].lows[-1]) for track in self._tracks[1:]]

    def _in_any_order(self) -> list[Track]:
        order = list(self._tracks)
        self._shuffle.shuffle(order)
        return order

    def _tried(self, track: Track, step: Any) -> bool:
        try:
            step(track)
        except OnnxsmithError as error:
            self.failed.append(Failed.of(track.ready.subject.label, error))
            return False
        return True

    def _begin(self, track: Track) -> None:
        begun = time.perf_counter()
        with stage("start processes"):
            if self._is_fresh:
                _idle.end_all()  # an old process has memory and caches of other models
            one = opened(track.ready)
        self.loading += time.perf_counter() - begun
        self._stack.callback(one.close)
        self._open[id(track)], self._runs[id(track)] = one, []
        timer = one.hold(self._values)
        first = timer.samples(1, 1, 0.0)[0] / 1e9
        self.spent += first
        track.load.append(one.load)
        track.loaded.append(one.loaded)
        track.first.append(first)
        self._warm(track, timer, first)
        track.where, track.provider = timer.where, one.session.provider
        head = getattr(one.session, "head", {})
        track.elsewhere, track.nodes = [tuple(node) for node in head.get("elsewhere", [])], dict(head.get("nodes", {}))

    def _warm(self, track: Track, timer: Timer, first: float) -> None:
        begun = time.perf_counter()
        limit = max(self._seconds * _WARM / len(self._tracks), 3 * _WINDOW)
        medians, runs = [first], 1
        while not steady(medians[1:]) and (len(medians) < 4 or time.perf_counter() - begun < limit):
            found = timer.samples(1_000_000, 1, _WINDOW)
            medians.append(statistics.median(found) / 1e9)
            runs += len(found)
            if medians[-1] > 1 and len(medians) > 2:  # a run of seconds is its own warm-up
                break
        track.warm.append(runs)
        track.steady.append(steady(medians[1:]) or medians[-1] > 1)
        if len(track.medians) == 0:  # in the first round only: all rounds have to measure alike
            track.inner = max(1, math.ceil(_SHORTEST / (medians[-1] * 1e9)))
        self.spent += time.perf_counter() - begun

    def _turn(self, track: Track, seconds: float) -> None:
        begun = time.perf_counter()
        timer = self._open[id(track)].timer
        assert timer is not None
        runs = self._runs[id(track)]
        usual = runs[-1] if runs else track.first[-1]
        if usual < _LONG:
            timer.samples(1_000_000, 1, seconds * _SETTLE)
        runs += [one / 1e9 / track.inner for one in timer.samples(1_000_000, track.inner, seconds)]
        self.spent += time.perf_counter() - begun


@dataclass(eq=False)
class Opened:
    """Holds a prepared session. `load` is in seconds; `imported` and `loaded` are the process's memory in bytes, before
    and after loading. Both memory figures are None for a runtime without a process of its own."""

    ready: Ready
    session: Session
    preparer: Preparer
    process: int | None
    load: float
    imported: int | None
    loaded: int | None
    timer: Timer | None = None

    def hold(self, values: Mapping[str, Any]) -> Timer:
        """Returns the timer for these inputs, given under the lead's names."""
        self.timer = self.session.timer(self.ready.own(values))
        return self.timer

    def peak(self) -> int | None:
        """Returns the largest memory of the process so far, in bytes above its memory with only the library
        imported."""
        most = usage.HERE.peak(self.process) if self.process is not None else None
        return None if most is None or self.imported is None else max(most - self.imported, 0)

    def close(self) -> None:
        """Ends the session and the process."""
        self.session.close()
        self.preparer.close()


def opened(ready: Ready) -> Opened:
    """Prepares the subject in a process that has imported only its library.

    Raises:
        OnnxsmithError: the errors of the runtime.
    """
    preparer = ready.subject.preparer(ready.side)
    try:
        process = preparer.start()
        imported = usage.HERE.resident(process) if process is not None else None
        begin = time.perf_counter()
        session = preparer.prepare(ready.side.source, ready.subject.options, interface=ready.side.interface)
        around = time.perf_counter() - begin
        load = float(getattr(session, "head", {}).get("seconds", around))
        loaded = usage.HERE.resident(process) if process is not None else None
        above = None if loaded is None or imported is None else max(loaded - imported, 0)
        return Opened(ready, session, preparer, process, load, imported, above)
    except BaseException:
        preparer.close()
        raise
