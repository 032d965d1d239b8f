"""The newest opset and IR version that a target reads, and whether it takes local functions, found by asking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.versions import newest
from onnxsmith.targets.judges.base import Judge

TEXT = '<ir_version: {ir}, opset_import: ["": {opset}, "own": 1]> g (float[2] x) => (float[2] y) {{ y = {op}(x) }}'
CALL = ' <opset_import: ["": {opset}], domain: "own"> twice (a) => (b) {{ b = Add(a, a) }}'


@dataclass(frozen=True)
class Limits:
    """`opset` and `ir_version` of the newest model of one Relu that is taken, and whether one with a local function
    is."""

    opset: int | None
    ir_version: int | None
    functions: bool


def limits(judge: Judge) -> Limits:
    """Asks for the limits."""

    def takes(text: str) -> bool:
        try:
            return judge.ask(from_text(text), {"x": np.ones(2, np.float32)}).refusal is None
        except OnnxsmithError:
            return False

    known = newest()
    opset = next((n for n in range(known.opset, 6, -1) if takes(TEXT.format(ir=8, opset=n, op="Relu"))), None)
    ir = next((n for n in range(known.ir, 3, -1) if takes(TEXT.format(ir=n, opset=17, op="Relu"))), None)
    call = TEXT.format(ir=8, opset=17, op="own.twice") + CALL.format(opset=17)
    return Limits(opset, ir, takes(call))
