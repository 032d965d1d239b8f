"""shape/gather-positions: indices that count."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "shape/gather-positions"

HEAD = "int64 z = {0}, int64 i = {1}, int64[1] o = {0}, int64[1] e = {1}, int64[1] m = {-1}"
RANGES = """s = Shape(x)\n n = Gather(s, z)\n t = Gather(s, i)\n a = Range(z, n, i)\n c = Range(z, t, i)
        u = Unsqueeze(a, e)\n v = Unsqueeze(c, o)"""
SPREAD = (
    "k = Max(u, v)\n l = Shape(k)\n p = Expand(u, l)\n q = Expand(v, l)\n f = Unsqueeze(p, m)\n g1 = Unsqueeze(q, m)"
)

REWRITTEN = {
    "the result is the data": ("Identity", f"""g (float[n] x) => (float y) <{HEAD}> {{
        s = Shape(x)\n l = Squeeze(s)\n r = Range(z, l, i)\n y = Gather(x, r) }}"""),
    "all of a vector": ("Neg", f"""g (float[n] x) => (float y) <{HEAD}> {{ s = Shape(x)\n l = Squeeze(s)
        r = Range(z, l, i)\n b = Neg(x)\n y = Gather(b, r) }}"""),
    "the first of a table": ("Shape Slice", f"""g (float[n,t] x, float[9,4] w) => (float y) <{HEAD}> {{
        s = Shape<end = 1>(x)\n l = Squeeze(s)\n r = Range(z, l, i)\n y = Gather(w, r) }}"""),
    "along another axis": ("Shape Slice", f"""g (float[n,t] x, float[4,9] w) => (float y) <{HEAD}> {{
        s = Shape<end = 1>(x)\n l = Squeeze(s)\n r = Range(z, l, i)\n y = Gather<axis = -1>(w, r) }}"""),
    "axes of size one": ("Unsqueeze", f"""g (float[n,t] x) => (float y) <{HEAD}, int64[2] w = {{0, 2}}> {{ s = Shape(x)
        l = Gather(s, i)\n r = Range(z, l, i)\n u = Unsqueeze(r, w)\n y = Gather<axis = 1>(x, u) }}"""),
    "a scalar limit that was none": ("Shape Slice", f"""g (float[n] x, float[9,4] w) => (float y)
        <{HEAD}> {{ l = Size(x)\n r = Range(z, l, i)\n b = Cast<to = 6>(r)\n d = Cast<to = 7>(b)
        y = Gather(w, d) }}"""),
    "a constant table": ("Shape Slice", f"""g (float[n,t] x) => (float y) <{HEAD}, float[3,1] w = {{1, 2, 3}}> {{
        s = Shape<end = 1>(x)\n l = Squeeze(s)\n r = Range(z, l, i)\n u = Unsqueeze(r, o)\n y = Gather(w, u) }}"""),
    "constant positions, cut off": ("Shape Slice Add", f"""g (float[b,n,1] x) => (float y)
        <{HEAD}, float[3,1] w = {{1, 2, 3}}, int64[1,3] p = {{0, 1, 2}}> {{
        s = Shape<start = 1, end = 2>(x)\n q = Slice(p, o, s, e)\n a = Gather(w, q)\n y = Add(x, a) }}"""),
    "both axes of a matrix": ("Neg", f"""g (float[b,d] x) => (float y) <{HEAD}> {{ {RANGES}\n {SPREAD}
        h = Concat<axis = 2>(f, g1)\n j = Neg(x)\n y = GatherND(j, h) }}"""),
    "the first axis only": ("Neg", f"""g (float[b,d] x) => (float y) <{HEAD}> {{ s = Shape<end = 1>(x)\n l = Squeeze(s)
        r = Range(z, l, i)\n u = Unsqueeze(r, m)\n j = Neg(x)\n y = GatherND(j, u) }}"""),
    "both axes, turned": ("Transpose", f"""g (float[b,d] x) => (float y) <{HEAD}> {{ s = Shape(x)\n n = Gather(s, z)
        t = Gather(s, i)\n a = Range(z, n, i)\n c = Range(z, t, i)\n u = Unsqueeze(a, o)\n v = Unsqueeze(c, e)
        {SPREAD}\n h = Concat<axis = 2>(f, g1)\n y = GatherND(x, h) }}"""),
    "fewer rows than there are": ("Shape Slice", f"""g (float[b,d] x, float[r,k] w) => (float y) <{HEAD}> {{
        s = Shape<end = 1>(x)\n n = Squeeze(s)\n a = Range(z, n, i)\n u = Unsqueeze(a, e)\n d1 = Shape(w)
        t = Gather(d1, i)\n c = Range(z, t, i)\n v = Unsqueeze(c, o)\n {SPREAD}
        h = Concat<axis = 2>(f, g1)\n y = GatherND(w, h) }}"""),
    "from the flattened matrix": ("Unsqueeze", f"""g (float[b,d] x) => (float y) <{HEAD}> {{ {RANGES}
        w = Mul(u, t)\n f = Add(v, w)\n k = Unsqueeze(f, e)\n j = Reshape(x, m)\n y = Gather(j, k) }}"""),
    "with an axis behind": ("Unsqueeze", f"""g (float[b,d] x) => (float y) <{HEAD}> {{ {RANGES}
        w = Mul(u, t)\n f = Add(v, w)\n j = Flatten<axis = 2>(x)\n y = Gather(j, f) }}"""),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


REFUSED = {
    "1: more nodes than it frees": ("more nodes", f"""g (float[n,t] x, float[9,4] w) => (float y, int64 u) <{HEAD}> {{
        s = Shape<end = 1>(x)\n l = Squeeze(s)\n r = Range(z, l, i)\n u = Unsqueeze(r, o)\n y = Gather(w, u) }}"""),
}  # fmt: skip


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


ALONE = {
    "from one on": f"""g (float[n] x) => (float y) <{HEAD}> {{ s = Shape(x)\n l = Squeeze(s)
        r = Range(i, l, i)\n b = Neg(x)\n y = Gather(b, r) }}""",
    "in twos": f"""g (float[n] x) => (float y) <{HEAD}, int64 two = {{2}}> {{ s = Shape(x)\n l = Squeeze(s)
        r = Range(z, l, two)\n b = Neg(x)\n y = Gather(b, r) }}""",
    "an axis that is not used": f"""g (float[n,t] x) => (float y) <{HEAD}> {{ s = Shape(x)\n l = Gather(s, z)
        r = Range(z, l, i)\n u = Unsqueeze(r, e)\n w = Expand(u, s)\n y = Gather(x, w) }}""",
    "the same axis twice": f"""g (float[n,n] x) => (float y) <{HEAD}> {{ s = Shape<end = 1>(x)\n l = Squeeze(s)
        r = Range(z, l, i)\n u = Unsqueeze(r, m)\n h = Concat<axis = 1>(u, u)\n y = GatherND(x, h) }}""",
    "batches": f"""g (float[n,t] x) => (float y) <{HEAD}> {{ s = Shape(x)\n l = Gather(s, i)\n r = Range(z, l, i)
        u = Unsqueeze(r, e)\n v = Unsqueeze(u, o)\n n1 = Shape<end = 1>(x)\n c = Concat<axis = 0>(n1, e, e)
        d = Expand(v, c)\n y = GatherND<batch_dims = 1>(x, d) }}""",
    "part of a row of the flattened matrix": f"""g (float[b,d] x) => (float y) <{HEAD}, int64 two = {{2}}> {{
        s = Shape(x)\n n = Gather(s, z)\n t = Gather(s, i)\n a = Range(z, n, i)
        c = Range(z, two, i)\n u = Unsqueeze(a, e)
        v = Unsqueeze(c, o)\n w = Mul(u, t)\n f = Add(v, w)\n j = Reshape(x, m)\n y = Gather(j, f) }}""",
}  # fmt: skip


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
