"""Throughput against batch and threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.base import Plot
from onnxsmith.base.report.parts.measurements import Measurement, Throughput
from onnxsmith.deployment.benching.bench_options import counts, share
from tests.conftest import Refused
from tests.deployment.benching import models
from tests.deployment.benching.models import HEAD, saved

SHORT = 0.01
TWO_DIMS = HEAD + "g (float[n,t] x) => (float[n,t] y) { y = Exp(x) }"


def test_batches_and_threads_make_a_grid(tmp_path: Path) -> None:
    result = onnxsmith.bench(saved(tmp_path, models.CHAIN), batches=[1, 8], threads=[1, 2], seconds=SHORT)
    assert result.ok, result.report.problems
    part = result.report.part(Throughput)
    assert part.dimension == "n"
    assert [(one.threads, one.batch) for one in part.points] == [(1, 1), (1, 8), (2, 1), (2, 8)]
    assert all(one.least <= one.seconds <= one.greatest for one in part.points)
    assert part.points[0].throughput == pytest.approx(1 / part.points[0].seconds)
    assert len([block for block in part.blocks() if isinstance(block, Plot)]) == 2
    assert result.report.part(Measurement).sizes == {"n": 1}  # the first batch is the one of the latencies


def test_the_dimension_may_be_named(tmp_path: Path, refused: Refused) -> None:
    path = saved(tmp_path, TWO_DIMS)
    part = onnxsmith.bench(path, batches=[2, 4], batch_name="t", sizes={"n": 3}, seconds=SHORT).report.part(Throughput)
    assert part.dimension == "t"
    with refused("bench/no-batch") as refusal:
        onnxsmith.bench(path, batches=[2], batch_name="z", sizes={"n": 3, "t": 2})
    assert "--batch n=1,4" in refusal.problem.fix


def test_a_fixed_batch_is_said(tmp_path: Path, refused: Refused) -> None:
    with refused("bench/no-batch") as refusal:
        onnxsmith.bench(saved(tmp_path, models.FIXED), batches=[1, 4])
    path = tmp_path / "m.onnx"
    assert f"`onnxsmith set-dim {path} x:0=batch -o dynamic.onnx`" in refusal.problem.fix


def test_given_inputs_have_one_batch(tmp_path: Path, refused: Refused) -> None:
    with refused("bench/no-batch"):
        onnxsmith.bench(
            saved(tmp_path, models.CHAIN), batches=[1, 4], inputs={"x": np.ones((1, 8), np.float32)}, seconds=SHORT
        )


def test_a_runtime_without_threads_is_left_out_and_named(tmp_path: Path) -> None:
    path = saved(tmp_path, models.CHAIN)
    result = onnxsmith.bench(path, subjects=["onnxruntime", "reference"], threads=[1], sizes={"n": 2}, seconds=SHORT)
    assert [one.subject for one in result.report.part(Throughput).points] == ["m.onnx on onnxruntime"]
    assert result.ok
    assert "reference accepts no number of threads" in result.report.notes[0]
    alone = onnxsmith.bench(path, subjects=["reference"], threads=[1], sizes={"n": 2}, seconds=SHORT).report
    assert [one.id for one in alone.problems] == ["bench/no-threads"]


def test_numbers_of_the_command_line(refused: Refused) -> None:
    assert counts("1, 4,16", "") == (1, 4, 16)
    assert counts("", "") == ()
    assert (share("5%", ""), share("0.2", "")) == (0.05, 0.2)
    for text in ("0", "a", "1;2"):
        with refused("input/syntax"):
            counts(text, "--batch 1,4")
    for text in ("a", "-1%", "inf", "nan"):
        with refused("input/syntax"):
            share(text, "--allow 5%")
