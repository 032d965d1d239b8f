"""Lengths, masks and parts."""

from __future__ import annotations

import numpy as np

from tests.verification.inputs.structured.base import Structured, f, i, model

_W = ", ".join(["0.1"] * 48)
_R = ", ".join(["-0.2"] * 64)

MODELS: dict[str, Structured] = {
    "an LSTM with lengths": model(
        f"""g (float[seq,batch,3] x, int32[batch] lengths) => (float[seq,1,batch,4] y, float[1,batch,4] h)
    <float[1,16,3] w = {{{_W}}}, float[1,16,4] r = {{{_R}}}>
     {{ y, h = LSTM<hidden_size = 4>(x, w, r, , lengths) }}""",
        x=f(5, 2, 3),
        lengths=np.array([5, 2], np.int32),
    ),
    "a GRU with lengths and a state": model(
        f"""g (float[seq,batch,3] x, int32[batch] lengths, float[1,batch,4] start)
    => (float[seq,1,batch,4] y, float[1,batch,4] h)
    <float[1,12,3] w = {{{", ".join(["0.1"] * 36)}}}, float[1,12,4] r = {{{", ".join(["-0.2"] * 48)}}}> {{
    y, h = GRU<hidden_size = 4>(x, w, r, , lengths, start)
    }}""",
        x=f(5, 2, 3),
        lengths=np.array([5, 2], np.int32),
        start=f(1, 2, 4),
    ),
    "a sequence turned around by lengths": model(
        """g (float[time,batch,3] x, int64[batch] lengths) => (float[time,batch,3] y) {
    y = ReverseSequence<time_axis = 0, batch_axis = 1>(x, lengths)
    }""",
        x=f(5, 2, 3),
        lengths=i(5, 2),
    ),
    "a mask from lengths": model(
        """g (float[batch,seq] x, int64[batch] lengths) => (float[batch] y)
    <int64[1] one = {1}, int64 nought = {0}, int64 step = {1}, float none = {0}, int64[1] zero = {0}> {
    s = Shape<start = 1, end = 2>(x)
    m = Squeeze(s, zero)
    r = Range(nought, m, step)
    l = Unsqueeze(lengths, one)
    inside = Less(r, l)
    kept = Where(inside, x, none)
    sum = ReduceSum<keepdims = 0>(kept, one)
    n = Cast<to = 1>(lengths)
    y = Div(sum, n)
    }""",
        x=f(2, 5),
        lengths=i(5, 2),
    ),
    "the last step by length": model(
        """g (float[batch,seq,4] x, int64[batch] lengths) => (float[batch,4] y)
    <int64 one = {1}, int64[1] axis = {1}> {
    at = Sub(lengths, one)
    u = Unsqueeze(at, axis)
    y = GatherND<batch_dims = 1>(x, u)
    }""",
        x=f(2, 5, 4),
        lengths=i(5, 2),
    ),
    "a ragged attention mask": model(
        """g (float[batch,seq,4] x, int64[batch,seq] mask) => (float[batch,seq,4] y)
    <float one = {1}, float low = {-inf}, int64[1] middle = {1}, float scale = {0.5}> {
    b = Cast<to = 9>(mask)
    n = Not(b)
    u = Unsqueeze(n, middle)
    t = Transpose<perm = [0, 2, 1]>(x)
    s = MatMul(x, t)
    m = Where(u, low, s)
    p = Softmax<axis = -1>(m)
    y = MatMul(p, x)
    }""",
        x=f(2, 3, 4),
        mask=i([[1, 1, 0], [1, 1, 1]]),
    ),
    "rows split by sizes that are given": model(
        """g (float[n,3] x, int64[2] sizes) => (float[a,3] y, float[b,3] z) { y, z = Split<axis = 0>(x, sizes) }""",
        x=f(5, 3),
        sizes=i(2, 3),
    ),
}
