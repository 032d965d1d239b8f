"""The headline of `quantize`: layers that compute apart from those that store weights, and scores that differ."""

from __future__ import annotations

import pytest

from onnxsmith.base.report.parts.quantisation import LayerDamage, Quantisation


def part(to: str, layers: str, after: float = 1.0) -> Quantisation:
    """Makes the part with a layer for each letter: `c` computes, `w` stores its weights, `k` is kept."""
    made = tuple(
        LayerDamage(f"l{at}", "MatMul", 64, None, "why" if kind == "k" else "", "why" if kind == "w" else "")
        for at, kind in enumerate(layers)
    )
    return Quantisation(to, "m", made, "cosine", "higher", 1.0, after, 0.9, "", 1, 1, False, False, 0, 10, 10, 1)


@pytest.mark.parametrize(
    ("to", "layers", "text"),
    [
        ("int8", "wwkk", "no layer computes in int8; 2 of 4 store only their weights in int8"),
        ("int8", "wkk", "no layer computes in int8; 1 of 3 stores only its weights in int8"),
        ("int8-nncf", "ccww", "2 of 4 layers compute in int8; 2 store only their weights in int8"),
        ("int8", "cwk", "1 of 3 layers computes in int8; 1 stores only its weights in int8"),
        ("int8", "cck", "2 of 3 layers became int8"),
        ("float16", "cc", "2 of 2 layers became float16"),
    ],
)
def test_layers_that_compute_are_counted_apart(to: str, layers: str, text: str) -> None:
    assert part(to, layers).summary().startswith(f"{text}, ")


@pytest.mark.parametrize(
    ("after", "text"),
    [(0.9999999, "cosine 1 → 0.9999999 "), (1.0, "cosine equal at 1 "), (0.5, "cosine 1 → 0.5 ")],
)
def test_scores_show_what_differs(after: float, text: str) -> None:
    assert text in part("float16", "cc", after).summary()
    (facts, *_) = part("float16", "cc", after).blocks()
    assert text.removeprefix("cosine ").strip() in str(facts)
