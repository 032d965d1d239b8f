"""The test cases that the onnx package ships, on tract, IREE and onnxruntime-web: each gives what is expected, or is
refused with a Problem. Where the runtime itself gives other numbers, `backend_wrong.txt` names the case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.load import load
from onnxsmith.runtimes.base import Options, Preparer, Runtime, get
from tests.suites.backend_data import Case, cases

RUNTIMES = rooms.members("onnxsmith.runtimes", Runtime)
WRONG = {
    tuple(line.split())
    for line in (Path(__file__).parent / "backend_wrong.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}
"""Pairs of a runtime and a case."""
BROKEN = ("runtime/died", "runtime/timeout")
"""Ends of a child that no refusal is; a case that `backend_wrong.txt` names may end so."""
AGREED = 0.4
"""Share of the cases that have to agree, so that a runtime that refuses all does not pass. A choice, below both: 0.55
and more."""
HALF = 1e-2
"""Tolerance of float16: some ten units in its last place."""


def same(found: Any, wanted: Any, case: Case) -> bool:
    if not isinstance(found, np.ndarray) or not isinstance(wanted, np.ndarray):
        return False
    if (found.dtype.kind, found.shape) != (wanted.dtype.kind, wanted.shape) and wanted.dtype.kind not in "OUS":
        return False
    if wanted.dtype.kind in "OUS":
        return bool(found.astype(str).tolist() == wanted.astype(str).tolist())
    if wanted.dtype.kind in "biu":
        return found.dtype == wanted.dtype and bool(np.array_equal(found, wanted))
    least = HALF if wanted.dtype.itemsize < 4 else 0.0
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    return bool(
        np.allclose(found, wanted, rtol=max(case.rtol, least), atol=max(case.atol, 1e-5, least), equal_nan=True)
    )


def outcome(preparer: Preparer, case: Case, folder: Path) -> str:
    path = folder / "model.onnx"
    path.write_bytes(case.model.SerializeToString())
    given = {value.name for value in case.model.graph.initializer}
    names = [value.name for value in case.model.graph.input if value.name not in given]
    feeds = {name: value for name, value in zip(names, case.feeds, strict=False) if value is not None}
    try:
        with np.errstate(all="ignore"):
            found = preparer.prepare(load(path), Options(time_limit=60)).run(feeds)
    except OnnxsmithError as error:
        return error.problem.id if error.problem.id in BROKEN else "refused"
    outputs = [found[value.name] for value in case.model.graph.output]
    return "agreed" if all(same(*pair, case) for pair in zip(outputs, case.expected, strict=True)) else "wrong"


@pytest.mark.whole
@pytest.mark.parametrize("name", ["tract", "iree", "web"])
def test_each_case_agrees_or_is_refused(name: str, tmp_path: Path) -> None:
    if (absent := RUNTIMES[name].missing()) is not None:
        pytest.skip(absent.what)
    nodes = [case for case in cases() if case.name.startswith("node/")]
    with get(name).preparer() as preparer:
        outcomes = {case.name: outcome(preparer, case, tmp_path) for case in nodes}
    wrong = {case for case, how in outcomes.items() if how == "wrong" or how in BROKEN}
    assert sorted(wrong) == sorted(case for runtime, case in WRONG if runtime == name)
    assert list(outcomes.values()).count("agreed") > AGREED * len(nodes)


def test_a_wrong_answer_is_seen() -> None:
    value = np.array([1, 2], np.float32)
    case = Case("", ir.to_proto(ir.Model(ir.Graph([], [], nodes=[]), ir_version=10)), [], [], 1e-3, 1e-7)
    assert same(value, value.copy(), case)
    for other in (value * 1.1, value[:1], value.astype(np.int32), None, np.array([1, np.nan], np.float32)):
        assert not same(other, value, case)
