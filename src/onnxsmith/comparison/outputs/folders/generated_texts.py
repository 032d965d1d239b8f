"""Compares a way to generate text with the original: each graph by itself, then the calls one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.folders import FolderPart, GeneratedText, GeneratedTokens
from onnxsmith.base.report.parts.verification import OutputCheck, Steps, Verification
from onnxsmith.comparison.outputs import comparison_setup
from onnxsmith.comparison.outputs.candidate_state import compared as in_steps
from onnxsmith.comparison.outputs.folders import call_faults
from onnxsmith.comparison.outputs.folders.first_calls import first_feed
from onnxsmith.comparison.outputs.folders.graph_parts import Generation, GraphPart, fits
from onnxsmith.comparison.outputs.folders.graph_ports import HIDDEN, LOGITS, before, is_past
from onnxsmith.comparison.outputs.folders.player import Player, Sizes, best, is_first, next_feed, part_feed, with_empty
from onnxsmith.comparison.outputs.folders.references import Reference
from onnxsmith.comparison.outputs.reference_steps import Rolled
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.comparison.outputs.state_names import Fed
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.value_comparison import Difference, difference

CompareModels = Callable[[SideSource, SideSource, Sequence[Feed]], Report]
"""Compares two sides on given inputs, as `compare` does."""
_CLOSE = 2.0
"""Two logits that are nearer than this multiple of the tolerance are equally likely: each may be off by it."""


@dataclass(frozen=True)
class Walked:
    """The comparison of a way to generate text. `reports` are those of the graphs by themselves, `steps` is None if
    there is only one call."""

    generation: Generation
    graphs: tuple[FolderPart, ...]
    reports: tuple[Report, ...]
    steps: Steps | None
    tokens: GeneratedTokens
    first: str = ""
    """The first call with a difference, and its graph and output."""
    unsure: str = ""

    @property
    def differs(self) -> bool:
        """Whether a difference was found."""
        parts = any(one.verdict == "DIFFERENT" for one in self.graphs)
        return parts or self.tokens.differs or bool(self.steps and (self.steps.first or self.steps.drifts))


@dataclass(frozen=True)
class Calls:
    """The calls of the original. `feeds` have its own caches."""

    feeds: tuple[Feed, ...]
    outputs: tuple[Outputs, ...]

    @property
    def rows(self) -> int:
        """Returns the number of texts."""
        return len(next(iter(self.feeds[0].values.values())))

    @property
    def tokens(self) -> Any:
        """Returns the tokens that the original chose, [batch, calls]."""
        return np.concatenate([best(one) for one in self.outputs], axis=1)


def walked(
    reference: Reference,
    generation: Generation,
    compare_models: CompareModels,
    *,
    steps: int,
    seed: int,
    runtime: str | None,
) -> Walked:
    """Compares a way to generate text with the original, over `steps` tokens.

    Raises:
        OnnxsmithError: `compare/folder-part` if a graph does not fit the original; the errors of `compare`.
    """
    caches = reference.cache_sizes()
    for part in generation.parts:
        fits(
            part,
            caches,
            frozenset(name for name in part.names.inputs.values() if reference.takes(name)),
            reference.label,
        )
    start = first_feed(generation, reference, seed)
    count = steps if generation.later is not None else 1
    rows = len(next(iter(start.values())))
    with _played(generation, lambda one: reference.side(one, rows), caches) as player, stage("reference"):
        calls = _calls(player, start, count)
    reports, graphs = [], []
    checks: dict[str, OutputCheck] = {}
    for part in generation.parts:
        feeds = [replace(feed, values=part_feed(part, feed.values, caches)) for feed in _of(part, generation, calls)]
        report = compare_models(reference.side(part, rows), candidate_side(part, runtime), feeds)
        found = report.part(Verification)
        reports.append(report)
        graphs.append(_row(part, found, len(feeds)))
        checks = _joined(checks, {part.names.outputs[one.name]: one for one in found.outputs})
    return _in_calls(reference, generation, calls, checks, tuple(graphs), tuple(reports), runtime)


def candidate_side(part: GraphPart, runtime: str | None) -> SideSource:
    """Returns the side of a graph of the candidate."""
    name = runtime or runtimes.default()
    return SideSource(
        f"{part.label} on {name}", part.source, runtimes.get(name), part.interface, model=part.model,
        named=runtime is not None,
    )  # fmt: skip


def _played(generation: Generation, side: Callable[[GraphPart], SideSource], caches: Sizes) -> Any:
    """Returns a player that ends with its context."""
    sides = {part: side(part) for part in generation.parts}
    with ExitStack() as stack:
        for one in sides.values():
            stack.callback(one.close)
        player = Player(generation, {part: one.prepare() for part, one in sides.items()}, caches)
        ends = stack.pop_all()
    return _Closing(player, ends)


class _Closing:
    def __init__(self, player: Player, ends: ExitStack) -> None:
        self._player, self._ends = player, ends

    def __enter__(self) -> Player:
        return self._player

    def __exit__(self, *_: object) -> None:
        self._ends.close()


def _calls(player: Player, start: Mapping[str, Any], count: int) -> Calls:
    """Runs the original call by call, each with the likeliest token of the call before it."""
    feeds, outputs = [], []
    values = dict(start)
    for at in range(count):
        label = "the first call" if not at else f"step {at + 1} of {count}"
        found = player.run(values)
        feeds.append(Feed(label, {}, values))
        outputs.append(found)
        values = next_feed(values, found, best(found))
    return Calls(tuple(feeds), tuple(outputs))


def _of(part: GraphPart, generation: Generation, calls: Calls) -> list[Feed]:
    """Returns the calls that a graph makes."""
    if part is generation.encoder:
        return list(calls.feeds[:1])
    hidden = calls.outputs[0].get(HIDDEN)
    whole = {} if hidden is None else {HIDDEN: hidden}
    feeds = [replace(feed, values={**feed.values, **whole}) for feed in calls.feeds]
    both = part is generation.first and part is generation.later
    return [feed for feed in feeds if both or is_first(feed.values) == (part is generation.first)]


def _row(part: GraphPart, found: Verification, calls: int) -> FolderPart:
    verdict = "equal" if found.equal else "CANNOT TELL" if found.unsure else "DIFFERENT"
    worst = max(found.outputs, key=lambda one: (not one.equal, one.worst_rel / (one.tolerance or 1)))
    return FolderPart(part.file.name, part.role, calls, worst.name, worst.worst_rel, worst.tolerance, verdict)


def _joined(one: Mapping[str, OutputCheck], other: Mapping[str, OutputCheck]) -> dict[str, OutputCheck]:
    """Returns the checks of both, of an output in both the one with the larger tolerance."""
    joined = {**one}
    for name, check in other.items():
        if name not in joined or joined[name].tolerance < check.tolerance:
            joined[name] = replace(check, name=name)
    return joined


def _in_calls(
    reference: Reference,
    generation: Generation,
    calls: Calls,
    checks: Mapping[str, OutputCheck],
    graphs: tuple[FolderPart, ...],
    reports: tuple[Report, ...],
    runtime: str | None,
) -> Walked:
    """Compares the calls in a row: first each with the original's state, then all with the candidate's own state."""
    caches = reference.cache_sizes()
    states = [name for name in calls.outputs[0] if name.startswith("present.")]
    pairs = [Fed(before(name), name) for name in states] + ([Fed(HIDDEN, HIDDEN)] if generation.has_encoder else [])
    first = replace(calls.feeds[0], values=with_empty(calls.feeds[0].values, caches))
    rolled = Rolled((first, *calls.feeds[1:]), calls.outputs, frozenset())
    part = Verification(reference.label, generation.name, verified=True, equal=True, outputs=tuple(checks.values()))
    differ = any(one.verdict == "DIFFERENT" for one in graphs)

    def exact() -> Session | None:
        sessions = {one: comparison_setup.exact(reference.side(one, calls.rows)) for one in generation.parts}
        found = {one: session for one, session in sessions.items() if session is not None}
        return Player(generation, found, caches) if len(found) == len(sessions) else None

    with _played(generation, lambda one: candidate_side(one, runtime), caches) as player, stage("steps"):
        met = dict(_met(player, calls, checks))
        steps, _ = in_steps(rolled, met, part, player, pairs, exact)
        tokens, own = _texts(player, calls, checks)
        faults = () if differ or steps.first or steps.drifts else tuple(call_faults.noticed(player, calls, checks))
    shown = GeneratedTokens(generation.name, tokens, faults)
    missed = [name for name, seen in faults if not seen]
    unsure = f"a fault would not be noticed: {missed[0]}" if missed else ""
    return Walked(
        generation,
        graphs,
        reports,
        steps if len(calls.feeds) > 1 else None,
        shown,
        _first(generation, graphs, met, own),
        unsure,
    )


def _met(
    player: Player, calls: Calls, checks: Mapping[str, OutputCheck]
) -> Iterator[tuple[str, dict[str, Difference]]]:
    """Yields the differences of each call from the original's state, by label. The first call gets the original's
    result of the encoder, because the tolerances are those of one graph."""
    for feed, wanted in zip(calls.feeds, calls.outputs, strict=True):
        try:
            hidden = {HIDDEN: wanted[HIDDEN]} if HIDDEN in wanted else {}
            found = player.run({**feed.values, **hidden})
        except OnnxsmithError as error:
            yield feed.label, {LOGITS: Difference(f"the candidate refuses the call: {error.problem.what}")}
            continue
        yield feed.label, dict(differences(wanted, found, checks))


def differences(
    wanted: Outputs, found: Outputs, checks: Mapping[str, OutputCheck], since: int = 1
) -> Iterator[tuple[str, Difference]]:
    """Yields the difference of each output that was compared. Rounding may add up over `since` calls."""
    for name, check in checks.items():
        if name in wanted and name in found:
            yield name, difference(wanted[name], found[name], check.tolerance * since, check.floor * since)


def _first(
    generation: Generation, graphs: Sequence[FolderPart], met: Mapping[str, Mapping[str, Difference]], own: str
) -> str:
    """Names the first call that differs, with its graph and its output. An encoder runs before all others."""
    if generation.encoder is not None and graphs[0].verdict == "DIFFERENT":
        return f"the first call, {graphs[0].name}, output {graphs[0].output}"
    for at, (label, found) in enumerate(met.items()):
        wrong = [name for name, one in found.items() if one.reason]
        if wrong:
            part = generation.first if not at or generation.later is None else generation.later
            name = min(wrong, key=lambda one: (one == LOGITS, wrong.index(one)))
            output = next((mine for mine, shared in part.names.outputs.items() if shared == name), name)
            return f"{label}, {part.file.name}, output {output}"
    return own


def _texts(player: Player, calls: Calls, checks: Mapping[str, OutputCheck]) -> tuple[tuple[GeneratedText, ...], str]:
    """Returns the texts of both sides. The candidate gets the original's tokens, which are its own up to the first
    difference."""
    found: list[Any] = []
    near: list[Any] = []
    outputs: Outputs = {}
    for feed, wanted in zip(calls.feeds, calls.outputs, strict=True):
        state = {before(name): value for name, value in outputs.items() if name.startswith("present.")}
        own = {name: value for name, value in state.items() if is_past(name)} if found else {}
        try:
            outputs = player.run({**feed.values, **own})
        except OnnxsmithError:
            break
        found.append(best(outputs))
        near.append(_as_likely(wanted, found[-1], checks, len(found)))
    wanted_tokens = calls.tokens
    texts = []
    for row, line in enumerate(wanted_tokens):
        mine = [int(one[row, 0]) for one in found]
        at = next((at for at, (a, b) in enumerate(zip(line, mine, strict=False)) if a != b), None)
        at = len(mine) if at is None and len(mine) < len(line) else at
        upto = len(line) if at is None else at + 1
        texts.append(
            GeneratedText(
                tuple(map(int, line)), tuple(mine[:upto]), 0 if at is None else at + 1,
                at is not None and at < len(near) and bool(near[at][row]),
            )
        )  # fmt: skip
    wrong = min((one.first for one in texts if one.first and not one.near), default=0)
    return tuple(texts), f"token {wrong} of a text" if wrong else ""


def _as_likely(wanted: Outputs, chosen: Any, checks: Mapping[str, OutputCheck], since: int) -> list[bool]:
    """Returns for each text whether the original's likeliest token and the chosen one are equally likely."""
    logits = np.asarray(wanted[LOGITS], np.float64)[:, -1]
    check = checks.get(LOGITS)
    if check is None:
        return [False] * len(logits)
    scale = float(np.sqrt(np.mean(np.square(np.asarray(wanted[LOGITS], np.float64)))))
    allowed = _CLOSE * since * (check.tolerance * scale + check.floor)
    return [bool(row.max() - row[token] <= allowed) for row, token in zip(logits, chosen[:, 0], strict=True)]
