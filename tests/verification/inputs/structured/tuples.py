"""Index tuples and places."""

from __future__ import annotations

from tests.verification.inputs.structured.base import Structured, f, i, model

MODELS: dict[str, Structured] = {
    "GatherND by tuples": model(
        """g (float[n,m,4] x, int64[k,2] at) => (float[k,4] y) { y = GatherND(x, at) }""",
        x=f(3, 5, 4),
        at=i([[0, 4], [2, 1]]),
    ),
    "GatherND into a transposed product": model(
        """g (float[n,4] x, int64[k,2] at)
    => (float[k] y) { t = Transpose(x)\n p = MatMul(x, t)\n y = GatherND(p, at) }""",
        x=f(3, 4),
        at=i([[0, 2], [2, 1]]),
    ),
    "ScatterND by tuples": model(
        """g (float[n,m] x, int64[k,2] at, float[k] v) => (float[n,m] y) { y = ScatterND(x, at, v) }""",
        x=f(3, 5),
        at=i([[0, 4], [2, 1]]),
        v=f(2),
    ),
    "ScatterElements along an axis": model(
        """g (float[n,5] x, int64[n,k] at, float[n,k] v)
    => (float[n,5] y) { y = ScatterElements<axis = 1>(x, at, v) }""",
        x=f(2, 5),
        at=i([[0, 4], [2, 1]]),
        v=f(2, 2),
    ),
    "a cache written at a position": model(
        """g (float[batch,past,4] cache, float[batch,1,4] new, int64 position) => (float[batch,past,4] y)
    <int64[1] zero = {0}, int64[1] one = {1}> {
    p = Unsqueeze(position, zero)
    t = Transpose<perm = [1, 0, 2]>(cache)
    u = Unsqueeze(p, one)
    n = Transpose<perm = [1, 0, 2]>(new)
    w = ScatterND(t, u, n)
    y = Transpose<perm = [1, 0, 2]>(w)
    }""",
        cache=f(2, 5, 4),
        new=f(2, 1, 4),
        position=i(3),
    ),
    "pooled places unpooled": model(
        """g (float[batch,1,h,w] x, int64[batch,1,h,w] places) => (float[batch,1,a,b] y) {
    y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, places)
    }""",
        x=f(1, 1, 2, 2),
        places=i([[[[0, 2], [8, 10]]]]),
    ),
}
