"""Compare models with their recorded outputs, costs and targets: the actions of `onnxsmith baseline`, from Python.

    from onnxsmith import baseline

    baseline.record(["detector.onnx", "classifier.onnx"])
    assert baseline.check().ok

Each function takes a model file or several, and the file of the baseline, whose data file is beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnxsmith.base.spelling import in_python

if TYPE_CHECKING:
    from onnxsmith.base.report.base import Report
    from onnxsmith.base.result import Result
    from onnxsmith.graph.structure.dim_ranges import Sizes
    from onnxsmith.verification.inputs.user_inputs import Inputs

__all__ = ["accept", "check", "drop", "record"]

Models = str | Path | Sequence[str | Path]


@in_python
def record(
    models: Models,
    file: str | Path = "baseline.json",
    *,
    inputs: Inputs = (),
    sizes: Sizes | None = None,
    targets: Sequence[str] = (),
    runtime: str | None = None,
    tolerance: float | None = None,
    times: bool = True,
    seconds: float = 2.0,
    seed: int = 0,
) -> Result:
    """Writes what models give and cost to a baseline: inputs, outputs, interface, nodes, sizes, times, targets.

    An unchanged model keeps its entry; a changed one is refused, and `accept` takes it. Of several models, those that
    can be recorded are recorded, and the verdict is `failed` if one of them cannot be. `inputs` are those of `compare`;
    without any, inputs are generated, with symbolic dimensions at `sizes` (`{"batch": 4}`). `tolerance` is the largest
    difference that `check` will allow, relative to the largest magnitude of an output; by default it is estimated from
    rounding. Without `times`, neither times nor memory are measured; otherwise a model is measured for about `seconds`.

    Raises:
        OnnxsmithError: `gate/no-model`; the errors of reading and writing the baseline; if there is only one model, its
            problem.
    """
    from onnxsmith.gate.baselines import verbs
    from onnxsmith.gate.baselines.settings import Settings

    settings = Settings(
        inputs=inputs, sizes=sizes, targets=targets, runtime=runtime, tolerance=tolerance,
        times=times, seconds=seconds, seed=seed,
    )  # fmt: skip
    return _result(verbs.record(_several(models), file, settings), file)


@in_python
def check(
    models: Models = (),
    file: str | Path = "baseline.json",
    *,
    times: bool = True,
    seconds: float = 2.0,
    allow: float = 0.05,
    allow_size: float | None = None,
) -> Result:
    """Measures recorded models again on the recorded inputs, and names the cause of each change.

    Without `models`, all recorded models are measured. The verdict is `different` if a model is worse than recorded,
    `cannot-tell` if that cannot be told, and `failed` if a model cannot be measured. `allow` and `allow_size` are the
    shares by which a time and a file may grow; by default a file may grow by 5%, or by 1 KiB if that is more.

    Raises:
        OnnxsmithError: `gate/not-in-baseline` if none of the models is recorded, nor a file; the errors of
            reading the baseline.
    """
    from onnxsmith.gate.baselines import verbs
    from onnxsmith.gate.baselines.settings import Settings

    settings = Settings(times=times, seconds=seconds, allow=allow, allow_size=allow_size)
    return _result(verbs.check(_several(models), file, settings), file)


@in_python
def accept(
    models: Models,
    file: str | Path = "baseline.json",
    *,
    reason: str,
    inputs: Inputs = (),
    sizes: Sizes | None = None,
    targets: Sequence[str] = (),
    runtime: str | None = None,
    tolerance: float | None = None,
    times: bool = True,
    seconds: float = 2.0,
    seed: int = 0,
) -> Result:
    """Records changed models anew, with a reason that stays in the baseline.

    The recorded inputs stay, if a model still takes them. Settings that are not given are those of the entry; the
    others are those of `record`.

    Raises:
        OnnxsmithError: `gate/no-model`, `gate/no-reason`; the errors of reading and writing the baseline; if there is
            only one model, its problem: `gate/nothing-changed`, `gate/not-in-baseline` and others.
    """
    from onnxsmith.gate.baselines import verbs
    from onnxsmith.gate.baselines.settings import Settings

    settings = Settings(
        inputs=inputs, sizes=sizes, targets=targets, runtime=runtime, tolerance=tolerance,
        times=times, seconds=seconds, seed=seed,
    )  # fmt: skip
    return _result(verbs.accept(_several(models), file, reason, settings), file)


@in_python
def drop(models: Models, file: str | Path = "baseline.json", *, reason: str) -> Result:
    """Removes models from a baseline, with a reason that stays in it. The model files are not needed.

    Raises:
        OnnxsmithError: `gate/no-model`, `gate/no-reason`, `gate/not-in-baseline`; the errors of reading and writing the
            baseline.
    """
    from onnxsmith.gate.baselines import verbs

    return _result(verbs.drop(_several(models), file, reason), file)


def _several(models: Models) -> list[str | Path]:
    return [models] if isinstance(models, str | Path) else list(models)


def _result(report: Report, file: str | Path) -> Result:
    from onnxsmith.base.result import Result

    return Result(report, path=Path(file))
