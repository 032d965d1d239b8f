"""Generated boxes and scores show a NonMaxSuppression with other limits."""

from __future__ import annotations

import numpy as np
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.verification.inputs.generate import Generator
from onnxsmith.verification.sessions import verify_models

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'


def suppression(overlap: float, score: float, *, boxes: str = "n", most: int = 50, options: str = "") -> str:
    return f"""g (float[1,{boxes},4] boxes, float[1,2,{boxes}] scores) => (int64[k,3] y)
    <int64[1] most = {{{most}}}, float[1] overlap = {{{overlap}}}, float[1] least = {{{score}}}> {{
        y = NonMaxSuppression{options}(boxes, scores, most, overlap, least)
    }}"""


@pytest.mark.parametrize("most", [50, 5])
@pytest.mark.parametrize("boxes", ["n", "100", "20"])
@pytest.mark.parametrize(
    ("one", "other"), [((0.5, 0.0), (0.45, 0.0)), ((0.45, 0.0), (0.5, 0.0)), ((0.5, 0.5), (0.5, 0.45))]
)
def test_another_limit_is_seen(one: tuple[float, float], other: tuple[float, float], boxes: str, most: int) -> None:
    reference = from_text(HEAD + suppression(*one, boxes=boxes, most=most))
    assert verify_models(reference, from_text(HEAD + suppression(*other, boxes=boxes, most=most))).differs
    assert verify_models(reference, reference).equal


def test_centred_boxes_overlap_too() -> None:
    options = "<center_point_box = 1>"
    reference, candidate = (from_text(HEAD + suppression(one, 0.0, options=options)) for one in (0.5, 0.45))
    assert verify_models(reference, candidate).differs


def test_overlaps_vary_around_the_limit() -> None:
    generator = Generator.for_model(inferred(from_text(HEAD + suppression(0.5, 0.0)))[0])
    boxes = generator.feed({"n": 64}).values["boxes"][0]
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    shares = areas[1::2] / areas[::2]  # each second box lies in the box before it
    assert (boxes >= 0).all()
    assert (boxes <= 1).all()
    assert shares.min() < 0.3
    assert shares.max() > 0.7
    assert (np.abs(shares - 0.5) < 0.1).sum() > 8
