"""Cases of the operators of ai.onnx.ml, of which onnx's own test cases show few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.files.text import from_text

_HEAD = '<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": {version}]> {name} ({inputs}) => ({outputs}) {{ {node} }}'
_TREE = (
    "nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0],"
    ' nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values = [0.5, 0.0, 0.0],'
    " nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0],"
)
_CLASS = "class_treeids = [0, 0], class_nodeids = [1, 2], class_ids = [0, 1], class_weights = [1.0, 1.0],"
_TARGET = "target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0], target_weights = [1.0, 2.0],"
_SVM = 'kernel_type = "RBF", kernel_params = [0.5, 0.0, 3.0], coefficients = [1.0, -1.0], rho = [0.1],'
_VECTORS = "support_vectors = [0.0, 1.0, 1.0, 0.0]"
_LABELS = {"ints": "classlabels_ints = [3, 4]", "strings": 'classlabels_strings = ["no", "yes"]'}
_TREE_LABELS = {"ints": "classlabels_int64s = [3, 4]", "strings": 'classlabels_strings = ["no", "yes"]'}
_X = "float[2, 2] x"
_BY_LABEL = {"ints": "int64[2] y, float[2, 2] z", "strings": "string[2] y, float[2, 2] z"}
FLOATS = np.array([[0.25, 1.5], [0.75, -2.0]], np.float32)


def ml_cases() -> Iterator[tuple[str, ir.Model, Mapping[str, Any]]]:
    """Yields a name, a model of one node and values for its inputs, each of the forms that converters write."""
    for kind, ports in _BY_LABEL.items():
        labels, tree_labels = _LABELS[kind], _TREE_LABELS[kind]
        for post in ("NONE", "SOFTMAX", "LOGISTIC"):
            end = f'post_transform = "{post}"'
            yield _case(f"linear_classifier_{kind}_{post}", _X, ports,
                        f"y, z = ai.onnx.ml.LinearClassifier<coefficients = [1.0, 2.0, -1.0, 0.5],"
                        f" intercepts = [0.1, 0.2], multi_class = 1, {labels}, {end}>(x)")  # fmt: skip
            yield _case(f"tree_ensemble_classifier_{kind}_{post}", _X, ports,
                        f"y, z = ai.onnx.ml.TreeEnsembleClassifier<{_TREE} {_CLASS} {tree_labels}, {end}>(x)",
                        version=3)  # fmt: skip
            yield _case(f"svm_classifier_{kind}_{post}", _X, ports,
                        f"y, z = ai.onnx.ml.SVMClassifier<{_SVM} {_VECTORS}, vectors_per_class = [1, 1],"
                        f" {labels}, {end}>(x)")  # fmt: skip
    yield _case("svm_classifier_probabilities", _X, _BY_LABEL["ints"],
                f"y, z = ai.onnx.ml.SVMClassifier<{_SVM} {_VECTORS}, vectors_per_class = [1, 1], prob_a = [-1.0],"
                f" prob_b = [0.0], {_LABELS['ints']}>(x)")  # fmt: skip
    yield _case("svm_regressor", _X, "float[2, 1] y",
                f"y = ai.onnx.ml.SVMRegressor<{_SVM} {_VECTORS}, n_supports = 2>(x)")  # fmt: skip
    yield _case("svm_regressor_one_class", _X, "float[2, 1] y",
                f"y = ai.onnx.ml.SVMRegressor<{_SVM} {_VECTORS}, n_supports = 2, one_class = 1>(x)")  # fmt: skip
    yield _case("linear_regressor", _X, "float[2, 1] y",
                "y = ai.onnx.ml.LinearRegressor<coefficients = [1.0, 2.0], intercepts = [0.5]>(x)")  # fmt: skip
    for how in ("SUM", "AVERAGE", "MIN"):
        yield _case(f"tree_ensemble_regressor_{how}", _X, "float[2, 1] y",
                    f'y = ai.onnx.ml.TreeEnsembleRegressor<{_TREE} {_TARGET} n_targets = 1,'
                    f' aggregate_function = "{how}">(x)', version=3)  # fmt: skip
    yield _case("scaler", _X, _X.replace("x", "y"), "y = ai.onnx.ml.Scaler<offset = [1.0, 2.0], scale = [0.5, 2.0]>(x)")
    yield _case("imputer", _X, _X.replace("x", "y"),
                "y = ai.onnx.ml.Imputer<imputed_value_floats = [9.0, 8.0], replaced_value_float = 1.5>(x)")  # fmt: skip
    yield _case("one_hot_encoder_ints", "int64[2] x", "float[2, 3] y",
                "y = ai.onnx.ml.OneHotEncoder<cats_int64s = [0, 1, 2], zeros = 1>(x)",
                np.array([2, 0]))  # fmt: skip
    yield _case("one_hot_encoder_strings", "string[2] x", "float[2, 2] y",
                'y = ai.onnx.ml.OneHotEncoder<cats_strings = ["a", "b"], zeros = 1>(x)',
                np.array(["b", "c"], object))  # fmt: skip
    yield _case("category_mapper", "string[2] x", "int64[2] y",
                'y = ai.onnx.ml.CategoryMapper<cats_int64s = [0, 1], cats_strings = ["a", "b"], default_int64 = -1>(x)',
                np.array(["b", "c"], object))  # fmt: skip
    for norm in ("MAX", "L1", "L2"):
        yield _case(f"normalizer_{norm}", _X, _X.replace("x", "y"), f'y = ai.onnx.ml.Normalizer<norm = "{norm}">(x)')
    yield _case("zip_map_ints", _X, "seq(map(int64, float)) y", "y = ai.onnx.ml.ZipMap<classlabels_int64s = [3, 4]>(x)")
    yield _case("zip_map_strings", _X, "seq(map(string, float)) y",
                'y = ai.onnx.ml.ZipMap<classlabels_strings = ["no", "yes"]>(x)')  # fmt: skip


def _case(
    name: str, inputs: str, outputs: str, node: str, value: Any = FLOATS, *, version: int = 1
) -> tuple[str, ir.Model, Mapping[str, Any]]:
    text = _HEAD.format(version=version, name=name, inputs=inputs, outputs=outputs, node=node)
    return f"own_{name}", from_text(text), {"x": value}
