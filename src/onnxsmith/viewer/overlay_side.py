"""Chooses which of two models a part of a report is laid over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from onnxsmith.base.report.base import Report
from onnxsmith.viewer.model_scene import Viewed
from onnxsmith.viewer.overlays.base import Overlaying
from onnxsmith.viewer.report_origin import Origin


def side(
    report: Report, part: Any, how: Overlaying, models: Sequence[Viewed], hits: Sequence[int], origins: Sequence[Origin]
) -> int:
    """Returns the index of the model. `hits` are how many of the part's names each model has.

    The hashes come first, then the file that the part says it is about, then the number of names. If all are equal, as
    for a comparison of two models with the same names, the kind of part decides.
    """
    subject = how.subject(part)

    def fit(at: int) -> tuple[bool, bool, int, int]:
        known = hits[at] > 0
        own = known and origins[at] is Origin.SAME
        return own, known and _about(subject, report, models[at]), hits[at], at if how.newer else -at

    return max(range(len(models)), key=fit)


def _about(subject: str, report: Report, model: Viewed) -> bool:
    files = [one for one in report.models if _is_called(subject, one.path)]
    if files and model.file is not None:
        return any(one.same_graph(model.file) for one in files)
    return _is_called(subject, model.scene.path)


def _is_called(subject: str, path: str) -> bool:
    """Whether a text such as `new.onnx on onnxruntime` names the file, whatever its folder."""
    name = PurePath(path).name
    given = PurePath(subject).name
    return bool(name) and given.startswith(name) and given[len(name) :][:1] in ("", " ", "@")
