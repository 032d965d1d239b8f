"""Faults in one leaf or at one threshold of a tree ensemble are seen."""

from __future__ import annotations

import pytest

from onnxsmith.comparison.sessions import verify_models
from onnxsmith.model.files.text import from_text
from onnxsmith.report.parts.verification import Verification

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
