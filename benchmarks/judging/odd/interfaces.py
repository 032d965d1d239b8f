"""Inputs, outputs, names and declarations that a careful exporter would not write."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper

from judging.odd.base import Odd, X, affine, floats, model, text, value, weight


def models() -> Iterator[Odd]:
    yield from _undeclared()
    yield from _dimensions()
    yield from _names()
    yield from _passed_through()
    yield from _optional_inputs()
    yield from _notes()


def _undeclared() -> Iterator[Odd]:
    """Outputs without a type or a shape, inputs without a rank, value_info that says little."""
    made = affine()
    made.graph.output[0].ClearField("type")
    yield Odd("output_without_type", made, X)
    made = affine()
    made.graph.output[0].type.tensor_type.ClearField("shape")
    yield Odd("output_without_shape", made, X)
    made = affine()
    made.graph.output[0].type.tensor_type.ClearField("elem_type")
    yield Odd("output_without_elem_type", made, X)
    made = affine()
    made.graph.output[0].type.tensor_type.ClearField("elem_type")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    yield Odd("output_of_an_empty_tensor_type", made, X)
    made = affine()
    made.graph.output.append(onnx.ValueInfoProto(name="m"))
    yield Odd("second_output_without_type", made, X)
    made = affine()
    made.graph.input[0].type.tensor_type.ClearField("shape")
    yield Odd("input_without_shape", made, X)
    made = affine()
    made.graph.input[0].type.tensor_type.ClearField("shape")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    yield Odd("neither_has_a_shape", made, X)
    for name, kind in (("input", "input"), ("output", "output")):
        made = affine()
        for dim in getattr(made.graph, kind)[0].type.tensor_type.shape.dim:
            dim.Clear()
        yield Odd(f"{name}_dimensions_unsaid", made, X)
    for name, dims in (("negative", (-1, 3)), ("question_mark", ("?", 3)), ("empty_text", ("", 3))):
        made = affine()
        made.graph.input[0].CopyFrom(value("x", dims))
        yield Odd(f"input_dimension_{name}", made, X)
    made = affine()
    made.graph.output[0].CopyFrom(value("y", (-1, -1)))
    yield Odd("output_dimension_negative", made, X)
    info = helper.make_empty_tensor_value_info("m") if hasattr(helper, "make_empty_tensor_value_info") else None
    for name, items in (
        ("empty", [info or onnx.ValueInfoProto(name="m")]),
        ("only_a_name", [onnx.ValueInfoProto(name="m")]),
        ("without_elem_type", [_untyped("m")]),
        ("of_nothing", [value("nobody", (1,))]),
        ("twice", [value("m", ("N", 4)), value("m", ("N", 4))]),
        ("of_input_and_output", [value("x"), value("y", ("N", 4))]),
        ("of_initializer", [value("w", (3, 4))]),
        ("unknown_rank", [value("m", None)]),
        ("other_symbols", [value("m", ("who", "knows"))]),
    ):
        made = affine()
        made.graph.value_info.extend(items)
        yield Odd(f"value_info_{name}", made, X)


def _untyped(name: str) -> onnx.ValueInfoProto:
    made = value(name, ("N", 4))
    made.type.tensor_type.ClearField("elem_type")
    return made


def _dimensions() -> Iterator[Odd]:
    for index, symbol in enumerate(
        (
            "batch size",
            "N+1",
            "2*N",
            "floor(h/2)",
            "größe",
            "批",
            "a.b",
            "a-b",
            "a:b",
            "a/b",
            "0",
            "12",
            " ",
            "(",
            "N N",
            "unk__665",
            "Broadcast(batch_size, unk__665)",
            "None",
            "x" * 500,
            "a\nb",
            "😀",
            "N;drop",
            "%s",
            "{0}",
            "-1",
            "1e5",
            "max(a, b)",
            "self",
            "lambda",
            "__import__('os')",
        )
    ):
        made = affine()
        made.graph.input[0].CopyFrom(value("x", (symbol, 3)))
        made.graph.output[0].CopyFrom(value("y", (symbol, 4)))
        yield Odd(f"symbol_{index:02}", made, X)
    yield text(
        "symbol_shared_but_unequal",
        "g (float[N] x, float[N] z) => (float[M] y) { y = Concat<axis=0>(x, z) }",
        {"x": floats(2), "z": floats(5)},
    )
    yield text(
        "symbol_shared_broadcast",
        "g (float[N] x, float[N] z) => (float[N] y) { y = Add(x, z) }",
        {"x": floats(4), "z": floats(1)},
    )
    yield text("symbol_twice_in_one", "g (float[N,N] x) => (float[N,N] y) { y = Relu(x) }", X)
    yield text(
        "rank_0",
        "g (float x, float z) => (float y) { y = Mul(x, z) }",
        {"x": np.array(3, np.float32), "z": np.array(2, np.float32)},
    )
    yield text(
        "rank_0_and_1",
        "g (float x) => (float[1] y) { s = Constant<value = int64[1] {1}>() y = Reshape(x, s) }",
        {"x": np.array(3, np.float32)},
    )
    yield text("size_0_fixed", "g (float[0,3] x) => (float[0,3] y) { y = Relu(x) }", {"x": floats(0, 3)})
    yield text(
        "size_0_output_only",
        "g (float[N,3] x) => (float[0,3] y) { s = Constant<value = int64[1] {0}>() y = Slice(x, s, s) }",
        X,
    )
    yield text(
        "size_0_beside",
        "g (float[0,3] e, float[N,3] x) => (float[N,3] y) { y = Concat<axis=0>(e, x) }",
        {**X, "e": floats(0, 3)},
    )
    yield text(
        "size_0_reduced",
        "g (float[0,3] x) => (float[3] y) { y = ReduceSum<axes=[0],keepdims=0>(x) }",
        {"x": floats(0, 3)},
        opset=11,
    )
    yield text(
        "rank_9",
        "g (float[1,1,1,1,1,1,1,2,N] x) => (float[1,1,1,1,1,1,1,2,N] y) { y = Tanh(x) }",
        {"x": floats(1, 1, 1, 1, 1, 1, 1, 2, 3)},
    )


def _names() -> Iterator[Odd]:
    for index, name in enumerate(
        (
            "x:0",
            "a/b/c",
            "with space",
            "größe",
            "😀",
            "x.1",
            "%",
            "1",
            "-",
            "input[0]",
            "a" * 300,
            "None",
            "\t",
            "../x",
            "x;y",
            "x=1",
            "file",
            "<x>",
            "x@y",
            "'",
            '"',
            "{x}",
            "C:\\x",
        )
    ):
        made = affine()
        for port, end in ((made.graph.input[0], "i"), (made.graph.output[0], "o")):
            old, port.name = port.name, name + end
            for node in made.graph.node:
                node.input[:] = [port.name if n == old else n for n in node.input]
                node.output[:] = [port.name if n == old else n for n in node.output]
        yield Odd(f"port_name_{index:02}", made, {name + "i": X["x"]})
    made = affine()
    for node in made.graph.node:
        node.ClearField("name")
    yield Odd("nodes_unnamed", made, X)
    made = affine()
    for node in made.graph.node:
        node.name = "same"
    yield Odd("nodes_all_of_one_name", made, X)
    made = affine()
    made.graph.node[0].name = "m"
    made.graph.node[1].name = "x"
    yield Odd("node_named_like_values", made, X)
    made = affine()
    made.graph.name = "weird / name\n"
    yield Odd("graph_name_odd", made, X)
    made = affine()
    made.graph.node[0].name = ""
    made.graph.name = ""
    yield Odd("graph_without_name", made, X)


def _passed_through() -> Iterator[Odd]:
    yield text("input_is_output", "g (float[N,3] x) => (float[N,3] x) { }", X)
    yield text("input_is_output_too", "g (float[N,3] x) => (float[N,3] x, float[N,3] y) { y = Relu(x) }", X)
    made = affine()
    made.graph.output.append(value("w", (3, 4)))
    yield Odd("initializer_is_output", made, X)
    yield Odd("only_initializers", model([], [], [value("w", (3, 4))], [weight("w", floats(3, 4))]), {})
    yield Odd(
        "initializer_alone_is_output",
        model([helper.make_node("Relu", ["x"], ["r"])], [value("x")], [value("w", (3,))], [weight("w", floats(3))]),
        X,
    )
    made = affine()
    made.graph.input.append(value("unused", ("K", 7)))
    yield Odd("unused_input", made, {**X, "unused": floats(2, 7)})
    made = affine()
    made.graph.initializer.append(weight("unused", floats(5)))
    yield Odd("unused_initializer", made, X)
    made = affine()
    made.graph.node.append(helper.make_node("Sigmoid", ["m"], ["unused"]))
    yield Odd("unused_node", made, X)
    yield _first_output_unread()
    yield text("constant_model", "g () => (float[2] y) { y = Constant<value = float[2] {1.0, 2.0}>() }", {})
    yield text(
        "no_inputs_computed", "g () => (float[2] y) { c = Constant<value = float[2] {1.0, 2.0}>() y = Exp(c) }", {}
    )
    yield text(
        "identity_chain", "g (float[N,3] x) => (float[N,3] y) { a = Identity(x) b = Identity(a) y = Identity(b) }", X
    )
    yield text("same_value_thrice", "g (float[N,3] x) => (float[N,3] y) { y = Sum(x, x, x) }", X)
    made = affine()
    made.graph.node.extend([helper.make_node("Identity", ["y"], [f"y{i}"]) for i in range(40)])
    made.graph.output.extend([value(f"y{i}", ("N", 4)) for i in range(40)])
    yield Odd("outputs_41", made, X)
    names = [f"x{i}" for i in range(60)]
    yield Odd(
        "inputs_60",
        model([helper.make_node("Sum", names, ["y"])], [value(n) for n in names], [value("y")]),
        {n: floats(2, 3) for n in names},
    )


def _first_output_unread() -> Odd:
    return text(
        "first_output_unread",
        "g (float[N,3] x) => (int64[N,2] i) { k = Constant<value = int64[1] {2}>() v, i = TopK(x, k) }",
        X,
    )


def _optional_inputs() -> Iterator[Odd]:
    high = weight("high", np.array(0.5, np.float32))
    yield Odd(
        "optional_input_in_the_middle",
        model([helper.make_node("Clip", ["x", "", "high"], ["y"])], [value("x")], [value("y")], [high]),
        X,
    )
    yield Odd(
        "optional_inputs_at_the_end",
        model([helper.make_node("Clip", ["x", "", ""], ["y"])], [value("x")], [value("y")]),
        X,
    )
    sizes = weight("sizes", np.array([1, 1, 4, 6], np.int64))
    image = {"x": floats(1, 1, 2, 3)}
    yield Odd(
        "resize_sizes",
        model(
            [helper.make_node("Resize", ["x", "", "", "sizes"], ["y"])],
            [value("x", (1, 1, 2, 3))],
            [value("y", None)],
            [sizes],
        ),
        image,
    )
    empty = weight("none", np.zeros(0, np.float32))
    yield Odd(
        "resize_empty_roi_and_scales",
        model(
            [helper.make_node("Resize", ["x", "none", "none", "sizes"], ["y"])],
            [value("x", (1, 1, 2, 3))],
            [value("y", None)],
            [sizes, empty],
        ),
        image,
    )
    cell = [weight("w", floats(1, 8, 3)), weight("r", floats(1, 8, 2))]
    lstm = helper.make_node("LSTM", ["x", "w", "r", "", "", "", "c"], ["", "h", ""], hidden_size=2)
    yield Odd(
        "lstm_gaps",
        model([lstm], [value("x", ("T", 1, 3)), value("c", (1, 1, 2))], [value("h", (1, 1, 2))], cell),
        {"x": floats(4, 1, 3), "c": floats(1, 1, 2)},
    )
    lengths = value("lengths", (1,), TensorProto.INT32)
    lstm = helper.make_node("LSTM", ["x", "w", "r", "", "lengths"], ["y", "", "c"], hidden_size=2)
    yield Odd(
        "lstm_lengths",
        model([lstm], [value("x", ("T", 1, 3)), lengths], [value("y", None), value("c", None)], cell),
        {"x": floats(4, 1, 3), "lengths": np.array([3], np.int32)},
    )


def _notes() -> Iterator[Odd]:
    made = affine()
    for index, key in enumerate(("", "a.b", "größe", "x" * 2000, "line\nbreak", "😀")):
        made.metadata_props.add(key=key, value=f"{index}\0" if index == 1 else "")
    yield Odd("metadata_odd_keys", made, X)
    made = affine()
    made.metadata_props.add(key="twice", value="1")
    made.metadata_props.add(key="twice_", value="2")
    made.doc_string = made.graph.doc_string = "a\n\tdoc <b>&amp;</b>\x07" * 50
    for thing in (*made.graph.node, *made.graph.input, *made.graph.initializer):
        thing.doc_string = "said 😀"
        thing.metadata_props.add(key="k.é", value="v")
    yield Odd("doc_strings_everywhere", made, X)
    made = affine()
    made.producer_name, made.producer_version, made.domain, made.model_version = "é" * 100, "\n", "a b", -5
    yield Odd("producer_odd", made, X)
    made = affine()
    made.ClearField("producer_name")
    made.graph.ClearField("name")
    made.graph.name = "g"
    yield Odd("producer_missing", made, X)
    made = affine()
    note = made.graph.quantization_annotation.add(tensor_name="w")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="b")
    yield Odd("quantization_annotation", made, X)
    made = affine()
    made.graph.input[0].type.denotation = "IMAGE"
    made.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    yield Odd("denotations", made, X)
    made = affine(ir=11, opset=20)
    made.configuration.add(name="two", num_devices=2).device.extend(["a", "b"])
    yield Odd("device_configuration", made, X)
    training = affine()
    info = training.training_info.add()
    info.initialization.CopyFrom(
        helper.make_graph([helper.make_node("Identity", ["w"], ["w0"])], "init", [], [value("w0", (3, 4))])
    )
    info.algorithm.CopyFrom(
        helper.make_graph([helper.make_node("Neg", ["w"], ["w1"])], "step", [], [value("w1", (3, 4))])
    )
    info.update_binding.add(key="w", value="w1")
    yield Odd("training_info", training, X)
    training = affine()
    training.training_info.add()
    yield Odd("training_info_empty", training, X)
