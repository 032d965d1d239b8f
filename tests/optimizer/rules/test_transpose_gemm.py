"""A product of matrices with a transposed weight is a Gemm that reads the weight as it is."""

from __future__ import annotations

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "fuse/transpose-gemm"
WEIGHT = "<float[2,3] v = {1, 2, 3, 4, 5, 6}>"


def test_a_default_weight_stays_a_default() -> None:
    text = f"g (float[N,3] x, float[2,3] v) => (float[N,2] y) {WEIGHT} {{ t = Transpose(v)\n y = MatMul(x, t) }}"
    assert_rewritten(RULE, "Gemm", text)


def test_a_transpose_that_others_read_stays() -> None:
    text = f"""g (float[N,3] x, float[2,3] v) => (float[N,2] y, float[3,2] z) {WEIGHT} {{
        t = Transpose(v)\n y = MatMul(x, t)\n z = Neg(t) }}"""
    assert_rewritten(RULE, "Transpose Gemm Neg", text)


def test_a_weight_that_folding_takes_stays() -> None:
    text = f"g (float[N,3] x) => (float[N,2] y) {WEIGHT} {{ t = Transpose(v)\n y = MatMul(x, t) }}"
    model, _ = simplified(from_text(head(17) + text), only=[RULE])
    assert [node.op_type for node in model.graph] == ["Transpose", "MatMul"]
    assert not any(node.meta for node in simplified(model)[0].graph)


def test_a_weight_that_folding_leaves_is_read_as_it_is() -> None:
    """The transposed copy of a weight that is read as it is, too, would make the file grow."""
    text = """g (float[N,64] x) => (float[N,64] y, float[64,64] z) <float[64,64] v = {0}> {
        t = Transpose(v)\n y = MatMul(x, t)\n z = Neg(v) }"""
    model = from_text(head(17) + text.replace("{0}", f"{{{', '.join(map(str, range(64 * 64)))}}}"))
    result, _ = simplified(model, skip=["fold/constant"], max_growth=0)
    assert "Gemm" not in [node.op_type for node in result.graph]
    result, _ = simplified(model, max_growth=0)
    assert [node.op_type for node in result.graph] == ["Gemm", "Neg"]


def test_other_ranks_stay() -> None:
    text = f"g (float[M,N,3] x, float[2,3] v) => (float[M,N,2] y) {WEIGHT} {{ t = Transpose(v)\n y = MatMul(x, t) }}"
    assert_left_alone(RULE, text)


def test_a_transpose_of_what_changes_stays() -> None:
    assert_left_alone(RULE, "g (float[N,3] x, float[2,3] v) => (float[N,2] y) { t = Transpose(v)\n y = MatMul(x, t) }")


@refuses(RULE, 1)
def test_integers_are_refused() -> None:
    text = """g (int32[N,3] x, int32[2,3] v) => (int32[N,2] y) <int32[2,3] v = {1, 2, 3, 4, 5, 6}> {
        t = Transpose(v)\n y = MatMul(x, t) }"""
    assert_refused(RULE, "not known to be floating point", text)
