"""Asks targets about a model, and compares the stages that they reach with recorded ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxsmith.base.report.parts.baselines import BETTER, CHANGED, UNKNOWN, WORSE
from onnxsmith.base.report.parts.target_checks import Stage, TargetChecks
from onnxsmith.deployment.checking.check import check
from onnxsmith.gate.baselines.change import Change
from onnxsmith.gate.baselines.entry import StoredTarget

_DIFFERS = "ran with other numbers"
"""Stands for the stage of a target whose numbers are others than those of another runtime."""
_STAGES = [*(stage.value for stage in Stage if stage not in (Stage.RAN, Stage.AGREED)), _DIFFERS, Stage.RAN.value]
"""Orders the stages. `agreed` is not more than `ran`: it says whether this machine has a second runtime to compare
with, and a baseline compares the numbers itself."""


def stages(file: Path, targets: Sequence[str], values: Mapping[str, Any]) -> dict[str, StoredTarget]:
    """Returns the stage that each target reaches.

    Raises:
        OnnxsmithError: the errors of `check`.
    """
    if not targets:
        return {}
    part = check(file, targets, inputs=[values] if values else ()).report.part(TargetChecks)
    return {
        one.target: StoredTarget(_DIFFERS if one.differs else one.stage.value, one.shapes, one.version, one.changed)
        for one in part.checks
    }


def target_changes(before: Mapping[str, StoredTarget], now: Mapping[str, StoredTarget]) -> Iterator[Change]:
    """Yields the targets that reach another stage than recorded."""
    for name, old in before.items():
        new = now.get(name)
        if new is None or (new.stage == Stage.NOT_TRIED and old.stage != Stage.NOT_TRIED):
            yield Change("target", UNKNOWN, f"{name} {old.stage} when recorded, but was not tried now")
            continue
        a, b = _rank(old), _rank(new)
        said = f"{name} {_said(old)} when recorded, and now {_said(new)}"
        said += f"; its version was {old.version}, and now is {new.version}" if old.version != new.version else ""
        if {old.stage, new.stage} == {Stage.RAN, Stage.AGREED}:
            said += ": its outputs are compared with another runtime only if another runtime is installed"
        if a != b:
            yield Change("target", WORSE if b < a else BETTER, said)
        elif old.stage != new.stage or (old.shapes != new.shapes and old.shapes == "dynamic"):
            yield Change("target", CHANGED, said)


def _rank(one: StoredTarget) -> tuple[int, bool]:
    """Returns a rank that orders outcomes: the stage of the file as it is, then whether its sizes may stay open."""
    stage = Stage.REFUSED.value if one.changed else one.stage
    stage = Stage.RAN.value if stage == Stage.AGREED else stage
    return (_STAGES.index(stage) if stage in _STAGES else 0, one.shapes == "dynamic")


def _said(one: StoredTarget) -> str:
    stage = f"{one.stage} only {one.changed}" if one.changed else one.stage
    return stage if one.shapes == "dynamic" else f"{stage} ({one.shapes})"
