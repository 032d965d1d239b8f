"""Types and shapes on the page: omitted operands, failing inferences, sequences, optionals and maps."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes import sound_shapes
from onnxsmith.graph.structure import walk
from onnxsmith.viewer.numbering import value_type
from onnxsmith.viewer.scene_assembly import with_shapes
from tests.viewer.models import HEAD


def types(body: str, opsets: str = '"": 20') -> tuple[dict[str, str], str | None]:
    """The types of all named results, and the note."""
    text = f"<ir_version: 10, opset_import: [{opsets}]>\n" + body
    model, _, note = with_shapes(from_text(text), own=True)
    return {v.name or "": value_type(v) for node in walk.all_nodes(model) for v in node.outputs if v.name}, note


BODY = """body = b (int64 i, bool c, float[1,4] v) => (bool d, float[1,4] w, float[1,4] s) {
    d = Identity(c) w = Add(v, x) s = Neg(w) }"""


@pytest.mark.parametrize("given", ["n, , x", ", go, x", ", , x"])
def test_a_loop_without_a_condition_or_a_trip_count(given: str) -> None:
    found, note = types(
        f"""g (float[1,4] x, int64 n, bool go) => (float[1,4] y, float[k,1,4] z) {{
        l, all = Loop<{BODY}>({given}) y = Relu(l) z = Abs(all) }}"""
    )
    assert note is None
    assert (found["l"], found["y"]) == ("float32[1, 4]", "float32[1, 4]")
    assert found["z"].startswith("float32[")
    assert found["z"].endswith(", 1, 4]")
    assert found["w"] == "float32[1, 4]"


def test_the_condition_stays_omitted() -> None:
    text = f"g (float[1,4] x, int64 n) => (float[1,4] y, float[k,1,4] z) {{ y, z = Loop<{BODY}>(n, , x) }}"
    model, _, _ = with_shapes(from_text(HEAD + text), own=True)
    assert model.graph[0].inputs[1] is None


def test_omitted_operands_of_other_operators() -> None:
    found, note = types(
        """g (float[1,4] x, float[1,3,8,8] q, float[5,2,4] t, float[1,12,4] w, float[1,12,3] r, float[1,2,3] h) =>
        (float[1,4] y, float[1,3,16,16] z, float[5,1,2,3] u, float[1,2,3] c)
        <float six = {6}, int64[4] to = {1,3,16,16}> {
        y = Clip(x, , six) z = Resize<mode = "nearest">(q, , , to)
        u, , c = LSTM<hidden_size = 3>(t, w, r, , , h) }"""
    )
    assert note is None
    assert found == {
        "y": "float32[1, 4]", "z": "float32[1, 3, 16, 16]", "u": "float32[5, 1, 2, 3]", "c": "float32[1, 2, 3]",
    }  # fmt: skip


def test_a_scan_and_an_if_without_operands() -> None:
    found, note = types(
        """g (float[T,4] x, float[4] s, bool c) => (float[4] last, float[T,4] all, float[2] y) {
        last, all = Scan<num_scan_inputs = 1, body = b (float[4] p, float[4] q) => (float[4] r, float[4] o) {
            r = Add(p, q) o = Neg(r) }>(s, x)
        a = If(c)<then_branch = t () => (float[2] k) { k = Constant<value = float[2] {1, 2}>() },
                  else_branch = e () => (float[2] l) { l = Constant<value = float[2] {3, 4}>() }>
        y = Relu(a) }"""
    )
    assert note is None
    assert (found["all"], found["a"], found["y"]) == ("float32[T, 4]", "float32[2]", "float32[2]")


def broken(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Lets the rule for Sin fail."""

    def fails(_: Any, node: ir.Node) -> None:
        raise error

    get = sound_shapes.rules().get
    rules = sound_shapes.context(from_text(HEAD + "g (float x) => (float y) { y = Abs(x) }"), elements=True).rules
    monkeypatch.setattr(rules, "get", lambda domain, op, n: fails if op == "Sin" else get(domain, op, n))


