"""Strings, sequences, optionals, maps, and dtypes that numpy does not have."""

# ruff: noqa: E501 — models in ONNX text, a line each

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

from judging.odd.base import Odd, X, floats, model, text, value, weight


def models() -> Iterator[Odd]:
    yield from _strings()
    yield from _sequences()
    yield from _optionals()
    yield from _maps()
    yield from _dtypes()


def _strings() -> Iterator[Odd]:
    words = {"x": np.array(["a", "", "größe 😀"], object)}
    yield text("string_identity", "g (string[N] x) => (string[N] y) { y = Identity(x) }", words)
    yield text(
        "string_equal",
        'g (string[N] x) => (bool[N] y) { c = Constant<value_string="a">() y = Equal(x, c) }',
        words,
        opset=19,
    )
    yield text("string_concat", "g (string[N] x) => (string[N] y) { y = StringConcat(x, x) }", words, opset=20)
    yield text(
        "string_normalizer",
        'g (string[N] x) => (string[M] y) { y = StringNormalizer<case_change_action="UPPER", locale="C">(x) }',
        words,
    )
    yield text(
        "string_split", "g (string[N] x) => (string[N,M] y, int64[N] n) { y, n = StringSplit(x) }", words, opset=20
    )
    encoder = helper.make_node(
        "LabelEncoder",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        keys_strings=["a", "b"],
        values_int64s=[1, 2],
        default_int64=-1,
    )
    strings = value("x", ("N",), TensorProto.STRING)
    yield Odd(
        "label_encoder",
        model([encoder], [strings], [value("y", ("N",), TensorProto.INT64)], imports={"": 17, "ai.onnx.ml": 3}),
        words,
    )
    scalar = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    yield Odd("ml_scaler", model([scalar], [value("x")], [value("y")], imports={"": 17, "ai.onnx.ml": 3}), X)
    linear = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "p"],
        domain="ai.onnx.ml",
        coefficients=[1.0, 0.0, 0.5, -1.0, 0.0, -0.5],
        intercepts=[0.0, 0.1],
        classlabels_strings=["no", "yes"],
        post_transform="SOFTMAX",
    )
    yield Odd(
        "linear_classifier",
        model(
            [linear],
            [value("x")],
            [value("label", ("N",), TensorProto.STRING), value("p", ("N", 2))],
            imports={"": 17, "ai.onnx.ml": 3},
        ),
        X,
    )
    table = weight("t", np.array(["p", "q", "r"], object))
    gather = helper.make_node("Gather", ["t", "i"], ["y"])
    yield Odd(
        "string_initializer",
        model([gather], [value("i", ("N",), TensorProto.INT64)], [value("y", ("N",), TensorProto.STRING)], [table]),
        {"i": np.array([0, 2], np.int64)},
    )
    hashed = helper.make_node(
        "TfIdfVectorizer",
        ["x"],
        ["y"],
        max_gram_length=1,
        max_skip_count=0,
        min_gram_length=1,
        mode="TF",
        ngram_counts=[0],
        ngram_indexes=[0, 1],
        pool_strings=["a", "b"],
    )
    yield Odd("tfidf", model([hashed], [strings], [value("y", (2,))]), words)


def _sequences() -> Iterator[Odd]:
    two = [floats(2), floats(3)]
    yield text(
        "sequence_construct", "g (float[N] x) => (seq(float[N]) y) { y = SequenceConstruct(x, x) }", {"x": floats(3)}
    )
    yield text(
        "sequence_input", "g (seq(float[N]) x) => (float[M] y) { y = ConcatFromSequence<axis=0>(x) }", {"x": two}
    )
    yield text("sequence_length", "g (seq(float[N]) x) => (int64 y) { y = SequenceLength(x) }", {"x": two})
    yield text("sequence_through", "g (seq(float[N]) x) => (seq(float[N]) y) { y = Identity(x) }", {"x": two})
    yield text(
        "sequence_split", "g (float[N] x) => (seq(float[M]) y) { y = SplitToSequence<axis=0>(x) }", {"x": floats(3)}
    )
    yield text(
        "sequence_inside",
        "g (float[N] x) => (float y) { i = Constant<value_int=1>() s = SplitToSequence<axis=0, keepdims=0>(x) y = SequenceAt(s, i) }",
        {"x": floats(3)},
    )
    yield text(
        "sequence_empty",
        "g (float[N] x) => (float[N] y) { e = SequenceEmpty<dtype=1>() s = SequenceInsert(e, x) i = Constant<value_int=0>() y = SequenceAt(s, i) }",
        {"x": floats(3)},
    )
    made = model([helper.make_node("SplitToSequence", ["x"], ["s"])], [value("x")], [onnx.ValueInfoProto(name="s")])
    yield Odd("sequence_output_without_type", made, X)
    bare = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    yield Odd(
        "sequence_without_shape", model([helper.make_node("SplitToSequence", ["x"], ["s"])], [value("x")], [bare]), X
    )


