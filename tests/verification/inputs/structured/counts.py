"""Counts, flags, axes and shapes that are inputs."""

from __future__ import annotations

import numpy as np

from tests.verification.inputs.structured.base import Structured, f, i, model, table

MODELS: dict[str, Structured] = {
    "TopK with k": model(
        """g (float[n,m] x, int64[1] k) => (float[n,a] v, int64[n,a] at) { v, at = TopK(x, k) }""",
        x=f(2, 5),
        k=i([3]),
    ),
    "OneHot with a depth": model(
        """g (int64[n] x, int64 depth) => (float[n,d] y) <float[2] v = {0, 1}> { y = OneHot(x, depth, v) }""",
        x=i(0, 2),
        depth=i(4),
    ),
    "Range of three inputs": model(
        """g (int64 a, int64 b, int64 c) => (int64[n] y) { y = Range(a, b, c) }""",
        a=i(0),
        b=i(8),
        c=i(3),
    ),
    "Range of floats": model(
        """g (float a, float b, float c) => (float[n] y) { y = Range(a, b, c) }""",
        a=np.array(0, np.float32),
        b=np.array(3, np.float32),
        c=np.array(0.5, np.float32),
    ),
    "a loop by trip count": model(
        """g (float[n] x, int64 steps) => (float[n] y) <bool yes = {1}> {
    y = Loop(steps, yes, x) <body = b (int64 k, bool c, float[n] s) => (bool again, float[n] t) {
        again = Identity(c)
        t = Tanh(s)
    }>
    }""",
        x=f(3),
        steps=i(4),
    ),
    "rows collected by trip count": model(
        """g (float[4] x, int64 steps) => (float[k,4] y) <bool yes = {1}> {
    y = Loop(steps, yes) <body = b (int64 k, bool c) => (bool again, float[4] t) {
        again = Identity(c)
        f = Cast<to = 1>(k)
        t = Mul(x, f)
    }>
    }""",
        x=f(4),
        steps=i(4),
    ),
    "a branch by flag": model(
        """g (float[n] x, bool fast) => (float[n] y) {
    y = If(fast) <then_branch = t ()
    => (float[n] a) { a = Neg(x) }, else_branch = e () => (float[n] b) { b = Exp(x) }>
    }""",
        x=f(3),
        fast=np.array(True),
    ),
    "a branch that indexes out of its table when it is not to be taken": model(
        f"""g (int64 which) => (float[2] y) <{table(3, 2)}, int64 two = {{2}}, int64 less = {{2}}> {{
    c = Greater(which, two)
    y = If(c) <then_branch = t () => (float[2] a) {{ w = Sub(which, less)\n a = Gather(table, w) }},
               else_branch = e () => (float[2] b) {{ b = Gather(table, which) }}>
    }}""",
        which=i(1),
    ),
    "Compress by a condition": model(
        """g (float[n,3] x, bool[n] keep) => (float[k,3] y) { y = Compress<axis = 0>(x, keep) }""",
        x=f(4, 3),
        keep=np.array([True, False, True, True]),
    ),
    "Slice from starts to ends": model(
        """g (float[n,m] x, int64[2] starts, int64[2] ends) => (float[a,b] y) { y = Slice(x, starts, ends) }""",
        x=f(6, 6),
        starts=i(1, 2),
        ends=i(5, 6),
    ),
    "Slice with axes and steps": model(
        """g (float[n,m] x, int64[1] starts, int64[1] ends, int64[1] axes, int64[1] steps) => (float[a,b] y) {
    y = Slice(x, starts, ends, axes, steps)
    }""",
        x=f(6, 6),
        starts=i([1]),
        ends=i([5]),
        axes=i([1]),
        steps=i([2]),
    ),
    "Resize by sizes": model(
        """g (float[batch,3,h,w] x, int64[4] sizes)
    => (float[batch,3,a,b] y) { y = Resize<mode = "linear">(x, , , sizes) }""",
        x=f(1, 3, 4, 4),
        sizes=i(1, 3, 9, 7),
    ),
    "Resize by two sizes": model(
        """g (float[batch,3,h,w] x, int64[2] hw) => (float[batch,3,a,b] y) {
    s = Shape<start = 0, end = 2>(x)
    sizes = Concat<axis = 0>(s, hw)
    y = Resize<mode = "linear">(x, , , sizes)
    }""",
        x=f(1, 3, 4, 4),
        hw=i(9, 7),
    ),
    "Resize by scales": model(
        """g (float[batch,3,h,w] x, float[4] scales)
    => (float[batch,3,a,b] y) { y = Resize<mode = "linear">(x, , scales) }""",
        x=f(1, 3, 4, 4),
        scales=np.array([1, 1, 2, 1.5], np.float32),
    ),
    "Reshape to a shape": model(
        """g (float[n,6] x, int64[3] shape) => (float[a,b,c] y) { y = Reshape(x, shape) }""",
        x=f(2, 6),
        shape=i(2, 2, 3),
    ),
    "Expand to a shape": model(
        """g (float[n,1] x, int64[2] shape) => (float[a,b] y) { y = Expand(x, shape) }""",
        x=f(3, 1),
        shape=i(3, 4),
    ),
    "Pad by pads": model(
        """g (float[n,m] x, int64[4] pads) => (float[a,b] y) { y = Pad<mode = "reflect">(x, pads) }""",
        x=f(3, 4),
        pads=i(1, 0, 1, 2),
    ),
    "Tile by repeats": model(
        """g (float[n,m] x, int64[2] repeats) => (float[a,b] y) { y = Tile(x, repeats) }""",
        x=f(3, 4),
        repeats=i(2, 1),
    ),
    "a sum over given axes": model(
        """g (float[n,m,4] x, int64[2] axes) => (float[a] y) { y = ReduceSum<keepdims = 0>(x, axes) }""",
        x=f(3, 4, 4),
        axes=i(0, 2),
    ),
    "a running sum over a given axis": model(
        """g (float[n,m] x, int64 axis) => (float[n,m] y) { y = CumSum(x, axis) }""",
        x=f(3, 4),
        axis=i(1),
    ),
    "axes squeezed and unsqueezed": model(
        """g (float[n,1,m,1] x, int64[2] gone, int64[1] new) => (float[a,b,c] y) {
    s = Squeeze(x, gone)
    y = Unsqueeze(s, new)
    }""",
        x=f(3, 1, 4, 1),
        gone=i(1, 3),
        new=i([0]),
    ),
    "a triangle by an offset": model(
        """g (float[n,m] x, int64 k) => (float[n,m] y) { y = Trilu<upper = 1>(x, k) }""",
        x=f(3, 4),
        k=i(1),
    ),
    "noise scaled into blocks": model(
        """g (float[batch,c,h,w] x) => (float[batch,d,e,f] y) { y = SpaceToDepth<blocksize = 4>(x) }""",
        x=f(1, 2, 8, 8),
    ),
    "groups by division": model(
        """g (int64[n] x, int64 groups) => (int64[n] y, int64[n] z) { y = Div(x, groups)\n z = Mod(x, groups) }""",
        x=i(5, 7),
        groups=i(2),
    ),
}
