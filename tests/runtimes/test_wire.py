"""Values cross to another process and back unchanged."""

from __future__ import annotations

import io

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxsmith.runtimes import _wire
from onnxsmith.runtimes.base import Value


def crossed(value: Value) -> Value:
    stream = io.BytesIO()
    _wire.send(stream, _wire.encode({"do": "run"}, {"x": value}))
    stream.seek(0)
    head, values = _wire.receive(stream)
    assert head == {"do": "run"}
    assert stream.read() == b""
    return values["x"]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
        np.arange(10)[::-2],
        np.zeros((2, 0, 3)),
        np.array(1.5),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array([1, 2], ml_dtypes.bfloat16),
        np.array(1, ml_dtypes.bfloat16),
        np.array([1, 2], ml_dtypes.float8_e4m3fn),
        np.array([1, -2], ml_dtypes.int4),
        np.array([0.5], ml_dtypes.float4_e2m1fn),
        np.array([np.nan, np.inf]),
    ],
    ids=lambda a: f"{a.dtype}{a.shape}",
)
def test_arrays_cross_to_the_bit(array: np.ndarray) -> None:
    found = crossed(array)
    assert isinstance(found, np.ndarray)
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_an_array_that_crossed_can_be_written_to() -> None:
    found = crossed(np.zeros(3))
    assert isinstance(found, np.ndarray)
    found[:] = 1


@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_texts_cross(texts: list[str]) -> None:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    found = crossed(array)
    assert isinstance(found, np.ndarray)
    assert (found.dtype, found.tolist()) == (object, texts)


@pytest.mark.parametrize(
    "array", [np.array("a", dtype=object), np.array([["a"], ["b"]]), np.empty((0, 2), dtype=object)]
)
def test_texts_keep_their_shape(array: np.ndarray) -> None:
    found = crossed(array)
    assert isinstance(found, np.ndarray)
    assert found.shape == array.shape


def test_bytes_that_are_no_text_are_not_lost() -> None:
    found = crossed(np.array([b"\xff"]))
    assert isinstance(found, np.ndarray)
    assert found[0].encode("utf-8", "surrogateescape") == b"\xff"


def test_sequences_and_nothing_cross() -> None:
    found = crossed([np.array([1]), None, [np.array("a", dtype=object)], []])
    assert isinstance(found, list)
    assert found[0].tolist() == [1]
    assert found[1] is None
    assert found[2][0].tolist() == "a"
    assert found[3] == []


@pytest.mark.parametrize("kept", [0, 3, 8, 20, -1])
def test_a_message_that_breaks_off_is_an_end(kept: int) -> None:
    stream = io.BytesIO()
    _wire.send(stream, _wire.encode({}, {"x": np.arange(100)}))
    with pytest.raises(EOFError):
        _wire.receive(io.BytesIO(stream.getvalue()[:kept]))
