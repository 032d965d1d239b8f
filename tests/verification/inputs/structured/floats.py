"""Values of floats, and sizes that fit."""

from __future__ import annotations

import numpy as np

from tests.verification.inputs.structured.base import Structured, f, model, table

MODELS: dict[str, Structured] = {
    "probabilities and their entropy": model(
        """g (float[n,5] p) => (float[n] y) <int64[1] one = {1}> {
    l = Log(p)
    m = Mul(p, l)
    s = ReduceSum<keepdims = 0>(m, one)
    y = Neg(s)
    }""",
        p=np.full((2, 5), 0.2, np.float32),
    ),
    "arcs of cosines": model(
        """g (float[n] x) => (float[n] y) { y = Acosh(x) }""",
        x=np.array([1.5, 2], np.float32),
    ),
    "floats that index": model(
        f"""g (float[n] x) => (float[n,2] y) <{table(6, 2)}> {{ c = Cast<to = 7>(x)\n y = Gather(table, c) }}""",
        x=np.array([1.5, 5], np.float32),
    ),
    "sizes that only fit a product": model(
        """g (float[n,m] x) => (float[7,11,13] y) <int64[3] s = {7, 11, 13}> { y = Reshape(x, s) }""",
        x=f(7, 143),
    ),
    "an axis that a constant fixes": model(
        f"""g (float[n,3] x) => (float[n,3] y) <{table(23, 3)}> {{ y = Add(x, table) }}""",
        x=f(23, 3),
    ),
    "two axes tied to a third": model(
        """g (float[a,b] x, float[c,d] z) => (float[a,d] y) { y = MatMul(x, z) }""",
        x=f(2, 3),
        z=f(3, 4),
    ),
    "names that inference made up": model(
        """g (float[batch,unk__12] x, float[batch,unk__12] z, float["Broadcast(batch, unk__665)"] w)
    => (float[batch,unk__12] y) {
    a = Add(x, z)
    s = ReduceSum<keepdims = 0>(w)
    y = Mul(a, s)
    }""",
        x=f(2, 3),
        z=f(2, 3),
        w=f(4),
    ),
    "a table that a size indexes": model(
        f"""g (float[n,4] x) => (float[n,4] y) <{table(9, 4)}> {{
    s = Shape<start = 0, end = 1>(x)
    r = Gather(table, s)
    y = Add(x, r)
    }}""",
        x=f(3, 4),
    ),
    "heads that divide a width": model(
        """g (float[batch,seq,width] x)
    => (float[batch,seq,8,d] y) <int64[4] s = {0, 0, 8, -1}> { y = Reshape(x, s) }""",
        x=f(1, 3, 16),
    ),
    "all scores below the threshold": model(
        """g (float[n] scores)
    => (float[k] y) <float least = {3.5}> { c = Greater(scores, least)\n y = Compress(scores, c) }""",
        scores=np.array([4, 1], np.float32),
    ),
    "a root of negative products": model(
        """g (float[n] x) => (float[n] y) <float one = {-1}> { a = Add(x, one)\n s = Sqrt(a)\n y = Log(s) }""",
        x=np.array([2, 3], np.float32),
    ),
}
