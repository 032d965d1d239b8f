"""Readers in float32 read the float32 tensor, and kernels for 8 bits stay what they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.precision import ranges
from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.damage import relative_error
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.forms.base import form
from onnxsmith.precision.methods.base import Work
from onnxsmith.precision.methods.int8 import ALONE, Int8
from onnxsmith.precision.model_preparation import prepared
from onnxsmith.precision.quantisation_process import Arithmetic
from onnxsmith.runtimes.base import get

WIDTH = 32


@pytest.fixture
def work() -> Iterator[Work]:
    """A norm whose result a product and a residual Add read, as behind each block of BERT."""
    draw = np.random.default_rng(0)
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[n,{WIDTH}] x, float[{WIDTH}] s, float[{WIDTH},{WIDTH}] w, float[{WIDTH},{WIDTH}] v)
        => (float[n,{WIDTH}] z) {{
            a = LayerNormalization(x, s) b = MatMul(a, w) c = Relu(b) y = MatMul(c, v) r = Add(a, y) z = Softmax(r)
        }}"""
    )
    for value in list(model.graph.inputs[1:]):
        array = draw.standard_normal(tuple(int(dim) for dim in value.shape or ())).astype(np.float32)
        value.const_value = ir.tensor(array, name=value.name)
        model.graph.inputs.remove(value)
        model.graph.initializers[value.name or ""] = value
    ready = prepared(model, opset=13, simplified=False)
    data = Samples(lambda: iter([Sample({"x": draw.standard_normal((4, WIDTH)).astype(np.float32)})]), "test")
    with Arithmetic(ready.model) as arithmetic:
        made = Work(ready, arithmetic, form(None), runtime=get("onnxruntime"), calibration=data)
        made.ranges = ranges.measured(ready.model, get("onnxruntime"), data)
        yield made


def makers(model: ir.Model, op: str) -> list[str]:
    """The operators that make the inputs of the nodes of an operator."""
    nodes = [node for node in model.graph if node.op_type == op]
    found = [value.producer() for node in nodes for value in node.inputs if value is not None]
    return [node.op_type for node in found if node is not None]


def test_a_residual_connection_reads_the_norm(work: Work) -> None:
    work.scheme = ALONE
    made = Int8().variant(work, frozenset())
    assert makers(made, "Add") == ["LayerNormalization", "MatMul"]
    assert set(makers(made, "MatMul")) == {"DequantizeLinear"}


def test_what_a_kernel_of_8_bits_makes_stays_rounded(work: Work) -> None:
    made = Int8().variant(work, frozenset())
    assert makers(made, "Relu") == ["DequantizeLinear"]
    assert makers(made, "Softmax") == ["DequantizeLinear"]  # of an Add in 8 bits


def test_a_kept_layer_reads_the_norm(work: Work) -> None:
    kept = next(node.name or "" for node in work.model.graph if node.op_type == "MatMul")
    made = Int8().variant(work, frozenset({kept}))
    node = next(node for node in made.graph if node.name == kept)
    source = node.inputs[0]
    assert source is not None
    assert source.name == "a"
    x = {"x": np.random.default_rng(5).standard_normal((4, WIDTH)).astype(np.float32)}
    with get("onnxruntime").prepare(work.model) as one, get("onnxruntime").prepare(made) as other:
        assert relative_error(one.run(x)["z"], other.run(x)["z"]) < 0.1


def test_a_branch_sees_what_a_relu_cuts_off() -> None:
    """onnxruntime's quantiser takes the range of a Relu for the tensor that it reads, and does not look into
    branches."""
    draw = np.random.default_rng(0)
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[n,{WIDTH}] x, bool t, float[{WIDTH},{WIDTH}] w) => (float[n,{WIDTH}] z) {{
            a = MatMul(x, w) b = Relu(a) y = MatMul(b, w)
            c = If (t) <then_branch = yes () => (p) {{ p = Neg(a) }}, else_branch = no () => (q) {{ q = Identity(a) }}>
            z = Add(y, c)
        }}"""
    )
    value = model.graph.inputs[2]
    value.const_value = ir.tensor(draw.standard_normal((WIDTH, WIDTH)).astype(np.float32) * 0.2, name="w")
    model.graph.inputs.remove(value)
    model.graph.initializers["w"] = value
    ready = prepared(model, opset=13, simplified=False)
    feeds = [{"x": draw.standard_normal((4, WIDTH)).astype(np.float32), "t": np.array(one)} for one in (True, False)]
    data = Samples(lambda: iter([Sample(one) for one in feeds]), "test")
    with Arithmetic(ready.model) as arithmetic:
        work = Work(ready, arithmetic, form(None), runtime=get("onnxruntime"), calibration=data)
        work.ranges = ranges.measured(ready.model, get("onnxruntime"), data)
        made = Int8().variant(work, frozenset())
        with get("onnxruntime").prepare(model) as one, get("onnxruntime").prepare(made) as other:
            for x in feeds:
                assert relative_error(one.run(x)["z"], other.run(x)["z"]) < 0.05
