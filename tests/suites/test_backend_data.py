"""The onnx package's own test cases, before and after: simplified, each still gives what it is expected to give.

Each case is run as it is, with all but its first input turned into initializers, and with all of them turned, so that
it folds. `make test` takes a sample, `make test-all` every case.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from onnxsmith.graph.shapes.inference import Inference
from tests.suites.backend_data import VARIANTS, Case, cases, variant
from tests.suites.judging import judged
from tests.suites.shapes import lies

SHARDS = 16
SAMPLE = 15
"""Of how many cases a sample takes one."""
UNJUDGED = Path(__file__).parent / "backend_unjudged.txt"
"""Cases for which neither runtime gives what is expected, before anything was done, and why. Simplified, they have to
do what they did."""
BROKEN = re.compile("affine_grid_.*_expanded")
"""These give Range limits of rank 1, which the specification forbids. onnxruntime takes that as long as it cannot see
the rank, and sees it when the branches are gone."""
BREACH = "Input to 'Range' op should be scalars"


def chosen(shard: int, whole: bool) -> list[Case]:
    """A shard of all cases, or of the sample."""
    return list(cases()[:: 1 if whole else SAMPLE][shard::SHARDS])


def reasons() -> dict[str, str]:
    lines = (line for line in UNJUDGED.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split(": ", 1) for line in lines)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_expected_outputs(shard: int, whole: bool, tmp_path: Path) -> None:
    known = reasons()
    faults, further = [], []
    for case in chosen(shard, whole):
        for name in VARIANTS:
            verdict = judged(case, name, tmp_path)
            if verdict is None:
                continue
            broken = BROKEN.search(case.name) is not None
            faults += [f"{verdict.name}: {fault}" for fault in verdict.faults if not (broken and BREACH in fault)]
            if not verdict.judge and case.name not in known:
                further.append(f"{verdict.name}: {verdict.doubts}")
    assert not faults, "\n".join(faults)
    assert not further, "no runtime gives what is expected of these, and they are not listed:\n" + "\n".join(further)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_inferred_shapes(shard: int, whole: bool) -> None:
    """What is known of an output's dtype, shape and elements before it runs is what the case expects of it, with the
    sizes of the inputs as they are and as names."""
    faults = []
    for case in chosen(shard, whole):
        for named in (True, False):
            model, sizes = undeclared(case, VARIANTS[1] if named else VARIANTS[0], named=named)
            shaped = ir.from_proto(model)
            faults += [f"{case.name}: {note}" for note in Inference(shaped).notes]
            for value, expected in zip(shaped.graph.outputs, case.expected, strict=True):
                if isinstance(expected, np.ndarray):
                    faults += [f"{case.name}, {value.name}: {fault}" for fault in lies(value, expected, sizes)]
    assert not faults, "\n".join(faults)


def undeclared(case: Case, name: str, *, named: bool) -> tuple[onnx.ModelProto, dict[str, int]]:
    """The model without the shapes of what it computes, and the sizes behind the names of its inputs' dimensions."""
    made = variant(case, name)
    model, feeds = made if made is not None else (onnx.ModelProto.FromString(case.model.SerializeToString()), {})
    feeds = feeds or dict(zip((value.name for value in model.graph.input), case.feeds, strict=False))
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    sizes: dict[str, int] = {}
    for number, value in enumerate(model.graph.input):
        if named and value.type.HasField("tensor_type") and isinstance(feeds.get(value.name), np.ndarray):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                dim.dim_param = f"s{number}_{axis}"
                sizes[dim.dim_param] = feeds[value.name].shape[axis]
    return model, sizes
