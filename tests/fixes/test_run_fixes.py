"""Fixes of problems of running, of inputs, of simplification and of verification."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith import run
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.verification.inputs import user_inputs
from onnxsmith.verification.inputs.shapes import shape_of
from tests.fixes.harness import Call, Case, helps, parameters

RELU = """
<ir_version: 10, opset_import: ["": 20]>
g (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }
"""
FIXED = """
<ir_version: 10, opset_import: ["": 20]>
g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }
"""
SUM = """
<ir_version: 10, opset_import: ["": 20]>
g (float[n,3] a, float[n,3] b) => (float[n,3] y) { y = Add(a, b) }
"""
TWO = """
<ir_version: 10, opset_import: ["": 20]>
g (float[n,3] x) => (float[n,3] y, float[n,3] z) { y = Relu(x) z = Sigmoid(x) }
"""
NO_RANK = """
<ir_version: 10, opset_import: ["": 20]>
g (float x) => (float y) { y = Relu(x) }
"""
NO_SIZE = """
<ir_version: 10, opset_import: ["": 20]>
g (float[?,3] x) => (float[?,3] y) { y = Relu(x) }
"""
RANDOM = """
<ir_version: 3, opset_import: ["": 8]>
g (float[n,3] x) => (float[n,3] y) { r = RandomNormalLike(x) y = Add(x, r) }
"""
ONE = """
<ir_version: 10, opset_import: ["": 20]>
g (float[n,3] x) => (float[n,3] y) { y = Relu(x) }
"""
DARK = """
<ir_version: 8, opset_import: ["": 17]>
g (float[batch,3] x) => (float[batch,2] y) <float k = {100}, float o = {0}, float[3,2] w = {1, 2, -1, 3, 1, 1}> {
    t = Sub(x, k) r = Relu(t) y = MatMul(r, w)
}
"""
"""Answers on inputs near 100, which generated inputs are not."""
BY_DATA = """
<ir_version: 10, opset_import: ["": 20]>
g (float[2,3] x, float[2] s) => (float[m,k] y) <float[2] k = {1000, -1000}> {
    t = Add(s, k) i = Cast<to = 7>(t) y = Reshape(x, i)
}
"""
SEQUENCE = """
<ir_version: 10, opset_import: ["": 20]>
g (seq(float[n]) xs) => (float[m] y) { y = ConcatFromSequence<axis = 0>(xs) }
"""
ONES = np.ones((2, 3), np.float32)

CASES = [
    Call(
        "feeds/unknown-rank",
        lambda: shape_of(Port("x", "float", None), {}),
        lambda: user_inputs.values(["x=float32[1,3,224,224]"], Signature((Port("x", "float", None),), ())),
        says=["x=float32[1,3,224,224]"],
    ),
    Call(
        "feeds/unknown-size",
        lambda: shape_of(Port("x", "float", ("?", 3)), {}),
        lambda: user_inputs.values(["x=float32[2,3]"], Signature((Port("x", "float", ("?", 3)),), ())),
        says=["--input 'x=float32[2,3]'"],
    ),
    Case(
        "run/dimension-conflict",
        "onnxsmith run m.onnx --input in.npz",
        {"m.onnx": SUM, "in.npz": {"a": ONES, "b": np.ones((4, 3), np.float32)}},
        changes={"in.npz": {"a": ONES, "b": ONES}},
        says=["size"],
    ),
    Call(
        "run/not-an-array",
        lambda: run(_model(RELU), {"x": [[1.0, 2.0, 3.0]]}),
        lambda: run(_model(RELU), {"x": np.asarray([[1.0, 2.0, 3.0]], dtype="float32")}),
        says=["numpy.asarray(value, dtype='float32')"],
        name="a list",
    ),
    Call(
        "run/not-an-array",
        lambda: run(_model(SEQUENCE), {"xs": ONES[0]}),
        lambda: run(_model(SEQUENCE), {"xs": [ONES[0]]}),
        says=["pass a list of numpy arrays"],
        name="an array for a sequence",
    ),
    Case(
        "run/unknown-input",
        "onnxsmith run m.onnx --input in.npz",
        {"m.onnx": RELU, "in.npz": {"input": ONES}},
        changes={"in.npz": {"x": ONES}},
        says=["its inputs are: x float[batch,3]"],
    ),
    Case(
        "run/unknown-input",
        "onnxsmith run m.onnx --input input=float32[2,3]",
        {"m.onnx": RELU},
        by_hand="onnxsmith run m.onnx --input x=float32[2,3]",
        says=["x float[batch,3]"],
        name="a specification",
    ),
    Case(
        "run/wrong-dtype",
        "onnxsmith run m.onnx --input in.npz",
        {"m.onnx": RELU, "in.npz": {"x": np.ones((2, 3))}},
        changes={"in.npz": {"x": np.ones((2, 3)).astype("float32")}},
        says=["array.astype('float32')"],
    ),
    Case(
        "run/wrong-shape",
        "onnxsmith run m.onnx --input in.npz",
        {"m.onnx": RELU, "in.npz": {"x": ONES[0]}},
        changes={"in.npz": {"x": ONES[0][None]}},
        says=["array[None]"],
    ),
    Case("simplify/no-output", "onnxsmith simplify m.onnx", {"m.onnx": RELU}),
    Case(
        "simplify/all-outputs",
        "onnxsmith simplify m.onnx -o s.onnx --drop-output y --drop-output z",
        {"m.onnx": TWO},
        by_hand="onnxsmith simplify m.onnx -o s.onnx --keep-output y",
        says=["--keep-output y alone, without --drop-output"],
    ),
    Case("simplify/contrib", "onnxsmith simplify m.onnx -o s.onnx --contrib", {"m.onnx": RELU}),
    Case(
        "simplify/max-growth",
        "onnxsmith simplify m.onnx -o s.onnx --max-growth -1",
        {"m.onnx": RELU},
        by_hand="onnxsmith simplify m.onnx -o s.onnx --max-growth 0.5",
        says=["0.5"],
    ),
    Case(
        "simplify/no-such-port",
        "onnxsmith simplify m.onnx -o s.onnx --drop-output out",
        {"m.onnx": TWO},
        by_hand="onnxsmith simplify m.onnx -o s.onnx --drop-output y",
        says=["'y'"],
    ),
    Case(
        "simplify/no-such-port",
        "onnxsmith simplify m.onnx -o s.onnx --set-dim x:0=4",
        {"m.onnx": FIXED},
        by_hand="onnxsmith simplify m.onnx -o s.onnx",
        says=["remove this option, or make the axis dynamic first"],
        name="a fixed size",
    ),
    Case(
        "simplify/no-such-port",
        "onnxsmith simplify m.onnx -o s.onnx --set-dim batch",
        {"m.onnx": RELU},
        by_hand="onnxsmith simplify m.onnx -o s.onnx --set-dim batch=1",
        says=["batch=1"],
        name="no size",
    ),
    Case(
        "simplify/no-such-port",
        "onnxsmith simplify m.onnx -o s.onnx --set-dim x:2=1",
        {"m.onnx": RELU},
        by_hand="onnxsmith simplify m.onnx -o s.onnx --set-dim x:0=1",
        says=["x:0=1"],
        name="no such axis",
    ),
    Case(
        "simplify/unknown-exactness",
        "onnxsmith simplify m.onnx -o s.onnx --exactness exact",
        {"m.onnx": RELU},
        by_hand="onnxsmith simplify m.onnx -o s.onnx --exactness bitwise",
        says=["one of: bitwise"],
    ),
    Case(
        "simplify/unknown-node",
        "onnxsmith simplify m.onnx -o s.onnx --why fuse/batchnorm-conv@relu",
        {"m.onnx": RELU},
        by_hand="onnxsmith simplify m.onnx -o s.onnx --why fuse/batchnorm-conv@y",
        says=["fuse/batchnorm-conv@y"],
    ),
    Case(
        "simplify/unknown-rule",
        "onnxsmith simplify m.onnx -o s.onnx --only fuse/batchnorm",
        {"m.onnx": RELU},
        by_hand="onnxsmith simplify m.onnx -o s.onnx --only fuse/batchnorm-conv",
        says=["write fuse/batchnorm-conv"],
    ),
    Case("verify/tolerance", "onnxsmith compare m.onnx m.onnx --tolerance -1", {"m.onnx": RELU}),
    Case(
        "verify/nondeterministic",
        "onnxsmith simplify m.onnx -o s.onnx",
        {"m.onnx": RANDOM},
        by_hand="onnxsmith opset m.onnx 13 -o newer.onnx --no-verify",
        says=["`onnxsmith opset m.onnx 13 -o newer.onnx --no-verify`"],
    ),
    Case(
        "verify/nondeterministic", "onnxsmith simplify m.onnx -o s.onnx", {"m.onnx": RANDOM}, nth=2, name="unverified"
    ),
    Case(
        "verify/outputs-differ",
        "onnxsmith compare a.onnx b.onnx",
        {"a.onnx": TWO, "b.onnx": ONE},
        by_hand="onnxsmith simplify a.onnx --drop-output z -o part.onnx",
        says=["`onnxsmith simplify a.onnx --drop-output z -o part.onnx`"],
    ),
    Case(
        "verify/interface",
        "onnxsmith compare a.onnx b.onnx",
        {"a.onnx": RELU, "b.onnx": SUM},
        by_hand="onnxsmith inspect b.onnx",
        says=["`onnxsmith inspect b.onnx`"],
    ),
    Case(
        "verify/cannot-tell",
        "onnxsmith compare m.onnx n.onnx",
        {"m.onnx": DARK, "n.onnx": DARK.replace("Relu(t)", "Max(t, o)")},
        by_hand="onnxsmith compare m.onnx n.onnx --input inputs.npz",
        changes={"inputs.npz": {"x": np.random.default_rng(0).normal(100, 1, (8, 3)).astype(np.float32)}},
        says=["--input inputs.npz"],
    ),
    Case(
        "verify/no-valid-input",
        "onnxsmith simplify m.onnx -o s.onnx",
        {"m.onnx": BY_DATA},
        by_hand="onnxsmith simplify m.onnx -o s.onnx --input inputs.npz",
        changes={"inputs.npz": {"x": np.ones((2, 3), np.float32), "s": np.array([-997, 1002], np.float32)}},
        says=["numpy.savez('inputs.npz'", "--input inputs.npz"],
    ),
]


def _model(text: str) -> ir.Model:
    return from_text(text)


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
