"""What the methods that NNCF computes share."""

from __future__ import annotations

from onnxsmith.base.problem import Problem
from onnxsmith.precision.engines import NNCF
from onnxsmith.precision.forms.base import Form
from onnxsmith.precision.methods.base import Method, Work

_MOST = 64
"""Samples that NNCF runs at most. A choice: each keep-list runs them again, three times; with 256 of them the outputs
of the networks tried were no closer to those in float32."""


class NncfMethod(Method):
    """A method of NNCF, the quantiser of OpenVINO, which is an extra."""

    where = ", outside of branches and loop bodies"
    engine = NNCF

    def refusal(self, form: Form, target: str | None) -> Problem | None:
        return NNCF.missing()


def samples(work: Work) -> list[str]:
    """The files with the samples on which NNCF runs the model; the report says so if there are more."""
    files = work.arithmetic.samples(work.calibration, _MOST)
    if work.ranges is not None and len(files) < work.ranges.samples:
        said = f"NNCF ran the model on the first {len(files)} of {work.ranges.samples} samples for calibration"
        if said not in work.notes:
            work.notes.append(said)
    return files
