"""Runs a model on the recorded inputs, and compares its outputs with the recorded ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
from onnxsmith.verification.value_comparison import Difference, difference, is_float, layout_difference


@dataclass
class Numbers:
    """Holds the outputs that are further from the recorded ones than is allowed, with the largest difference, and
    whether all outputs are equal to the bit."""

    wrong: list[str] = field(default_factory=list)
    exact: bool = True


def compared_numbers(file: Path, entry: Entry, content: Content, now: Facts) -> Numbers:
    """Compares the outputs on the recorded inputs. Inputs and outputs are those of the same name; if the names changed,
    those in the same order.

    Raises:
        OnnxsmithError: the errors of preparing the model.
    """
    renamed = paired(entry.names("inputs"), [one.name for one in now.interface.inputs])
    made = Numbers()
    outputs = paired(entry.names("outputs"), [one.name for one in now.interface.outputs])
    with runtimes.get(entry.runtime).prepare(file, runtimes.patient(Options())) as session:
        for case in entry.cases:
            feeds = {renamed[name]: restored(value, content) for name, value in case.inputs.items() if name in renamed}
            try:
                found = session.run(feeds)
            except OnnxsmithError as error:
                made.wrong.append(f"{case.label}: the model refuses the recorded input: {error.problem.what}")
                continue
            _add_case(made, case, content, found, outputs)
    return made


def _add_case(
    made: Numbers, case: StoredCase, content: Content, found: Mapping[str, Any], names: Mapping[str, str]
) -> None:
    for name, stored in case.outputs.items():
        now = names.get(name, "")
        if now not in found:
            continue  # the change of the interface says so
        before, after = restored(stored.value, content), plain(found[now])
        apart = layout_difference(before, after) if stored.random else _difference(stored, before, after)
        made.exact = made.exact and (stored.random or apart.is_exact)
        if apart.reason:
            made.wrong.append(f"output {now!r}, {case.label}: {_said(stored, before, apart)}")


def _difference(stored: StoredOutput, before: Any, after: Any) -> Difference:
    return difference(before, after, 0.0, (stored.tolerance or 0.0) * _largest(before))


def _said(stored: StoredOutput, before: Any, found: Difference) -> str:
    if stored.random or not found.worst_abs:
        return found.reason
    largest = _largest(before)
    far = f"{found.worst_abs / largest:.2g} of its largest magnitude" if largest else f"{found.worst_abs:.2g}"
    allowed = f"{stored.tolerance:.2g}" if stored.tolerance is not None else "nothing"
    return f"differs by {far}; {allowed} is allowed"


def _largest(value: Any) -> float:
    """Returns the largest finite magnitude of the floats in a value, 0 without any."""
    if isinstance(value, list):
        return max(map(_largest, value), default=0.0)
    if not isinstance(value, np.ndarray) or not is_float(value):
        return 0.0
    wide = np.abs(widen(value))
    return float(np.max(wide, where=np.isfinite(wide), initial=0.0))
