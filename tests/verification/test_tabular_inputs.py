"""Faults in one leaf or at one threshold of a tree ensemble are seen."""

from __future__ import annotations

import pytest

from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.explore import _larger
from onnxsmith.verification.input_search import Plan, Run, Tries
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.sessions import verify_models

TREES = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>
g (float[{rows},2] x) => (float[{rows},1] y) {{
    y = ai.onnx.ml.TreeEnsembleRegressor<n_targets = 1, nodes_falsenodeids = [2, 4, 6, 0, 0, 0, 0],
    nodes_featureids = [0, 1, 1, 0, 0, 0, 0], nodes_nodeids = [0, 1, 2, 3, 4, 5, 6],
    nodes_modes = ["BRANCH_LEQ", "{mode}", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF", "LEAF"],
    nodes_treeids = [0, 0, 0, 0, 0, 0, 0], nodes_truenodeids = [1, 3, 5, 0, 0, 0, 0],
    nodes_values = [900.5, {threshold}, -70.25, 0.0, 0.0, 0.0, 0.0],
    target_ids = [0, 0, 0, 0], target_nodeids = [3, 4, 5, 6], target_treeids = [0, 0, 0, 0],
    target_weights = [1.0, 2.0, 4.0, {leaf}]>(x)
}}"""


def compared(rows: str = "n", threshold: str = "0.37", mode: str = "BRANCH_LEQ", leaf: float = 8.0) -> Verification:
    right = TREES.format(rows=rows, threshold=threshold, mode="BRANCH_LEQ", leaf=8.0)
    return verify_models(
        from_text(right), from_text(TREES.format(rows=rows, threshold=threshold, mode=mode, leaf=leaf))
    )


@pytest.mark.parametrize("rows", ["n", "1"])
def test_a_leaf_that_is_hardly_reached_is_compared(rows: str) -> None:
    assert not compared(rows, leaf=8.01).equal


@pytest.mark.parametrize("threshold", ["2.0", "0.37"])
def test_a_tie_is_compared(threshold: str) -> None:
    assert not compared(threshold=threshold, mode="BRANCH_LT").equal


def test_equal_trees_are_equal_on_rows_of_their_own() -> None:
    found = compared()
    assert found.equal
    assert 64 in found.sizes["n"]


class _Silent(Session):
    """A session that is not run."""

    def run(self, feeds: object) -> Outputs:
        raise AssertionError


@pytest.mark.parametrize(
    ("width", "sizes", "known", "rows"),
    [
        (8192, {"n": 2}, {}, 512),  # one result of 8,192 columns: 2^22 elements in 512 rows
        (8193, {"n": 2}, {}, 256),
        (2**19, {"n": 2}, {}, 8),
        (2**21, {"n": 2}, {}, None),  # not more than the two that there are
        (4096, {"n": 512}, {}, None),
        (4096, {"n": 2}, {"n": 2}, None),
    ],
)
def test_many_rows_are_tried_as_far_as_they_fit(
    width: int, sizes: dict[str, int], known: dict[str, int], rows: int | None
) -> None:
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[n,{width}] x) => (float[n,{width}] y) {{ y = Neg(x) }}'
    model, _ = inferred(from_text(text))
    tries = Tries(_Silent(), Plan(Generator.for_model(model), known=known))
    found = _larger(tries, Run(Feed("base", sizes, {}), {}), 512)
    assert found == (None if rows is None else {"n": rows})
