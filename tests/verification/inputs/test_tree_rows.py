"""Rows for tree ensembles: every leaf is reached, and every split is decided."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.inputs.boundary_values import thresholds
from onnxsmith.verification.inputs.draw_description import Manner
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.tree_ensembles import LEAVES, SPLITS, ensembles

HEAD = '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": {}]>\n'
REGRESSOR = """ai.onnx.ml.TreeEnsembleRegressor<n_targets = 1, nodes_falsenodeids = [2, 4, 6, 0, 0, 0, 0],
    nodes_featureids = [0, 1, 1, 0, 0, 0, 0], nodes_nodeids = [0, 1, 2, 3, 4, 5, 6],
    nodes_modes = ["BRANCH_LEQ", "BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF", "LEAF"],
    nodes_treeids = [0, 0, 0, 0, 0, 0, 0], nodes_truenodeids = [1, 3, 5, 0, 0, 0, 0],
    nodes_values = [900.5, 2.0, -70.25, 0.0, 0.0, 0.0, 0.0], {more}
    target_ids = [0, 0, 0, 0], target_nodeids = [3, 4, 5, 6], target_treeids = [0, 0, 0, 0],
    target_weights = [1.0, 2.0, 4.0, 8.0]>"""
OF_5 = """ai.onnx.ml.TreeEnsemble<aggregate_function = 1, n_targets = 1, post_transform = 0, tree_roots = [0],
    nodes_featureids = [0, 1, 1], nodes_falseleafs = [0, 1, 1], nodes_falsenodeids = [2, 1, 3],
    nodes_trueleafs = [0, 1, 1], nodes_truenodeids = [1, 0, 2], nodes_modes = uint8[3] {0, 0, 0},
    nodes_splits = float[3] {900.5, 2, -70.25}, leaf_targetids = [0, 0, 0, 0],
    leaf_weights = float[4] {1, 2, 4, 8}>"""


def model(nodes: str, inputs: str = "float[n,2] x", weights: str = "", version: int = 3, more: str = "") -> ir.Model:
    nodes = nodes.replace("TREES", (OF_5 if version == 5 else REGRESSOR).replace("{more}", more))
    return from_text(HEAD.format(version) + f"g ({inputs}) => (float[n,1] y) {weights} {{ {nodes} }}")


def fed(read: ir.Model, kind: str, *, rows: int = 64, part: int = 0) -> Feed:
    generator = Generator.for_model(read)
    sizes = dict.fromkeys(generator.signature.symbols(), rows)
    return generator.feed(sizes, manner=Manner(rows=kind, part=part))


def leaves(table: np.ndarray) -> set[int]:
    """Which of the four leaves the rows of a table reach."""
    first, second = table[:, 0] <= 900.5, np.where(table[:, 0] <= 900.5, table[:, 1] <= 2, table[:, 1] <= -70.25)
    return set((2 * first + second).tolist())


@pytest.mark.parametrize("version", [3, 5])
def test_every_leaf_is_reached(version: int) -> None:
    read = model("y = TREES(x)", version=version)
    assert leaves(fed(read, LEAVES, rows=4).values["x"]) == {0, 1, 2, 3}
    assert set(thresholds(read)) >= {900.5, 2.0, -70.25}


def test_a_fixed_batch_gets_what_is_left_in_its_next_runs() -> None:
    read = model("y = TREES(x)", inputs="float[1,2] x")
    assert set().union(*(leaves(fed(read, LEAVES, part=part).values["x"]) for part in range(4))) == {0, 1, 2, 3}


@pytest.mark.parametrize("version", [3, 5])
def test_every_split_is_met_and_missed_by_a_hair(version: int) -> None:
    feed = fed(model("y = TREES(x)", version=version), SPLITS)
    assert feed.meant
    for column, threshold in ((0, 900.5), (1, 2.0), (1, -70.25)):
        at = np.float32(threshold)
        around = {float(at), float(np.nextafter(at, np.float32(np.inf))), float(np.nextafter(at, np.float32(-np.inf)))}
        assert around <= set(feed.values["x"][:, column].astype(float).tolist())


def test_whole_numbers_are_next_to_a_threshold_too() -> None:
    read = model("f = Cast<to = 1>(x)\n y = TREES(f)", inputs="int64[n,2] x")
    assert {899, 900, 901} <= set(fed(read, SPLITS).values["x"][:, 0].tolist())
    assert leaves(fed(read, LEAVES, rows=8).values["x"]) == {0, 1, 2, 3}


def test_features_are_followed_through_columns_and_scales() -> None:
    read = model(
        "s = ai.onnx.ml.Scaler<offset = [10.0], scale = [0.5]>(b)\n c = Concat<axis = 1>(s, a)\n"
        " g = Gather<axis = 1>(c, at)\n y = TREES(g)",
        inputs="float[n,1] a, float[n,1] b",
        weights="<int64[2] at = {1, 0}>",
    )
    values = fed(read, LEAVES).values
    assert leaves(np.concatenate([values["a"], (values["b"] - 10) * 0.5], axis=1)) == {0, 1, 2, 3}
    met = fed(read, SPLITS).values
    assert 900.5 in met["a"]
    assert 14.0 not in met["b"]  # nobody knows on which side of the threshold a scaled number comes out


def test_what_is_missing_is_left_out_where_that_has_a_way_of_its_own() -> None:
    plain = model("y = TREES(x)")
    tracking = model("y = TREES(x)", more="nodes_missing_value_tracks_true = [1, 0, 0, 0, 0, 0, 0],")
    assert not np.isnan(fed(plain, LEAVES).values["x"]).any()
    assert np.isnan(fed(tracking, LEAVES).values["x"]).any()


def test_a_tree_of_computed_features_is_left_alone() -> None:
    read = model("p = MatMul(x, w)\n y = TREES(p)", weights="<float[2,2] w = {1, 2, 3, 4}>")
    assert ensembles(read) == ()
    assert Generator.for_model(read).table.kinds == ()
