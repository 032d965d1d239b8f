"""shape/gather-one: the same index everywhere."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "shape/gather-one"

ZEROS = "s = Shape(x)\n z = ConstantOfShape<value = int64[1] {0}>(s)"
REWRITTEN = {
    "of a constant table": ("Shape Concat Expand", f"""g (float[N,T] x) => (float y)
        <float[2,3] w = {{1, 2, 3, 4, 5, 6}}, int64[1] o = {{0}}> {{
        {ZEROS}\n c = Unsqueeze(z, o)\n d = Squeeze(c, o)\n y = Gather(w, d) }}"""),
    "before an operator that broadcasts": ("Add", """g (float[N,T,3] x) => (float y)
        <float[2,3] w = {1, 2, 3, 4, 5, 6}, int64 i = {-1}> {
        s = Shape<end = 2>(x)\n z = Expand(i, s)\n e = Gather(w, z)\n y = Add(x, e) }"""),
    "of a vector": ("Shape Expand", f"""g (float[N,T] x) => (float y) <float[2] w = {{1, 2}}> {{ {ZEROS}
        y = Gather(w, z) }}"""),
    "along the last axis": ("Shape Gather Expand", f"""g (float[N,T] x, float[3,2] w) => (float y)
        <int64[1] o = {{0}}> {{
        {ZEROS}\n c = Unsqueeze(z, o)\n d = Squeeze(c, o)\n y = Gather<axis = 1>(w, d) }}"""),
    "token types as torch writes them": ("Shape Add Slice Add", """g (float[N,T,1] x) => (float y)
        <float[2,1] w = {1, 2}, float[4,1] p = {1, 2, 3, 4}, int64[1,4] k = {0, 1, 2, 3}, int64[1] o = {0},
        int64[1] one = {1}, int64[1,4] t = {0, 0, 0, 0}> {
        s = Shape<start = 1, end = 2>(x)\n q = Slice(k, o, s, one)\n a = GatherElements<axis = 1>(t, q)
        b = Shape<end = 2>(x)\n c = Expand(a, b)\n d = Gather(w, c)\n e = Add(x, d)\n f = Gather(p, q)
        y = Add(e, f) }"""),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


@refuses(RULE, 1)
def test_more_nodes_than_it_frees() -> None:
    text = f"g (float[N,T] x, float[2,3] w) => (float y, int64 z) {{ {ZEROS}\n y = Gather(w, z) }}"
    assert_refused(RULE, "more nodes", text)


ALONE = {
    "several numbers": """g (float[N] x, float[2,3] w) => (float y) <int64 z = {0}, int64 i = {1}, int64[1] two = {2}> {
        s = Shape(x)\n l = Squeeze(s)\n r = Range(i, l, i)\n y = Gather(w, r) }""",
    "an unknown number of rows": f"g (float[N] x, float[K,3] w) => (float y) {{ {ZEROS}\n y = Gather(w, z) }}",
    "constant indices": "g (float[4,3] w) => (float y) <int64[2] z = {1, 1}> { y = Gather(w, z) }",
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