def _optionals() -> Iterator[Odd]:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N"])
    optional = helper.make_optional_type_proto(tensor)
    given = helper.make_value_info("x", optional)
    node = helper.make_node("OptionalGetElement", ["x"], ["y"])
    yield Odd("optional_input", model([node], [given], [value("y", ("N",))], opset=18), {"x": floats(3)})
    node = helper.make_node("OptionalHasElement", ["x"], ["y"])
    yield Odd("optional_has", model([node], [given], [value("y", (), TensorProto.BOOL)], opset=18), {"x": floats(3)})
    node = helper.make_node("Optional", ["x"], ["y"])
    yield Odd(
        "optional_output",
        model([node], [value("x", ("N",))], [helper.make_value_info("y", optional)], opset=18),
        {"x": floats(3)},
    )
    inner = [helper.make_node("Optional", ["x"], ["o"]), helper.make_node("OptionalGetElement", ["o"], ["y"])]
    yield Odd("optional_inside", model(inner, [value("x", ("N",))], [value("y", ("N",))], opset=18), {"x": floats(3)})
    sequence = helper.make_optional_type_proto(helper.make_sequence_type_proto(tensor))
    node = helper.make_node("OptionalGetElement", ["x"], ["y"])
    yield Odd(
        "optional_sequence",
        model(
            [node],
            [helper.make_value_info("x", sequence)],
            [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, ["N"])],
            opset=18,
        ),
        {"x": [floats(2), floats(3)]},
    )


def _maps() -> Iterator[Odd]:
    ml = {"": 17, "ai.onnx.ml": 3}
    for name, options, key in (
        ("int64", {"classlabels_int64s": [3, 4, 5]}, TensorProto.INT64),
        ("string", {"classlabels_strings": ["a", "b", "c"]}, TensorProto.STRING),
    ):
        pair = helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
        output = helper.make_value_info("z", helper.make_sequence_type_proto(pair))
        node = helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", **options)
        yield Odd(f"zipmap_{name}", model([node], [value("x")], [output], imports=ml), X)
        yield Odd(
            f"zipmap_{name}_and_tensor",
            model(
                [node, helper.make_node("ArgMax", ["x"], ["y"], axis=1)],
                [value("x")],
                [output, value("y", None, TensorProto.INT64)],
                imports=ml,
            ),
            X,
        )
    yield Odd(
        "zipmap_untyped",
        model(
            [helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[3, 4, 5])],
            [value("x")],
            [onnx.ValueInfoProto(name="z")],
            imports=ml,
        ),
        X,
    )
    pair = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    node = helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b"])
    yield Odd(
        "map_input",
        model([node], [helper.make_value_info("x", pair)], [value("y", (1, 2))], imports=ml),
        {"x": {"a": 1.0}},
    )


def _dtypes() -> Iterator[Odd]:
    for name, kind in (
        ("bfloat16", TensorProto.BFLOAT16),
        ("float8e4m3fn", TensorProto.FLOAT8E4M3FN),
        ("float8e5m2", TensorProto.FLOAT8E5M2),
        ("float8e4m3fnuz", TensorProto.FLOAT8E4M3FNUZ),
        ("float8e5m2fnuz", TensorProto.FLOAT8E5M2FNUZ),
        ("int4", TensorProto.INT4),
        ("uint4", TensorProto.UINT4),
        ("float4e2m1", TensorProto.FLOAT4E2M1),
        ("float16", TensorProto.FLOAT16),
        ("float8e8m0", TensorProto.FLOAT8E8M0),
        ("int2", getattr(TensorProto, "INT2", 0)),
        ("uint2", getattr(TensorProto, "UINT2", 0)),
    ):
        if not kind:
            continue
        cast = [
            helper.make_node("Cast", ["x"], ["c"], to=kind),
            helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT),
        ]
        opset = 25 if name in ("int2", "uint2") else 24 if name == "float8e8m0" else 23
        yield Odd(
            f"{name}_through", model(cast, [value("x")], [value("y")], ir=13 if opset > 23 else 11, opset=opset), X
        )
        yield Odd(
            f"{name}_out",
            model(cast[:1], [value("x")], [value("c", ("N", 3), kind)], ir=13 if opset > 23 else 11, opset=opset),
            X,
        )
    for name, dtype in (("bfloat16", ml_dtypes.bfloat16), ("float8e4m3fn", ml_dtypes.float8_e4m3fn)):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        back = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
        yield Odd(
            f"{name}_in",
            model([back], [value("x", ("N", 3), kind)], [value("y")], ir=11, opset=23),
            {"x": X["x"].astype(dtype)},
        )
    for name, kind in (
        ("int8", TensorProto.INT8),
        ("uint8", TensorProto.UINT8),
        ("int4", TensorProto.INT4),
        ("uint4", TensorProto.UINT4),
        ("float8", TensorProto.FLOAT8E4M3FN),
    ):
        quantised = [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
        ]
        zero = helper.make_tensor("z", kind, [], [0])
        yield Odd(
            f"quantised_{name}",
            model(
                quantised, [value("x")], [value("y")], [weight("s", np.array(0.1, np.float32)), zero], ir=11, opset=21
            ),
            X,
        )
    for kind in (np.uint16, np.uint32, np.uint64, np.int16, np.float64, np.bool_):
        onnx_kind = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        node = helper.make_node("Identity", ["x"], ["y"])
        yield Odd(
            f"identity_{np.dtype(kind).name}",
            model([node], [value("x", ("N",), onnx_kind)], [value("y", ("N",), onnx_kind)]),
            {"x": np.array([0, 1, 1], kind)},
        )
    for kind in (TensorProto.COMPLEX64,):
        node = helper.make_node("Identity", ["x"], ["y"])
        yield Odd(
            "identity_complex64",
            model([node], [value("x", ("N",), kind)], [value("y", ("N",), kind)]),
            {"x": np.array([1j], np.complex64)},
        )
