"""Holds calls of the operators that a search for operands does not find: those with bodies, and those whose attributes
have to fit together. Each call is an expression with the builder `g`; an example shows it after it was run."""

from __future__ import annotations

_X = 'g.input("x", "float32", [2, 2])'
_RECURRENT = '{0}(g.input("x", "float32", [3, 1, 2]), np.ones((1, {1}, 2), np.float32), np.ones((1, {1}, 2), np.float32), hidden_size=2)[0]'  # noqa: E501
_SEQUENCE = "g.SequenceConstruct(g.input('x', 'float32', [2]), g.input('z', 'float32', [2]))".replace("'", '"')
_TREE = (
    '{0}, nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0], nodes_modes=["BRANCH_LEQ", '
    '"LEAF", "LEAF"], nodes_values=[0.5, 0.0, 0.0], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0]'
)

CALLS: dict[str, str] = {
    "AffineGrid": 'g.AffineGrid(g.input("theta", "float32", [1, 2, 3]), [1, 1, 2, 2])',
    "BitShift": 'g.BitShift(g.input("x", "uint8", [2]), g.input("bits", "uint8", [2]), direction="LEFT")',
    "Col2Im": 'g.Col2Im(g.input("x", "float32", [1, 4, 4]), [4, 4], [2, 2], strides=[2, 2])',
    "ConcatFromSequence": f"g.ConcatFromSequence({_SEQUENCE}, axis=0)",
    "Constant": "g.Constant(value=np.array([1, 2], np.float32))",
    "DeformConv": 'g.DeformConv(g.input("x", "float32", [1, 1, 3, 3]), np.ones((1, 1, 2, 2), np.float32), '
    'g.input("offset", "float32", [1, 8, 2, 2]))',
    "Einsum": 'g.Einsum(g.input("a", "float32", [2, 3]), g.input("b", "float32", [3, 4]), equation="ij,jk->ik")',
    "GRU": _RECURRENT.format("g.GRU", 6),
    "If": 'g.If(g.input("on", "bool", []), lambda: g.Constant(value_float=1.0), lambda: g.Constant(value_float=2.0))',
    "LSTM": _RECURRENT.format("g.LSTM", 8),
    "Loop": f"g.Loop(3, None, {_X}, body=lambda turn, on, state: (on, state * 2.0))",
    "MaxRoiPool": 'g.MaxRoiPool(g.input("x", "float32", [1, 1, 4, 4]), np.array([[0, 0, 0, 3, 3]], np.float32), '
    "pooled_shape=[2, 2])",
    "MeanVarianceNormalization": 'g.MeanVarianceNormalization(g.input("x", "float32", [2, 2, 2, 2]))',
    "NonMaxSuppression": 'g.NonMaxSuppression(g.input("boxes", "float32", [1, 3, 4]), '
    'g.input("scores", "float32", [1, 1, 3]), 2, 0.5)',
    "QLinearConv": 'g.QLinearConv(g.input("x", "uint8", [1, 1, 4, 4]), np.float32(0.1), np.uint8(0), '
    "np.ones((1, 1, 2, 2), np.uint8), np.float32(0.1), np.uint8(0), np.float32(0.1), np.uint8(0))",
    "RNN": _RECURRENT.format("g.RNN", 2),
    "RegexFullMatch": 'g.RegexFullMatch(g.input("x", "string", [2]), pattern="a+")',
    "RoiAlign": 'g.RoiAlign(g.input("x", "float32", [1, 1, 4, 4]), np.array([[0, 0, 3, 3]], np.float32), '
    "np.array([0], np.int64), output_height=2, output_width=2)",
    "STFT": 'g.STFT(g.input("signal", "float32", [1, 16, 1]), 4, None, 8)',
    "Scan": "g.Scan(np.zeros(2, np.float32), "
    f"{_X}, num_scan_inputs=1, body=lambda total, row: (total + row, total * row))[1]",
    "SequenceAt": f"g.SequenceAt({_SEQUENCE}, 0)",
    "SequenceErase": f"g.SequenceAt(g.SequenceErase({_SEQUENCE}, 0), 0)",
    "SequenceInsert": f'g.SequenceAt(g.SequenceInsert({_SEQUENCE}, g.input("more", "float32", [2])), 2)',
    "SequenceLength": f"g.SequenceLength({_SEQUENCE})",
    "TfIdfVectorizer": 'g.TfIdfVectorizer(g.input("x", "int64", [4]), max_gram_length=1, max_skip_count=0, '
    'min_gram_length=1, mode="TF", ngram_counts=[0], ngram_indexes=[0, 1], pool_int64s=[2, 3])',
    "ai.onnx.ml::CategoryMapper": 'g.node("ai.onnx.ml::CategoryMapper", g.input("x", "int64", [2]), '
    'cats_int64s=[1, 2], cats_strings=["a", "b"])',
    "ai.onnx.ml::FeatureVectorizer": f'g.node("ai.onnx.ml::FeatureVectorizer", {_X}, inputdimensions=[2])',
    "ai.onnx.ml::Imputer": f'g.node("ai.onnx.ml::Imputer", {_X}, imputed_value_floats=[0.5], replaced_value_float=1.0)',
    "ai.onnx.ml::LabelEncoder": 'g.node("ai.onnx.ml::LabelEncoder", g.input("x", "int64", [2]), keys_int64s=[1, 2], '
    'values_strings=["a", "b"])',
    "ai.onnx.ml::LinearClassifier": f'g.node("ai.onnx.ml::LinearClassifier", {_X}, coefficients=[1.0, -1.0, -1.0, 1.0],'
    " intercepts=[0.0, 0.5], classlabels_ints=[0, 1], outputs=2)[1]",
    "ai.onnx.ml::LinearRegressor": f'g.node("ai.onnx.ml::LinearRegressor", {_X}, coefficients=[1.0, 2.0], '
    "intercepts=[0.5])",
    "ai.onnx.ml::Normalizer": f'g.node("ai.onnx.ml::Normalizer", {_X}, norm="L2").declare("float32", [2, 2])',
    "ai.onnx.ml::OneHotEncoder": 'g.node("ai.onnx.ml::OneHotEncoder", g.input("x", "int64", [2]), '
    "cats_int64s=[0, 1, 2])",
    "ai.onnx.ml::SVMClassifier": f'g.node("ai.onnx.ml::SVMClassifier", {_X}, coefficients=[1.0, -1.0], '
    "support_vectors=[1.0, 1.0, 0.0, 0.0], vectors_per_class=[1, 1], rho=[0.5], classlabels_ints=[0, 1], "
    'kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], outputs=2)[1].declare("float32", [2, 2])',
    "ai.onnx.ml::SVMRegressor": f'g.node("ai.onnx.ml::SVMRegressor", {_X}, coefficients=[1.0, -1.0], n_supports=2, '
    'support_vectors=[1.0, 1.0, 0.0, 0.0], rho=[0.5], kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])'
    '.declare("float32", [2, 1])',
    "ai.onnx.ml::Scaler": f'g.node("ai.onnx.ml::Scaler", {_X}, offset=[0.5, 0.5], scale=[2.0, 2.0])',
    "ai.onnx.ml::TreeEnsemble": f'g.node("ai.onnx.ml::TreeEnsemble", {_X}, n_targets=1, tree_roots=[0], '
    "nodes_featureids=[0], nodes_splits=np.array([0.5], np.float32), nodes_modes=np.array([0], np.uint8), "
    "nodes_truenodeids=[0], nodes_trueleafs=[1], nodes_falsenodeids=[1], nodes_falseleafs=[1], "
    "leaf_targetids=[0, 0], leaf_weights=np.array([1, 2], np.float32))",
    "ai.onnx.ml::TreeEnsembleClassifier": _TREE.format(f'g.node("ai.onnx.ml::TreeEnsembleClassifier", {_X}')
    + ", class_treeids=[0, 0], class_nodeids=[1, 2], class_ids=[0, 1], class_weights=[1.0, 1.0], "
    "classlabels_int64s=[0, 1], outputs=2)[1]",
    "ai.onnx.ml::TreeEnsembleRegressor": _TREE.format(f'g.node("ai.onnx.ml::TreeEnsembleRegressor", {_X}')
    + ", target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, 2.0], n_targets=1)",
}
