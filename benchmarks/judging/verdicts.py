"""What onnxsmith says of a pair, through its public functions, and what others say of it on the same input."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import onnxsmith
from judging.peers import PEERS
from judging.running import Arrays

Run = Callable[[Mapping[str, Any]], Arrays]


@dataclass(frozen=True)
class Judged:
    """`verdict` is done, different, cannot-tell or failed; `peers` are equal, different or failed by name; `feed` is
    the input that they were asked on."""

    verdict: str
    said: str
    seconds: float
    peers: dict[str, str] = field(default_factory=dict)
    feed: Mapping[str, Any] | None = field(default=None, repr=False)


def judged(reference: Any, candidate: Any, runs: tuple[Run, Run] | None, spare: Mapping[str, Any] | None) -> Judged:
    """Compares thoroughly. `runs` run both sides for the peers, on the input on which onnxsmith found them
    furthest apart, or on `spare` where it gives none."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        worst = Path(folder) / "worst.npz"
        verdict, said = told(lambda: onnxsmith.compare(reference, candidate, worst_input=worst, thorough=True))
        seconds = time.monotonic() - begin
        feed = dict(np.load(worst)) if worst.exists() else spare
    if feed is not None and spare is not None and set(feed) != set(spare):  # a torch module's inputs have other names
        feed = dict(zip(spare, feed.values(), strict=True)) if len(feed) == len(spare) else spare
    return Judged(verdict, said, round(seconds, 2), _peers(runs, feed), feed)


def told(call: Callable[[], Any]) -> tuple[str, str]:
    """The verdict of the report that the call gives, and its headline with its first problem."""
    try:
        report = call().report
    except onnxsmith.OnnxsmithError as error:
        return "failed", _said(error.problem)
    except Exception as error:  # noqa: BLE001 — an error that is no problem with an id is a finding of its own
        return "failed", f"CRASHED {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    problems = "; ".join(_said(problem) for problem in report.problems[:2])
    return report.verdict.value, f"{report.headline} | {problems}"[:700]


def _said(problem: Any) -> str:
    parts = (problem.id, problem.what, problem.where, problem.why)
    return ": ".join(" ".join(str(part).split()) for part in parts if part)[:400]


def _peers(runs: tuple[Run, Run] | None, feed: Mapping[str, Any] | None) -> dict[str, str]:
    if runs is None or feed is None:
        return {}
    try:
        wanted, got = runs[0](feed), runs[1](feed)
    except Exception:  # noqa: BLE001 — whatever a runtime says
        return dict.fromkeys(PEERS, "failed")
    return {name: peer(wanted, got) for name, peer in PEERS.items()}
