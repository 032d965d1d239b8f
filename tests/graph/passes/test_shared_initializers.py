"""Equal initializers become one; what only looks equal does not."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.passes.shared_initializers import SharedInitializers
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.verification.sessions import verify_models

HEAD = '<ir_version: 10, opset_import: ["": 20]>'


def shared(model: ir.Model) -> ir.Model:
    copy = cloned(model)
    SharedInitializers().run(copy)
    assert verify_models(model, copy, Verify(runtime="reference")).equal
    return copy


def two(a: np.ndarray, b: np.ndarray) -> ir.Model:
    """A model that gives out two initializers, through casts to float, each by a node of its own."""
    model = from_text(
        f"{HEAD} g (float[N] x) => (float[N] y, float[A] p, float[B] q) <float u = {{1}}, float w = {{2}}>"
        "{ y = Neg(x)\n p = Cast<to = 1>(u)\n q = Cast<to = 1>(w) }"
    )
    for name, array in (("u", a), ("w", b)):
        value = model.graph.initializers[name]
        value.const_value = ir.tensor(array, name=name)
        value.type, value.shape = ir.TensorType(value.const_value.dtype), ir.Shape(array.shape)
    return model


def count(a: np.ndarray, b: np.ndarray) -> int:
    return len(shared(two(a, b)).graph.initializers)


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_equal_ones_become_one(size: int, dtype: type) -> None:
    assert count(np.ones(size, dtype), np.ones(size, dtype)) == 1


@pytest.mark.parametrize("size", [1, 1000])
def test_negative_zero_is_not_zero(size: int) -> None:
    assert count(np.zeros(size, np.float32), -np.zeros(size, np.float32)) == 2


def test_an_initializer_like_a_constant_output_becomes_it() -> None:
    model = from_text(
        f"{HEAD} g (float[1] x) => (float[N] y, int64[1] p) <int64[1] w = {{3}}>"
        "{ y = Expand(x, w)\n p = Constant<value = int64[1] {3}>() }"
    )
    made = shared(model)
    assert not made.graph.initializers
    assert [node.op_type for node in made.graph] == ["Constant", "Expand"]


def test_nans_are_compared_by_bits() -> None:
    one, other = (np.array([bits], np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FC00001))
    assert count(one, one.copy()) == 1
    assert count(one, other) == 2


def test_the_same_bytes_of_another_dtype_or_shape_stay() -> None:
    zeros = np.zeros(2, np.int64)
    assert count(zeros, zeros.view(np.int32)) == 2
    assert count(zeros, np.zeros(2, np.uint64)) == 2
    assert count(zeros, zeros.reshape(1, 2)) == 2


def test_ports_keep_their_own() -> None:
    model = from_text(
        f"{HEAD} g (float[N] x, float d) => (float[N] y, float o)"
        "<float d = {1}, float o = {1}, float e = {1}, float f = {1}>"
        "{ a = Add(x, d)\n b = Add(a, e)\n c = Add(b, o)\n y = Add(c, f) }"
    )
    assert set(shared(model).graph.initializers) == {"d", "o", "e"}


def test_readers_in_branches_follow() -> None:
    model = from_text(
        f"""{HEAD} g (float[N] x, bool c) => (float[N] y) <float u = {{3}}, float w = {{3}}> {{
            a = Add(x, u)
            y = If(c) <then_branch = t () => (float[M] p) <float k = {{3}}> {{ o = Mul(a, w)\n p = Add(o, k) }},
                       else_branch = e () => (float[M] q) {{ q = Sub(a, w) }}>
        }}"""
    )
    copy = shared(model)
    assert set(copy.graph.initializers) == {"u"}
    assert "w" in model.graph.initializers


def test_external_tensors_are_compared(tmp_path: object) -> None:
    from pathlib import Path

    from onnxsmith.graph.files.load import load

    path = Path(str(tmp_path)) / "m.onnx"
    save(two(np.arange(5000, dtype=np.float32), np.arange(5000, dtype=np.float32)), path, external_data=True)
    assert len(shared(load(path)).graph.initializers) == 1
