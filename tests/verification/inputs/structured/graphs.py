"""Graphs: nodes, and edges that index them."""

from __future__ import annotations

import numpy as np

from tests.verification.inputs.structured.base import Structured, f, i, model, table

MODELS: dict[str, Structured] = {
    "gather and scatter-add over edges": model(
        """g (float[nodes,4] x, int64[2,edges] edge_index) => (float[nodes,4] y) <int64 zero = {0}, int64 one = {1}> {
    source = Gather(edge_index, zero)
    target = Gather(edge_index, one)
    messages = Gather(x, source)
    blank = Sub(x, x)
    ones = Constant<value_ints = [1]>()
    wide = Unsqueeze(target, ones)
    s = Shape(messages)
    index = Expand(wide, s)
    y = ScatterElements<axis = 0, reduction = "add">(blank, index, messages)
    }""",
        x=f(5, 4),
        edge_index=i([[0, 1, 4], [1, 2, 3]]),
    ),
    "ScatterND over target nodes": model(
        """g (float[nodes,3] x, int64[edges] src, int64[edges,1] dst) => (float[nodes,3] y) {
    m = Gather(x, src)
    z = Sub(x, x)
    y = ScatterND<reduction = "add">(z, dst, m)
    }""",
        x=f(5, 3),
        src=i(0, 4, 2),
        dst=i([[1], [2], [4]]),
    ),
    "edge index transposed, with one head each": model(
        """g (float[nodes,8] x, int64[edges,2] edges_) => (float[edges] score) <int64[1] last = {1}> {
    a, b = Split<axis = 1, num_outputs = 2>(edges_)
    sa = Squeeze(a, last)
    sb = Squeeze(b, last)
    xa = Gather(x, sa)
    xb = Gather(x, sb)
    p = Mul(xa, xb)
    score = ReduceSum<keepdims = 0>(p, last)
    }""",
        x=f(3, 8),
        edges_=i([[0, 1], [2, 2]]),
    ),
    "node types embedded, batch vector pooled": model(
        f"""g (int64[nodes] kind, int64[nodes] graph, float[graphs,2] start) => (float[graphs,2] y)
    <{table(6, 2)}, int64[1] one = {{1}}> {{
    e = Gather(table, kind)
    u = Unsqueeze(graph, one)
    s = Shape(e)
    w = Expand(u, s)
    y = ScatterElements<axis = 0, reduction = "add">(start, w, e)
    }}""",
        kind=i(0, 5, 2),
        graph=i(0, 0, 1),
        start=f(2, 2),
    ),
    "indices into a computed half": model(
        """g (float[n,4] x, int64[k] index) => (float[k,4] y) <int64[1] zero = {0}, int64[1] two = {2}> {
    s = Shape<start = 0, end = 1>(x)
    h = Div(s, two)
    top = Slice(x, zero, h)
    y = Gather(top, index)
    }""",
        x=f(8, 4),
        index=i(0, 3, 1),
    ),
    "indices into what NonZero found": model(
        """g (float[n] x, int64[k] index) => (float[k] y) <float low = {0}, int64[1] zero = {0}> {
    keep = Greater(x, low)
    found = Compress(x, keep)
    y = Gather(found, index)
    }""",
        x=np.array([1, -1, 2, 3, -4], np.float32),
        index=i(0, 2, 1),
    ),
    "an index through a permutation table": model(
        f"""g (int64[n] token) => (float[n,2] y) <int64[4] permutation = {{3, 1, 0, 2}}, {table(4, 2)}> {{
    p = Gather(permutation, token)
    y = Gather(table, p)
    }}""",
        token=i(3, 0),
    ),
    "an index scaled by a stride": model(
        f"""g (int64[n] cell, int64[n] corner) => (float[n,2] y) <int64 stride = {{4}}, {table(16, 2)}> {{
    a = Mul(cell, stride)
    b = Add(a, corner)
    y = Gather(table, b)
    }}""",
        cell=i(3, 0),
        corner=i(3, 1),
    ),
}
