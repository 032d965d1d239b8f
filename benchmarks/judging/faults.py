"""Planted faults: a model beside itself with one fault in it. It must not be called equal."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from judging.bases import Base, bases
from judging.graphs import Open
from judging.planting import PLANTERS, REVERSED, NoPlace
from judging.running import Runner, feeds
from judging.verdicts import judged
from judging.visible import CLEAR, FEEDS, Original, Seen

IN_A_ROW = 6
TRIES = 4
"""Places that are tried for one that is valid and visible."""


def cases(folder: Path, seed: int) -> Iterator[str]:
    """MODEL/FORM/GROUP/FAULT, shuffled, a few of each model in a row: what its noise is has to be found out once."""
    rng = np.random.default_rng(seed)
    found = bases(folder)
    drawn = {base.title: rng.permutation(sorted(PLANTERS)).tolist() for base in found}
    for first in range(0, len(PLANTERS), IN_A_ROW):
        for index in rng.permutation(len(found)).tolist():
            title = found[index].title
            yield from (f"{title}/{kind}" for kind in drawn[title][first : first + IN_A_ROW])


def judge(folder: Path, case: str, seed: int, known: dict[str, Any] | None, kept: Path | None) -> dict[str, Any]:
    """Plants, asks whether it can be seen, and what onnxsmith says. `known` is an earlier record of the same case,
    whose place and visibility still hold; a pair that was called equal is kept in `kept`."""
    name, form, *rest = case.split("/")
    base = next(one for one in bases(folder) if (one.name, one.form) == (name, form))
    kind = "/".join(rest)
    found = known or _placed(base, kind, seed)
    record = {key: found.get(key) for key in ("status", "ratio", "place", "attempt", "tried")}
    if found["status"] != "visible":
        return record
    reference, candidate = _planted(base, kind, seed, int(found["attempt"]))[:2]
    with tempfile.TemporaryDirectory() as text:
        paths = Path(text) / "original.onnx", Path(text) / "faulty.onnx"
        for model, path in zip((reference, candidate), paths, strict=True):
            onnx.save(model, path)
        sessions = Runner(reference, "all"), Runner(candidate, "all")
        said = judged(*paths, (sessions[0].run, sessions[1].run), base.example())
        if said.verdict in ("done", "failed") and kept is not None:
            target = kept / case.replace("/", "__")
            target.mkdir(parents=True, exist_ok=True)
            for path in paths:
                path.replace(target / path.name)
    return {**record, "verdict": said.verdict, "said": said.said, "seconds": said.seconds, "peers": said.peers}


def _placed(base: Base, kind: str, seed: int) -> dict[str, Any]:
    """The first attempt whose fault is valid and visible; else the last that is valid."""
    tried: dict[str, int] = {}
    best: dict[str, Any] = {"status": "no place", "tried": tried}
    for attempt in range(TRIES):
        try:
            reference, candidate, place = _planted(base, kind, seed, attempt)
        except NoPlace:
            break
        seen = _seen(base, kind, reference, candidate)
        status = seen.status if seen else "invalid"
        tried[status] = tried.get(status, 0) + 1
        if seen is not None:
            ratio = min(seen.ratio, 1e30)
            best = {"status": status, "ratio": ratio, "place": place, "attempt": attempt, "tried": tried}
        if status == "visible":
            break
    return best


def _planted(base: Base, kind: str, seed: int, attempt: int) -> tuple[onnx.ModelProto, onnx.ModelProto, str]:
    """Original, faulty model, and what was done. Raises NoPlace."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{base.title}/{kind}".encode()), attempt])
    model = base.model()
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    place = PLANTERS[kind](Open(changed), rng)
    del changed.graph.value_info[:]
    return (changed, model, place) if kind in REVERSED else (model, changed, place)


@lru_cache(maxsize=2)
def _original(base: Base) -> Original:
    return Original(base.model(), list(feeds(base.example(), FEEDS, 0)))


def _seen(base: Base, kind: str, reference: onnx.ModelProto, candidate: onnx.ModelProto) -> Seen | None:
    """None where the fault makes the model invalid, or ONNX Runtime does not run it."""
    changed = reference if kind in REVERSED else candidate
    try:
        onnx.checker.check_model(changed, full_check=_small(changed))
        original = _original(base) if kind not in REVERSED else Original(reference, _original(base).feeds)
        return original.seen(candidate, CLEAR[base.form])
    except Exception:  # noqa: BLE001 — whatever says that the model is not valid
        return None


def _small(model: onnx.ModelProto) -> bool:
    return model.ByteSize() < 2**30
