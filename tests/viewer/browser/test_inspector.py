"""What the inspector says of a node of a real model."""

from __future__ import annotations

from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.view import view
from tests.viewer.browser.conftest import Open
from tests.viewer.models import HEAD
from tests.viewer.test_view import scene_in

MODEL = (
    HEAD
    + """g (float[N,3,4] x) => (float16[N,3,4] y, float[N,3,8] z) <float[3] s = {1,1,1}> {
        [bn] a = BatchNormalization(x, s, s, s, s)
        [cast] y = Cast<to = 10>(a)
        [join] z = Concat<axis = 2>(a, a)
    }"""
)


def test_operands_have_their_roles_and_dtypes_their_names(opened: Open) -> None:
    model = from_text(MODEL)
    next(iter(model.graph)).doc_string = "the first\nof three"
    scene = scene_in(view(model).page)
    page = opened(scene)

    def said(node: int) -> str:
        page.evaluate(f"window.onnxsmithView.jump(0, {{ kind: 'node', ref: {node} }})")
        return " ".join(page.locator(".inspector").inner_text().split())

    norm = said(0)
    assert "the first of three" in norm
    places = [norm.index(f" {role} s ") for role in ("scale", "B", "input_mean", "input_var")]
    assert places == sorted(places)
    assert "to FLOAT16 (10)" in said(1)
    assert "inputs[0] a" in said(2)
    assert "inputs[1] a" in said(2)
