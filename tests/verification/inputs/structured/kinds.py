"""Texts, sequences and numbers of few bits."""

from __future__ import annotations

import numpy as np

from tests.verification.inputs.structured.base import Structured, f, i, model, table

MODELS: dict[str, Structured] = {
    "texts that are numbers": model(
        """g (string[n] x) => (float[n] y) { y = Cast<to = 1>(x) }""",
        x=np.array(["1.5", "-2"], object),
    ),
    "texts of a known set": model(
        """g (string[n,1] x)
    => (float[n,3] y) { y = ai.onnx.ml.OneHotEncoder<cats_strings = ["a", "b", "c"], zeros = 0>(x) }""",
        x=np.array([["a"], ["c"]], object),
    ),
    "texts put together": model(
        """g (string[n] x, string[n] z) => (string[n] y) { y = StringConcat(x, z) }""",
        x=np.array(["a", "b"], object),
        z=np.array(["c", "d"], object),
    ),
    "a sequence put together": model(
        """g (seq(float[n,3]) x) => (float[m,3] y) { y = ConcatFromSequence<axis = 0>(x) }""",
        x=[f(2, 3), f(1, 3)],
    ),
    "a sequence's element by position": model(
        """g (seq(float[n,3]) x, int64 k) => (float[n,3] y) { y = SequenceAt(x, k) }""",
        x=[f(2, 3), f(2, 3)],
        k=i(1),
    ),
    "a split sequence's element": model(
        """g (float[6,3] x, int64 k) => (float[n,3] y) <int64 two = {2}> {
    s = SplitToSequence<axis = 0>(x, two)
    y = SequenceAt(s, k)
    }""",
        x=f(6, 3),
        k=i(2),
    ),
    "quantised numbers taken back": model(
        """g (uint8[n,4] x, uint8 zero)
    => (float[n,4] y) <float scale = {0.1}> { y = DequantizeLinear(x, scale, zero) }""",
        x=np.array([[0, 255, 128, 3]], np.uint8),
        zero=np.array(128, np.uint8),
    ),
    "bytes looked up": model(
        f"""g (uint8[n] x) => (float[n,2] y) <{table(64, 2)}> {{ c = Cast<to = 7>(x)\n y = Gather(table, c) }}""",
        x=np.array([0, 63], np.uint8),
    ),
}
