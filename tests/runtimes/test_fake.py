"""The fake answers like a runtime: zeros of the right shapes, or what its function says."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.runtimes.base import Outputs, Value
from onnxsmith.runtimes.fake import FakeSession


def zeros(port: Port, **feeds: Value) -> Value:
    inputs = (Port("x", "float", ("n", 3)), Port("z", "float", ("x.0",)))
    given: dict[str, Value] = {"x": np.ones((4, 3), np.float32), "z": np.ones(5, np.float32)}
    return FakeSession(Signature(inputs, (port,))).run(given | feeds)[port.name]


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        (("n", 3), (4, 3)),
        (("2*n", "n + 1"), (8, 5)),
        (("x.0",), (5,)),
        (("nobody", "?"), (1, 1)),
        ((), ()),
        (None, ()),
        (("n - 9",), (1,)),
    ],
)
def test_shapes_follow_the_inputs(shape: tuple[int | str, ...] | None, wanted: tuple[int, ...]) -> None:
    found = zeros(Port("y", "float", shape))
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.any()) == (wanted, False)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, ml_dtypes.bfloat16, ml_dtypes.int4])
def test_dtypes_are_the_declared_ones(dtype: type) -> None:
    name = {"bool": "bool", "int64": "int64", "bfloat16": "bfloat16", "int4": "int4"}[np.dtype(dtype).name]
    found = zeros(Port("y", name, (2,)))
    assert isinstance(found, np.ndarray)
    assert found.dtype == dtype


def test_strings_are_empty() -> None:
    assert np.asarray(zeros(Port("y", "string", (2,)))).tolist() == ["", ""]


def test_a_sequence_is_empty() -> None:
    assert zeros(Port("y", "float", ("n",), kind="sequence")) == []


def test_an_answer_is_given_as_it_is() -> None:
    def double(feeds: dict[str, Value]) -> Outputs:
        return {"y": np.asarray(feeds["x"]) * 2}

    port = Port("x", "float", ("n",))
    session = FakeSession(Signature((port,), (Port("y", "float", ("n",)),)), double)
    assert np.asarray(session.run({"x": np.ones(2, np.float32)})["y"]).tolist() == [2, 2]
