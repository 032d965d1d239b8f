"""Nodes without a partner that compute what other nodes of the other model compute."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.base.report.base import Table
from onnxsmith.base.report.parts.model_changes import Difference, SameRegions, otherwise_text
from onnxsmith.base.report.parts.written_files import View
from onnxsmith.comparison.graphs import equal_regions
from onnxsmith.comparison.graphs.diff import diff
from onnxsmith.comparison.graphs.graph_differences import Found
from onnxsmith.comparison.graphs.model_pairs import paired
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.view import view
from tests.viewer.test_view import scene_in

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
WEIGHTS = "float[12,12] w = {" + ",".join(str(n % 7 - 3) for n in range(144)) + "}"
SPLIT = (
    HEAD
    + f"""g (float[N,T,12] x) => (float[N,T,12] y) <{WEIGHTS}, int64[3] thirds = {{4, 4, 4}}> {{
        [m] t = MatMul(x, w)
        [split] a, b, c = Split<axis = 2>(t, thirds)
        [tanh] at = Tanh(a)
        [sin] bs = Sigmoid(b)
        [abs] ca = Abs(c)
        [join] y = Concat<axis = 2>(at, bs, ca)
    }}"""
)
SLICES = (
    HEAD
    + f"""g (float[N,T,12] x) => (float[N,T,12] y) <{WEIGHTS}, int64[1] zero = {{0}}, int64[1] four = {{4}},
        int64[1] eight = {{8}}, int64[1] end = {{12}}, int64[1] axis = {{2}}> {{
        [m] t = MatMul(x, w)
        [s0] a = Slice(t, zero, four, axis)
        [s1] b = Slice(t, four, eight, axis)
        [s2] c = Slice(t, eight, end, axis)
        [tanh] at = Tanh(a)
        [sin] bs = Sigmoid(b)
        [abs] ca = Abs(c)
        [join] y = Concat<axis = 2>(at, bs, ca)
    }}"""
)


def found(old: str, new: str) -> Found:
    return paired((from_text(old), from_text(new)))[3]


def names(region: equal_regions.SameRegion) -> tuple[set[str | None], set[str | None]]:
    return {node.name for node in region.nodes[0]}, {node.name for node in region.nodes[1]}


def covered(old: str, new: str) -> list[tuple[set[str | None], set[str | None]]]:
    return [names(region) for region in found(old, new).same]


def test_a_split_is_three_slices() -> None:
    assert covered(SPLIT, SLICES) == [({"split"}, {"s0", "s1", "s2"})]
    assert covered(SLICES, SPLIT) == [({"s0", "s1", "s2"}, {"split"})]


def test_the_report_tells_pairs_from_regions() -> None:
    part = diff(from_text(SPLIT), from_text(SLICES)).report.part(Difference)
    assert (part.paired, part.otherwise) == (5, {"removed": 1, "added": 3, "regions": 1})
    assert (part.changes["removed node"], part.changes["added node"]) == (1, 3)
    result = view(from_text(SPLIT), from_text(SLICES))
    assert result.report.part(View).otherwise == {"removed": 1, "added": 3, "regions": 1}
    assert otherwise_text(part.otherwise) == "the results of 1 removed and 3 added nodes, in 1 region"
    scene = scene_in(result.page)
    ours, theirs = (model["nodes"]["name"] for model in scene["models"])
    ((removed, added),) = scene["difference"]["regions"]
    assert ([ours[at] for at in removed], {theirs[at] for at in added}) == (["split"], {"s0", "s1", "s2"})


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("eight = {8}", "eight = {7}"),
        ("zero = {0}", "zero = {1}"),
        ("end = {12}", "end = {11}"),
        ("Slice(t, four, eight, axis)", "Slice(t, zero, four, axis)"),
        ("[s0] a = Slice(t, zero", "[more] u = Neg(t)\n        [s0] a = Slice(u, zero"),
    ],
)
def test_refused_where_the_results_differ(text: str, other: str) -> None:
    """Other parts are cut out, or parts of another tensor: the split has no counterpart then."""
    assert text in SLICES
    assert all("split" not in ours for ours, _ in covered(SPLIT, SLICES.replace(text, other)))


def test_the_parts_in_another_order() -> None:
    """The split still computes what the slices compute; the nodes that read them are what changed."""
    swapped = SLICES.replace("[s0] a", "[s0] A").replace("[s1] b", "[s1] a").replace("[s0] A", "[s0] b")
    (region,) = found(SPLIT, swapped).same
    assert names(region) == ({"split"}, {"s0", "s1", "s2"})
    parts = {x.name: y.name for x, y in region.ends if x.name in "abc"}
    assert parts == {"a": "b", "b": "a", "c": "c"}


def test_a_part_that_differs_is_left_out() -> None:
    """Two of three slices are right; the split computes the third as well, so that it is not what the slices are."""
    wrong = SLICES.replace("Slice(t, eight, end, axis)", "Slice(u, eight, end, axis)").replace(
        "[s0]", "[neg] u = Neg(t)\n        [s0]"
    )
    (((ours, theirs),)) = covered(SPLIT, wrong) or [(set(), set())]
    assert not ours
    assert theirs <= {"s0", "s1"}


SIZES = (
    HEAD
    + """g (float[N,T,12] x, float[1,4] k) => (float[N,4] y, float[N,4] v) <int64 zero = {0}, int64[1] first = {0},
        int64[1] four = {4}> {
        [shape0] s = Shape(x)
        [gather0] n = Gather<axis = 0>(s, zero)
        [row0] r = Unsqueeze(n, first)
        [to0] to = Concat<axis = 0>(r, four)
        [expand0] y = Expand(k, to)
        [neg] w = Neg(k)
        [shape1] s1 = Shape(x)
        [gather1] n1 = Gather<axis = 0>(s1, zero)
        [row1] r1 = Unsqueeze(n1, first)
        [to1] to1 = Concat<axis = 0>(r1, four)
        [expand1] v = Expand(w, to1)
    }"""
)
ONCE = (
    HEAD
    + """g (float[N,T,12] x, float[1,4] k) => (float[N,4] y, float[N,4] v) <int64[1] four = {4}> {
        [shape] s = Shape<start = 0, end = 1>(x)
        [to] to = Concat<axis = 0>(s, four)
        [expand0] y = Expand(k, to)
        [neg] w = Neg(k)
        [expand1] v = Expand(w, to)
    }"""
)


def test_a_size_that_one_model_computes_twice() -> None:
    result = found(SIZES, ONCE)
    lonely = {node.name for node in from_text(SIZES).graph} - {node.name for node in result.pairs.nodes}
    assert len(lonely) == 6
    assert set().union(*(names(region)[0] for region in result.same)) == lonely


def test_a_wrong_size_is_no_region() -> None:
    """The second size is that of the other axis."""
    wrong = SIZES.replace("(s1, zero)", "(s1, one)").replace("int64 zero = {0}", "int64 zero = {0}, int64 one = {1}")
    ours = set().union(*(ours for ours, _ in covered(wrong, ONCE)))
    assert not ours & {"shape1", "gather1", "row1", "to1"}


def test_the_report_names_the_nodes_of_both_models() -> None:
    """Also where one model computes the results by nodes that have partners."""
    part = diff(from_text(RESHAPED), from_text(COMPUTED)).report.part(SameRegions)
    (row,) = part.rows
    assert [(one.name, one.elsewhere) for one in row.old] == [("form", True)]
    assert {(one.name, one.elsewhere) for one in row.new} == {("rows", False), ("columns", False), ("to", False)}
    (table,) = part.blocks()
    assert isinstance(table, Table)
    assert table.rows[0][0] == "Reshape form (counted elsewhere)"
    for old, new in ((SIZES, ONCE), (ONCE, SIZES), (SPLIT, SLICES), (COMPUTED, RESHAPED)):
        assert all(row.old and row.new for row in diff(from_text(old), from_text(new)).report.part(SameRegions).rows)
        scene = scene_in(view(from_text(old), from_text(new)).page)
        assert all(ours and theirs for ours, theirs in scene["difference"]["regions"])


RESHAPED = (
    HEAD
    + """g (float[B,T,12] x) => (float[B,T,2,6] y) <int64[4] to = {0, 0, 2, 6}> { [first] u = Relu(x)
        [form] v = Reshape(u, to)
        [last] y = Tanh(v) }"""
)
COMPUTED = (
    HEAD
    + """g (float[N,S,12] x) => (float[N,S,2,6] y) <int64[1] two = {2}, int64[1] six = {6}> { [first] u = Relu(x)
        [rows] r = Shape<start = 0, end = 1>(x)
        [columns] c = Shape<start = 1, end = 2>(x)
        [to] to = Concat<axis = 0>(r, c, two, six)
        [form] v = Reshape<allowzero = 1>(u, to)
        [last] y = Tanh(v) }"""
)


def test_a_shape_is_equal_however_it_is_computed() -> None:
    assert covered(RESHAPED, COMPUTED) == [(set(), {"rows", "columns", "to"})]


def test_a_shape_with_other_axes_is_no_region() -> None:
    assert covered(RESHAPED, COMPUTED.replace("(r, c, two", "(c, r, two")) == []


def test_a_changed_weight_before_a_region() -> None:
    """The region is between pairs of tensors; that these differ is said of the node with the weight."""
    other = SLICES.replace("{-3,-2", "{5,6")
    result = found(SPLIT, other)
    assert [names(region) for region in result.same] == [({"split"}, {"s0", "s1", "s2"})]
    assert {one.name for one in result.pairs.nodes} == {"m", "tanh", "sin", "abs", "join"}


def test_more_nodes_than_a_region_may_have() -> None:
    """A long chain that one model folds away is not called a region, however equal its end is."""
    chain = "\n".join(f"[n{k}] v{k} = Identity(v{k - 1})" for k in range(1, 60))
    text = HEAD + f"g (float[N] x) => (float[N] y) {{ [first] v0 = Relu(x)\n{chain}\n[last] y = Tanh(v59) }}"
    short = HEAD + "g (float[N] x) => (float[N] y) { [first] v0 = Relu(x)\n[last] y = Tanh(v0) }"
    assert covered(text, short) == []
    few = text.replace(chain, "\n".join(chain.split("\n")[:9])).replace("Tanh(v59)", "Tanh(v9)")
    assert covered(few, short) == [({f"n{k}" for k in range(1, 10)}, set())]


def test_models_that_no_rule_can_read() -> None:
    broken = from_text(SPLIT)
    node = next(node for node in broken.graph if node.name == "join")
    node.attributes["axis"] = ir.AttrInt64("axis", 9)
    assert paired((broken, from_text(SLICES)))[3].pairs.nodes


def test_copies_of_weights_are_no_region() -> None:
    """A node that reads a weight through an Identity computes nothing otherwise; the Identities are counted apart."""
    plain = HEAD + (
        "g (float[N,12] x) => (float[N,12] y) <float[12] s = {1,2,3,4,5,6,7,8,9,1,2,3}> {\n"
        "[norm] t = LayerNormalization(x, s)\n[relu] y = Relu(t) }"
    )
    copied = plain.replace(
        "[norm] t = LayerNormalization(x, s)", "[copy] u = Identity(s)\n[norm] t = LayerNormalization(x, u)"
    )
    for old, new, counts in ((copied, plain, (1, 0)), (plain, copied, (0, 1))):
        both = found(old, new)
        assert not both.same
        assert tuple(map(len, both.of_weights)) == counts
        part = diff(from_text(old), from_text(new)).report.part(Difference)
        assert (part.otherwise, part.of_weights) == ({}, dict(zip(("removed", "added"), counts, strict=True)))
        result = view(from_text(old), from_text(new))
        assert result.report.part(View).of_weights == part.of_weights
        assert "1 node of weights alone" in (result.report.headline or "")
        scene = scene_in(result.page)
        assert tuple(map(len, scene["difference"]["stored"])) == counts


def test_random_nodes_and_nodes_of_inputs_are_not_of_weights() -> None:
    text = HEAD + (
        "g (float[2] x) => (float[2] y, float[2] z) <float[2] s = {1,2}> {\n"
        "[random] t = RandomNormalLike(s)\n[sum] y = Add(x, t)\n[copy] u = Neg(s)\n[again] z = Abs(u) }"
    )
    bare = HEAD + "g (float[2] x) => (float[2] y, float[2] z) { [sum] y = Neg(x)\n[other] z = Sqrt(x) }"
    assert {node.name for node in found(text, bare).of_weights[0]} == {"copy", "again"}