def test_only_what_depends_on_a_failed_inference_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, KeyError("a rule of the library broke"))
    monkeypatch.setattr("onnxsmith.graph.shapes.standard_inference.infer", lambda *_: {})
    found, note = types(
        """g (float[N,4] x) => (float y, float[N,4] z) {
        [hard] a = Sin(x) [behind] n = Neg(a) y = ReduceSum<keepdims = 0>(n) [aside] b = Abs(x) z = Relu(b) }"""
    )
    assert not {found["a"], found["n"]} & {"float32[N, 4]"}
    assert (found["b"], found["z"]) == ("float32[N, 4]", "float32[N, 4]")
    assert note is not None
    assert "shapes that depend on Sin hard (" in note
    assert "a rule of the library broke" in note
    assert "Error" not in note


def test_onnx_itself_is_asked_where_a_rule_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, ValueError("no"))
    found, note = types("g (float[N,4] x) => (float[N,4] y) { a = Sin(x) y = Neg(a) }")
    assert (note, found["y"]) == (None, "float32[N, 4]")


def sequence(body: str, inputs: str = "float[N,4] x, float[N,6] z, int64 i") -> dict[str, str]:
    return types(f"g ({inputs}) => (float y) {{ {body} y = ReduceSum<keepdims = 0>(e) }}")[0]


@pytest.mark.parametrize(
    ("body", "element"),
    [
        ("s = SequenceConstruct(x, x) e = SequenceAt(s, i)", "float32[N, 4]"),
        ("s = SequenceConstruct(x, z) t = SequenceErase(s, i) e = SequenceAt(t, i)", "float32[N, _"),
        ("s = SequenceEmpty() t = SequenceInsert(s, x) e = SequenceAt(t, i)", "float32[N, 4]"),
        ("s = SequenceConstruct(x) t = SequenceInsert(s, x) e = SequenceAt(t, i)", "float32[N, 4]"),
        ("s = SplitToSequence<axis = 1>(x) e = SequenceAt(s, i)", "float32[N, 1]"),
        ("s = SplitToSequence<axis = -1, keepdims = 0>(x) e = SequenceAt(s, i)", "float32[N]"),
        ("p = Constant<value = int64 {2}>() s = SplitToSequence<axis = 1>(x, p) e = SequenceAt(s, i)", "float32[N, 2]"),
        ("p = Constant<value = int64 {3}>() s = SplitToSequence<axis = 1>(x, p) e = SequenceAt(s, i)", "float32[N, _"),
        (
            "p = Constant<value = int64[2] {1, 3}>() s = SplitToSequence<axis = 1>(x, p) e = SequenceAt(s, i)",
            "float32[N, _",
        ),
        ("s = SequenceConstruct(x, x) e = ConcatFromSequence<axis = 1>(s)", "float32[N, _"),
        ("s = SequenceConstruct(x, x) e = ConcatFromSequence<axis = -1, new_axis = 1>(s)", "float32[N, 4, _"),
        (
            """s = SequenceConstruct(x, x)
            t = SequenceMap<body = b (float[N,4] p) => (q) { q = Transpose<perm = [1, 0]>(p) }>(s)
            e = SequenceAt(t, i)""",
            "float32[4, N]",
        ),
        ("o = Optional(x) e = OptionalGetElement(o)", "float32[N, 4]"),
    ],
)
def test_shapes_behind_sequences_and_optionals(body: str, element: str) -> None:
    found = sequence(body)["e"]
    assert found == element if element.endswith("]") else found.startswith(element)


def test_two_elements_of_different_sizes_share_no_name() -> None:
    found = sequence("s = SequenceConstruct(x, z) d = SequenceAt(s, i) e = SequenceAt(s, i)")
    assert found["d"] != found["e"]


def test_elements_of_other_ranks_are_counted_in_a_note() -> None:
    _, note = types(
        """g (float[4] x, float[2,2] z, int64 i) => (float y) {
        [two] s = SequenceConstruct(x, z) e = SequenceAt(s, i) y = ReduceSum<keepdims = 0>(e) }"""
    )
    assert note is not None
    assert note.startswith("the shapes of 2 results are unknown, from here on: SequenceConstruct two")


def test_maps_are_shown_as_declared() -> None:
    found, note = types(
        """g (float[1,3] x) => (int64[1] label, p) {
        label, raw = ai.onnx.ml.LinearClassifier<
            coefficients = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], classlabels_ints = [0, 1]>(x)
        p = ai.onnx.ml.ZipMap<classlabels_int64s = [0, 1]>(raw) }""",
        '"": 20, "ai.onnx.ml": 3',
    )
    assert found["p"] == "seq(map(int64, tensor(float)))"
    assert note is None
