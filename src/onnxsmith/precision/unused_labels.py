"""Says that the data has labels which no metric reads, and which metric would."""

from __future__ import annotations

import numpy as np

from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.scores.base import is_whole
from onnxsmith.precision.scores.predictions import Top1
from onnxsmith.runtimes.base import Session


def unused_labels(samples: Samples, session: Session) -> tuple[str, ...]:
    """A note if the first sample has a label. `session` is the given model, whose outputs say which metric fits."""
    sample = next(iter(samples), None)
    if sample is None or sample.label is None:
        return ()
    label = np.asarray(sample.label)
    metric, when = "", ""
    if label.dtype.kind in "OUS" and label.ndim == 0:
        metric, when = "cer", " as texts"
    elif label.size == 1 and is_whole(label):
        top1, outputs = Top1(), sample.run(session)
        prediction = np.asarray(top1.predicted(outputs))
        is_one = prediction.size == 1 and not top1.unfit(prediction, sample.label, outputs)
        metric, when = ("top1", " as classes") if is_one else ("", "")
    told = f"--metric {metric} uses them{when}" if metric else "a --metric that fits the labels uses them"
    return (f"the data has labels, which are not used: the score compares with the given model; {told}",)
