"""Sizes that have to fit: channels, sums of axes, parts; an optional that has to be there."""

from __future__ import annotations

import numpy as np

from tests.verification.inputs.structured.base import HEAD, Structured, f, i, model, table


def _numbers(value: str, count: int) -> str:
    return ", ".join([value] * count)


MODELS: dict[str, Structured] = {
    "channels of a grouped convolution": model(
        f"""g (float[b,c,h,w] x) => (float[b,o,e,f] y) <float[6,2,3,3] k = {{{_numbers("0.1", 108)}}}> {{
    y = Conv<group = 3>(x, k)
    }}""",
        x=f(1, 6, 5, 5),
    ),
    "channels of a normalisation": model(
        f"""g (float[b,c,h,w] x) => (float[b,c,h,w] y) <float[20] s = {{{_numbers("1", 20)}}}> {{
    y = BatchNormalization(x, s, s, s, s)
    }}""",
        x=f(1, 20, 3, 3),
    ),
    "a mask as long as the past and what is new": model(
        """g (float[b,2,past,4] old, float[b,2,s,4] q, int64[b,total] mask) => (float[b,2,s,4] y)
    <float low = {-10000}, float one = {1}, int64[2] mid = {1, 2}> {
    k = Concat<axis = 2>(old, q)
    t = Transpose<perm = [0, 1, 3, 2]>(k)
    a = MatMul(q, t)
    f = Cast<to = 1>(mask)
    n = Sub(one, f)
    m = Mul(n, low)
    u = Unsqueeze(m, mid)
    w = Add(a, u)
    p = Softmax(w)
    y = MatMul(p, k)
    }""",
        old=f(1, 2, 3, 4),
        q=f(1, 2, 2, 4),
        mask=i([[1, 1, 1, 1, 1]]),
    ),
    "a sequence split by sizes": model(
        """g (float[n,2] x, int64[3] parts) => (float[a,2] y) <int64 one = {1}> {
    s = SplitToSequence<axis = 0>(x, parts)
    y = SequenceAt(s, one)
    }""",
        x=f(6, 2),
        parts=i(1, 2, 3),
    ),
    "a transform along a given axis": model(
        """g (float[b,n,1] x, int64 axis) => (float[b,n,2] y) { y = DFT(x, , axis) }""",
        x=f(1, 8, 1),
        axis=np.array(1),
    ),
    "an optional that is there": model(
        """g (optional(float[n]) x, float[n] z) => (float[n] y) { g = OptionalGetElement(x)\n y = Add(g, z) }""",
        x=f(3),
        z=f(3),
    ),
    "two probabilities": model(
        """g (float[n,2] p) => (float[n,1] y) <float one = {1}> {
    a, b = Split<axis = 1, num_outputs = 2>(p)
    c = Sub(one, a)
    d = Log(c)
    e = Log(b)
    y = Add(d, e)
    }""",
        p=np.array([[0.5, 0.5]], np.float32),
    ),
    "a flat index of rows and columns": model(
        """g (float[n,m] x, int64[e] row, int64[e] col) => (float[e] y) <int64[1] flat = {-1}> {
    s = Shape<start = 1, end = 2>(x)
    r = Mul(row, s)
    at = Add(r, col)
    v = Reshape(x, flat)
    y = Gather(v, at)
    }""",
        x=f(3, 4),
        row=i(2, 0),
        col=i(3, 1),
    ),
    "tokens of functions in functions": model(
        f"""g (int64[b,s] ids, int64[b,s] pos) => (float[b,s,4] y) <{table(7, 4)}, {table(5, 4, "places")}> {{
    y = local.Both(table, ids, places, pos)
    }}
    <domain: "local", opset_import: ["": 20, "local": 1]> Both (t, k, p, q) => (r) {{
    a = local.Embed(t, k)
    b = local.Embed(p, q)
    r = Add(a, b)
    }}
    <domain: "local", opset_import: ["": 20]> Embed (t, k) => (r) {{ r = Gather(t, k) }}""",
        head=HEAD.replace('"com.microsoft": 1', '"local": 1'),
        ids=i([[6, 0]]),
        pos=i([[4, 0]]),
    ),
    "windows of seven": model(
        """g (float[b,h,w,c] x) => (float[n,49,c] y) <int64[1] seven = {7}, int64[1] rest = {-1}, int64[1] all = {49}> {
    b = Shape<start = 0, end = 1>(x)
    h = Shape<start = 1, end = 2>(x)
    w = Shape<start = 2, end = 3>(x)
    c = Shape<start = 3, end = 4>(x)
    down = Div(h, seven)
    across = Div(w, seven)
    split = Concat<axis = 0>(b, down, seven, across, seven, c)
    r = Reshape(x, split)
    t = Transpose<perm = [0, 1, 3, 2, 4, 5]>(r)
    joined = Concat<axis = 0>(rest, all, c)
    y = Reshape(t, joined)
    }""",
        x=f(1, 14, 7, 3),
    ),
}
