"""fuse/repeated-heads: keys and values, sizes that are known and that are not."""

from __future__ import annotations

import pytest

from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.verification.sessions import verify_models
from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "fuse/repeated-heads"


def attention(batch: str = "2", rows: str = "N", times: int = 2) -> str:
    """Grouped attention: 2 heads of keys and values, `times` queries for each, all parts of x. algebra/expand-gather
    makes Gathers of the repeated heads."""
    heads = 2 * times
    return f"""g (float[{batch},{heads + 4},{rows},8] x) => (float[{batch},{heads},{rows},8] y)
        <int64[1] two = {{2}}, int64[5] wide = {{1, 1, {times}, 1, 1}}, int64[1] heads = {{{heads}}},
        int64[3] parts = {{{heads}, 2, 2}}, int64[1] size = {{8}}> {{
        q, k, v = Split<axis = 1>(x, parts)
        ku = Unsqueeze(k, two)\n ke = Expand(ku, wide)\n vu = Unsqueeze(v, two)\n ve = Expand(vu, wide)
        b = Shape<start = 0, end = 1>(k)\n n = Shape<start = 2, end = 3>(k)
        to = Concat<axis = 0>(b, heads, n, size)
        kr = Reshape(ke, to)\n vr = Reshape(ve, to)
        t = Transpose<perm = [0, 1, 3, 2]>(kr)\n s = MatMul(q, t)\n p = Softmax(s)\n y = MatMul(p, vr) }}"""


def cached(batch: str = "B") -> str:
    """The same with a cache in front of keys and values, and targets that are computed: nothing makes Gathers of it."""
    return f"""g (float[{batch},8,N,8] x, float[{batch},2,P,8] past) => (float[{batch},4,N,8] y, float[C,D,E,F] more)
        <int64[1] two = {{2}}, int64[3] parts = {{4, 2, 2}}, int64[1] four = {{4}}, int64[1] size = {{8}}> {{
        q, kn, v = Split<axis = 1>(x, parts)\n k = Concat<axis = 2>(past, kn)\n more = Concat<axis = 2>(past, v)
        b = Shape<start = 0, end = 1>(k)\n n = Shape<start = 2, end = 3>(k)
        wide = Concat<axis = 0>(b, two, two, n, size)\n to = Concat<axis = 0>(b, four, n, size)
        ku = Unsqueeze(k, two)\n ke = Expand(ku, wide)\n kr = Reshape<allowzero = 1>(ke, to)
        vu = Unsqueeze(more, two)\n ve = Expand(vu, wide)\n vr = Reshape<allowzero = 1>(ve, to)
        t = Transpose<perm = [0, 1, 3, 2]>(kr)\n s = MatMul(q, t)\n p = Softmax(s)\n y = MatMul(p, vr) }}"""


KNOWN = "Split Reshape Transpose MatMul Reshape Softmax Reshape MatMul Reshape"


def test_a_batch_that_is_broadcast() -> None:
    text = """g (float[1,4,3,8] q, float[2,2,8,3] k) => (float[2,4,3,3] y) <int64[4] each = {0, 0, 1, 1}> {
        r = Gather<axis = 1>(k, each)\n y = MatMul(q, r) }"""
    assert_rewritten(RULE, "Reshape MatMul Reshape", text, target="onnxruntime")


@pytest.mark.parametrize("times", [2, 3])
def test_sizes_that_are_known(times: int) -> None:
    assert_rewritten(RULE, KNOWN, attention(rows="3", times=times), target="onnxruntime")


@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
@pytest.mark.parametrize("text", [attention(batch="B"), cached()], ids=["read once", "with a cache"])
def test_sizes_that_are_not(text: str, runtime: str) -> None:
    result, part = simplified(from_text(head(17) + text), target="onnxruntime")
    assert len([entry for entry in part.fired if entry.rule == RULE]) == 2
    assert not {"Expand", "Gather", "Unsqueeze"} & {node.op_type for node in result.graph}
    assert verify_models(from_text(head(17) + text), result, Verify(runtime=runtime)).equal


@refuses(RULE, 1)
def test_another_reader() -> None:
    text = """g (float[1,4,3,8] q, float[2,2,8,3] k) => (float[2,4,3,3] y, float[2,4,8,3] z)
        <int64[4] each = {0, 0, 1, 1}> { r = Gather<axis = 1>(k, each)\n y = MatMul(q, r)\n z = Neg(r) }"""
    assert_refused(RULE, "used elsewhere", text, target="onnxruntime")


@refuses(RULE, 2)
def test_heads_that_are_not_known() -> None:
    text = """g (float[1,H,3,8] q, float[2,2,8,3] k) => (float[2,4,3,3] y) <int64[4] each = {0, 0, 1, 1}> {
        r = Gather<axis = 1>(k, each)\n y = MatMul(q, r) }"""
    assert_refused(RULE, "as many heads", text, target="onnxruntime")


@refuses(RULE, 3)
def test_an_opset_without_a_shape_of_one_axis() -> None:
    text = """g (float[B,6,N,8] x) => (float[B,4,N,N] y) <int64[4] each = {0, 0, 1, 1}, int64[2] parts = {4, 2}> {
        q, k = Split<axis = 1>(x, parts)\n r = Gather<axis = 1>(k, each)
        t = Transpose<perm = [0, 1, 3, 2]>(r)\n y = MatMul(q, t) }"""
    assert_refused(
        RULE, "opset 14 has no Shape with start and end, which came with 15", text, opset=14, target="onnxruntime"
    )


LEFT_ALONE = {
    "another order of heads": "0, 1, 0, 1",
    "one head left out": "0, 0, 0, 0",
    "not repeated": "1, 0",
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    each = LEFT_ALONE[case]
    count = len(each.split(","))
    text = f"""g (float[2,{count},3,8] q, float[2,2,8,3] k) => (float[2,{count},3,3] y)
        <int64[{count}] each = {{{each}}}> {{ r = Gather<axis = 1>(k, each)\n y = MatMul(q, r) }}"""
    assert_left_alone(RULE, text, target="onnxruntime")


def test_it_runs_for_its_target_only() -> None:
    _, part = simplified(from_text(head(17) + attention()))
    assert RULE not in {entry.rule for entry in (*part.fired, *part.refused)}
    _, named = simplified(from_text(head(17) + cached()), only=[RULE])
    assert RULE in {entry.rule for entry in named.fired}
