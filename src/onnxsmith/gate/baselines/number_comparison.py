"""Runs a model on the recorded inputs, and compares its outputs with the recorded ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.gate.baselines.data_file import Content
from onnxsmith.gate.baselines.entry import Entry, StoredCase, StoredOutput, paired
from onnxsmith.gate.baselines.facts import Facts
from onnxsmith.gate.baselines.stored_values import plain, restored
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.value_comparison import difference, is_float, layout_difference


def number_differences(file: Path, entry: Entry, content: Content, now: Facts) -> Iterator[str]:
    """Yields the outputs that are further from the recorded ones than is allowed, with the largest difference. Inputs
    and outputs are those of the same name; if the names changed, those in the same order.

    Raises:
        OnnxsmithError: the errors of preparing the model.
    """
    renamed = paired(entry.names("inputs"), [one.name for one in now.interface.inputs])
    outputs = paired(entry.names("outputs"), [one.name for one in now.interface.outputs])
    with runtimes.get(entry.runtime).prepare(file, runtimes.patient(Options())) as session:
        for case in entry.cases:
            feeds = {renamed[name]: restored(value, content) for name, value in case.inputs.items() if name in renamed}
            try:
                found = session.run(feeds)
            except OnnxsmithError as error:
                yield f"{case.label}: the model refuses the recorded input: {error.problem.what}"
                continue
            yield from _of_case(case, content, found, outputs)


def _of_case(case: StoredCase, content: Content, found: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    for name, stored in case.outputs.items():
        now = names.get(name, "")
        if now not in found:
            continue  # the change of the interface says so
        reason = _difference(stored, restored(stored.value, content), plain(found[now]))
        if reason:
            yield f"output {now!r}, {case.label}: {reason}"


def _difference(stored: StoredOutput, before: Any, after: Any) -> str:
    if stored.random:
        return layout_difference(before, after).reason
    floor = (stored.tolerance or 0.0) * _largest(before)
    found = difference(before, after, 0.0, floor)
    if not found.reason or not found.worst_abs:
        return found.reason
    largest = _largest(before)
    far = f"{found.worst_abs / largest:.2g} of its largest magnitude" if largest else f"{found.worst_abs:.2g}"
    allowed = f"{stored.tolerance:.2g}" if stored.tolerance is not None else "nothing"
    return f"off by {far}; {allowed} is allowed"


def _largest(value: Any) -> float:
    """Returns the largest finite magnitude of the floats in a value, 0 without any."""
    if isinstance(value, list):
        return max(map(_largest, value), default=0.0)
    if not isinstance(value, np.ndarray) or not is_float(value):
        return 0.0
    wide = np.abs(widen(value))
    return float(np.max(wide, where=np.isfinite(wide), initial=0.0))
